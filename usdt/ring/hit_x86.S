/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fast path of sites (hit.h). It is in assembler since it costs little more than the clock that
 * it reads. As long as a processor reads that, it does nothing else, and before that it finishes
 * what it has begun. So two things count between two readings: the number of instructions, and the
 * longest chain of loads of which each needs the result of the one before.
 *
 * A record is written in one restartable sequence (ring_write.h). It may begin again, so it leaves
 * the registers in which its function has got its arguments as they are. A frame with two keys has
 * sequences of its own, which need not keep the number of words.
 *
 *	rdi  probe		(leave: scope)	rax, rdx  free
 *	rsi  words		(leave: rest)	r9        the thread
 *	rdx  number of words	(leave: free)	r10       the writer, and then the record
 *	rcx  rest		(leave: probe)	r11       the ring's struct ring_shared
 *	r8   enter: scope, else rings_rseq
 *	xmm7 number of words, for other frames
 *
 * A jump to 9 (or 8 with two keys) gives the hit to the site's own slow path. Nothing has been
 * changed until then, but an id may have been drawn.
 */
#include "usdt/ring/hit_layout.h"

#ifdef __CET__
#include <cet.h>
#else
#define _CET_ENDBR
#endif

#if defined(__x86_64__) && defined(__LP64__)

	.macro function name
	.text
	.hidden \name
	.globl \name
	.type \name, @function
	.balign 64
\name:
	.cfi_startproc
	_CET_ENDBR
	.endm

	.macro function_end name
	.cfi_endproc
	.size \name, . - \name
	.endm

/* Goes on if this reader is the only one. */
	.macro gate_pass reader, slow
	.if \reader == THREAD_COLLECTOR
	cmpq $GATE_COLLECTOR, rings_gate(%rip)
	.else
	cmpq $GATE_TRACER, rings_gate(%rip)
	.endif
	jne \slow
	.endm

/* Tells the kernel of the sequence, and finds the thread and its writer. */
	.macro sequence_begin reader, rseq
	.pushsection __rseq_cs, "aw"
	.balign 32
73:	.long 0, 0
	.quad 71f, 72f - 71f, 74f
	.popsection
70:	movq rings_rseq(%rip), \rseq
	leaq 73b(%rip), %rax
	movq %rax, %fs:RSEQ_CS(\rseq)
71:	movq rings_thread@gottpoff(%rip), %rax
	movq %fs:THREAD_OWN(%rax), %r9
	movq %fs:\reader(%rax), %r10
	.endm

/* The abort handler of the sequence. It is in the same function, where unwinders know the stack.
 * The signature before it is part of an instruction that is never executed. */
	.macro sequence_abort
	nopl RSEQ_SIGNATURE(%rax)
74:	jmp 70b
	.endm

/*
 * Reads the clock into rax, in the middle of what has to be waited for: addresses that are loaded
 * from addresses. Only a thread that has a ring may do so (ticks_is_forbidden()). For the collector,
 * goes on if no tracer waits at the probe. The kernel counts those in the low byte of the site's
 * semaphore (usdt/record/sites.h), a tracer of rings among them.
 */
	.macro clock_read reader, probe, slow
	.if \reader == THREAD_COLLECTOR
	movslq PROBE_DISTANCE(\probe), %r11
	.endif
	testq %r10, %r10
	je \slow
	rdtsc
	.if \reader == THREAD_COLLECTOR
	cmpb $0, PROBE_DISTANCE(\probe, %r11)
	jne \slow
	.endif
	shlq $32, %rdx
	orq %rdx, %rax
	.endm

/* Goes on if the ring takes records. In the child of a fork() all of the writer is 0. */
	.macro writer_look reader, slow
	movq WRITER_SHARED(%r10), %r11
	cmpl $CLOCK_COUNTER, WRITER_CLOCK(%r10)
	jne \slow
	.if \reader == THREAD_TRACER
	cmpl $0, SHARED_READER(%r11)
	je \slow
	.endif
	.endm

/* Finds room, and begins a record there. `bytes` is how far from the ring's head (rdx) the record
 * has to end, if that is not within RING_SHORT bytes. */
	.macro record_begin slow, bytes:vararg
	movq SHARED_HEAD(%r11), %rdx
	.ifb \bytes
	cmpq WRITER_NEAR(%r10), %rdx
	jg \slow
	.else
	movq %rax, %xmm0
	movq %xmm7, %rax
	leaq \bytes, %rax
	cmpq WRITER_LIMIT(%r10), %rax
	ja \slow
	movq %xmm0, %rax
	.endif
	andq WRITER_MASK(%r10), %rdx
	leaq SHARED_DATA(%r11, %rdx), %r10
	/* Two lines, since records of more than one would leave some lines out. */
	prefetchw DATA_AHEAD(%r10)
	prefetchw DATA_AHEAD+CACHE_LINE(%r10)
	movq %rax, RECORD_TICKS(%r10)
	.endm

/* The CPU on which the thread runs, which the kernel keeps in its struct rseq. */
	.macro cpu_write rseq
	movl %fs:RSEQ_CPU_ID(\rseq), %edx
	movl %edx, RECORD_CPU(%r10)
	.endm

	.macro word_copy from, to
	movq \from, %rax
	movq %rax, \to
	.endm

	.macro hit_begin two
	.if \two
	record_begin 8f
	movl $TWO_BYTES + (KIND_HIT << 16), RECORD_BYTES(%r10)
	.else
	record_begin 9f, HIT_EXTRA(%rdx, %rax, 8)
	movq %xmm7, %rdx
	leal HIT_EXTRA + (KIND_HIT << 16)(, %rdx, 8), %eax
	movl %eax, RECORD_BYTES(%r10)
	.endif
	movq %rdi, RECORD_PROBE(%r10)
	.if \two
	word_copy FRAME_KEYS(%rsi), RECORD_KEYS(%r10)
	word_copy FRAME_KEYS+8(%rsi), RECORD_KEYS+8(%r10)
	.else
	subq $FRAME_KEYS/8, %rdx
	je 7f
6:	movq FRAME_KEYS-8(%rsi, %rdx, 8), %rax
	movq %rax, RECORD_KEYS-8(%r10, %rdx, 8)
	subq $1, %rdx
	jne 6b
7:
	.endif
	.endm

	.macro hit_commit two
	.if \two
	addq $TWO_BYTES, SHARED_HEAD(%r11)
	.else
	addq %rdx, SHARED_HEAD(%r11)
	.endif
72:
	.endm

/* Draws an id into a register. */
	.macro id_draw to, slow
	movq OF_BASE(%r9), \to
	addq OF_COUNT(%r9), \to
	je \slow
	incq OF_COUNT(%r9)
	.endm

	.macro event reader, two, slow
	sequence_begin \reader, %r8
	clock_read \reader, %rdi, \slow
	writer_look \reader, \slow
	hit_begin \two
	cpu_write %r8
	word_copy OF_SPAN(%r9), RECORD_PARENT(%r10)
	movups OF_HI(%r9), %xmm0
	movups %xmm0, RECORD_HI(%r10)
	id_draw %rax, \slow
	movq %rax, RECORD_ID(%r10)
	.if !\two
	movq %xmm7, %rdx
	leaq HIT_EXTRA(, %rdx, 8), %rdx
	.endif
	hit_commit \two
	ret
	sequence_abort
	.endm

/* Gives a hit to the site's slow path, whose fourth argument is `types_`. */
	.macro slow_path
9:	movq %xmm7, %rdx
10:	movq %rcx, %rax
	xorl %ecx, %ecx
	jmp *%rax
8:	movl $TWO_KEYS, %edx
	jmp 10b
	.endm

	.macro event_function name, reader
function \name
	cmpq $TWO_KEYS, %rdx
	jne 4f
	gate_pass \reader, 8f
	event \reader, 1, 8f
4:	movq %rdx, %xmm7
	gate_pass \reader, 9f
	event \reader, 0, 9f
	slow_path
function_end \name
	.endm

event_function hit_event_collector, THREAD_COLLECTOR
event_function hit_event_tracer, THREAD_TRACER

/*
 * Goes on unless the mode is full, or a scope is to be pruned, as by waffle_scope_prune_(), or is
 * too deep for a link. A signal handler that leaves scopes open makes the sequence begin again. So
 * what is read here is still so at the commit.
 */
	.macro scope_look slow
	movl OF_DEPTH(%r9), %edx
	testl %edx, %edx
	je 13f
	.irp at, 0, 1, 2, 3, 4, 5, 6
	movq OF_PLACES+8*\at(%r9), %r11
	subq %r8, %r11
	addq $SCOPE_BYTES-1, %r11
	cmpq $2*SCOPE_BYTES-1, %r11
	jb \slow
	subl $1, %edx
	je 13f
	.endr
	jmp \slow
13:
	.endm

	.macro scope_enter reader, two, slow
	sequence_begin \reader, %rdx
	clock_read \reader, %rdi, \slow
	scope_look \slow
	writer_look \reader, \slow
	hit_begin \two
	movq rings_rseq(%rip), %rdx
	cpu_write %rdx
	movups OF_HI(%r9), %xmm1
	movups %xmm1, OUTER_HI(%r8)
	movq OF_SPAN(%r9), %rax
	movq %rax, RECORD_PARENT(%r10)
	movq %rax, OUTER_SPAN(%r8)
	id_draw %rdx, \slow
	testq %rax, %rax
	jne 7f
	/* A span outside any trace begins one. Its ids are made of the span's. */
	movabsq $TRACE_FACTOR, %rax
	imulq %rdx, %rax
	movq %rax, %xmm1
	movq %rdx, %xmm2
	punpcklqdq %xmm2, %xmm1
7:	movups %xmm1, RECORD_HI(%r10)
	movq %rdx, RECORD_ID(%r10)
	movq %rdx, SCOPE_ID(%r8)
	.if !\two
	movq %rdx, %rax
	movq %xmm7, %rdx
	leaq HIT_EXTRA(, %rdx, 8), %rdx
	.endif
	/* A handler that comes later changes no register, and what it enters it leaves. */
	movq OF_DEPTH(%r9), %r10
	hit_commit \two
	.if !\two
	movq %rax, %rdx
	.endif
	/* Pushes the scope and returns it. The writes and their order are those of
	 * waffle_scope_push_(), which writes the place twice. */
	movq %rdi, SCOPE_PROBE(%r8)
	movl %r10d, %eax
	addq $1, %r10
	movq %r10, SCOPE_DEPTH(%r8)
	movq %r8, OF_PLACES(%r9, %rax, 8)
	movq %r10, OF_DEPTH(%r9)
	movq %r8, OF_PLACES(%r9, %rax, 8)
	shll $LINK_SHIFT, %eax
	movups %xmm1, OF_LINKS+LINK_HI(%r9, %rax)
	movq %rdx, OF_LINKS+LINK_SPAN(%r9, %rax)
	movq %r10, OF_LINKS+LINK_DEPTH(%r9, %rax)
	movups %xmm1, OF_HI(%r9)
	movq %rdx, OF_SPAN(%r9)
	movq %r8, %rax
	ret
	sequence_abort
	.endm

	.macro enter_function name, reader
function \name
	cmpq $TWO_KEYS, %rdx
	jne 4f
	gate_pass \reader, 8f
	scope_enter \reader, 1, 8f
4:	movq %rdx, %xmm7
	gate_pass \reader, 9f
	scope_enter \reader, 0, 9f
	slow_path
function_end \name
	.endm

enter_function hit_enter_collector, THREAD_COLLECTOR
enter_function hit_enter_tracer, THREAD_TRACER

	.macro scope_leave reader
	sequence_begin \reader, %r8
	clock_read \reader, %rcx, 9f
	writer_look \reader, 9f
	record_begin 9f
	cpu_write %r8
	movl $END_BYTES + (KIND_END << 16), RECORD_BYTES(%r10)
	movq SCOPE_ID(%rdi), %rdx
	movq %rdx, RECORD_END_ID(%r10)
	movq %rcx, RECORD_END_PROBE(%r10)
	addq $END_BYTES, SHARED_HEAD(%r11)
72:	/* Pops the scope, as waffle_scope_pop_(), if it is the innermost one. */
	movq SCOPE_DEPTH(%rdi), %rax
	cmpq OF_DEPTH(%r9), %rax
	jne 2f
	movl %eax, %ecx
	cmpq %rdi, OF_PLACES-8(%r9, %rcx, 8)
	jne 2f
	cmpq %rdx, OF_SPAN(%r9)
	jne 2f
	movups OUTER_HI(%rdi), %xmm0
	movups %xmm0, OF_HI(%r9)
	movq OUTER_SPAN(%rdi), %rdx
	movq %rdx, OF_SPAN(%r9)
	subq $1, %rax
	movq %rax, OF_DEPTH(%r9)
	movq $0, OF_PLACES-8(%r9, %rcx, 8)
	ret
	sequence_abort
	.endm

	.macro leave_function name, reader
function \name
	cmpl $LINKS, SCOPE_DEPTH(%rdi)
	ja 9f
	movq SCOPE_PROBE(%rdi), %rcx
	gate_pass \reader, 9f
	scope_leave \reader
2:	jmp hit_pop
9:	jmp *%rsi
function_end \name
	.endm

leave_function hit_leave_collector, THREAD_COLLECTOR
leave_function hit_leave_tracer, THREAD_TRACER

#endif
	.section .note.GNU-stack, "", @progbits
