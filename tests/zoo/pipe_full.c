// SPDX-License-Identifier: Apache-2.0
/* The victim writes into a full pipe whose reader, a process without spans, computes in between. */
#include "zoo.h"

#define ROUNDS 10
#define PART (64 << 10)

static int ends[2];
static pid_t drain_pid;

static void drain(void)
{
	static char part[PART];

	close(ends[1]);
	for (int i = 0;; i++) {
		zoo_burn(zoo_vary(i, 60, 160));
		for (ssize_t n, left = PART; left; left -= n)
			if ((n = read(ends[0], part, (size_t)left)) <= 0)
				return;
	}
}

static void victim(void)
{
	struct zoo_who who = {drain_pid, drain_pid, "drain"};
	static char part[PART];
	char object[64];
	struct zoo_time t;

	zoo_need(write(ends[1], part, PART) == PART, "write");
	for (int i = 0; i < ROUNDS; i++) {
		zoo_time_begin(&t);
		{
			SPAN("victim", KV_I64("i", i));
			zoo_need(write(ends[1], part, PART) == PART, "write");
		}
		zoo_time_end(&t);
		zoo_say_victim(i, &t);
		zoo_say_cause(i, "pipe", zoo_blocked(&t), who, NULL,
			      zoo_object(ends[1], object, sizeof(object)));
	}
}

int main(int argc, char **argv)
{
	zoo_begin(argc, argv);
	zoo_need(!pipe(ends) && fcntl(ends[1], F_SETPIPE_SZ, PART) == PART, "pipe");
	drain_pid = zoo_fork("drain", drain);
	close(ends[0]);
	zoo_go();
	ZOO_RUN({"victim", victim}, {"innocent", zoo_innocent});
	return 0;
}
