// SPDX-License-Identifier: Apache-2.0
/*
 * `keeps_mmap_lock FILE VICTIM [replaces]`: maps VICTIM, as any user may who can read it. At a line
 * of input it unmaps a changed page of FILE, the first one of two. While the server of that file
 * system does not answer, this process then keeps its mmap_lock for reading. With `replaces`, it
 * maps another page there, and keeps the lock for writing: readers of its mappings wait as well.
 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES 4096
#define PAGES_BYTES (2 * BYTES)
#define VICTIM_BYTES (1 << 20) /* all of it */

static char *map(const char *path, int flags, size_t bytes, int kind)
{
	static const char pages[PAGES_BYTES];
	int protection = flags & O_RDWR ? PROT_READ | PROT_WRITE : PROT_READ;
	int fd = open(path, flags, 0600);
	char *memory;

	if (fd < 0 || ((flags & O_CREAT) && write(fd, pages, PAGES_BYTES) != PAGES_BYTES))
		err(1, "%s", path);
	memory = mmap(NULL, bytes, protection, kind, fd, 0);
	if (memory == MAP_FAILED)
		err(1, "mapping %s", path);
	return memory;
}

int main(int argc, char **argv)
{
	char *changed;

	if (argc != 3 && argc != 4)
		return 2;
	changed = map(argv[1], O_RDWR | O_CREAT, PAGES_BYTES, MAP_SHARED);
	map(argv[2], O_RDONLY, VICTIM_BYTES, MAP_PRIVATE);
	if (setgid(65534) || setuid(65534))
		err(1, "setuid");
	*changed = 1;
	puts("ready");
	fflush(stdout);
	getchar();
	if (argc == 3)
		munmap(changed, BYTES);
	else
		mmap(changed, BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	puts("unmapped");
	fflush(stdout);
	pause();
	return 0;
}
