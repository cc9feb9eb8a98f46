/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The static part: what a site knows is put into the expression, and what can be said then is
 * folded away. What is left asks only pid, tid, comm, cpu, dur, depth, parent.name, keys that the
 * site declares with a type that fits, and sample().
 */
#ifndef WAFFLE_FILTER_SPLIT_H
#define WAFFLE_FILTER_SPLIT_H

#include "filter/expr.h"
#include "target/site.h"

/* A tree over the predicates of the filter it was made from. The root is the last node. */
struct residual {
	VEC(struct filter_node) nodes;
};

/* FILTER_FALSE as the only node: the site can't match. FILTER_TRUE: it always does. */
bool residual_make(struct residual *residual, const struct filter_expr *filter,
		   const struct site_info *site); /* false: out of memory */
void residual_free(struct residual *residual);

/* Whether it asks what is known only when a span ends: its duration, values of a call's end. */
bool residual_asks_end(const struct filter_expr *filter, const struct residual *residual,
		       const struct site_info *site);
/*
 * The residual before a span has ended: `upper` can be true, `lower` is true, whatever will be
 * known at its end. If it asks nothing of that both are the residual itself.
 */
bool residual_bound(struct residual *bound, const struct filter_expr *filter,
		    const struct residual *residual, const struct site_info *site, bool upper);
/*
 * What is left to be asked at the end of a span that `upper` was true for at its begin: operands of
 * the outermost && that do not ask the duration were true then.
 */
bool residual_rest(struct residual *rest, const struct filter_expr *filter,
		   const struct residual *residual);
bool residual_uses(const struct filter_expr *filter, const struct residual *residual,
		   enum filter_field field);

#endif
