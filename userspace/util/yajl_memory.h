/* SPDX-License-Identifier: Apache-2.0 */
/* yajl with memory of util/memory.h: left to itself, yajl does not notice that memory runs out. */
#ifndef WAFFLE_UTIL_YAJL_MEMORY_H
#define WAFFLE_UTIL_YAJL_MEMORY_H

#include <stdlib.h>
#include <yajl/yajl_common.h>

#include "util/memory.h"

static inline void *yajl_memory_get(void *unused, size_t size)
{
	(void)unused;
	return memory_get(size);
}

static inline void *yajl_memory_resize(void *unused, void *old, size_t size)
{
	(void)unused;
	return memory_resize(old, size, 1);
}

static inline void yajl_memory_free(void *unused, void *old)
{
	(void)unused;
	free(old);
}

/* For yajl_alloc() and yajl_gen_alloc(), which copy it. */
static inline yajl_alloc_funcs yajl_memory(void)
{
	return (yajl_alloc_funcs){yajl_memory_get, yajl_memory_resize, yajl_memory_free, NULL};
}

#endif
