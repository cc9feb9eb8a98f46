// SPDX-License-Identifier: Apache-2.0
/* The victim reads from a disk of which other processes, which are not traced, read much more. */
#include "zoo.h"

#define ROUNDS 6
#define NEIGHBOURS 3
#define FILE_BYTES (64l << 20)
#define BIG (4l << 20)
#define SMALL 4096

static char file_name[256];
static int file;
static void *buffer;

static void neighbour(void)
{
	for (int i = 0;; i++)
		zoo_need(pread(file, buffer, BIG, zoo_vary(i, 0, FILE_BYTES / BIG - 1) * BIG) ==
				 BIG,
			 "read");
}

static void read_some(int i)
{
	for (long n = zoo_vary(i, 20, 40); n > 0; n--) {
		long block = zoo_vary((int)n + 100 * i, 0, FILE_BYTES / SMALL - 1);

		zoo_need(pread(file, buffer, SMALL, block * SMALL) == SMALL, "read");
	}
}

static void victim(void)
{
	zoo_work(ROUNDS, read_some, "disk-read", file_name);
}

int main(int argc, char **argv)
{
	zoo_begin(argc, argv);
	file = zoo_file(file_name, sizeof(file_name), FILE_BYTES, O_RDWR | O_DIRECT);
	zoo_need(!posix_memalign(&buffer, SMALL, BIG), "memalign");
	for (int i = 0; i < NEIGHBOURS; i++)
		zoo_fork_as("outsider", "neighbour", neighbour);
	zoo_go();
	ZOO_RUN({"victim", victim}, {"innocent", zoo_innocent});
	unlink(file_name);
	return 0;
}
