/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that a loop answers one after the other, since the server that it asks takes few at a
 * time: a limit of connections, a pool.
 *
 *	loop     | request A ......................................... |
 *	         | request B .......... |   | request C ...
 *	server   |   thread 1 answers B |   |   thread 2 answers A     |
 *	explains |   1, queued          |   |   2                      |
 */
#ifndef WAFFLE_ANALYZE_WHY_SERIES_WHY_QUEUE_INTERNAL_H
#define WAFFLE_ANALYZE_WHY_SERIES_WHY_QUEUE_INTERNAL_H

#include "analyze/why/series/why_waiting.h"
#include "analyze/why/why_walk_types.h"

/* Finds the wait, from `index` on, that an answer of the same server ended, before the thread that
 * answered the explained request took that up: *end is an index of the same thread. *queued: it was
 * the answer to another request. False: there is none. */
bool why_queue_find(const struct why_walk *walk, const struct why_waiting *waiting, uint32_t thread,
		    size_t index, size_t *end, bool *queued);

#endif
