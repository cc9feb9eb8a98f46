/* SPDX-License-Identifier: Apache-2.0 */
/* The report's page, embedded in the program as texts. A Content-Security-Policy with these hashes
 * allows this script and this style and nothing else; the Makefile computes them. */
	.section .rodata
	.global html_page, html_style, html_script, html_style_hash, html_script_hash
html_page:
	.incbin "userspace/render/html/page.html"
	.byte 0
html_style:
	.incbin "userspace/render/html/style.css"
	.byte 0
html_script:
	.incbin "userspace/render/html/script.js"
	.byte 0
html_style_hash:
	.asciz STYLE_HASH
html_script_hash:
	.asciz SCRIPT_HASH
	.section .note.GNU-stack, "", %progbits

/* An assembly file has to declare itself that all its indirect branch targets are marked; this one
 * has none. Otherwise the linker drops the property for the whole program: x86-64 psABI, "Program
 * Property"; ELF for the Arm 64-bit Architecture, "Program Property". */
#ifdef __CET__
#include <cet.h>
#endif
#ifdef __ARM_FEATURE_BTI_DEFAULT
	.section .note.gnu.property, "a"
	.balign 8
	.word 4, 16, 5
	.asciz "GNU"
	.word 0xc0000000, 4, 3, 0
#endif
