/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of this process that a tracer can map (userspace/capture/transport/ring_memory.c): a
 * memfd, sealed so that it keeps its size.
 */
#ifndef WAFFLE_USDT_RING_SHARED_MEMORY_H
#define WAFFLE_USDT_RING_SHARED_MEMORY_H

#include <stddef.h>

/*
 * Maps cleared memory, with a copy of `contents` at its begin; they may be NULL and 0. It is mapped
 * at `place`, in place of what is there, if that is not NULL. NULL: a sandbox or the program's own
 * limit on the size of files forbids it. Async-signal-safe.
 */
void *shared_memory_map(void *place, size_t bytes, const void *contents, size_t contents_bytes);

#endif
