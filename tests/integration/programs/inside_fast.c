// SPDX-License-Identifier: Apache-2.0
/*
 * Sites of all forms that libwaffle has a fast path for, and what it must leave alone:
 *
 *	inside_fast keys               events and spans with 0 to 5 keys and with 16
 *	inside_fast deep COUNT         COUNT spans, each in the one before
 *	inside_fast nested COUNT       nested spans, while a handler makes spans, too
 *	inside_fast jump COUNT         the same, while the handler sometimes jumps out of them
 *	inside_fast stepped            a handler jumps out at each instruction of a span
 *	inside_fast committed          the same in the fast path, behind the sequences of a span
 *	inside_fast left               a handler leaves spans open at the begin of a span
 *	inside_fast abandoned COUNT    jumps out of spans within a span
 *	inside_fast moved              a fiber ends its span on a thread with the same context
 *	inside_fast again              a fiber ends its span where another fiber's was lost
 *	inside_fast ticks              an event for each line of input
 *	inside_fast counted            says whether its sites leave the fast path for good
 *	inside_fast turns FILE         the same before, while and after it records itself into FILE
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#include <waffle.h>
#include <waffle_trace.h>

#define K(n) KV_I64("k" #n, (n) + 100)
#define BOTH(...)                                                                                  \
	do {                                                                                       \
		WAFFLE_EVENT("event" __VA_ARGS__);                                                 \
		WAFFLE_SPAN("span" __VA_ARGS__);                                                   \
	} while (0)

static void keys(void)
{
	BOTH();
	BOTH(, K(1));
	BOTH(, K(1), K(2));
	BOTH(, K(1), K(2), K(3));
	BOTH(, K(1), K(2), K(3), K(4));
	BOTH(, K(1), K(2), K(3), K(4), K(5));
	BOTH(, K(1), K(2), K(3), K(4), K(5), K(6), K(7), K(8), K(9), K(10), K(11), K(12), K(13),
	     K(14), K(15), K(16));
}

static void deep(long depth, long count)
{
	WAFFLE_SPAN("deep", KV_I64("depth", depth));
	if (depth + 1 < count)
		deep(depth + 1, count);
	WAFFLE_EVENT("at", KV_I64("depth", depth));
}

static volatile long handled;
static sigjmp_buf back;
static jmp_buf abandoned;

static void on_timer(int signo)
{
	(void)signo;
	WAFFLE_SPAN("handler", KV_I64("i", handled));
	WAFFLE_EVENT("handled", KV_I64("i", handled));
	handled++;
}

static void on_jump(int signo)
{
	on_timer(signo);
	if (handled % 8 == 0)
		siglongjmp(back, 1);
}

static void nested(long count, void (*handler)(int))
{
	struct itimerspec often = {{0, 70000}, {0, 70000}};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	volatile long done = 0;
	timer_t timer;

	signal(SIGUSR1, handler);
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	sigsetjmp(back, 1);
	timer_settime(timer, 0, &often, NULL);
	while (done < count) {
		long i = done++;

		WAFFLE_SPAN("outer", KV_I64("i", i));
		WAFFLE_EVENT("in outer", KV_I64("i", i), KV_I64("again", i));
		{
			WAFFLE_SPAN("inner", KV_I64("i", i), KV_I64("again", i));
			WAFFLE_EVENT("in inner", KV_I64("i", i));
		}
	}
	timer_delete(timer);
	signal(SIGUSR1, SIG_IGN);
	printf("handled %ld\n", handled);
}

#ifdef __x86_64__

#define TRAP_FLAG 0x100u /* a SIGTRAP after each instruction */

static volatile long steps, last_step;
static waffle_ring_t_ write_hit;

static void trap_set(bool on)
{
	unsigned long long flags = __builtin_ia32_readeflags_u64() & ~(unsigned long long)TRAP_FLAG;

	__builtin_ia32_writeeflags_u64(flags | (on ? TRAP_FLAG : 0));
}

/* A record is written in a restartable sequence (rseq). Each SIGTRAP would make that begin again,
 * so that it would never end. */
static bool write_without_traps(const void *probe, unsigned long long id, const void *name,
				const void *frame, unsigned long long size)
{
	bool written;

	trap_set(false);
	written = write_hit(probe, id, name, frame, size);
	trap_set(last_step);
	return written;
}

static void on_step(int signo)
{
	(void)signo;
	if (++steps == last_step)
		siglongjmp(back, 1);
}

/* Makes a span. The handler jumps out of it at instruction `last`; 0: no instruction traps. */
static __attribute__((noinline)) void span_step(long i, long last)
{
	steps = 0;
	last_step = last;
	trap_set(last);
	{
		WAFFLE_SPAN("stepped", KV_I64("i", i), KV_BOOL("alone", !last));
	}
	trap_set(false);
}

static void stepped(void)
{
	volatile long i = 0;
	volatile bool jumped = true;

	signal(SIGTRAP, on_step);
	write_hit = waffle_process_get_()->ring_;
	waffle_process_get_()->ring_ = write_without_traps;
	span_step(0, 0);
	while (jumped && ++i < 20000) {
		jumped = sigsetjmp(back, 1);
		if (!jumped)
			span_step(i, i);
		span_step(i, 0);
		if (waffle_thread_get_()->depth_)
			printf("depth %u: %ld\n", waffle_thread_get_()->depth_, i);
	}
	printf("%ld\n", i);
}

#define CODE_BYTES 4096u /* at least those of the fast path of a span's begin */
#define BREAKPOINT 0xcc

static unsigned char code_before[CODE_BYTES], *code;

static __attribute__((noinline)) void abandon(void)
{
	WAFFLE_SPAN("abandoned");
	longjmp(abandoned, 1);
}

static void on_breakpoint(int signo, siginfo_t *info, void *context)
{
	greg_t *at = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	const unsigned char *breakpoint = (const unsigned char *)*at - 1;

	(void)signo;
	(void)info;
	/* Within a sequence, the kernel has moved the thread to the abort handler already. */
	if (breakpoint >= code && breakpoint < code + CODE_BYTES && *breakpoint == BREAKPOINT)
		(*at)--;
	memcpy(code, code_before, CODE_BYTES);
	handled++;
	if (!setjmp(abandoned))
		abandon();
}

/* An instruction where breakpoints are set. */
static const struct instruction {
	unsigned char bytes[6];
	size_t length;
} before_sequence = {{0x64, 0x48, 0x89, 0x42, 0x08}, 5}, /* mov %rax, %fs:8(%rdx) */
	within_sequence = {{0x0f, 0x31}, 2};             /* rdtsc */
static const struct instruction *stop_at;

/* The first instruction behind the sequence of a span's begin, and of its end. */
static const struct instruction push = {{0x49, 0x89, 0x78, 0x20}, 4}, /* mov %rdi, 0x20(%r8) */
	pop = {{0x48, 0x8b, 0x47, 0x28}, 4};                          /* mov 0x28(%rdi), %rax */
#define RETURN 0xc3

static void breakpoints_set(void)
{
	for (size_t i = 0; i + stop_at->length <= CODE_BYTES; i++)
		if (!memcmp(code_before + i, stop_at->bytes, stop_at->length))
			code[i] = BREAKPOINT;
}

static bool code_writable(const void *function)
{
	uintptr_t page = (uintptr_t)function & ~4095ul;

	code = (unsigned char *)(uintptr_t)function;
	memcpy(code_before, code, CODE_BYTES);
	return !mprotect((void *)page, CODE_BYTES + 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
}

static __attribute__((noinline)) void left_at(long depth)
{
	struct waffle_thread_ *thread = waffle_thread_get_();
	struct waffle_thread_ before;

	WAFFLE_SPAN("around", KV_I64("depth", depth));
	memcpy(&before, thread, sizeof(before));
	if (code)
		breakpoints_set();
	{
		WAFFLE_SPAN("begun");
	}
	if (code)
		memcpy(code, code_before, CODE_BYTES);
	if (thread->frame_depth_ != before.frame_depth_ ||
	    memcmp(thread->frames_, before.frames_, sizeof(before.frames_)))
		printf("depth %ld: what is behind the links has changed\n", depth);
	memcpy(thread, &before, offsetof(struct waffle_thread_, id_base_));
	thread->depth_ = before.depth_;
	memcpy(thread->places_, before.places_, sizeof(before.places_));
	memcpy(thread->links_, before.links_, sizeof(before.links_));
	if (depth < 10)
		left_at(depth + 1);
}

static void left(void)
{
	struct sigaction action = {.sa_sigaction = on_breakpoint, .sa_flags = SA_SIGINFO};
	const void *function = (const void *)(uintptr_t)waffle_process_get_()->enter_;

	sigaction(SIGTRAP, &action, NULL);
	if (function && !code_writable(function))
		return;
	WAFFLE_EVENT("event");
	stop_at = &before_sequence;
	left_at(1);
	stop_at = &within_sequence;
	left_at(1);
	printf("handled %ld\n", handled);
}

/* Steps from a breakpoint to the end of its function, and jumps out at instruction last_step. */
static void on_committed(int signo, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)signo;
	(void)info;
	if (!steps++) {
		memcpy(code, code_before, CODE_BYTES);
		registers[REG_RIP]--;
		registers[REG_EFL] |= TRAP_FLAG;
	}
	if (*(const unsigned char *)registers[REG_RIP] == RETURN)
		registers[REG_EFL] &= ~(greg_t)TRAP_FLAG;
	if (steps == last_step)
		siglongjmp(back, 1);
}

/* Makes a span. The handler jumps out of it at instruction `last`; 0: none. */
static __attribute__((noinline)) void span_committed(long i, long last)
{
	steps = 0;
	last_step = last;
	if (last)
		breakpoints_set();
	{
		WAFFLE_SPAN("committed", KV_I64("i", i), KV_BOOL("alone", !last));
	}
}

/* Prints the number of instructions behind the sequence of a function. */
static void committed_at(const void *function, const struct instruction *first)
{
	volatile bool jumped = true;
	volatile long i = 0;

	if (!function || !code_writable(function))
		return;
	stop_at = first;
	span_committed(0, 0);
	while (jumped && ++i < CODE_BYTES) {
		jumped = sigsetjmp(back, 1);
		if (!jumped)
			span_committed(i, i);
		memcpy(code, code_before, CODE_BYTES);
		span_committed(i, 0);
		if (waffle_thread_get_()->depth_)
			printf("depth %u: %ld\n", waffle_thread_get_()->depth_, i);
	}
	printf("%ld\n", i - 1);
}

static void committed(void)
{
	struct sigaction action = {.sa_sigaction = on_committed, .sa_flags = SA_SIGINFO};

	sigaction(SIGTRAP, &action, NULL);
	committed_at((const void *)(uintptr_t)waffle_process_get_()->enter_, &push);
	committed_at((const void *)(uintptr_t)waffle_process_get_()->leave_, &pop);
}

#endif

static volatile bool jumping = true;

static __attribute__((noinline)) void jump_out(long depth)
{
	WAFFLE_SPAN("lost", KV_I64("depth", depth));
	if (depth)
		jump_out(depth - 1);
	if (jumping)
		longjmp(abandoned, 1);
}

static __attribute__((noinline)) void jump_back(long depth)
{
	if (!setjmp(abandoned))
		jump_out(depth);
}

static void abandoned_spans(long count)
{
	for (long i = 0; i < count; i++) {
		WAFFLE_SPAN("kept", KV_I64("i", i), KV_I64("again", i));
		jump_back(i % 12);
		if (i % 2) {
			WAFFLE_SPAN("later", KV_I64("i", i));
		}
	}
	WAFFLE_EVENT("outside");
}

/* A fiber with a span, which it ends when it is resumed. */
struct fiber {
	ucontext_t own, *from;
	waffle_context_t inside;
	const char *name;
	char stack[65536];
};
static struct fiber fiber;

static __attribute__((noinline)) void fiber_spans(void)
{
	WAFFLE_SPAN("fiber", KV_STR("name", fiber.name));
	WAFFLE_SPAN("span");
	fiber.inside = waffle_context_extract();
	swapcontext(&fiber.own, fiber.from);
}

static void fiber_run(void)
{
	fiber_spans();
	setcontext(fiber.from);
}

/* Switches to the fiber until it comes back. It does so once when it is begun, and at its end. */
static __attribute__((noinline)) void fiber_switch(bool begin, const char *name)
{
	ucontext_t here;

	fiber.from = &here;
	if (begin) {
		fiber.name = name;
		getcontext(&fiber.own);
		fiber.own.uc_stack.ss_sp = fiber.stack;
		fiber.own.uc_stack.ss_size = sizeof(fiber.stack);
		makecontext(&fiber.own, fiber_run, 0);
	}
	swapcontext(&here, &fiber.own);
}

static void on_thread(void *(*run)(void *))
{
	pthread_t thread;

	if (!pthread_create(&thread, NULL, run, NULL))
		pthread_join(thread, NULL);
}

/* This thread has the fiber's context at the fiber's depth, but in a scope of its own. */
static void *moved_end(void *unused)
{
	WAFFLE_EVENT("event");
	{
		waffle_context_t around = {1, 2, 3};

		WAFFLE_INJECT(around);
		WAFFLE_INJECT(fiber.inside);
		fiber_switch(false, NULL);
		WAFFLE_EVENT("within");
	}
	WAFFLE_EVENT("after");
	return unused;
}

static void moved(void)
{
	fiber_switch(true, "moved");
	on_thread(moved_end);
}

static void *again_begin(void *unused)
{
	fiber_switch(true, "second");
	return unused;
}

static void again(void)
{
	fiber_switch(true, "first"); /* which is never resumed */
	on_thread(again_begin);
	fiber_switch(false, NULL);
	WAFFLE_EVENT("after");
}

static void ticks(void)
{
	char line[32];

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("ready\n");
	while (fgets(line, sizeof(line), stdin)) {
		WAFFLE_EVENT("tick", KV_I64("i", 1));
		printf("done\n");
	}
}

static waffle_ring_t_ slow_path;
static unsigned slow_hits;

static bool slow_path_count(const void *probe, unsigned long long id, const void *name,
			    const void *frame, unsigned long long size)
{
	slow_hits++;
	return slow_path(probe, id, name, frame, size);
}

/* The first hits are slow: a ring is made, and a tracer has to find it. */
static void counted(void)
{
	int turns = 2000;

	slow_path = waffle_process_get_()->ring_;
	waffle_process_get_()->ring_ = slow_path_count;
	do {
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		slow_hits = 0;
		keys();
	} while (slow_hits && --turns);
	printf("%s\n", slow_hits ? "slow" : "fast");
	waffle_process_get_()->ring_ = slow_path;
}

static void turns(const char *file)
{
	counted();
	if (waffle_trace_start(file, NULL))
		exit(1);
	counted();
	waffle_trace_stop();
	counted();
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	long count = argc > 2 ? atol(argv[2]) : 0;

	if (!strcmp(mode, "keys"))
		keys();
	else if (!strcmp(mode, "deep"))
		deep(0, count);
	else if (!strcmp(mode, "nested"))
		nested(count, on_timer);
	else if (!strcmp(mode, "jump"))
		nested(count, on_jump);
#ifdef __x86_64__
	else if (!strcmp(mode, "stepped"))
		stepped();
	else if (!strcmp(mode, "committed"))
		committed();
	else if (!strcmp(mode, "left"))
		left();
#endif
	else if (!strcmp(mode, "abandoned"))
		abandoned_spans(count);
	else if (!strcmp(mode, "moved"))
		moved();
	else if (!strcmp(mode, "again"))
		again();
	else if (!strcmp(mode, "ticks"))
		ticks();
	else if (!strcmp(mode, "counted"))
		counted();
	else if (!strcmp(mode, "turns"))
		turns(argv[2]);
	else
		return 2;
	return 0;
}
