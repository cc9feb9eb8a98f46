// SPDX-License-Identifier: Apache-2.0
/* The victim waits in waitpid(2) for a process, without spans, that computes and exits. */
#include "zoo.h"

#define ROUNDS 8

static pid_t children[ROUNDS];
static int bells[ROUNDS][2], turn;

static void compile(void)
{
	char byte;

	zoo_need(read(bells[turn][0], &byte, 1) == 1, "read");
	zoo_burn(zoo_vary(turn, 80, 200));
}

static void victim(void)
{
	struct zoo_time t;

	for (int i = 0; i < ROUNDS; i++) {
		struct zoo_who who = {children[i], children[i], "compiler"};

		zoo_time_begin(&t);
		{
			SPAN("victim", KV_I64("i", i));
			zoo_need(write(bells[i][1], "x", 1) == 1, "write");
			waitpid(children[i], NULL, 0);
		}
		zoo_time_end(&t);
		zoo_say_victim(i, &t);
		zoo_say_cause(i, "process-exit", zoo_blocked(&t), who, NULL, NULL);
	}
}

int main(int argc, char **argv)
{
	zoo_begin(argc, argv);
	for (turn = 0; turn < ROUNDS; turn++) {
		zoo_need(!pipe(bells[turn]), "pipe");
		children[turn] = zoo_fork("compiler", compile);
	}
	zoo_go();
	ZOO_RUN({"victim", victim}, {"innocent", zoo_innocent});
	return 0;
}
