/* SPDX-License-Identifier: Apache-2.0 */
/* A plan made and loaded but not armed: what --explain shows. */
#ifndef WAFFLE_FILTER_EXPLAIN_H
#define WAFFLE_FILTER_EXPLAIN_H

#include "filter/plan.h"

struct explain_site {
	const struct site_info *site;
	enum plan_use use;
	uint32_t class; /* if armed */
};

/* What the kernel made of a class: it has verified and translated its programs. */
struct explain_class {
	uint32_t hit_jited_bytes, end_jited_bytes; /* 0: no such program, or the kernel won't say */
};

struct explain {
	const struct plan *plan;
	VEC(struct explain_site) sites;
	VEC(struct explain_class) classes; /* as in the plan */
	bool sched;                        /* thread switches are recorded */
	uint64_t load_ns;                  /* time to load all programs */
};

#endif
