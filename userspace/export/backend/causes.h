/* SPDX-License-Identifier: Apache-2.0 */
/* The first cause of each whole span of a capture: the part of its time that took longest. */
#ifndef WAFFLE_EXPORT_BACKEND_CAUSES_H
#define WAFFLE_EXPORT_BACKEND_CAUSES_H

#include "analyze/why/why.h"

struct span_cause {
	uint64_t ns;     /* of the span's time; 0: the span was not explained */
	uint32_t thread; /* the culprit, or MODEL_NONE */
	uint32_t object; /* text in span_causes.why->texts; 0: none */
	uint8_t cause;   /* enum why_cause */
	uint8_t grade;   /* enum why_grade */
};

struct span_causes {
	struct span_cause *spans; /* by the index of the span; NULL: the capture has no scheduler */
	struct why *why;          /* keeps only texts */
};

/* All spans up to this one are explained. Non-zero: explain no others. */
typedef int (*span_causes_fn)(uint32_t span, void *arg);
/* Explains the spans one after the other, and calls `ready` after each that is whole. Returns 0 or
 * a negative errno with a message. */
int span_causes_load(struct span_causes *causes, const struct model *model, span_causes_fn ready,
		     void *arg, struct error *err);
/* why_each() with the symbols that `why` has, so that causes are what it says. Free *why. */
int span_causes_each(struct why **why, const struct model *model, why_each_fn each, void *arg,
		     struct error *err);
void span_causes_free(struct span_causes *causes);
/* The cause of a span; NULL: it was not explained. */
const struct span_cause *span_causes_of(const struct span_causes *causes, uint32_t span);

#endif
