/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes spans of PyTorch's wait counters. A counter measures how long something takes, and calls
 * tell what (roles COUNTER_NAME and COUNTER, probes/torch.probes):
 *
 *	its name is looked up ──→ its address ──→ it is started ──→ it is stopped
 *	  HIT COUNTER_NAME        RETURN          HIT COUNTER       RETURN
 *
 * Start and stop know the counter by its address alone. It has the same address as long as the
 * process runs, and PyTorch looks the name up each time before it starts the counter. The spans of
 * the few counters that users look for are delivered when they end. All else is dropped: counters
 * of other names, and those whose name was looked up before the capture.
 */
#ifndef WAFFLE_CAPTURE_WAIT_COUNTERS_INTERNAL_H
#define WAFFLE_CAPTURE_WAIT_COUNTERS_INTERNAL_H

#include "bpf/record.h"
#include "capture/arming/arming.h"
#include "capture/record_filter_internal.h"
#include "util/error.h"

struct wait_counters;

struct wait_counters_options {
	struct arming *arming;
	struct record_filter *filter; /* NULL: everything is kept */
	/* Takes a record that is kept, with arming's number of its site. */
	int (*deliver)(struct waffle_rec *rec, void *arg);
	void *arg;
};

int wait_counters_open(struct wait_counters **counters, const struct wait_counters_options *options,
		       struct error *err);
void wait_counters_close(struct wait_counters *counters);

/* Takes a hit or a return of a site with one of the roles. Returns the result of deliver();
 * -EINVAL: there is no room. */
int wait_counters_pass(struct wait_counters *counters, const struct site_info *site,
		       const struct waffle_rec *rec);
/* An exec or an exit: delivers the spans that it leaves open, and forgets counters. What deliver()
 * refuses with -EINVAL is left out. */
int wait_counters_process(struct wait_counters *counters, const struct waffle_rec_exit *rec);
/* The process has ended. Its exit record may be missing. */
void wait_counters_forget(struct wait_counters *counters, uint32_t tgid);
/* At the end of the capture: delivers the spans that are still open, which have no end. */
int wait_counters_finish(struct wait_counters *counters);

#endif
