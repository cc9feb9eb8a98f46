// SPDX-License-Identifier: Apache-2.0
/*
 * What the report's page must survive: names that are markup, scripts or control characters. Two
 * threads, one of which waits for the other in functions of known names, and nested spans.
 */
#define _GNU_SOURCE
#include "log.h"

#include <pthread.h>
#include <sys/prctl.h>

#include "waffle.h"

#define ROUNDS 12

static int questions[2], answers[2];

static void *answerer(void *arg)
{
	char byte;

	prctl(PR_SET_NAME, "<img src=x>\001\"'");
	printf("answerer tid=%d\n", thread_id());
	while (read(questions[0], &byte, 1) == 1) {
		WAFFLE_SPAN("answer </script><img src=x onerror=\"window.hacked=1\">");
		sleep_ms(byte);
		if (write(answers[1], &byte, 1) != 1)
			exit(1);
	}
	return arg;
}

static __attribute__((noinline)) void ask(char how_long)
{
	WAFFLE_SPAN("ask <!--<script>", KV_STR("note", "</script><svg onload=hacked=1>\033[2J"));
	if (write(questions[1], &how_long, 1) != 1 || read(answers[0], &how_long, 1) != 1)
		exit(1);
	__asm__ volatile(""); /* no tail call */
}

static __attribute__((noinline)) void ask_for_long(void)
{
	ask(12);
	__asm__ volatile("");
}

int main(void)
{
	pthread_t thread;

	if (pipe(questions) || pipe(answers) || pthread_create(&thread, NULL, answerer, NULL))
		return 1;
	printf("asker tid=%d\n", thread_id());
	for (int i = 0; i < ROUNDS; i++) {
		WAFFLE_SPAN("round", KV_I64("i", i));
		ask(2);
		if (i % 4 == 3)
			ask_for_long();
		for (int k = 0; k < 50; k++)
			WAFFLE_EVENT("tick");
	}
	close(questions[1]);
	return pthread_join(thread, NULL);
}
