/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of an operation with their values, in the order of docs/gpu.md. Keys that it has no
 * value for are left out. */
#ifndef WAFFLE_USDT_GPU_FIELDS_H
#define WAFFLE_USDT_GPU_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

#include "usdt/gpu/activity.h"
#include "waffle_named.h"

struct fields {
	waffle_key_t keys[WAFFLE_KEYS_MAX];
	waffle_value_t values[WAFFLE_KEYS_MAX];
	unsigned count;
	uint32_t shape; /* the same for the same keys of the same kind of operation */
	char grid[36], block[36];
};

/* The values point to `fields` and to the operation. */
void fields_make(struct fields *fields, const struct gpu_operation *operation, bool clamped);

#endif
