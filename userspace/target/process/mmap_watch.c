// SPDX-License-Identifier: Apache-2.0
#include "target/process/mmap_watch.h"
#include "util/clock.h"

#include <limits.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Body of PERF_RECORD_MMAP2 (perf_event_open(2)), between the header and the path. All records end
 * with their time. Those that we read start with the pid, except PERF_RECORD_LOST. */
struct mapped {
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t major, minor;
	uint64_t ino, ino_generation;
	uint32_t prot, flags;
};

#define DATA_PAGES 32 /* a power of two; a record takes about 100 bytes */

struct cpu_watch {
	int fd, cpu;
	struct mmap_ring ring;
};

struct mmap_watch {
	int epoll;
	size_t page_bytes;
	int cpus, room;
	bool lost; /* mappings on this CPU before it was watched are unknown */
	struct cpu_watch cpu[];
};

static size_t data_bytes(const struct mmap_watch *watch)
{
	return DATA_PAGES * watch->page_bytes;
}

static void slot_close(const struct mmap_watch *watch, const struct cpu_watch *slot)
{
	munmap(slot->ring.page, watch->page_bytes + data_bytes(watch));
	close(slot->fd);
}

static int cpu_open(struct mmap_watch *watch, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.sample_id_all = 1,
		.sample_type = PERF_SAMPLE_TIME,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = (uint32_t)data_bytes(watch) / 2,
	};
	struct epoll_event event = {.events = EPOLLIN};
	struct cpu_watch *slot = watch->cpu;
	void *memory;
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return errno == ENODEV ? 0 : -errno; /* the CPU is offline */
	memory = mmap(NULL, watch->page_bytes + data_bytes(watch), PROT_READ | PROT_WRITE,
		      MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED || epoll_ctl(watch->epoll, EPOLL_CTL_ADD, fd, &event)) {
		int code = errno;

		close(fd);
		return -code;
	}
	while (slot < watch->cpu + watch->cpus && slot->cpu != cpu)
		slot++;
	if (slot < watch->cpu + watch->cpus)
		slot_close(watch, slot); /* the CPU was offline meanwhile */
	else
		watch->cpus++;
	slot->cpu = cpu;
	slot->fd = fd;
	slot->ring = (struct mmap_ring){.page = memory,
					.data = (uint8_t *)memory + watch->page_bytes,
					.bytes = data_bytes(watch)};
	return 0;
}

int mmap_watch_open(struct mmap_watch **watch, struct error *err)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	struct mmap_watch *made;
	int result = 0;

	*watch = NULL;
	made = calloc(1, sizeof(*made) + (size_t)(cpus > 0 ? cpus : 1) * sizeof(made->cpu[0]));
	if (!made)
		return error_set(err, ENOMEM, "watching for libraries: out of memory");
	made->room = cpus > 0 ? (int)cpus : 1;
	made->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	made->epoll = epoll_create1(EPOLL_CLOEXEC);
	for (int cpu = 0; cpu < cpus && !result; cpu++)
		result = cpu_open(made, cpu);
	if (result) {
		mmap_watch_close(made);
		return error_set(err, -result,
				 "watching for libraries: perf_event_open: %s; those opened late "
				 "stay dormant",
				 strerror(-result));
	}
	*watch = made;
	return 0;
}

void mmap_watch_cpu(struct mmap_watch *watch, uint32_t cpu)
{
	if (!watch || cpu >= (uint32_t)watch->room)
		return;
	watch->lost = true;
	cpu_open(watch, (int)cpu);
}

void mmap_watch_close(struct mmap_watch *watch)
{
	if (!watch)
		return;
	for (int i = 0; i < watch->cpus; i++)
		slot_close(watch, &watch->cpu[i]);
	close(watch->epoll);
	free(watch);
}

int mmap_watch_fd(const struct mmap_watch *watch)
{
	return watch->epoll;
}

/* Copies bytes out of a ring, across its end if needed. */
static void ring_copy(const struct mmap_ring *ring, uint64_t at, void *to, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((uint8_t *)to)[i] = ring->data[(at + i) & (ring->bytes - 1)];
}

/* Decodes the mapping of a record whose body, without its time, is `size` bytes at `at`. */
static bool mapping_read(const struct mmap_ring *ring, uint64_t at, size_t size,
			 struct mapping *mapping, char path[PATH_MAX])
{
	struct mapped mapped;

	if (size < sizeof(mapped))
		return false;
	ring_copy(ring, at, &mapped, sizeof(mapped));
	size -= sizeof(mapped);
	if (size > PATH_MAX - 1)
		size = PATH_MAX - 1;
	ring_copy(ring, at + sizeof(mapped), path, size);
	path[size] = '\0';
	if (!mapped.len || mapped.addr + mapped.len < mapped.addr)
		return false;
	*mapping = (struct mapping){.start = mapped.addr,
				    .end = mapped.addr + mapped.len,
				    .offset = mapped.pgoff,
				    .ino = mapped.ino,
				    .dev = mapped.major << 20 | mapped.minor,
				    .executable = mapped.prot & PROT_EXEC,
				    .path = path};
	mapping_path_trim(path);
	return true;
}

/* Decodes a record. False: we ignore this kind. */
static bool event_read(const struct mmap_ring *ring, uint64_t at,
		       const struct perf_event_header *header, struct mmap_event *event,
		       char path[PATH_MAX])
{
	size_t size = header->size - sizeof(*header);
	uint32_t pid;

	*event = (struct mmap_event){0};
	if (size < sizeof(pid) + sizeof(event->ts))
		return false;
	at += sizeof(*header);
	size -= sizeof(event->ts);
	ring_copy(ring, at + size, &event->ts, sizeof(event->ts));
	ring_copy(ring, at, &pid, sizeof(pid));
	event->pid = (pid_t)pid;
	switch (header->type) {
	case PERF_RECORD_MMAP2:
		event->kind = MMAP_MAPPED;
		return mapping_read(ring, at, size, &event->mapping, path);
	case PERF_RECORD_COMM:
		event->kind = MMAP_EXEC;
		return header->misc & PERF_RECORD_MISC_COMM_EXEC;
	case PERF_RECORD_LOST:
		event->kind = MMAP_LOST;
		event->pid = 0;
		return true;
	default:
		return false;
	}
}

void mmap_ring_read(struct mmap_ring *ring, void (*each)(const struct mmap_event *, void *),
		    void *arg)
{
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t at = ring->page->data_tail;
	struct perf_event_header header;
	struct mmap_event event;
	char path[PATH_MAX];

	for (; at + sizeof(header) <= head; at += header.size) {
		ring_copy(ring, at, &header, sizeof(header));
		if (header.size < sizeof(header) || header.size > head - at)
			break;
		if (event_read(ring, at, &header, &event, path))
			each(&event, arg);
	}
	__atomic_store_n(&ring->page->data_tail, head, __ATOMIC_RELEASE);
}

void mmap_watch_read(struct mmap_watch *watch, void (*each)(const struct mmap_event *, void *),
		     void *arg)
{
	if (watch && watch->lost) {
		watch->lost = false;
		each(&(struct mmap_event){.kind = MMAP_LOST, .ts = clock_monotonic_ns()}, arg);
	}
	for (int i = 0; watch && i < watch->cpus; i++)
		mmap_ring_read(&watch->cpu[i].ring, each, arg);
}
