/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that the user named, among their children and those that are recorded as well since
 * they had woken others. */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_ROOTS_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_ROOTS_H

#include "model/model.h"

/* Whether the thread's process is one that the user named: its parent is not traced. */
bool why_is_of_root(const struct model *model, uint32_t thread);

/* Whether the thread's process was not named, nor is a child of one that was: STORE_WAKER. It is
 * recorded only to follow waits into it, and nothing of it is explained by itself. */
bool why_is_of_waker(const struct model *model, uint32_t thread);
/* Since when the thread is recorded: "the capture began", or of a waker "it was recorded". */
const char *why_recorded_text(const struct model *model, uint32_t thread);
/* Whether the thread is recorded, and was so already at that time. */
bool why_is_recorded_at(const struct model *model, uint32_t thread, uint64_t ts);

/* The first process that the user named: the one in question. The others are recorded so that its
 * waits can be followed into them. A file has it first. 0: none, as in several captures together,
 * or with --comm. */
uint32_t why_first_process(const struct model *model);
/* Whether the thread's process is that one, or one of its descendants. */
bool why_is_of_first(const struct model *model, uint32_t thread);

#endif
