/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps the memory of a ring that a traced process has made. The process is not trusted: it may name
 * any of its mappings, and replace it at any time. So nothing but memory of the kernel is opened,
 * and only if it can never shrink. Otherwise a device or a file system of the process (FUSE) could
 * stop the tracer, and a truncated file would end it by SIGBUS.
 *
 * What the memory contains is not checked here. Whoever reads it must not trust it.
 */
#ifndef WAFFLE_CAPTURE_TRANSPORT_RING_MEMORY_INTERNAL_H
#define WAFFLE_CAPTURE_TRANSPORT_RING_MEMORY_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Recognizes the kernel's mount of memory. */
struct ring_mount {
	int fd; /* memory of our own; -1: there is none */
	long id;
};

/* Negative errno. */
int ring_mount_open(struct ring_mount *mount);
void ring_mount_close(struct ring_mount *mount);
/* Whether we may open what processes have mapped, which needs CAP_CHECKPOINT_RESTORE or
 * CAP_SYS_ADMIN. */
bool ring_mount_may_map(const struct ring_mount *mount);

struct ring_memory {
	void *at;
	size_t mapped; /* bytes at `at` */
	int fd;        /* for ring_memory_read(); -1: all of it is mapped */
	uint64_t ino;  /* with it one recognizes a ring that is mapped already */
};

/*
 * Maps what a process has mapped at these addresses, which must be all of a sealed memfd. Negative
 * errno; -EACCES: it is anything else.
 *
 * The kernel charges a page to whoever touches it first, and an access to a page that the process
 * has not written makes one. So ring_memory_open() maps only the first `head` bytes, and the rest
 * is read, which makes no pages.
 */
int ring_memory_map(struct ring_memory *memory, const struct ring_mount *mount, pid_t pid,
		    uint64_t address, uint64_t bytes);
int ring_memory_open(struct ring_memory *memory, const struct ring_mount *mount, pid_t pid,
		     uint64_t address, uint64_t bytes, size_t head);
/* Copies bytes of memory that ring_memory_open() has opened. False: they can't be read. */
bool ring_memory_read(const struct ring_memory *memory, uint64_t offset, void *to, size_t bytes);
/* Releases what either of them has mapped. */
void ring_memory_unmap(struct ring_memory *memory);

#endif
