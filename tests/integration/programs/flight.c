// SPDX-License-Identifier: Apache-2.0
/*
 * flight: one thread makes a numbered event "tick" about every millisecond. The other one obeys
 * lines:
 *
 *	slow MS     a span "slow" of at least MS milliseconds
 *	mark N      an event "mark" with n=N
 *	call MS     the function slow_call(MS), which takes as long
 *	open/close  begin and end of a span "long"
 *	burst N     N events "noise" with 256 bytes that can't be compressed
 *	end
 */
#include "log.h"

#include <pthread.h>

#include "waffle.h"

static volatile int done;

static void *tick(void *arg)
{
	for (long i = 0; !done; i++) {
		WAFFLE_EVENT("tick", KV_I64("i", i));
		sleep_ms(1);
	}
	return arg;
}

static void slow(long ms)
{
	long long begin = now_ns();

	{
		WAFFLE_SPAN("slow", KV_I64("ms", ms));
		sleep_ms(ms);
	}
	printf("slow begin=%lld end=%lld\n", begin, now_ns());
}

__attribute__((noinline)) void slow_call(long ms);
void slow_call(long ms)
{
	sleep_ms(ms);
	printf("called\n");
}

static void burst(long count)
{
	static unsigned long long seed = 88172645463325252ull;
	char text[257] = "";

	for (long i = 0; i < count; i++) {
		for (int c = 0; c < 256; c++) {
			seed ^= seed << 13;
			seed ^= seed >> 7;
			seed ^= seed << 17;
			text[c] = (char)(seed >> 32 | 1);
		}
		WAFFLE_EVENT("noise", KV_STR("text", text));
		if (i % 64 == 0)
			sleep_ms(1);
	}
	printf("burst\n");
}

int main(void)
{
	waffle_span_t held = {0};
	pthread_t thread;
	char line[100];

	setlinebuf(stdout);
	pthread_create(&thread, NULL, tick, NULL);
	printf("ready\n");
	while (fgets(line, sizeof(line), stdin) && strcmp(line, "end\n") != 0) {
		if (!strncmp(line, "slow ", 5)) {
			slow(atol(line + 5));
		} else if (!strncmp(line, "mark ", 5)) {
			WAFFLE_EVENT("mark", KV_I64("n", atol(line + 5)));
			printf("marked\n");
		} else if (!strncmp(line, "call ", 5)) {
			slow_call(atol(line + 5));
		} else if (!strcmp(line, "open\n")) {
			held = WAFFLE_BEGIN("long", KV_STR("what", "held"));
			printf("opened\n");
		} else if (!strcmp(line, "close\n")) {
			WAFFLE_END(held);
			printf("closed\n");
		} else if (!strncmp(line, "burst ", 6)) {
			burst(atol(line + 6));
		}
	}
	done = 1;
	pthread_join(thread, NULL);
	return 0;
}
