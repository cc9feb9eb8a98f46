// SPDX-License-Identifier: Apache-2.0
/* The victim overwrites a part of a file and waits in fsync(2) until the slow disk has it. */
#include "zoo.h"

#define ROUNDS 6
#define PART (64 << 10)

static char file_name[256];
static int file;

static void victim(void)
{
	static char part[PART];
	struct zoo_time t;

	zoo_enter_cgroup("ZOO_BLKIO");
	for (int i = 0; i < ROUNDS; i++) {
		memset(part, 'a' + i, PART);
		zoo_time_begin(&t);
		{
			SPAN("victim", KV_I64("i", i));
			for (long n = zoo_vary(i, 8, 16), at = 0; at < n; at++)
				zoo_need(pwrite(file, part, PART, at * PART) == PART, "write");
			zoo_need(!fsync(file), "fsync");
		}
		zoo_time_end(&t);
		zoo_say_victim(i, &t);
		zoo_say_cause(i, "disk-write", zoo_blocked(&t), zoo_self(), "victim", file_name);
	}
}

int main(int argc, char **argv)
{
	zoo_begin(argc, argv);
	file = zoo_file(file_name, sizeof(file_name), 16 * PART, O_WRONLY);
	zoo_go();
	ZOO_RUN({"victim", victim}, {"innocent", zoo_innocent});
	unlink(file_name);
	return 0;
}
