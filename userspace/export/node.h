/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A span or event as the encoders of formats see it, wherever it comes from: the model of a
 * capture, or the records of a program that records itself.
 */
#ifndef WAFFLE_EXPORT_NODE_H
#define WAFFLE_EXPORT_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "target/elf/site.h"

/* Members that are 0 are left out. Times (_ts) are CLOCK_MONOTONIC nanoseconds. */
struct export_node {
	const struct site_info *site;
	struct value_walk values;
	uint64_t id, parent_id;
	uint64_t trace_hi, trace_lo;
	uint64_t ts;        /* of a span: its begin */
	uint64_t caused_by; /* id of a cause that no arrow can show */
	uint32_t pid, tid;
	uint32_t end_tid;     /* the thread that a span ended on, if that is another one */
	const char *severity; /* of a log message */
	/* The rest of a span whose begin is shown elsewhere, since it does not nest there. */
	bool continued;
	bool begun_before, unfinished, left, loss, has_sched;
	uint64_t running_ns, runnable_ns, blocked_ns; /* valid if has_sched */
};

#endif
