/* SPDX-License-Identifier: Apache-2.0 */
/* The pages, embedded in the program as texts. A Content-Security-Policy with these hashes allows
 * these scripts and this style and nothing else; the Makefile computes them. */
	.section .rodata
	.global html_style, html_style_hash, html_common, html_common_hash
	.global html_report_page, html_report_script, html_report_hash
	.global html_gpu_page, html_gpu_script, html_gpu_hash
html_style:
	.incbin "userspace/render/html/style.css"
	.byte 0
html_common:
	.incbin "userspace/render/html/common.js"
	.byte 0
html_report_page:
	.incbin "userspace/render/html/report.html"
	.byte 0
html_report_script:
	.incbin "userspace/render/html/report.js"
	.byte 0
html_gpu_page:
	.incbin "userspace/render/html/gpu.html"
	.byte 0
html_gpu_script:
	.incbin "userspace/render/html/gpu.js"
	.byte 0
html_style_hash:
	.asciz STYLE_HASH
html_common_hash:
	.asciz COMMON_HASH
html_report_hash:
	.asciz REPORT_HASH
html_gpu_hash:
	.asciz GPU_HASH
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
