/* SPDX-License-Identifier: Apache-2.0 */
/* Delays that cost nothing: a writer gets its CPU late, while its queue is full anyway. */
#ifndef WAFFLE_ANALYZE_WHY_CAUSE_WHY_LATE_H
#define WAFFLE_ANALYZE_WHY_CAUSE_WHY_LATE_H

#include "analyze/why/why_verdict.h"
#include "analyze/why/why_walk_types.h"

/* Explains the last step of the path, in which the thread of a stretch was woken late on an idle
 * CPU. If it had waited for room in a pipe, socket or queue, and the next thing that it does is to
 * wait for room there again, while its reader waits for nothing to read, more speed would only have
 * made it wait longer: the reader is the cause. Undecided if it is not so, or if the reader is not
 * recorded. */
struct why_verdict why_late_for_room(struct why_walk *walk, const struct why_stretch *stretch);

#endif
