/* SPDX-License-Identifier: Apache-2.0 */
/* A plan that was made and loaded but not armed, for --explain. */
#ifndef WAFFLE_FILTER_EXPLAIN_H
#define WAFFLE_FILTER_EXPLAIN_H

#include "filter/plan.h"

struct explain_site {
	const struct site_info *site;
	enum plan_use use;
	uint32_t class; /* valid if armed */
};

/* Result of the kernel for a class, whose programs it has verified and compiled. */
struct explain_class {
	/* 0: no such program, or the kernel does not report it. */
	uint32_t hit_jited_bytes, end_jited_bytes;
};

struct explain {
	const struct plan *plan;
	VEC(struct explain_site) sites;
	VEC(struct explain_class) classes; /* in the order of the plan */
	bool sched;                        /* thread switches are recorded */
	uint64_t load_ns;                  /* time to load all programs, in ns */
};

#endif
