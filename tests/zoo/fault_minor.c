// SPDX-License-Identifier: Apache-2.0
/* The victim touches fresh memory, a byte a page; what it costs to do so again is its own work. */
#include "zoo.h"

#define ROUNDS 6
#define PAGE 4096l

static long minor_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_minflt;
}

static void touch(volatile char *map, long pages)
{
	for (long n = 0; n < pages; n++)
		map[n * PAGE] = 1;
}

static void victim(void)
{
	struct zoo_time t, again;

	for (int i = 0; i < ROUNDS; i++) {
		long pages = zoo_vary(i, 30000, 60000), faults = minor_faults();
		char *map = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		zoo_need(map != MAP_FAILED && !madvise(map, pages * PAGE, MADV_NOHUGEPAGE), "mmap");
		zoo_time_begin(&t);
		{
			SPAN("victim", KV_I64("i", i), KV_I64("pages", pages));
			touch(map, pages);
		}
		zoo_time_end(&t);
		faults = minor_faults() - faults;
		zoo_time_begin(&again);
		touch(map, pages);
		zoo_time_end(&again);
		zoo_say_victim(i, &t);
		zoo_say_cause(i, "page-fault-minor", t.running - again.running, zoo_self(),
			      "victim", NULL);
		printf("faults i=%d touched=%ld minor=%ld\n", i, pages, faults);
		munmap(map, pages * PAGE);
	}
}

int main(int argc, char **argv)
{
	zoo_begin(argc, argv);
	zoo_go();
	ZOO_RUN({"victim", victim}, {"innocent", zoo_innocent});
	return 0;
}
