// SPDX-License-Identifier: Apache-2.0
/*
 * A chain of three processes: the victim reads a pipe from "relay", which reads a pipe from
 * "reader", which reads a slow disk.
 */
#include "zoo.h"

#define ROUNDS 6
#define PART (128 << 10)

static int to_relay[2], to_victim[2], file;
static char file_name[256];

static void reader(void)
{
	struct zoo_time t;
	void *buffer;

	zoo_need(!posix_memalign(&buffer, 4096, PART), "memalign");
	zoo_enter_cgroup("ZOO_BLKIO");
	for (int i = 0; i < ROUNDS; i++) {
		zoo_time_begin(&t);
		{
			SPAN("load", KV_I64("i", i));
			for (long n = zoo_vary(i, 4, 8), at = 0; at < n; at++)
				zoo_need(pread(file, buffer, PART, at * PART) == PART, "read");
		}
		zoo_time_end(&t);
		zoo_need(write(to_relay[1], "x", 1) == 1, "write");
		zoo_say_cause(i, "disk-read", zoo_blocked(&t), zoo_self(), "load", file_name);
	}
}

static void relay(void)
{
	char byte;

	for (int i = 0; i < ROUNDS; i++) {
		zoo_need(read(to_relay[0], &byte, 1) == 1, "read");
		{
			SPAN("relay", KV_I64("i", i));
			zoo_burn(2);
		}
		zoo_need(write(to_victim[1], &byte, 1) == 1, "write");
	}
}

static void victim(void)
{
	struct zoo_time t;
	char byte;

	for (int i = 0; i < ROUNDS; i++) {
		zoo_time_begin(&t);
		{
			SPAN("victim", KV_I64("i", i));
			zoo_need(read(to_victim[0], &byte, 1) == 1, "read");
		}
		zoo_time_end(&t);
		zoo_say_victim(i, &t);
	}
}

int main(int argc, char **argv)
{
	zoo_begin(argc, argv);
	file = zoo_file(file_name, sizeof(file_name), 8 * PART, O_RDONLY | O_DIRECT);
	zoo_need(!pipe(to_relay) && !pipe(to_victim), "pipe");
	zoo_fork("reader", reader);
	zoo_fork("relay", relay);
	zoo_go();
	ZOO_RUN({"victim", victim}, {"innocent", zoo_innocent});
	unlink(file_name);
	return 0;
}
