// SPDX-License-Identifier: Apache-2.0
#include "usdt/ring/shared_memory.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* The limit on the size of files holds for memfds, too. Whoever exceeds it gets SIGXFSZ, which ends
 * the program. */
static bool limit_allows(size_t bytes)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur >= bytes;
}

void *shared_memory_map(void *place, size_t bytes, const void *contents, size_t contents_bytes)
{
	void *memory = MAP_FAILED;
	long fd;

	if (!limit_allows(bytes))
		return NULL;
	fd = syscall(SYS_memfd_create, "waffle-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return NULL;
	if (!syscall(SYS_ftruncate, fd, bytes) &&
	    (!contents_bytes ||
	     pwrite((int)fd, contents, contents_bytes, 0) == (ssize_t)contents_bytes) &&
	    !syscall(SYS_fcntl, fd, F_ADD_SEALS, SEALS))
		memory = mmap(place, bytes, PROT_READ | PROT_WRITE,
			      MAP_SHARED | (place ? MAP_FIXED : 0), (int)fd, 0);
	syscall(SYS_close, fd);
	return memory == MAP_FAILED ? NULL : memory;
}
