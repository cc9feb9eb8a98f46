// SPDX-License-Identifier: Apache-2.0
/*
 * io_wait WAY SEED: the victim reads from a slow disk and waits for that in io_getevents(2) (WAY
 * aio) or in io_uring_enter(2) (WAY uring), neither of which names a file.
 */
#include "zoo.h"

#include <linux/aio_abi.h>
#include <linux/io_uring.h>

#define ROUNDS 6
#define PART (128 << 10)

static int file;
static char file_name[256];
static void *buffer;
static const char *way;

/* ---- aio ---- */

static aio_context_t context;

static void aio_read(long at)
{
	struct iocb one = {.aio_fildes = (uint32_t)file,
			   .aio_lio_opcode = IOCB_CMD_PREAD,
			   .aio_buf = (uintptr_t)buffer,
			   .aio_nbytes = PART,
			   .aio_offset = at * PART},
		    *all = &one;
	struct io_event event;

	zoo_need(syscall(SYS_io_submit, context, 1, &all) == 1, "io_submit");
	zoo_need(syscall(SYS_io_getevents, context, 1, 1, &event, NULL) == 1 && event.res == PART,
		 "io_getevents");
}

/* ---- io_uring ---- */

static struct {
	int fd;
	unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
} ring;

static char *ring_map(size_t bytes, off_t at)
{
	char *map =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd, at);

	zoo_need(map != MAP_FAILED, "mmap");
	return map;
}

static void ring_open(void)
{
	struct io_uring_params params = {0};
	char *sq, *cq;

	ring.fd = (int)syscall(SYS_io_uring_setup, 4, &params);
	zoo_need(ring.fd >= 0, "io_uring_setup");
	sq = ring_map(params.sq_off.array + params.sq_entries * sizeof(unsigned),
		      IORING_OFF_SQ_RING);
	cq = ring_map(params.cq_off.cqes + params.cq_entries * sizeof(*ring.cqes),
		      IORING_OFF_CQ_RING);
	ring.sqes = (void *)ring_map(params.sq_entries * sizeof(*ring.sqes), IORING_OFF_SQES);
	ring.sq_tail = (void *)(sq + params.sq_off.tail);
	ring.sq_mask = (void *)(sq + params.sq_off.ring_mask);
	ring.sq_array = (void *)(sq + params.sq_off.array);
	ring.cq_head = (void *)(cq + params.cq_off.head);
	ring.cq_mask = (void *)(cq + params.cq_off.ring_mask);
	ring.cqes = (void *)(cq + params.cq_off.cqes);
}

static void ring_read(long at)
{
	unsigned tail = *ring.sq_tail, slot = tail & *ring.sq_mask;

	ring.sqes[slot] = (struct io_uring_sqe){.opcode = IORING_OP_READ,
						.fd = file,
						.addr = (uintptr_t)buffer,
						.len = PART,
						.off = (uint64_t)at * PART};
	ring.sq_array[slot] = slot;
	__atomic_store_n(ring.sq_tail, tail + 1, __ATOMIC_RELEASE);
	zoo_need(syscall(SYS_io_uring_enter, ring.fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1,
		 "io_uring_enter");
	zoo_need(ring.cqes[*ring.cq_head & *ring.cq_mask].res == PART, "read");
	__atomic_store_n(ring.cq_head, *ring.cq_head + 1, __ATOMIC_RELEASE);
}

static void read_some(int i)
{
	for (long n = zoo_vary(i, 4, 8), at = 0; at < n; at++)
		if (!strcmp(way, "aio"))
			aio_read(at);
		else
			ring_read(at);
}

static void victim(void)
{
	zoo_enter_cgroup("ZOO_BLKIO");
	zoo_work(ROUNDS, read_some, "disk-read", NULL);
}

int main(int argc, char **argv)
{
	zoo_begin(argc, argv);
	way = argc > 2 ? argv[1] : "aio";
	file = zoo_file(file_name, sizeof(file_name), 8 * PART, O_RDONLY | O_DIRECT);
	zoo_need(!posix_memalign(&buffer, 4096, PART), "memalign");
	if (!strcmp(way, "aio"))
		zoo_need(!syscall(SYS_io_setup, 4, &context), "io_setup");
	else
		ring_open();
	zoo_go();
	ZOO_RUN({"victim", victim}, {"innocent", zoo_innocent});
	unlink(file_name);
	return 0;
}
