// SPDX-License-Identifier: Apache-2.0
/* The data for stack walks in the kernel (bpf/stack.bpf.c): tables and mappings, in shared
 * pages. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel/kernel_internal.h"
#include "waffle.skel.h"

#define SLAB_BYTES ((size_t)WAFFLE_UNWIND_SLAB_PAGES * WAFFLE_UNWIND_PAGE_BYTES)

#define BATCH_MAX 64 /* slabs that are added at once */

/* A new slab, which no BPF program sees yet. Returns its descriptor, or a negative errno. */
static int slab_make(void **memory)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "waffle_unwind", sizeof(uint32_t),
				WAFFLE_UNWIND_PAGE_BYTES, WAFFLE_UNWIND_SLAB_PAGES, &options);
	int result;

	if (fd < 0)
		return -errno;
	*memory = mmap(NULL, SLAB_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (*memory != MAP_FAILED)
		return fd;
	result = -errno;
	close(fd);
	return result;
}

/* Puts slabs into the map of maps. For each call, not for each slab, the kernel waits some
 * milliseconds until no BPF program uses an old one. Kernels before 5.13 take one at a time. */
static int slabs_put(struct kernel *kernel, const uint32_t *numbers, const int *fds, uint32_t count)
{
	int map = bpf_map__fd(kernel->bpf->maps.unwind_slabs);
	uint32_t put = count;

	if (count > 1 && !bpf_map_update_batch(map, numbers, fds, &put, NULL))
		return 0;
	for (uint32_t i = 0; i < count; i++)
		if (bpf_map_update_elem(map, &numbers[i], &fds[i], BPF_ANY))
			return -errno;
	return 0;
}

/* Adds slabs. Negative errno on failure. */
static int slabs_add(struct kernel *kernel, uint32_t count)
{
	uint32_t numbers[BATCH_MAX], first = (uint32_t)kernel->slabs.len, made = 0;
	void *memory[BATCH_MAX];
	int fds[BATCH_MAX], result = 0;

	for (; made < count && !result; made += !result) {
		numbers[made] = first + made;
		fds[made] = slab_make(&memory[made]);
		result = fds[made] < 0 ? fds[made] : 0;
	}
	result = result ?: slabs_put(kernel, numbers, fds, made);
	for (uint32_t i = 0; i < made; i++) {
		if (!result && !vec_push(&kernel->slabs, memory[i]))
			result = -ENOMEM;
		if (result)
			munmap(memory[i], SLAB_BYTES);
		close(fds[i]); /* the map of maps and the memory keep it */
	}
	return result;
}

bool kernel_stacks_wanted(const struct kernel *kernel)
{
	return kernel->stacks;
}

/* The number of slabs to add so that there are at least `needed`: some more than those, so that a
 * process with many files seldom waits for the kernel. */
static uint32_t slabs_wanted(const struct kernel *kernel, uint64_t needed)
{
	uint64_t there = kernel->slabs.len, wanted = there + there / 4;

	if (wanted < needed)
		wanted = needed;
	if (wanted > WAFFLE_UNWIND_SLABS_MAX)
		wanted = WAFFLE_UNWIND_SLABS_MAX;
	return wanted - there < BATCH_MAX ? (uint32_t)(wanted - there) : BATCH_MAX;
}

int kernel_unwind_reserve(struct kernel *kernel, uint64_t count)
{
	uint64_t pages = kernel->unwind_pages + count;
	uint64_t needed = (pages + WAFFLE_UNWIND_SLAB_PAGES - 1) / WAFFLE_UNWIND_SLAB_PAGES;
	int result = 0;

	if (needed > WAFFLE_UNWIND_SLABS_MAX)
		return -ENOSPC;
	while (!result && kernel->slabs.len < needed)
		result = slabs_add(kernel, slabs_wanted(kernel, needed));
	return result;
}

int64_t kernel_unwind_pages(struct kernel *kernel, uint32_t count)
{
	uint64_t first = kernel->unwind_pages;
	int result = kernel_unwind_reserve(kernel, count);

	if (result)
		return result;
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
