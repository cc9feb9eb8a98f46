/* SPDX-License-Identifier: Apache-2.0 */
/* A set of time windows, merged for look-up by time. Both ends belong to a window. */
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

/* Windows may be added in any order. windows_merge() sorts them and joins those that touch or
 * overlap; windows_touch() needs that. */
void windows_add(struct windows *windows, uint64_t from_ts, uint64_t to_ts);
void windows_merge(struct windows *windows);
/* Whether any window shares a moment with [from_ts, to_ts]. */
bool windows_touch(const struct windows *windows, uint64_t from_ts, uint64_t to_ts);
void windows_free(struct windows *windows);

#endif
