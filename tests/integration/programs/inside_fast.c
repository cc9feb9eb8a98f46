// SPDX-License-Identifier: Apache-2.0
/*
 * Sites of all forms that libwaffle has a fast path for, and what it must leave alone:
 *
 *	inside_fast keys               events and spans with 0 to 5 keys and with 16
 *	inside_fast deep COUNT         COUNT spans, each in the one before
 *	inside_fast nested COUNT       nested spans, while a handler makes spans, too
 *	inside_fast jump COUNT         the same, while the handler sometimes jumps out of them
 *	inside_fast left               a handler leaves spans open at the begin of a span
 *	inside_fast ticks              an event for each line of input
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#ifdef __x86_64__
#include <ucontext.h>
#endif

#include <waffle.h>

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

#define CODE_BYTES 2048u /* at least those of the fast path of a span's begin */
#define BREAKPOINT 0xcc

static unsigned char code_before[CODE_BYTES], *code;
static jmp_buf abandoned;

static __attribute__((noinline)) void abandon(void)
{
	WAFFLE_SPAN("abandoned");
	longjmp(abandoned, 1);
}

static void on_breakpoint(int signo, siginfo_t *info, void *context)
{
	greg_t *at = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	(void)signo;
	(void)info;
	memcpy(code, code_before, CODE_BYTES);
	(*at)--; /* it is not within the sequence yet */
	handled++;
	if (!setjmp(abandoned))
		abandon();
}

/* Breakpoints where a restartable sequence begins: behind its signature. */
static void breakpoints_set(void)
{
	static const unsigned char signature[] = {0x53, 0x30, 0x05, 0x53};

	for (size_t i = 0; i + 4 < CODE_BYTES; i++)
		if (!memcmp(code_before + i, signature, 4))
			code[i + 4] = BREAKPOINT;
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
	memcpy(thread->links_, before.links_, sizeof(before.links_));
	if (depth < 10)
		left_at(depth + 1);
}

static void left(void)
{
	struct sigaction action = {.sa_sigaction = on_breakpoint, .sa_flags = SA_SIGINFO};
	uintptr_t page;

	sigaction(SIGTRAP, &action, NULL);
	code = (unsigned char *)(uintptr_t)waffle_process_get_()->enter_;
	if (code) {
		page = (uintptr_t)code & ~4095ul;
		memcpy(code_before, code, CODE_BYTES);
		if (mprotect((void *)page, CODE_BYTES + 4096, PROT_READ | PROT_WRITE | PROT_EXEC))
			return;
	}
	WAFFLE_EVENT("event");
	left_at(1);
	printf("handled %ld\n", handled);
}

#endif

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
	else if (!strcmp(mode, "left"))
		left();
#endif
	else if (!strcmp(mode, "ticks"))
		ticks();
	else
		return 2;
	return 0;
}
