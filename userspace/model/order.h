/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts by time. It is cheap when the input is almost in order, as records are. */
#ifndef WAFFLE_MODEL_ORDER_H
#define WAFFLE_MODEL_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct order_item {
	uint64_t ts;
	uint32_t index;
};

/* Sorts by ts, then by index. The items must come in ascending order of index. False: out of
 * memory. */
bool order_sort(struct order_item *items, size_t count);

/*
 * Sorts an array whose elements hold a uint64_t time at `ts_offset`. Elements with equal times keep
 * their order. If the array is sorted already, *rank becomes NULL. Otherwise it maps old indexes to
 * new ones, and the caller frees it. False: out of memory; the array is unchanged.
 */
bool order_array(void *data, size_t count, size_t size, size_t ts_offset, uint32_t **rank);

#endif
