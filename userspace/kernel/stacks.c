// SPDX-License-Identifier: Apache-2.0
/* The data for stack walks in the kernel
 * (bpf/stack.bpf.c): tables and mappings, in shared
 * pages. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel/kernel_internal.h"
#include "waffle.skel.h"

#define SLAB_BYTES ((size_t)WAFFLE_UNWIND_SLAB_PAGES * WAFFLE_UNWIND_PAGE_BYTES)

/* Adds a slab. Negative errno on failure. */
static int slab_add(struct kernel *kernel)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
	uint32_t number = (uint32_t)kernel->slabs.len;
	void *memory;
	int fd, result;

	if (number >= WAFFLE_UNWIND_SLABS_MAX)
		return -ENOSPC;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "waffle_unwind", sizeof(uint32_t),
			    WAFFLE_UNWIND_PAGE_BYTES, WAFFLE_UNWIND_SLAB_PAGES, &options);
	if (fd < 0)
		return -errno;
	memory = mmap(NULL, SLAB_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	result = memory == MAP_FAILED ? -errno : 0;
	if (!result &&
	    bpf_map_update_elem(bpf_map__fd(kernel->bpf->maps.unwind_slabs), &number, &fd, BPF_ANY))
		result = -errno;
	if (!result && !vec_push(&kernel->slabs, memory))
		result = -ENOMEM;
	if (result && memory != MAP_FAILED)
		munmap(memory, SLAB_BYTES);
	close(fd); /* the map of maps and the memory keep it */
	return result;
}

bool kernel_stacks_wanted(const struct kernel *kernel)
{
	return kernel->stacks;
}

int64_t kernel_unwind_pages(struct kernel *kernel, uint32_t count)
{
	uint64_t first = kernel->unwind_pages;

	while (kernel->slabs.len * WAFFLE_UNWIND_SLAB_PAGES < first + count) {
		int result = slab_add(kernel);

		if (result)
			return result;
	}
	kernel->unwind_pages += count;
	return (int64_t)first;
}

struct waffle_unwind_page *kernel_unwind_page(struct kernel *kernel, uint32_t page)
{
	struct waffle_unwind_page *slab = kernel->slabs.data[page / WAFFLE_UNWIND_SLAB_PAGES];

	return &slab[page % WAFFLE_UNWIND_SLAB_PAGES];
}

void kernel_stack_file(struct kernel *kernel, const struct waffle_inode *inode,
		       const struct waffle_stack_file *file)
{
	/* If this fails, stacks end in that file until userspace has read the process's mappings.
	 */
	bpf_map_update_elem(bpf_map__fd(kernel->bpf->maps.stack_files), inode, file, BPF_ANY);
}

int kernel_stack_process(struct kernel *kernel, pid_t pid,
			 const struct waffle_stack_process *process)
{
	int map = bpf_map__fd(kernel->bpf->maps.stack_processes);
	uint32_t key = (uint32_t)pid;

	if (!process)
		bpf_map_delete_elem(map, &key);
	else if (bpf_map_update_elem(map, &key, process, BPF_ANY))
		return -errno;
	return 0;
}

void stacks_close(struct kernel *kernel)
{
	for (size_t i = 0; i < kernel->slabs.len; i++)
		munmap(kernel->slabs.data[i], SLAB_BYTES);
	vec_free(&kernel->slabs);
}
