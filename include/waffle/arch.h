/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few instructions of a site, per architecture.
 *
 * WAFFLE_ASM_GOTO_     for gcc: tests the semaphore 992. If armed, it jumps to the label
 *                      waffle_armed_ with the address of the probe 990 in the variable `probe`. A
 *                      dormant site executes the first two instructions (aarch64: three) only.
 * WAFFLE_ASM_FLAGS_    for clang, whose asm goto up to version 16 rejects two uses in functions
 *                      with cleanups or lambdas: tests the semaphore and always yields the probe's
 *                      address. The compiler makes the branch.
 * WAFFLE_ASM_ADDRESS_  only yields the address, for a site without a semaphore.
 * WAFFLE_ASM_PROBE_    a landing pad, the probe, and a return. They are placed behind the function,
 *                      to keep them out of the hot path. The probe is a nop that the kernel patches
 *                      and emulates. Where branches are guarded (BTI, IBT), an indirect call may
 *                      only reach the landing pad. It is a nop for other processors. From the
 *                      probe to what follows the return are WAFFLE_PROBE_BYTES_.
 * WAFFLE_ASM_ARGS_     the locations of the probe's arguments, in the notation of USDT notes.
 * waffle_probe_call_() calls the landing pad of a probe with its four arguments in the registers
 *                      that abi.h names.
 *
 * Numeric labels are local to one use, so a site may be inlined, cloned or unrolled: each copy has
 * its own probe, semaphore and note. 989 marks the code of the function that contains the site. On
 * x86 the text has both dialects of assembler, {AT&T|Intel}, for -masm=intel.
 */
#ifndef WAFFLE_ARCH_H
#define WAFFLE_ARCH_H

/* Bytes from the landing pad's address, which is called, to the probe. */
#define WAFFLE_LANDING_ 4

#if defined(__x86_64__) && defined(__LP64__)

#define WAFFLE_ASM_TEST_ "989: {cmpw $0, 992f(%%rip)|cmp WORD PTR 992f[rip], 0}\n"
#define WAFFLE_ASM_LOAD_(reg) "{leaq 990f(%%rip), " reg "|lea " reg ", 990f[rip]}\n"

#define WAFFLE_ASM_GOTO_                                                                           \
	WAFFLE_ASM_TEST_                                                                           \
	"\tjne 991f\n"                                                                             \
	".subsection 1\n991: {leaq 990f(%%rip), %%rax|lea rax, 990f[rip]}\n"                       \
	"\t{movq %%rax, %[waffle_probe]|mov %[waffle_probe], rax}\n"                               \
	"\tjmp %l[waffle_armed_]\n\t.previous\n"
#define WAFFLE_ASM_CLOBBERS_ "rax", "cc"
#define WAFFLE_ASM_FLAGS_ WAFFLE_ASM_TEST_ "\t" WAFFLE_ASM_LOAD_("%[waffle_probe]")
#define WAFFLE_ASM_ARMED_(var) "=@ccne"(var)
#define WAFFLE_ASM_ADDRESS_ "989: " WAFFLE_ASM_LOAD_("%[waffle_probe]")
#define WAFFLE_ASM_PROBE_ ".subsection 1\n\tendbr64\n990: nop\n\tret\n\t.previous\n"
#define WAFFLE_PROBE_BYTES_ 2
#define WAFFLE_ASM_ARGS_ "8@%%rdi 8@%%rsi 8@%%rdx 8@%%rcx"
#define WAFFLE_ASM_SYMBOL_ "i"

static __inline__ __attribute__((__always_inline__)) void
waffle_probe_call_(const void *probe_, unsigned long long id_, const void *name_,
		   const void *frame_, unsigned long long size_)
{
	/*
	 * The call must not overwrite the red zone of a leaf function. The compiler does not know
	 * that the stack pointer changes, and a signal may interrupt the thread here whose handler
	 * unwinds the stack, as that of an asynchronous pthread_cancel() does. So the function must
	 * have a frame pointer, from which unwinders find its caller.
	 */
	__asm__ __volatile__("{leaq -128(%%rsp), %%rsp|lea rsp, [rsp - 128]}\n\t"
			     "call {*|}%[waffle_landing]\n\t"
			     "{leaq 128(%%rsp), %%rsp|lea rsp, [rsp + 128]}"
			     :
			     : [waffle_landing] "a"((const char *)probe_ - WAFFLE_LANDING_),
			       "D"(id_), "S"(name_), "d"(frame_), "c"(size_),
			       "r"(__builtin_frame_address(0))
			     : "memory", "cc");
}

#elif defined(__aarch64__) && defined(__LP64__)

#define WAFFLE_ASM_GOTO_                                                                           \
	"989: adrp x16, 992f\n\tldrh w16, [x16, #:lo12:992f]\n\tcbz w16, 988f\n\tb 991f\n988:\n"   \
	".subsection 1\n\t.balign 4\n991: adrp x16, 990f\n\tadd x16, x16, #:lo12:990f\n"           \
	"\tstr x16, %[waffle_probe]\n\tb %l[waffle_armed_]\n\t.previous\n"
#define WAFFLE_ASM_CLOBBERS_ "x16", "cc"
#define WAFFLE_ASM_LOAD_                                                                           \
	"adrp %[waffle_probe], 990f\n\tadd %[waffle_probe], %[waffle_probe], #:lo12:990f\n"
#define WAFFLE_ASM_FLAGS_                                                                          \
	"989: adrp %[waffle_probe], 992f\n"                                                        \
	"\tldrh %w[waffle_flag], [%[waffle_probe], #:lo12:992f]\n\t" WAFFLE_ASM_LOAD_
#define WAFFLE_ASM_ARMED_(var) [waffle_flag] "=&r"(var)
#define WAFFLE_ASM_ADDRESS_ "989: " WAFFLE_ASM_LOAD_
/* hint #34 is "bti c"; every assembler knows this name. */
#define WAFFLE_ASM_PROBE_ ".subsection 1\n\t.balign 4\n\thint #34\n990: nop\n\tret\n\t.previous\n"
#define WAFFLE_PROBE_BYTES_ 8
#define WAFFLE_ASM_ARGS_ "8@x0 8@x1 8@x2 8@x3"
#define WAFFLE_ASM_SYMBOL_ "S"

static __inline__ __attribute__((__always_inline__)) void
waffle_probe_call_(const void *probe_, unsigned long long id_, const void *name_,
		   const void *frame_, unsigned long long size_)
{
	register unsigned long long x0_ __asm__("x0") = id_;
	register const void *x1_ __asm__("x1") = name_;
	register const void *x2_ __asm__("x2") = frame_;
	register unsigned long long x3_ __asm__("x3") = size_;

	__asm__ __volatile__("blr %[waffle_landing]"
			     :
			     : [waffle_landing] "r"((const char *)probe_ - WAFFLE_LANDING_),
			       "r"(x0_), "r"(x1_), "r"(x2_), "r"(x3_)
			     : "memory", "cc", "x30");
}

#else
#error "waffle: only x86-64 and aarch64 (LP64) are supported; compile with -DWAFFLE_DISABLE"
#endif

#endif
