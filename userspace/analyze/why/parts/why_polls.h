/* SPDX-License-Identifier: Apache-2.0 */
/* Adds up the sleeps of threads that poll. */
#ifndef WAFFLE_ANALYZE_WHY_PARTS_WHY_POLLS_H
#define WAFFLE_ANALYZE_WHY_PARTS_WHY_POLLS_H

#include "analyze/why/why_types.h"

/* Adds up sleeps. */
void why_polls_add(struct why_polls *to, const struct why_polls *polls);
/* Whether so many sleeps, of all stretches of a part and its time, mean that the thread polls. */
bool why_polls_are(const struct why_polls *polls, uint64_t stretches, uint64_t ns);

#endif
