/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few instructions of a site, per architecture.
 *
 * WAFFLE_ASM_GOTO_     for gcc: tests the semaphore 992 and jumps to the label `hit` with the
 * address of the probe 990 in the variable `probe`, if armed. A dormant site executes the first two
 *                      instructions (aarch64: three) and nothing else.
 * WAFFLE_ASM_FLAGS_    for clang, whose asm goto up to version 16 rejects two uses in functions
 * with cleanups or lambdas: tests the semaphore and always yields the probe's address; the branch
 * is the compiler's. WAFFLE_ASM_ADDRESS_  only yields the address, for a site without a semaphore.
 * WAFFLE_ASM_PROBE_    the probe: a nop that the kernel patches and emulates, and a return, placed
 * behind the function so that the hot path does not carry it. WAFFLE_ASM_ARGS_     where the
 * probe's arguments are, in the notation of USDT notes. waffle_probe_call_() calls a probe with its
 * four arguments in the registers that abi.h names.
 *
 * Numeric labels are local to one use, so a site survives being inlined, cloned or unrolled: each
 * copy has its own probe, semaphore and note. 989 marks the code of the function that holds the
 * site.
 */
#ifndef WAFFLE_ARCH_H
#define WAFFLE_ARCH_H

#if defined(__x86_64__) && defined(__LP64__)

#define WAFFLE_ASM_GOTO_                                                                           \
	"989: cmpw $0, 992f(%%rip)\n\tjne 991f\n"                                                  \
	".subsection 1\n991: leaq 990f(%%rip), %%rax\n\tmovq %%rax, %[probe]\n"                    \
	"\tjmp %l[hit]\n\t.previous\n"
#define WAFFLE_ASM_CLOBBERS_ "rax", "cc"
#define WAFFLE_ASM_FLAGS_ "989: cmpw $0, 992f(%%rip)\n\tleaq 990f(%%rip), %[probe]\n"
#define WAFFLE_ASM_ARMED_(var) "=@ccne"(var)
#define WAFFLE_ASM_ADDRESS_ "989: leaq 990f(%%rip), %[probe]\n"
#define WAFFLE_ASM_PROBE_ ".subsection 1\n990: nop\n\tret\n\t.previous\n"
#define WAFFLE_ASM_ARGS_ "8@%%rdi 8@%%rsi 8@%%rdx 8@%%rcx"
#define WAFFLE_ASM_SYMBOL_ "i"

static inline __attribute__((always_inline)) void
waffle_probe_call_(const void *probe, unsigned long long id, const void *name, const void *frame,
		   unsigned long long size)
{
	/* The call must not write into the red zone of a leaf function. */
	__asm__ __volatile__("leaq -128(%%rsp), %%rsp\n\t"
			     "call *%[probe]\n\t"
			     "leaq 128(%%rsp), %%rsp"
			     :
			     : [probe] "a"(probe), "D"(id), "S"(name), "d"(frame), "c"(size)
			     : "memory", "cc");
}

#elif defined(__aarch64__) && defined(__LP64__)

#define WAFFLE_ASM_GOTO_                                                                           \
	"989: adrp x16, 992f\n\tldrh w16, [x16, #:lo12:992f]\n\tcbz w16, 988f\n\tb 991f\n988:\n"   \
	".subsection 1\n\t.balign 4\n991: adrp x16, 990f\n\tadd x16, x16, #:lo12:990f\n"           \
	"\tstr x16, %[probe]\n\tb %l[hit]\n\t.previous\n"
#define WAFFLE_ASM_CLOBBERS_ "x16", "cc"
#define WAFFLE_ASM_FLAGS_                                                                          \
	"989: adrp %[probe], 992f\n\tldrh %w[armed], [%[probe], #:lo12:992f]\n"                    \
	"\tadrp %[probe], 990f\n\tadd %[probe], %[probe], #:lo12:990f\n"
#define WAFFLE_ASM_ARMED_(var) [armed] "=&r"(var)
#define WAFFLE_ASM_ADDRESS_ "989: adrp %[probe], 990f\n\tadd %[probe], %[probe], #:lo12:990f\n"
#define WAFFLE_ASM_PROBE_ ".subsection 1\n\t.balign 4\n990: nop\n\tret\n\t.previous\n"
#define WAFFLE_ASM_ARGS_ "8@x0 8@x1 8@x2 8@x3"
#define WAFFLE_ASM_SYMBOL_ "S"

static inline __attribute__((always_inline)) void
waffle_probe_call_(const void *probe, unsigned long long id, const void *name, const void *frame,
		   unsigned long long size)
{
	register unsigned long long x0 __asm__("x0") = id;
	register const void *x1 __asm__("x1") = name;
	register const void *x2 __asm__("x2") = frame;
	register unsigned long long x3 __asm__("x3") = size;

	__asm__ __volatile__("blr %[probe]"
			     :
			     : [probe] "r"(probe), "r"(x0), "r"(x1), "r"(x2), "r"(x3)
			     : "memory", "cc", "x30");
}

#else
#error "waffle: only x86-64 and aarch64 (LP64) are supported; compile with -DWAFFLE_DISABLE"
#endif

#endif
