/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates the static part of an expression: inserts all facts about a site and simplifies the
 * result. What remains, the residual, refers only to pid, tid, comm, cpu, dur, depth, parent.name,
 * sample(), and keys that the site declares with a suitable type.
 */
#ifndef WAFFLE_FILTER_SPLIT_H
#define WAFFLE_FILTER_SPLIT_H

#include "bpf/filter.h"
#include "filter/expr_internal.h"
#include "filter/number_test.h"
#include "target/elf/site.h"

/* A tree of predicates of the original filter. The root is the last node. */
struct residual {
	VEC(struct filter_node) nodes;
};

/* Makes the residual of a site. A single node FILTER_FALSE: the site can't match; FILTER_TRUE: it
 * always matches. */
bool residual_make(struct residual *residual, const struct filter_expr *filter,
		   const struct site_info *site); /* false: out of memory */
void residual_free(struct residual *residual);

/* Whether the residual refers to facts known only when a span ends: its duration, or values at the
 * end of a call. */
bool residual_asks_end(const struct filter_expr *filter, const struct residual *residual,
		       const struct site_info *site);
/*
 * Bounds of the residual before a span has ended. `upper` gives an expression that is true if the
 * residual can still become true. Without `upper`, it is true if the residual is certain to be
 * true. If nothing depends on the end, both equal the residual.
 */
bool residual_bound(struct residual *bound, const struct filter_expr *filter,
		    const struct residual *residual, const struct site_info *site, bool upper);
/*
 * What remains to be evaluated at the end of a span whose `upper` bound was true at its start. The
 * operands of the outermost && that do not refer to the duration were true then.
 */
bool residual_rest(struct residual *rest, const struct filter_expr *filter,
		   const struct residual *residual);
bool residual_uses(const struct filter_expr *filter, const struct residual *residual,
		   enum filter_field field);

/* ---- keys of a site ---- */

/* Finds the key that a predicate refers to: the first one of its name. NULL: none, or the walk
 * through the frame ends before it. */
const struct site_key *site_key_find(const struct site_info *site, const char *name,
				     unsigned *index);
enum number_class number_class_of(char type);
/* Size of a value in a frame; of a string the size of the word before its text. */
unsigned key_bytes(char type);
/* The size of the longest frame of a site, for what stores the begins of deferred spans. */
enum waffle_deferred_size site_deferred_size(const struct site_info *site);
/* Whether any value of a key of this type can make the predicate true. */
bool key_can_be(const struct filter_expr *filter, const struct filter_predicate *predicate,
		char type);

#endif
