/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a span of each request that a server answers, from what its threads did with a connection:
 *
 *	SOCKET: received ──→ SOCKET: sent, sent, … ──→ HIT, SPAN_END
 *
 * A request lasts from the receive of its first bytes to the last send of its answer. That is known
 * when the next request comes on the connection, when the connection is closed, or when nothing was
 * sent for REQUEST_QUIET_NS. So the two records of a span come late, with their own times, as those
 * of spans on tracks do. A request without an answer ends when its connection is closed, else it is
 * open at the end of the capture.
 */
#ifndef WAFFLE_CAPTURE_REQUESTS_INTERNAL_H
#define WAFFLE_CAPTURE_REQUESTS_INTERNAL_H

#include "bpf/record.h"
#include "capture/arming/arming.h"
#include "capture/record_filter_internal.h"
#include "capture/request_head_internal.h"
#include "util/error.h"

/* An answer in which the server paused for so long counts as ended before the pause. */
#define REQUEST_QUIET_NS 1000000000ull

struct requests;

struct requests_options {
	struct arming *arming;        /* both outlive the result */
	struct record_filter *filter; /* NULL: everything is kept */
	/* Takes a record that is kept, with arming's number of its site. */
	int (*deliver)(struct waffle_rec *rec, void *arg);
	void *arg;
};

int requests_open(struct requests **requests, const struct requests_options *options,
		  struct error *err);
void requests_close(struct requests *requests);

/* Takes a record. Returns the result of deliver(); -EINVAL: it was rejected. */
int requests_pass(struct requests *requests, const struct waffle_rec_socket *rec);
/* Ends the answers in which nothing was sent for long. `now`: the time of the current record. */
int requests_round(struct requests *requests, uint64_t now);
/* At the end of the capture: delivers all that is left. Requests without an answer have no end. */
int requests_finish(struct requests *requests);

#endif
