/* SPDX-License-Identifier: Apache-2.0 */
/* Stretches of time, merged, to be looked up by time: an end belongs to its window. */
#ifndef WAFFLE_MODEL_WINDOWS_H
#define WAFFLE_MODEL_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "util/vec.h"

struct window {
	uint64_t from_ts, to_ts;
};

struct windows {
	VEC(struct window) list;
};

/* In any order, until windows_merge() makes of them windows that neither touch nor overlap, by
 * time. Returns false if out of memory. */
bool windows_add(struct windows *windows, uint64_t from_ts, uint64_t to_ts);
void windows_merge(struct windows *windows);
/* Of merged ones: whether one of them has a moment of [from_ts, to_ts]. */
bool windows_touch(const struct windows *windows, uint64_t from_ts, uint64_t to_ts);
void windows_free(struct windows *windows);

#endif
