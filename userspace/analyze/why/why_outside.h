/* SPDX-License-Identifier: Apache-2.0 */
/* The process that would have to be recorded as well, so that chains do not end at it. */
#ifndef WAFFLE_ANALYZE_WHY_WHY_OUTSIDE_H
#define WAFFLE_ANALYZE_WHY_WHY_OUTSIDE_H

#include "analyze/why/why_types.h"

struct why_outside {
	uint32_t pid;    /* 0: there is none */
	uint32_t thread; /* that has ended a wait; MODEL_NONE: its descriptors show what it holds */
};

/* The process of a program that was not recorded and that the first instance waits for most, if for
 * at least a fifth of the time. */
struct why_outside why_outside_find(const struct why *why);

#endif
