// SPDX-License-Identifier: Apache-2.0
#include "usdt/gpu/nvtx_reserve.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>

void *nvtx_reserve(void **place, size_t bytes)
{
	void *all = __atomic_load_n(place, __ATOMIC_ACQUIRE), *others = NULL;
	int code = errno;

	if (all)
		return all;
	all = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		   -1, 0);
	errno = code;
	if (all == MAP_FAILED)
		return NULL;
	if (__atomic_compare_exchange_n(place, &others, all, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return all;
	munmap(all, bytes);
	return others;
}
