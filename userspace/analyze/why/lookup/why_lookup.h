/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up records by their thread and time. */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_LOOKUP_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_LOOKUP_H

#include "analyze/why/why_types.h"

/* Makes the indexes that look-ups need. */
void why_lookup_init(struct why *why);
/* Index of the first signal after ts. */
size_t why_signals_after(const struct model *model, uint64_t ts);
/* The last signal at or before ts that stopped the thread's process; NULL: not recorded. */
const struct model_signal *why_stopper(struct why *why, uint32_t thread, uint64_t ts);
/* A wait that may be for requests to a device. */
struct why_io_wait {
	uint32_t thread;
	uint32_t dev; /* of the awaited file; 0: unknown */
	uint64_t from, to;
	bool write;
};
/* Whose requests were in flight meanwhile: nobody's, only others', or the thread's own. */
enum why_io { WHY_IO_NONE, WHY_IO_OTHERS, WHY_IO_OWN };
#define WHY_IO_LISTED 16
struct why_io_list {
	uint32_t count;
	uint32_t ios[WHY_IO_LISTED]; /* indexes in model.ios */
	enum why_io whose;
	/* One of them ended in the wait, and it is the thread's own or is known to be for the
	 * file's device. */
	bool sure;
};
/* Fills the list: the thread's first requests, or one of another thread. Requests to other devices
 * than the file's do not count. */
void why_io_find(struct why *why, const struct why_io_wait *wait, struct why_io_list *list);
/* Index of the thread's first throttling record after ts. */
size_t why_quota_after(const struct model *model, uint32_t thread, uint64_t ts);
/* A page fault of the thread that overlaps a time, or NULL. */
const struct model_fault *why_fault_during(const struct model *model, uint32_t thread,
					   uint64_t from, uint64_t to);

#endif
