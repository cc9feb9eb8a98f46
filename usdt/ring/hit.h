/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fast path of sites: an event, and the begin and the end of a WAFFLE_SPAN, each as one
 * function that a site jumps to (include/waffle/context.h). It draws the id, writes the record and
 * enters or leaves the scope.
 *
 * Each function is for one reader. It does its work if that reader is the only one that wants the
 * record, its ring has room, and no tracer waits at the site's probe. Otherwise it has changed
 * nothing and jumps to the site's own slow path, `rest`. So any of them is right at any time, and a
 * wrong one is only slow.
 */
#ifndef WAFFLE_USDT_RING_HIT_H
#define WAFFLE_USDT_RING_HIT_H

#include "usdt/ring/rings.h"
#include "waffle/emit.h"

/* From now on the sites of this process jump to this reader's functions, if there are any. Only for
 * the copy of this library that takes the hits. */
void hit_choose(enum rings_reader reader);

waffle_event_id_t hit_event_collector(const void *probe, unsigned long long *words, size_t count,
				      waffle_event_rest_t_ rest);
waffle_event_id_t hit_event_tracer(const void *probe, unsigned long long *words, size_t count,
				   waffle_event_rest_t_ rest);
struct waffle_scope_ *hit_enter_collector(const void *probe, unsigned long long *words,
					  size_t count, waffle_enter_rest_t_ rest,
					  struct waffle_scope_ *scope);
struct waffle_scope_ *hit_enter_tracer(const void *probe, unsigned long long *words, size_t count,
				       waffle_enter_rest_t_ rest, struct waffle_scope_ *scope);
void hit_leave_collector(const struct waffle_scope_ *scope, waffle_leave_rest_t_ rest);
void hit_leave_tracer(const struct waffle_scope_ *scope, waffle_leave_rest_t_ rest);
/* Pops a scope that is not the innermost one, for the two above. */
void hit_pop(const struct waffle_scope_ *scope);

#endif
