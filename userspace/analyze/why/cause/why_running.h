/* SPDX-License-Identifier: Apache-2.0 */
/* Splits time on a CPU into code that ran, page faults and time that a hypervisor stole. */
#ifndef WAFFLE_ANALYZE_WHY_CAUSE_WHY_RUNNING_H
#define WAFFLE_ANALYZE_WHY_CAUSE_WHY_RUNNING_H

#include "analyze/why/why_verdict.h"
#include "analyze/why/why_walk_types.h"

/* The cause of the running time of a thread that another one waits for in this way. NULL: nobody
 * does. */
enum why_cause why_cause_behind(const struct why_link *link);
/* Running time, which is explained in pieces. */
struct why_running {
	const struct why_stretch *of;
	uint64_t at;                     /* begin of the next piece */
	const struct model_fault *fault; /* the next one, or NULL */
	/* The samples before these times are taken: those in code, and those in page faults. */
	uint64_t code_from_ts, faults_from_ts;
	uint64_t stolen_until; /* after `at`: the time until then is stolen */
	enum why_grade stolen_grade;
};
struct why_running why_running_begin(const struct why_walk *walk,
				     const struct why_stretch *stretch);
/* Explains the next piece. False: all of the stretch is explained. */
bool why_running_next(struct why_walk *walk, struct why_running *running,
		      struct why_verdict *verdict);

#endif
