// SPDX-License-Identifier: Apache-2.0
/*
 * A program that changes its modes: each line of standard input is a mode for the process, and is
 * followed by one round of sites with their modes. Prints how often a debug value was evaluated.
 */
#include <stdio.h>
#include <string.h>

#include <waffle_macros.h>

static int evaluated;

static int debug_value(int i)
{
	evaluated++;
	return i * 10;
}

static void work(int i)
{
	SPAN("work", KV_DEBUG(KV_I64("debug", debug_value(i))), KV_I64("i", i),
	     KV_DEBUG(KV_STR("text", i % 2 ? "odd" : "even")));
	EVENT("inside", KV_I64("i", i));
}

static void round_run(int i)
{
	work(i);
	{
		MODE_SCOPE(WAFFLE_MODE_OFF);
		work(i + 100);
		{
			MODE_SCOPE(WAFFLE_MODE_FULL);
			work(i + 200);
		}
		COUNTER("off", i);
	}
	LOG_ERROR("error", KV_I64("i", i));
}

int main(void)
{
	char line[16];

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("ready\n");
	for (int i = 1; fgets(line, sizeof(line), stdin); i++) {
		if (!strcmp(line, "off\n"))
			waffle_mode_set(WAFFLE_MODE_OFF);
		else if (!strcmp(line, "fast\n"))
			waffle_mode_set(WAFFLE_MODE_FAST);
		else if (!strcmp(line, "full\n"))
			waffle_mode_set(WAFFLE_MODE_FULL);
		round_run(i);
		printf("evaluated %d\n", evaluated);
	}
	return 0;
}
