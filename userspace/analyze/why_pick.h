/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WAFFLE_ANALYZE_WHY_PICK_H
#define WAFFLE_ANALYZE_WHY_PICK_H

#include "analyze/why.h"

/* What `why` was asked for, as it was written. */
struct why_wanted {
	const char *span;        /* name or id; NULL: not given */
	const char *thread;      /* number or name; NULL: not given */
	uint64_t from_ns, to_ns; /* since the capture's begin */
	bool window;             /* one of these was given */
};

/* Fills in the query, or says what is not in the capture, and what was perhaps meant. */
int why_pick(struct why_query *query, const struct model *model, const struct why_wanted *wanted,
	     struct error *err);

/* The last event of a name, or the one with an id, as an index of model.events. */
int why_pick_event(uint32_t *event, const struct model *model, const char *wanted,
		   struct error *err);

#endif
