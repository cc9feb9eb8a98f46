/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The definition of what an expression means, and the filter of files that are recorded already.
 *
 * A comparison is false if what it compares is not there: a key that the site does not declare or
 * whose value the frame lacks, a text that was a null pointer, a text compared with a number, the
 * duration of what is no span, the parent of what has none. `!` turns that false into true.
 * Numbers compare by value, exactly, whatever their types; nothing is less, equal or greater than
 * a NaN, and it is != everything. A bool equals true and false, 1 and 0, and the literals true and
 * false are these numbers. Pointers and ids are unsigned numbers. Addresses of code are such
 * numbers while they are recorded, and texts, names of functions, in a file. What has three
 * dimensions can't be compared. A call of category "cuda" or "nccl" is of the kinds cuda or nccl,
 * and a span or event as well. Of keys of one name the first counts. Texts are compared as
 * recorded: a text that was cut equals nothing (and is != everything), and is matched by what is
 * there of it. `lib` and `file` are compared by their last part unless the literal has a '/' in it.
 */
#ifndef WAFFLE_FILTER_EVAL_H
#define WAFFLE_FILTER_EVAL_H

#include "filter/expr.h"
#include "target/site.h"

/* Unknown: the answer hangs on the duration of a span that has not ended, or on a value that is
 * known only when a call ends. */
enum filter_truth { FILTER_NO, FILTER_YES, FILTER_UNKNOWN };

/* All that is known of a span or event when it is asked. */
struct filter_subject {
	const struct site_info *site;
	const void *frame; /* struct waffle_frame and values; may be NULL */
	uint32_t frame_bytes;
	/* In place of a frame, where its parts do not lie together; NULL: there is a frame. */
	const struct waffle_frame *head;
	struct value_walk values;
	uint32_t pid, tid, cpu;
	const char *comm; /* of its thread when it began; at most 15 bytes count */
	bool ended;       /* a span whose dur_ns is known */
	uint64_t dur_ns;
	int64_t depth;           /* spans above it; -1: not known */
	const char *parent_name; /* NULL: no parent, or not known */
};

/* Without rate(). A FILTER_UNKNOWN arises only for a span with !ended. */
enum filter_truth filter_eval(const struct filter_expr *filter,
			      const struct filter_subject *subject);

/* One predicate, for the static part and for tests. */
enum filter_truth filter_eval_predicate(const struct filter_expr *filter,
					const struct filter_predicate *predicate,
					const struct filter_subject *subject);

/*
 * sample(keep/of): of what belongs to a trace all or nothing, by its trace id, so that all threads,
 * processes and hosts decide alike. Outside any trace an event decides by its own id; a counter,
 * which has none, passes.
 *
 *	x = trace_hi ^ (trace_lo rotated left by 32); 0: the event's id; 0 as well: passes
 *	x = (x ^ x >> 33) * 0xff51afd7ed558ccd; x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53; x ^= x >> 33
 *	passes if (x >> 32) < (keep << 32) / of
 */
bool filter_sample(uint32_t keep, uint32_t of, uint64_t trace_hi, uint64_t trace_lo, uint64_t id);

/* rate(): asked once for each that passes the rest, in the order of `ts`. */
struct filter_rate_state {
	uint64_t window;
	uint32_t used;
};
bool filter_rate_take(const struct filter_rate *rate, struct filter_rate_state *state, uint64_t ts);

#endif
