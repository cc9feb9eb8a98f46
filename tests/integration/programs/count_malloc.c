// SPDX-License-Identifier: Apache-2.0
/*
 * Preloaded into a program, it replaces malloc() and logs each call to the file $COUNT_MALLOC.PID:
 * four words with the request and the result. It writes at once, so that nothing is lost however
 * the program ends.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define CALLS_MAX (1u << 18)
#define WORDS 4

enum call_kind { CALL_MALLOC = 1, CALL_CALLOC, CALL_REALLOC, CALL_FREE };

/* glibc's own names of malloc and its like: looking up the usual ones would allocate. */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);
extern void __libc_free(void *address);

static uint64_t *calls;
static unsigned call_count;

static uint64_t *calls_open(void)
{
	const char *log = getenv("COUNT_MALLOC");
	uint64_t *made = MAP_FAILED;
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s.%d", log ? log : "", getpid());
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd >= 0 && !ftruncate(fd, (off_t)CALLS_MAX * WORDS * sizeof(uint64_t)))
		made = mmap(NULL, (size_t)CALLS_MAX * WORDS * sizeof(uint64_t),
			    PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (made == MAP_FAILED)
		_exit(99);
	close(fd);
	return made;
}

static void record(enum call_kind kind, uint64_t first, uint64_t second, uint64_t result)
{
	unsigned at = __atomic_fetch_add(&call_count, 1, __ATOMIC_RELAXED);
	int saved = errno;

	if (!calls)
		calls = calls_open();
	if (at >= CALLS_MAX)
		_exit(98);
	calls[at * WORDS + 1] = first;
	calls[at * WORDS + 2] = second;
	calls[at * WORDS + 3] = result;
	calls[at * WORDS] = kind;
	errno = saved;
}

void *malloc(size_t bytes)
{
	void *made = __libc_malloc(bytes);

	record(CALL_MALLOC, bytes, 0, (uintptr_t)made);
	return made;
}

void *calloc(size_t count, size_t bytes)
{
	void *made = __libc_calloc(count, bytes);

	record(CALL_CALLOC, count, bytes, (uintptr_t)made);
	return made;
}

void *realloc(void *old, size_t bytes)
{
	uintptr_t from = (uintptr_t)old;
	void *made = __libc_realloc(old, bytes);

	record(CALL_REALLOC, from, bytes, (uintptr_t)made);
	return made;
}

void free(void *address)
{
	record(CALL_FREE, (uintptr_t)address, 0, 0);
	__libc_free(address);
}
