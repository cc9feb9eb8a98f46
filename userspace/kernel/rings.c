// SPDX-License-Identifier: Apache-2.0
/* The ring buffers, which have the records of sites and calls. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/kernel_internal.h"
#include "waffle.skel.h"

/* CPUs that share a ring, as a ring has one lock. */
#define CPUS_PER_RING_SHIFT 3
/* The size of a ring if there are very many, or if none of its CPUs is online. */
#define RING_BYTES_MIN (256ull << 10)

int rings_configure(struct kernel *kernel)
{
	kernel->ring_count =
		(kernel->cpus + (1u << CPUS_PER_RING_SHIFT) - 1) >> CPUS_PER_RING_SHIFT;
	kernel->config.ring_shift = CPUS_PER_RING_SHIFT;
	return bpf_map__set_max_entries(kernel->bpf->maps.rings, kernel->ring_count);
}

static int ring_take(void *arg, void *data, size_t size)
{
	struct kernel *kernel = arg;

	kernel->take(data, size, kernel->take_arg);
	if (size >= kernel->take_left) {
		kernel->take_left = 0;
		return -EAGAIN; /* libbpf continues after this record next time */
	}
	kernel->take_left -= size;
	return 0;
}

/* Adds a ring to the reader, which the first one creates. */
static int ring_read(struct kernel *kernel, int fd)
{
	if (kernel->rings)
		return ring_buffer__add(kernel->rings, fd, ring_take, kernel);
	kernel->rings = ring_buffer__new(fd, ring_take, kernel, NULL);
	return kernel->rings ? 0 : -errno;
}

static int ring_make(struct kernel *kernel, uint32_t number, uint32_t size)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "waffle_spans", 0, 0, size, NULL);

	if (fd < 0)
		return -errno;
	kernel->ring_fds[number] = fd;
	if (bpf_map_update_elem(bpf_map__fd(kernel->bpf->maps.rings), &number, &fd, BPF_ANY))
		return -errno;
	return ring_read(kernel, fd);
}

/* Whether a CPU that uses the ring is online. */
static bool ring_is_used(const struct kernel *kernel, uint32_t ring)
{
	uint32_t first = ring << CPUS_PER_RING_SHIFT;

	for (uint32_t cpu = first; cpu < first + (1u << CPUS_PER_RING_SHIFT); cpu++)
		if (cpu < kernel->cpus && kernel->online[cpu])
			return true;
	return false;
}

static uint64_t ring_size(const struct kernel *kernel, const struct kernel_options *options)
{
	uint64_t size = power_of_two(options->ring_bytes, (uint64_t)sysconf(_SC_PAGESIZE));
	uint64_t used = 0;

	for (uint32_t i = 0; i < kernel->ring_count; i++)
		used += ring_is_used(kernel, i);
	while (options->ring_total && size > RING_BYTES_MIN && used * size > options->ring_total)
		size /= 2;
	return size;
}

int rings_open(struct kernel *kernel, const struct kernel_options *options, struct error *err)
{
	uint32_t size = (uint32_t)ring_size(kernel, options);
	uint32_t unused = size < RING_BYTES_MIN ? size : RING_BYTES_MIN;
	int result = 0;

	kernel->ring_fds = malloc(kernel->ring_count * sizeof(int));
	if (!kernel->ring_fds)
		return error_set(err, ENOMEM, "out of memory");
	memset(kernel->ring_fds, -1, kernel->ring_count * sizeof(int));
	for (uint32_t i = 0; i < kernel->ring_count && !result; i++)
		result = ring_make(kernel, i, ring_is_used(kernel, i) ? size : unused);
	kernel->ring_bytes = size;
	return result ? error_set(err, -result, "a ring buffer of %u bytes: %s", size,
				  strerror(-result))
		      : 0;
}

void rings_close(struct kernel *kernel)
{
	ring_buffer__free(kernel->rings);
	for (uint32_t i = 0; kernel->ring_fds && i < kernel->ring_count; i++)
		if (kernel->ring_fds[i] >= 0)
			close(kernel->ring_fds[i]);
	free(kernel->ring_fds);
}

bool kernel_ring_take(struct kernel *kernel, uint32_t ring, size_t bytes, kernel_take_fn *take,
		      void *arg)
{
	kernel->take = take;
	kernel->take_arg = arg;
	kernel->take_left = bytes;
	ring__consume(ring_buffer__ring(kernel->rings, ring));
	return kernel->take_left != 0;
}

void kernel_take_enough(struct kernel *kernel)
{
	kernel->take_left = 0;
}

void kernel_take(struct kernel *kernel, kernel_take_fn *take, void *arg)
{
	for (uint32_t ring = 0; ring < kernel->ring_count; ring++)
		kernel_ring_take(kernel, ring, SIZE_MAX, take, arg);
}

uint64_t kernel_ring_bytes(const struct kernel *kernel)
{
	return kernel->ring_bytes;
}

uint32_t kernel_ring_count(const struct kernel *kernel)
{
	return kernel->ring_count;
}

int kernel_ring_fd(const struct kernel *kernel, uint32_t ring)
{
	return kernel->ring_fds[ring];
}
