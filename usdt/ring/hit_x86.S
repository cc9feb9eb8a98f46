/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fast path of sites (hit.h). It is in assembler since it costs little more than the clock that
 * it reads: as long as a processor reads that, it does nothing else, and before that it finishes
 * what it has begun. So each instruction counts, and each value that has to be waited for.
 *
 * A record is written in one restartable sequence (ring_write.h). It begins with nothing but the
 * arguments, of which it changes none, since it may begin again:
 *
 *	rdi  probe		(leave: scope)	rax, rdx  free
 *	rsi  words		(leave: thread)	r10       the record, and before that the writer
 *	rdx  types, NULL	(leave: rest)	r11       the ring's struct ring_shared
 *	rcx  number of words	(leave: probe)
 *	r8   thread		(enter: scope)	(leave: rest)
 *	r9   free		(enter: thread)
 *
 * A jump to 9 gives the hit to the site's own slow path. Nothing has been changed until then, but
 * an id may have been drawn.
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

/* Goes on if the collector alone wants hits, and no tracer waits at the probe. The kernel counts
 * those in the low byte of the site's semaphore (usdt/record/sites.h). */
	.macro collector_pass probe
	cmpq $GATE_COLLECTOR, rings_gate(%rip)
	jne 5f
	movslq PROBE_DISTANCE(\probe), %rax
	cmpb $0, PROBE_DISTANCE(\probe, %rax)
	jne 9f
	.endm

/* Goes on if a tracer of rings alone does. */
	.macro tracer_pass
5:	cmpq $GATE_TRACER, rings_gate(%rip)
	jne 9f
	.endm

/* Tells the kernel of the sequence. The signature in front of the abort handler is part of an
 * instruction that does nothing. */
	.macro sequence_begin
	.pushsection __rseq_cs, "aw"
	.balign 32
73:	.long 0, 0
	.quad 71f, 72f - 71f, 70f
	.popsection
	nopl RSEQ_SIGNATURE(%rax)
70:	movq rings_rseq(%rip), %rdx
	leaq 73b(%rip), %rax
	movq %rax, %fs:RSEQ_CS(%rdx)
71:
	.endm

/* Finds room, and begins the record there. Keeps its end in r9 if `end` is 1. */
	.macro record_begin writer, end, length:vararg
	movq rings_thread@gottpoff(%rip), %rax
	movq %fs:\writer(%rax), %r10
	movq WRITER_SHARED(%r10), %r11
	cmpl $CLOCK_COUNTER, WRITER_CLOCK(%r10)
	jne 9f
	.if \writer == THREAD_TRACER
	cmpl $0, SHARED_READER(%r11)
	je 9f
	.endif
	rdtsc
	shlq $32, %rdx
	orq %rax, %rdx
	movq SHARED_HEAD(%r11), %rax
	.if \end
	leaq \length, %r9
	cmpq WRITER_LIMIT(%r10), %r9
	ja 9f
	.else
	movq %rdx, %xmm0
	leaq \length, %rdx
	cmpq WRITER_LIMIT(%r10), %rdx
	ja 9f
	.endif
	andq WRITER_MASK(%r10), %rax
	leaq SHARED_DATA(%r11, %rax), %r10
	/* Two lines, since records of more than one would leave some lines out. */
	prefetchw DATA_AHEAD(%r10)
	prefetchw DATA_AHEAD+CACHE_LINE(%r10)
	.if \end
	movq %rdx, RECORD_TICKS(%r10)
	.else
	movq %xmm0, RECORD_TICKS(%r10)
	.endif
	.endm

	.macro kind_set kind
	movq rings_rseq(%rip), %rdx
	movl %fs:RSEQ_CPU_ID(%rdx), %edx
	shll $16, %edx
	orl $\kind, %edx
	movl %edx, RECORD_KIND(%r10)
	.endm

	.macro word_copy from, to
	movq \from, %rax
	movq %rax, \to
	.endm

	.macro record_commit end, two
	.if \end
	movq %r9, SHARED_HEAD(%r11)
	.elseif \two
	addq $TWO_BYTES, SHARED_HEAD(%r11)
	.else
	leaq HIT_EXTRA(, %rcx, 8), %rax
	addq %rax, SHARED_HEAD(%r11)
	.endif
72:
	.endm

	.macro hit_begin writer, end, two
	sequence_begin
	.if \two
	record_begin \writer, \end, TWO_BYTES(%rax)
	movl $TWO_BYTES, RECORD_BYTES(%r10)
	.else
	record_begin \writer, \end, HIT_EXTRA(%rax, %rcx, 8)
	leal HIT_EXTRA(, %rcx, 8), %eax
	movl %eax, RECORD_BYTES(%r10)
	.endif
	kind_set KIND_HIT
	movq %rdi, RECORD_PROBE(%r10)
	.if \two
	word_copy FRAME_KEYS(%rsi), RECORD_KEYS(%r10)
	word_copy FRAME_KEYS+8(%rsi), RECORD_KEYS+8(%r10)
	.else
	movq %rcx, %rdx
	subq $FRAME_KEYS/8, %rdx
	je 7f
6:	movq FRAME_KEYS-8(%rsi, %rdx, 8), %rax
	movq %rax, RECORD_KEYS-8(%r10, %rdx, 8)
	subq $1, %rdx
	jne 6b
7:
	.endif
	.endm

	.macro event writer, two
	hit_begin \writer, 1, \two
	word_copy OF_SPAN(%r8), RECORD_PARENT(%r10)
	movups OF_HI(%r8), %xmm0
	movups %xmm0, RECORD_HI(%r10)
	movq OF_BASE(%r8), %rdx
	addq OF_COUNT(%r8), %rdx
	je 9f
	incq OF_COUNT(%r8)
	movq %rdx, RECORD_ID(%r10)
	record_commit 1, \two
	movq %rdx, %rax
	ret
	.endm

function hit_event
	cmpq $TWO_KEYS, %rcx
	jne 4f
	collector_pass %rdi
	event THREAD_COLLECTOR, 1
	tracer_pass
	event THREAD_TRACER, 1
4:	collector_pass %rdi
	event THREAD_COLLECTOR, 0
	tracer_pass
	event THREAD_TRACER, 0
9:	movq %rcx, %rdx
	xorl %ecx, %ecx
	jmp *FRAME_REST(%rsi)
function_end hit_event

	.macro scope_enter writer, two
	hit_begin \writer, 0, \two
	movups OF_HI(%r9), %xmm1
	movups %xmm1, OUTER_HI(%r8)
	movq OF_SPAN(%r9), %rax
	movq %rax, RECORD_PARENT(%r10)
	movq %rax, OUTER_SPAN(%r8)
	movq OF_BASE(%r9), %rdx
	addq OF_COUNT(%r9), %rdx
	je 9f
	incq OF_COUNT(%r9)
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
	/* A signal handler may have left scopes open since the depth was looked at. What is read
	 * here is still so at the commit, and a handler that comes later changes no register. */
	movq OF_DEPTH(%r9), %r10
	cmpl $LINKS, %r10d
	jae 9f
	record_commit 0, \two
	/* Pushes the scope, as waffle_scope_push_(), and returns it. */
	movq %rdi, SCOPE_PROBE(%r8)
	movl %r10d, %eax
	addq $1, %r10
	movq %r10, SCOPE_DEPTH(%r8)
	movq %r10, OF_DEPTH(%r9)
	shrq $32, %r10
	leaq (%rax, %rax, 4), %rax
	leaq OF_LINKS(%r9, %rax, 8), %rax
	movups %xmm1, LINK_HI(%rax)
	movq %rdx, LINK_SPAN(%rax)
	movq %r8, LINK_PLACE(%rax)
	movl %r10d, LINK_MODE(%rax)
	movups %xmm1, OF_HI(%r9)
	movq %rdx, OF_SPAN(%r9)
	movq %r8, %rax
	ret
	.endm

function hit_enter
	cmpq $0, FRAME_LINE(%rsi)
	jne 9f
	movl OF_DEPTH(%r9), %eax
	testl %eax, %eax
	jne 10f
11:	cmpq $TWO_KEYS, %rcx
	jne 4f
	collector_pass %rdi
	scope_enter THREAD_COLLECTOR, 1
	tracer_pass
	scope_enter THREAD_TRACER, 1
4:	collector_pass %rdi
	scope_enter THREAD_COLLECTOR, 0
	tracer_pass
	scope_enter THREAD_TRACER, 0

	/* Is a scope to be pruned, as by waffle_scope_prune_()? */
10:	cmpl $LINKS, %eax
	jae 9f
	leaq OF_LINKS+LINK_PLACE(%r9), %r11
	leaq 1-SCOPE_BYTES(%r8), %r10
12:	movq (%r11), %rdx
	subq %r10, %rdx
	cmpq $2*SCOPE_BYTES-1, %rdx
	jb 9f
	addq $LINK_BYTES, %r11
	subl $1, %eax
	jne 12b
	jmp 11b
9:	movq %rcx, %rdx
	xorl %ecx, %ecx
	jmp *FRAME_REST(%rsi)
function_end hit_enter

	.macro scope_leave writer
	sequence_begin
	record_begin \writer, 1, END_BYTES(%rax)
	movl $END_BYTES, RECORD_BYTES(%r10)
	kind_set KIND_END
	movq SCOPE_ID(%rdi), %rdx
	movq %rdx, RECORD_END_ID(%r10)
	movq %rcx, RECORD_END_PROBE(%r10)
	movq %r9, SHARED_HEAD(%r11)
72:	/* Pops the scope, as waffle_scope_pop_(). */
	movq SCOPE_DEPTH(%rdi), %rax
	movl OF_DEPTH(%rsi), %r8d
	leal -1(%rax), %ecx
	leaq (%rcx, %rcx, 4), %rcx
	leaq OF_LINKS(%rsi, %rcx, 8), %rcx
	subl %eax, %r8d
	jb 1f
	cmpq %rdi, LINK_PLACE(%rcx)
	jne 1f
	cmpq %rdx, LINK_SPAN(%rcx)
	jne 1f
	movq $0, LINK_PLACE(%rcx)
	testl %r8d, %r8d
	jne 3f
2:	movups OUTER_HI(%rdi), %xmm0
	movups %xmm0, OF_HI(%rsi)
	movq OUTER_SPAN(%rdi), %rcx
	movq %rcx, OF_SPAN(%rsi)
	subq $1, %rax
	movq %rax, OF_DEPTH(%rsi)
1:	ret
	/* Inner scopes were abandoned: at most r8d, of which no more than LINKS have a link. */
3:	leaq OF_LINKS+LINKS*LINK_BYTES(%rsi), %r9
6:	addq $LINK_BYTES, %rcx
	cmpq %r9, %rcx
	jae 2b
	movq $0, LINK_PLACE(%rcx)
	subl $1, %r8d
	jne 6b
	jmp 2b
	.endm

function hit_leave
	movq %rdx, %r8
	cmpl $LINKS, SCOPE_DEPTH(%rdi)
	ja 9f
	movq SCOPE_PROBE(%rdi), %rcx
	collector_pass %rcx
	scope_leave THREAD_COLLECTOR
	tracer_pass
	scope_leave THREAD_TRACER
9:	jmp *%r8
function_end hit_leave

#endif
	.section .note.GNU-stack, "", @progbits
