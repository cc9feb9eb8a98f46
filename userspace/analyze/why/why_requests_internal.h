/* SPDX-License-Identifier: Apache-2.0 */
/* Captures whose spans are only requests. */
#ifndef WAFFLE_ANALYZE_WHY_WHY_REQUESTS_INTERNAL_H
#define WAFFLE_ANALYZE_WHY_WHY_REQUESTS_INTERNAL_H

#include "model/model.h"

/* The number of requests, if all spans of a capture are such and `takes` accepts the thread of each
 * of them; else 0. Spans of the tracer itself, and those of the start and end of a library, do not
 * count. */
size_t why_requests_only(const struct model *model,
			 bool (*takes)(const struct model *model, uint32_t thread, void *arg),
			 void *arg);
/* Whether a span is a request that its server answers as soon as there is a job, an element or a
 * message for the client, such as BLPOP of redis. */
bool why_request_is_for_work(const struct model *model, uint32_t span);
/* Whether all requests that a thread of a server has begun and not answered at a time are such, so
 * that it does not matter which of them is meant; false: there are none. */
bool why_requests_are_for_work(const struct model *model, uint32_t thread, uint64_t ts);

#endif
