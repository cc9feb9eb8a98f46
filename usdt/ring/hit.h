/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fast path of sites: an event, and the begin and the end of a WAFFLE_SPAN, each as one
 * function that a site jumps to (include/waffle/context.h). It draws the id, writes the record and
 * enters or leaves the scope.
 *
 * It does so if a single reader wants the record, its ring has room, and no tracer waits at the
 * site's probe. Otherwise it has changed nothing and jumps to the site's own slow path, `rest`.
 */
#ifndef WAFFLE_USDT_RING_HIT_H
#define WAFFLE_USDT_RING_HIT_H

#include "usdt/ring/ring_write.h"
#include "waffle/emit.h"

#if RING_HAS_RSEQ
waffle_event_id_t hit_event(const void *probe, unsigned long long *words, size_t count,
			    waffle_event_rest_t_ rest);
struct waffle_scope_ *hit_enter(const void *probe, unsigned long long *words, size_t count,
				waffle_enter_rest_t_ rest, struct waffle_scope_ *scope);
void hit_leave(const struct waffle_scope_ *scope, waffle_leave_rest_t_ rest);
/* Pops a scope that is not the innermost one, for hit_leave(). */
void hit_pop(const struct waffle_scope_ *scope);
#else
#define hit_event NULL
#define hit_enter NULL
#define hit_leave NULL
#endif

#endif
