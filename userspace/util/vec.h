/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing array of any type. VEC(type) declares it, and a zero-initialised one is empty.
 *
 *	VEC(int) numbers = {0};
 *	if (!vec_push(&numbers, 42))
 *		return -ENOMEM;
 *	for (size_t i = 0; i < numbers.len; i++) … numbers.data[i] …
 *	vec_free(&numbers);
 */
#ifndef WAFFLE_UTIL_VEC_H
#define WAFFLE_UTIL_VEC_H

#include <stdbool.h>
#include <stddef.h>

#define VEC(type)                                                                                  \
	struct {                                                                                   \
		type *data;                                                                        \
		size_t len;                                                                        \
		size_t cap;                                                                        \
	}

/* Makes room for `count` more elements. False: out of memory, the vector is unchanged. */
#define vec_reserve(vec, count)                                                                    \
	vec_reserve_((void **)&(vec)->data, &(vec)->cap, (vec)->len, (count), sizeof(*(vec)->data))

/* Appends a value. False: out of memory. */
#define vec_push(vec, ...)                                                                         \
	(vec_reserve((vec), 1) ? ((vec)->data[(vec)->len++] = (__VA_ARGS__), true) : false)

/* Frees the elements. The vector is empty then and can be used again. */
#define vec_free(vec) vec_free_((void **)&(vec)->data, &(vec)->len, &(vec)->cap)

bool vec_grow_(void **data, size_t *cap, size_t len, size_t count, size_t size);
void vec_free_(void **data, size_t *len, size_t *cap);

static inline bool vec_reserve_(void **data, size_t *cap, size_t len, size_t count, size_t size)
{
	return count <= *cap - len || vec_grow_(data, cap, len, count, size);
}

#endif
