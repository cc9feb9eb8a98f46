// SPDX-License-Identifier: Apache-2.0
/*
 * Touches new pages and gives them back: nearly nothing but minor page faults. An operation is a
 * page (window.h).
 *
 *	touch CPU SECONDS
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "window.h"

#define PAGE 4096
#define PAGES 4096

int main(int argc, char **argv)
{
	size_t size = (size_t)PAGES * PAGE;
	struct window window;
	char *memory;

	if (argc != 3) {
		fprintf(stderr, "usage: touch CPU SECONDS\n");
		return 2;
	}
	window_pin(atoi(argv[1]));
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED || madvise(memory, size, MADV_NOHUGEPAGE))
		return 1;
	window = window_begin(atof(argv[2]));
	do {
		for (size_t at = 0; at < size; at += PAGE)
			((volatile char *)memory)[at] = 1;
		if (madvise(memory, size, MADV_DONTNEED))
			return 1;
	} while (window_count(&window, PAGES));
	return 0;
}
