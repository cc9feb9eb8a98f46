/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts by time. It is cheap when the input is almost in order, as records are. An array has fewer
 * than 2^32 elements. */
#ifndef WAFFLE_MODEL_ORDER_H
#define WAFFLE_MODEL_ORDER_H

#include <stddef.h>
#include <stdint.h>

struct order_item {
	uint64_t ts;
	uint32_t index;
};

/* Sorts by ts, then by index. The items must come in ascending order of index. */
void order_sort(struct order_item *items, size_t count);

/*
 * Sorts the elements of a VEC by `field`, a uint64_t. Elements with equal times keep their order.
 * The result maps old indexes to new ones, and the caller frees it. NULL: the elements were in
 * order already.
 */
#define order_vec(vec, field)                                                                      \
	order_array((vec)->data, (vec)->len, sizeof(*(vec)->data),                                 \
		    offsetof(__typeof__(*(vec)->data), field))

/* The same for an array whose elements have the time at `ts_offset`. */
uint32_t *order_array(void *data, size_t count, size_t size, size_t ts_offset);

#endif
