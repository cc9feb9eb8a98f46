/* SPDX-License-Identifier: Apache-2.0 */
/* The symptoms of a capture: events whose origin is declared, for reports that nobody asked for one
 * event. */
#ifndef WAFFLE_ANALYZE_ORIGIN_ORIGIN_SYMPTOMS_H
#define WAFFLE_ANALYZE_ORIGIN_ORIGIN_SYMPTOMS_H

#include "analyze/origin/origin.h"

struct origin_symptoms {
	struct origin_index *index;
	VEC(struct origin *) origins; /* the latest symptom first */
	bool more;                    /* there are more events that were not looked at */
};

/*
 * Finds the origins of the last event of each name, or of each name and process, and keeps those
 * that are declared. It looks at `most` events at most, from the last one back, and at fewer if
 * each is much work. The caller frees the result with origin_symptoms_free(); the model must
 * outlive it.
 */
struct origin_symptoms *origin_symptoms_new(const struct model *model, bool per_process,
					    size_t most);
void origin_symptoms_free(struct origin_symptoms *symptoms);

#endif
