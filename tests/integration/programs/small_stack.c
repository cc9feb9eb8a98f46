// SPDX-License-Identifier: Apache-2.0
/*
 * Passes sites on a stack of 4 KiB between two pages that can't be touched. For each line of its
 * input it prints how many bytes of stack each function with a site has used, of the function and
 * all that it calls.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "waffle.h"

#define STACK_SIZE 4096
#define PAINT 0x5a

static unsigned char *stack;
static ucontext_t caller, fiber;

static __attribute__((noinline)) void plain(long n)
{
	__asm__ volatile("" : : "r"(n) : "memory");
}

static __attribute__((noinline)) void event(long n)
{
	WAFFLE_EVENT("event", KV_I64("a", n), KV_I64("b", n));
}

static __attribute__((noinline)) void span(long n)
{
	WAFFLE_SPAN("span", KV_I64("a", n), KV_F64("b", 0.5));
	plain(n);
}

static __attribute__((noinline)) void begin(long n)
{
	WAFFLE_END(WAFFLE_BEGIN("begin", KV_I64("a", n)));
}

static __attribute__((noinline)) void counter(long n)
{
	WAFFLE_COUNTER("counter", n);
}

static __attribute__((noinline)) void sixteen(long n)
{
	WAFFLE_EVENT("sixteen", KV_I64("a", n), KV_I64("b", n), KV_I64("c", n), KV_I64("d", n),
		     KV_I64("e", n), KV_I64("f", n), KV_I64("g", n), KV_I64("h", n), KV_I64("i", n),
		     KV_I64("j", n), KV_I64("k", n), KV_I64("l", n), KV_I64("m", n), KV_I64("n", n),
		     KV_I64("o", n), KV_I64("p", n));
}

static __attribute__((noinline)) void text(long n)
{
	WAFFLE_EVENT("text", KV_I64("a", n), KV_STR("b", "a text"));
}

static const struct {
	const char *name;
	void (*call)(long n);
} functions[] = {{"plain", plain},     {"event", event},     {"span", span}, {"begin", begin},
		 {"counter", counter}, {"sixteen", sixteen}, {"text", text}};

/* Each call is made from the same depth of a freshly painted stack. */
static unsigned function;

static void run(void)
{
	functions[function].call(function);
}

static long used_by(unsigned index)
{
	long used = STACK_SIZE;

	function = index;
	memset(stack, PAINT, STACK_SIZE);
	getcontext(&fiber);
	fiber.uc_stack.ss_sp = stack;
	fiber.uc_stack.ss_size = STACK_SIZE;
	fiber.uc_link = &caller;
	makecontext(&fiber, run, 0);
	swapcontext(&caller, &fiber);
	while (used && stack[STACK_SIZE - used] == PAINT)
		used--;
	return used;
}

int main(void)
{
	unsigned char *pages =
		mmap(NULL, 3 * STACK_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char line[16];

	if (pages == MAP_FAILED)
		return 1;
	stack = pages + STACK_SIZE;
	if (mprotect(stack, STACK_SIZE, PROT_READ | PROT_WRITE))
		return 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		long base = used_by(0);

		printf("used");
		for (unsigned i = 1; i < sizeof(functions) / sizeof(*functions); i++)
			printf(" %s=%ld", functions[i].name, used_by(i) - base);
		puts("");
	}
	return 0;
}
