/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that asks servers that it has started itself: only their requests are spans, but they
 * do not show what the program does, nor what it asks for.
 */
#ifndef WAFFLE_ANALYZE_WHY_WHY_ASKER_INTERNAL_H
#define WAFFLE_ANALYZE_WHY_WHY_ASKER_INTERNAL_H

#include "model/model.h"

/* The traced thread that asked for most of the requests of a capture, if all of its spans are
 * requests that children of the processes that the user named have answered, and those processes
 * got at least half as many answers. MODEL_NONE: there is none. */
uint32_t why_asker_find(const struct model *model);

#endif
