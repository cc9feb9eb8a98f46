/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports which processes map code: libraries that are opened late, and new programs. It uses the
 * kernel's perf records of executable mappings (PERF_RECORD_MMAP2), which cost nothing between
 * mappings and touch no process.
 */
#ifndef WAFFLE_TARGET_MMAP_WATCH_H
#define WAFFLE_TARGET_MMAP_WATCH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "target/process.h"
#include "util/error.h"

struct mmap_watch;

/* Watches all CPUs. An error means that late libraries go unseen; the capture can do without. */
int mmap_watch_open(struct mmap_watch **watch, struct error *err);
void mmap_watch_close(struct mmap_watch *watch);
/* Watches a CPU that has come online; its earlier mappings are reported as MMAP_LOST. */
void mmap_watch_cpu(struct mmap_watch *watch, uint32_t cpu);

/*
 * A descriptor for epoll. It becomes readable only when a ring is nearly full. All processes of the
 * machine are reported, so a wake-up for each mapping would cost more than the capture itself while
 * something compiles. Read the events from time to time.
 */
int mmap_watch_fd(const struct mmap_watch *watch);

enum mmap_event_kind {
	MMAP_MAPPED, /* code: of a file, or of none */
	MMAP_EXEC,   /* the process has lost all its mappings to a new program, which maps next */
	MMAP_LOST,   /* some events of any processes are missing */
};

struct mmap_event {
	enum mmap_event_kind kind;
	pid_t pid;
	uint64_t ts;            /* CLOCK_MONOTONIC */
	struct mapping mapping; /* its path as the process sees it, valid during the call */
};

/* Calls `each` with what came since the last call, in order for each CPU only. Does nothing without
 * a watch. */
void mmap_watch_read(struct mmap_watch *watch, void (*each)(const struct mmap_event *, void *),
		     void *arg);

/* One CPU's ring, as perf_event_open(2) describes it; apart, so that any bytes can be read as one.
 */
struct perf_event_mmap_page;
struct mmap_ring {
	struct perf_event_mmap_page *page;
	uint8_t *data;
	size_t bytes; /* of `data`: a power of two */
};
void mmap_ring_read(struct mmap_ring *ring, void (*each)(const struct mmap_event *, void *),
		    void *arg);

#endif
