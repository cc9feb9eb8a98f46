/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports when processes map code: libraries that are opened late, and new programs. It reads the
 * kernel's perf records of executable mappings (PERF_RECORD_MMAP2). They cost nothing between
 * mappings and do not touch any process.
 */
#ifndef WAFFLE_TARGET_PROCESS_MMAP_WATCH_H
#define WAFFLE_TARGET_PROCESS_MMAP_WATCH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "target/process/process.h"
#include "util/error.h"

struct mmap_watch;

/* Watches all CPUs. After an error late libraries are not detected, but the capture can
 * continue. */
int mmap_watch_open(struct mmap_watch **watch, struct error *err);
void mmap_watch_close(struct mmap_watch *watch);
/* Watches a CPU that came online. Its earlier mappings are reported as MMAP_LOST. */
void mmap_watch_cpu(struct mmap_watch *watch, uint32_t cpu);

/*
 * A descriptor for epoll. It becomes readable only when a ring is nearly full. It covers all
 * processes of the machine, so while a compiler runs, a wake-up per mapping would cost more than
 * the capture. So also read the events periodically.
 */
int mmap_watch_fd(const struct mmap_watch *watch);

enum mmap_event_kind {
	MMAP_MAPPED, /* executable, of a file or anonymous */
	MMAP_EXEC, /* exec replaced all mappings of the process; those of the new program follow */
	MMAP_LOST, /* some events of unknown processes were dropped */
};

struct mmap_event {
	enum mmap_event_kind kind;
	pid_t pid;
	uint64_t ts;            /* CLOCK_MONOTONIC */
	struct mapping mapping; /* its path as the process sees it, valid during the call */
};

/* Calls `each` with the events since the last call. They are ordered per CPU only. Does nothing if
 * `watch` is NULL. */
void mmap_watch_read(struct mmap_watch *watch, void (*each)(const struct mmap_event *, void *),
		     void *arg);

/* One CPU's ring, as in perf_event_open(2). Exported so that tests can pass any bytes. */
struct perf_event_mmap_page;
struct mmap_ring {
	struct perf_event_mmap_page *page;
	uint8_t *data;
	size_t bytes; /* size of `data`, a power of two */
};
void mmap_ring_read(struct mmap_ring *ring, void (*each)(const struct mmap_event *, void *),
		    void *arg);

#endif
