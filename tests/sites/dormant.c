/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops around one dormant site each, for steps.c to count instructions in. A loop begins and ends
 * with a breakpoint; PASSES passes lie between. The program prints what it runs, in order.
 */
#include <stdio.h>
#include <waffle.h>

#define PASSES 1000

static const char *volatile text = "text";
static double half = 0.5;

/* The barrier keeps a pass a pass: none is merged, unrolled into another or dropped. */
#define LOOP(name, ...)                                                                            \
	static __attribute__((noinline)) void name(int n)                                          \
	{                                                                                          \
		for (int i = 0; i < n; i++) {                                                      \
			__asm__ volatile("" : : "r"(i) : "memory");                                \
			__VA_ARGS__;                                                               \
		}                                                                                  \
	}

LOOP(empty, (void)0)
LOOP(span, WAFFLE_SPAN("span"))
LOOP(span_keys, WAFFLE_SPAN("span", KV_I64("i", i), KV_F64("half", half), KV_STR("s", text)))
LOOP(event, WAFFLE_EVENT("event"))
LOOP(event_keys, WAFFLE_EVENT("event", KV_I64("i", i), KV_U64("n", n * 2 + 1)))
LOOP(event_string, WAFFLE_EVENT("event", KV_STR("s", text), KV_F64("half", half)))
LOOP(counter, WAFFLE_COUNTER("counter", i * 3))
LOOP(log_error, WAFFLE_LOG_ERROR("log", KV_I64("i", i)))
LOOP(event_debug, WAFFLE_EVENT("event", KV_I64("i", i), KV_DEBUG(KV_STR("s", text))))
LOOP(begin_end, waffle_span_t s = WAFFLE_BEGIN("begin", KV_I64("i", i)); WAFFLE_END(s))

static const struct {
	const char *name;
	void (*run)(int n);
} loops[] = {
	{"empty", empty},
	{"span", span},
	{"span_keys", span_keys},
	{"event", event},
	{"event_keys", event_keys},
	{"event_string", event_string},
	{"counter", counter},
	{"log", log_error},
	{"event_debug", event_debug},
	{"begin_end", begin_end},
};

int main(void)
{
	for (unsigned i = 0; i < sizeof(loops) / sizeof(*loops); i++) {
		printf("%s %d\n", loops[i].name, PASSES);
		fflush(stdout);
		__asm__ volatile("int3");
		loops[i].run(PASSES);
		__asm__ volatile("int3");
	}
	return 0;
}
