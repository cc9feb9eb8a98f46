/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that the user named, among their children. */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_ROOTS_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_ROOTS_H

#include "model/model.h"

/* Whether the thread's process is one that the user named: its parent is not traced. */
bool why_is_of_root(const struct model *model, uint32_t thread);

#endif
