// SPDX-License-Identifier: Apache-2.0
#include <bpf/libbpf.h>
#include <sys/mman.h>

#include "kernel/kernel_internal.h"

uint64_t power_of_two(uint64_t value, uint64_t min)
{
	uint64_t power = min;

	while (power < value)
		power *= 2;
	return power;
}

void *map_memory(const struct bpf_map *map, size_t bytes, bool writable)
{
	void *memory = mmap(NULL, bytes, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED,
			    bpf_map__fd(map), 0);

	return memory == MAP_FAILED ? NULL : memory;
}
