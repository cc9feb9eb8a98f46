// SPDX-License-Identifier: Apache-2.0
/*
 * The victim writes to a file in a cgroup whose memory another process, which is not traced, has
 * nearly used up: it waits for its own pages to be written before it gets new ones.
 */
#include "zoo.h"

#define ROUNDS 8
#define HELD (30l << 20) /* of the 32 MiB that the cgroup may use */
#define BLOCK (1l << 20)
#define BLOCKS 64

static char file_name[256];
static int file;

static void neighbour(void)
{
	char *held = mmap(NULL, HELD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	zoo_need(held != MAP_FAILED && !mlock(held, HELD), "mlock");
	for (;;)
		pause();
}

static void write_some(int i)
{
	static char block[BLOCK];

	for (long n = zoo_vary(i, 80, 120); n > 0; n--)
		zoo_need(pwrite(file, block, BLOCK, n % BLOCKS * BLOCK) == BLOCK, "write");
}

static void victim(void)
{
	write_some(ROUNDS); /* uses up what the neighbour has left */
	zoo_work(ROUNDS, write_some, "disk-write", file_name);
}

int main(int argc, char **argv)
{
	zoo_begin(argc, argv);
	file = zoo_file(file_name, sizeof(file_name), BLOCKS * BLOCK, O_WRONLY);
	zoo_enter_cgroup("ZOO_MEMORY");
	zoo_fork_as("outsider", "neighbour", neighbour);
	zoo_go();
	ZOO_RUN({"victim", victim}, {"innocent", zoo_innocent});
	unlink(file_name);
	return 0;
}
