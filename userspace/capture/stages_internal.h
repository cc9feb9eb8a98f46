/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path of a record from the drain to the file: a list of stages in stages.c. Each stage has one
 * task, and sees the kinds of records that the task concerns. Mapping events join the records in
 * the order of time.
 */
#ifndef WAFFLE_CAPTURE_STAGES_INTERNAL_H
#define WAFFLE_CAPTURE_STAGES_INTERNAL_H

#include "capture/arming/arming.h"
#include "capture/enrich/enrich.h"
#include "capture/enrich/code_names.h"
#include "capture/python_calls_internal.h"
#include "capture/recorder_internal.h"
#include "capture/record_filter_internal.h"
#include "capture/requests_internal.h"
#include "capture/session_options.h"
#include "capture/track_stage_internal.h"
#include "capture/wait_counters_internal.h"

/* The objects that the stages use. The owner of this struct opens and closes them. */
struct stages {
	struct arming *arming;
	struct address_spaces *spaces;
	struct enrich *enrich;
	struct code_names *names;
	struct store_writer *writer;
	struct recorder *recorder;      /* NULL: a file is written all the time */
	struct record_filter *filter;   /* NULL: everything is kept */
	struct track_stage *tracks;     /* NULL: no records come through rings */
	struct requests *requests;      /* NULL: those of servers are not followed */
	struct python_calls *functions; /* NULL: no functions of Python are watched */
	struct wait_counters *counters; /* NULL: those of PyTorch make no spans */
	const struct session_tap *tap;  /* NULL: none */
	bool redacts;                   /* some keys are omitted */
	struct error *err;
	/* The latest time of a record from the drain. Later stages also get records with other
	 * times: the deferred begins of spans, and what programs record on tracks. */
	uint64_t now;
};

/* Adds a mapping event of any process, in any order. `traced`: the process is a target. */
void stages_mapping(const struct stages *stages, const struct mmap_event *event, bool traced);
/* Call it before each round of the drain; the records before `before_ts` follow. */
int stages_round(const struct stages *stages, uint64_t before_ts);
/* Passes the names of threads that were found to the file. */
int stages_names(const struct stages *stages);
/* Passes a record through the stages. Records must come in order of time. Negative errno: writing
 * failed; -EINVAL: the record was rejected. */
int stages_pass(struct stages *stages, struct waffle_rec *rec);
/* Passes a record that the filter keeps through the stages behind it:
 * record_filter_options.deliver, whose argument are the stages. */
int stages_deliver(struct waffle_rec *rec, void *arg);
/* The same for track_stage_options.deliver. */
int stages_deliver_track(struct waffle_rec *rec, void *arg);
/* The process has ended. Its exit record may have been lost. */
void stages_forget(const struct stages *stages, pid_t pid);

#endif
