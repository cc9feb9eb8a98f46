/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the arguments of `why` into a query. */
#ifndef WAFFLE_ANALYZE_WHY_WHY_PICK_H
#define WAFFLE_ANALYZE_WHY_WHY_PICK_H

#include "analyze/why/why.h"

/* The arguments of `why`, as the user wrote them. */
struct why_wanted {
	const char *span;        /* name or id; NULL: not given */
	const char *thread;      /* number or name; NULL: not given */
	uint64_t from_ns, to_ns; /* since the begin of the capture */
};

/* Returns whether the model has spans. Calls that are book-keeping (site_is_bookkeeping()) do not
 * count: they are explained only if the user gives their name. */
bool why_pick_has_spans(const struct model *model);
/* Fills in the query, whose names the caller has set. If the user named nothing and spans explain
 * nothing, the query is that of why_busiest_program(). If the capture does not have what the user
 * named, the error suggests similar names. Returns 0 or a negative errno with a
 * message. */
int why_pick(struct why_query *query, const struct model *model, const struct why_wanted *wanted,
	     struct error *err);

/* The last event of a name, or the event with an id, as an index in model.events. */
int why_pick_event(uint32_t *event, const struct model *model, const char *wanted,
		   struct error *err);
/* The last span of a name, or the span with an id, as an index in model.spans. */
int why_pick_span(uint32_t *span, const struct model *model, const char *wanted, struct error *err);

#endif
