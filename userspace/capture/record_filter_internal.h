/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stage that filters hits and span ends of processes whose records come through rings. The
 * kernel filters those of all other processes. Some hits of such a process come through the kernel,
 * too, until the ring of their thread is read; they are armed without the kernel's filter.
 *
 *	records in the order of time ──→ record_filter_pass() ──→ deliver(): the stages behind it
 */
#ifndef WAFFLE_CAPTURE_RECORD_FILTER_INTERNAL_H
#define WAFFLE_CAPTURE_RECORD_FILTER_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/record.h"
#include "capture/arming/arming.h"
#include "filter/filter.h"
#include "util/error.h"

struct record_filter;

struct record_filter_options {
	const struct filter_expr *filter; /* lives as long as the stage, as `arming` does */
	bool keep_children;
	const struct arming *arming;
	uint64_t *rate_windows; /* see filter_stream_options */
	/* Takes what is kept, with arming's number of its site. Negative errno: it was not written;
	 * -EINVAL: it is malformed. */
	int (*deliver)(struct waffle_rec *rec, void *arg);
	void *arg;
};

int record_filter_open(struct record_filter **filter, const struct record_filter_options *options,
		       struct error *err);
void record_filter_close(struct record_filter *filter);

/* Whether hits of a site can be of any use. */
bool record_filter_wants(const struct record_filter *filter, const struct site_info *site);
/* From now on the records of a process are filtered here. */
void record_filter_process(struct record_filter *filter, pid_t pid);
/* The process has ended, and all its records have passed. */
void record_filter_forget(struct record_filter *filter, pid_t pid);

/* Notes the names and ends of threads. */
void record_filter_thread(struct record_filter *filter, const struct waffle_rec *rec);
/* Whether a hit or the end of a span is to be filtered here. */
bool record_filter_takes(const struct record_filter *filter, const struct waffle_rec *rec);
/* Filters a record, whose site has arming's number. Returns the result of deliver(), which may have
 * been called for other records. */
int record_filter_pass(struct record_filter *filter, struct waffle_rec *rec);

/* The same for what is on a track: a hit and, if it is a span's, its end, else of kind 0. Their
 * times are the program's; `now` is when it recorded them. */
int record_filter_pass_track(struct record_filter *filter, struct waffle_rec_hit *hit,
			     struct waffle_rec_span_end *end, uint64_t now);

struct record_filter_counts {
	uint64_t taken;     /* records that were passed here */
	uint64_t delivered; /* records that are written; the others are rejected or … */
	uint64_t lost;      /* … found no room, or were malformed */
};
struct record_filter_counts record_filter_counts(const struct record_filter *filter);

#endif
