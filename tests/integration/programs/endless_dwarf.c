// SPDX-License-Identifier: Apache-2.0
/*
 * Debug information that no compiler makes: a struct that contains itself forty times, and
 * namespaces nested in each other. To be compiled with -g0.
 */
struct job;
int begin(struct job *job);

__attribute__((noinline)) int begin(struct job *job)
{
	__asm__ volatile("" ::"r"(job));
	return 0;
}

int main(void)
{
	return begin(0);
}

__asm__(".pushsection .debug_abbrev,\"\",%progbits\n"
	"abbreviations:\n"
	".byte 1, 0x11, 1, 0x11, 0x01, 0x12, 0x07, 0, 0\n"             /* unit: low_pc, high_pc */
	".byte 2, 0x2e, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0\n" /* function, as well */
	".byte 3, 0x05, 0, 0x49, 0x13, 0, 0\n"                         /* parameter: type */
	".byte 4, 0x0f, 0, 0x49, 0x13, 0, 0\n"                         /* pointer: type */
	".byte 5, 0x13, 1, 0x03, 0x08, 0, 0\n"                         /* struct: name */
	".byte 6, 0x0d, 0, 0x49, 0x13, 0, 0\n"                         /* member: type */
	".byte 7, 0x39, 1, 0x01, 0x13, 0, 0\n"                         /* namespace: sibling */
	".byte 0\n"
	".popsection\n"
	".pushsection .debug_info,\"\",%progbits\n"
	"unit: .4byte unit_end - unit - 4\n"
	".2byte 4\n"
	".4byte abbreviations\n"
	".byte 8, 1\n"
	".8byte begin, 4096\n"
	".byte 2\n"
	".asciz \"begin\"\n"
	".8byte begin, 4096\n"
	".byte 3\n"
	".4byte pointer - unit\n"
	".byte 0\n"
	"pointer: .byte 4\n"
	".4byte job - unit\n"
	"job: .byte 5\n"
	".asciz \"job\"\n"
	".rept 40\n"
	".byte 6\n"
	".4byte job - unit\n"
	".endr\n"
	".byte 0\n"
	".rept 200\n"
	".byte 7\n"
	".4byte . + 4 - unit\n"
	".endr\n"
	".zero 202\n"
	"unit_end:\n"
	".popsection\n");
