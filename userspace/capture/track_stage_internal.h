/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program records on a track comes through its rings as one record. This stage makes the
 * records of it that a file has, at the times that the program gave:
 *
 *	TRACK_HIT ──→ (TRACK, when it is the first of its track) ──→ ON_TRACK ──→ HIT ──→ SPAN_END
 *
 * A filter is asked in between. For it a track is the thread 0 of its process, with the name of the
 * track, as for the collector in a program (usdt/record/collector.c).
 */
#ifndef WAFFLE_CAPTURE_TRACK_STAGE_INTERNAL_H
#define WAFFLE_CAPTURE_TRACK_STAGE_INTERNAL_H

#include <stdbool.h>

#include "bpf/record.h"
#include "capture/arming/arming.h"
#include "capture/record_filter_internal.h"
#include "capture/transport/name_set.h"
#include "util/error.h"

struct track_stage;

struct track_stage_options {
	struct name_set *names; /* all of these outlive the stage */
	const struct arming *arming;
	struct record_filter *filter; /* NULL: everything is kept */
	bool keep_children;
	/* Takes a record that is kept, with arming's number of its site. */
	int (*deliver)(struct waffle_rec *rec, void *arg);
	void *arg;
};

int track_stage_open(struct track_stage **stage, const struct track_stage_options *options,
		     struct error *err);
void track_stage_close(struct track_stage *stage);

/* The process has ended or runs another program: its tracks are others. */
void track_stage_forget(struct track_stage *stage, uint32_t tgid);
/* Passes a record on. Returns the result of deliver(); -EINVAL: its times make no sense. */
int track_stage_pass(struct track_stage *stage, const struct waffle_rec_track_hit *hit);
/* The filter keeps a record: completes it if it is one of a track, and delivers the ON_TRACK before
 * it. Returns the result of deliver(). */
int track_stage_kept(struct track_stage *stage, struct waffle_rec *rec);

#endif
