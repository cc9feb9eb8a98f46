/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A filter: the expression of --filter. filter_eval() (eval.h) defines its meaning. A capture makes
 * the same decision in two steps: plan.h when a site is armed, and the BPF programs of codegen.h at
 * each hit.
 */
#ifndef WAFFLE_FILTER_FILTER_H
#define WAFFLE_FILTER_FILTER_H

#include "filter/expr_internal.h"
#include "util/error.h"

/*
 * Parses an expression. Messages begin with `origin` ("--filter", a file's name). An error consists
 * of one line of text, the line of the expression, and a caret below the error:
 *
 *	--filter: unknown field 'nmae'; did you mean name
 *	  nmae ~ "nccl*" && dur > 10ms
 *	  ^~~~
 */
int filter_parse(struct filter_expr **filter, const char *origin, const char *text,
		 struct error *err);

/* Opens the argument of --filter. "@FILE" reads the expression from a file ("@-": from standard
 * input); anything else is the expression itself. In a file, '#' begins a comment that ends with
 * its line. */
int filter_open(struct filter_expr **filter, const char *origin, const char *argument,
		struct error *err);

/* The expression as the user wrote it, with comments and line breaks. */
static inline const char *filter_source(const struct filter_expr *filter)
{
	return filter->source;
}

/* Whether the expression contains a predicate on this field. */
bool filter_uses(const struct filter_expr *filter, enum filter_field field);
/* Whether the expression contains sample(). */
bool filter_samples(const struct filter_expr *filter);
/* Whether sites alone decide: nothing is asked of a hit. */
bool filter_asks_sites_only(const struct filter_expr *filter);

/*
 * Whether thread switches are recorded. A thread's states make sense only if all its switches are
 * recorded, so they are not filtered one by one. They are recorded unless the expression is false
 * for `kind == sched`, whatever its other operands are.
 */
bool filter_wants_sched(const struct filter_expr *filter);

#endif
