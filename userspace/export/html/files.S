/* SPDX-License-Identifier: Apache-2.0 */
/* The report's page, as texts in the program. The hashes are what a Content-Security-Policy needs
 * to allow this script and this style and nothing else; the Makefile computes them. */
	.section .rodata
	.global html_page, html_style, html_script, html_style_hash, html_script_hash
html_page:
	.incbin "userspace/export/html/page.html"
	.byte 0
html_style:
	.incbin "userspace/export/html/style.css"
	.byte 0
html_script:
	.incbin "userspace/export/html/script.js"
	.byte 0
html_style_hash:
	.asciz STYLE_HASH
html_script_hash:
	.asciz SCRIPT_HASH
	.section .note.GNU-stack, "", %progbits
