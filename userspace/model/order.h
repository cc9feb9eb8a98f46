/* SPDX-License-Identifier: Apache-2.0 */
/* Putting things in the order of their times, at little cost if they almost are. */
#ifndef WAFFLE_MODEL_ORDER_H
#define WAFFLE_MODEL_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct order_item {
	uint64_t ts;
	uint32_t index;
};

/* Sorts by ts, then by index; items come in the order of their indexes. False: out of memory. */
bool order_sort(struct order_item *items, size_t count);

/*
 * Sorts an array whose elements hold a uint64_t time at `ts_offset`. *rank becomes NULL if the
 * array is in order already, else the new index of each old one, to be freed by the caller.
 * Elements of equal times keep their order. False: out of memory, nothing was moved.
 */
bool order_array(void *data, size_t count, size_t size, size_t ts_offset, uint32_t **rank);

#endif
