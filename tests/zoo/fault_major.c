// SPDX-License-Identifier: Apache-2.0
/*
 * The victim touches pages of a mapped file that the page cache no longer has, in any order, on a
 * disk that answers only so many requests a second.
 */
#include "zoo.h"

#define ROUNDS 6
#define PAGE 4096l
#define PAGES 8192l

static char file_name[256];
static int file;

static long major_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_majflt;
}

/* A map of its own for each round: pages that are mapped are not dropped. */
static volatile char *cold_map(void)
{
	char *map;

	zoo_need(!posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED), "fadvise");
	map = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_SHARED, file, 0);
	zoo_need(map != MAP_FAILED && !madvise(map, PAGES * PAGE, MADV_RANDOM), "mmap");
	return map;
}

static void victim(void)
{
	struct zoo_time t;
	char sum = 0;

	zoo_enter_cgroup("ZOO_BLKIO");
	for (int i = 0; i < ROUNDS; i++) {
		volatile char *map = cold_map();
		long pages = zoo_vary(i, 100, 200), faults = major_faults();

		zoo_time_begin(&t);
		{
			SPAN("victim", KV_I64("i", i), KV_I64("pages", pages));
			/* 4099 is prime to the number of pages: none is touched twice. */
			for (long n = 0; n < pages; n++)
				sum = (char)(sum + map[n * 4099 % PAGES * PAGE]);
		}
		zoo_time_end(&t);
		zoo_say_victim(i, &t);
		zoo_say_cause(i, "page-fault-major", zoo_blocked(&t), zoo_self(), "victim",
			      file_name);
		printf("faults i=%d touched=%ld major=%ld sum=%d\n", i, pages,
		       major_faults() - faults, sum);
		munmap((void *)map, PAGES * PAGE);
	}
}

int main(int argc, char **argv)
{
	zoo_begin(argc, argv);
	file = zoo_file(file_name, sizeof(file_name), PAGES * PAGE, O_RDONLY);
	zoo_go();
	ZOO_RUN({"victim", victim}, {"innocent", zoo_innocent});
	unlink(file_name);
	return 0;
}
