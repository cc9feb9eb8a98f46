/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Defines the meaning of an expression, and filters existing capture files.
 *
 * A comparison is false if its operand is missing. `!` turns that false into true. Missing operands
 * are a key that the site does not declare or the frame does not contain, and a text that was a
 * null pointer. The duration of anything but a span and the parent of a root are missing, too. A
 * comparison of a text with a number is false as well.
 *
 * Numbers are compared exactly, whatever their types. A NaN is unequal to everything, and all other
 * comparisons with it are false. A bool equals true or false, which are the numbers 1 and 0.
 * Pointers and ids are unsigned numbers. Code addresses are unsigned numbers during a capture. In a
 * file they are texts: the names of functions. Three-dimensional values can't be compared.
 *
 * Texts are compared as recorded. A truncated text equals nothing (and is != everything), and a
 * pattern is matched against its recorded part. `lib` and `file` are compared by their last
 * component, unless the literal contains a '/'.
 *
 * A call of category "cuda" or "hip" has the kind cuda, one of "nccl" the kind nccl, and also the
 * kind span or event. If several keys have the same name, the first one is used.
 */
#ifndef WAFFLE_FILTER_EVAL_H
#define WAFFLE_FILTER_EVAL_H

#include "filter/expr_internal.h"
#include "target/elf/site.h"

/* Unknown: the answer depends on the duration of a span that has not ended, or on a value that is
 * available only when a call ends. */
enum filter_truth { FILTER_NO, FILTER_YES, FILTER_UNKNOWN };

/* All facts about a span or event that an expression can refer to. */
struct filter_subject {
	const struct site_info *site;
	const void *frame; /* struct waffle_frame and values; may be NULL */
	uint32_t frame_bytes;
	/* Used instead of a frame if its parts are not contiguous; NULL: there is a frame. */
	const struct waffle_frame *head;
	struct value_walk values;
	uint32_t pid, tid, cpu;
	const char *comm; /* name of its thread when it began; only 15 bytes are used */
	bool ended;       /* a span whose dur_ns is known */
	uint64_t dur_ns;
	int64_t depth;           /* number of spans around it; -1: unknown */
	const char *parent_name; /* NULL: no parent, or unknown */
};

/* Evaluates everything but rate(). The result is FILTER_UNKNOWN only for a span with !ended. */
enum filter_truth filter_eval(const struct filter_expr *filter,
			      const struct filter_subject *subject);

/* The same for a part of the expression: a tree whose nodes are `nodes` up to `root` (split.h). */
enum filter_truth filter_eval_nodes(const struct filter_expr *filter,
				    const struct filter_node *nodes, uint32_t root,
				    const struct filter_subject *subject);

/* Evaluates one predicate, for split.h and for tests. */
enum filter_truth filter_eval_predicate(const struct filter_expr *filter,
					const struct filter_predicate *predicate,
					const struct filter_subject *subject);

/*
 * sample(keep/of): keeps or drops whole traces. It depends on the trace id only, so that all
 * threads, processes and hosts decide alike. Outside any trace an event's own id decides. A counter
 * has no id and passes.
 *
 *	x = trace_hi ^ (trace_lo rotated left by 32); 0: the event's id; 0 as well: passes
 *	x = (x ^ x >> 33) * 0xff51afd7ed558ccd; x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53; x ^= x >> 33
 *	passes if (x >> 32) < (keep << 32) / of
 */
bool filter_sample(uint32_t keep, uint32_t of, uint64_t trace_hi, uint64_t trace_lo, uint64_t id);

/* rate(): called once for each record that passes the rest of the expression, in the order of
 * `ts`. One that comes late counts in the window that has begun meanwhile. */
struct filter_rate_state {
	uint64_t window;
	uint32_t used;
};
bool filter_rate_take(const struct filter_rate *rate, struct filter_rate_state *state, uint64_t ts);

#endif
