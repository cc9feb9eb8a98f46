/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A filter: the expression of --filter. What it means is defined by filter_eval() (eval.h); during
 * a capture the same is decided in two steps, by plan.h when sites are armed and by the BPF
 * programs of codegen.h at each hit.
 */
#ifndef WAFFLE_FILTER_FILTER_H
#define WAFFLE_FILTER_FILTER_H

#include "filter/expr.h"
#include "util/error.h"

/*
 * Parses an expression. `origin` is said in messages ("--filter", a file's name). A fault is one
 * line, the line of the expression it is in, and a caret below the place:
 *
 *	--filter: unknown field 'nmae'; near: name
 *	  nmae ~ "nccl*" && dur > 10ms
 *	  ^~~~
 */
int filter_parse(struct filter_expr **filter, const char *origin, const char *text,
		 struct error *err);

/* "@FILE" reads the expression from a file ("@-": from standard input), anything else is the
 * expression. In a file, '#' begins a comment that ends with its line. */
int filter_open(struct filter_expr **filter, const char *origin, const char *argument,
		struct error *err);
void filter_free(struct filter_expr *filter);

/* The expression as it was given, comments and line breaks as they were. */
static inline const char *filter_source(const struct filter_expr *filter)
{
	return filter->source;
}

/* Whether a predicate on this field is anywhere in the expression. */
bool filter_uses(const struct filter_expr *filter, enum filter_field field);

/*
 * Thread switches have a kind and nothing else that is asked of them one by one: a thread's states
 * make sense only if all its switches are there. They are recorded unless the expression is false
 * for `kind == sched`, whatever the rest of it would be.
 */
bool filter_wants_sched(const struct filter_expr *filter);

#endif
