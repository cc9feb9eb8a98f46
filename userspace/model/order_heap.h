/* SPDX-License-Identifier: Apache-2.0 */
/* A heap of times: the earliest one is the first element, of equal ones that with the least index.
 */
#ifndef WAFFLE_MODEL_ORDER_HEAP_H
#define WAFFLE_MODEL_ORDER_HEAP_H

#include "model/order.h"
#include "util/memory.h"
#include "util/vec.h"

typedef VEC(struct order_item) order_heap;

static inline bool order_heap_before(const struct order_item *a, const struct order_item *b)
{
	return a->ts != b->ts ? a->ts < b->ts : a->index < b->index;
}

static inline void order_heap_add(order_heap *heap, struct order_item item)
{
	size_t at = heap->len;

	vec_add(heap, item);
	for (; at && order_heap_before(&item, &heap->data[(at - 1) / 2]); at = (at - 1) / 2)
		heap->data[at] = heap->data[(at - 1) / 2];
	heap->data[at] = item;
}

/* The heap must not be empty. */
static inline struct order_item order_heap_take(order_heap *heap)
{
	struct order_item first = heap->data[0], last = heap->data[--heap->len];
	size_t at = 0, child;

	for (; (child = 2 * at + 1) < heap->len; at = child) {
		if (child + 1 < heap->len &&
		    order_heap_before(&heap->data[child + 1], &heap->data[child]))
			child++;
		if (!order_heap_before(&heap->data[child], &last))
			break;
		heap->data[at] = heap->data[child];
	}
	if (heap->len)
		heap->data[at] = last;
	return first;
}

#endif
