/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides what a capture does with each site under a filter. Sites with equal programs share a
 * class, so that the programs are loaded once.
 */
#ifndef WAFFLE_FILTER_PLAN_H
#define WAFFLE_FILTER_PLAN_H

#include "filter/codegen/code.h"
#include "filter/codegen/codegen.h"
#include "filter/filter.h"
#include "util/error.h"

enum plan_use {
	PLAN_DORMANT, /* can't match: not armed */
	PLAN_MATCHES, /* armed; matches always, or its class's code decides */
	/* Can't match, but is armed for other sites: for depth and parent.name of its children, or
	 * as a child of a kept span. */
	PLAN_CONTEXT,
};

struct plan_class {
	bool is_span;
	bool always;                        /* nothing to decide at a hit: `hit` is empty */
	bool context;                       /* PLAN_CONTEXT: `hit` is empty */
	bool defers;                        /* `end` decides when the span ends */
	bool call;                          /* class of calls: bpf/call.h */
	enum waffle_deferred_size deferred; /* the map that holds its spans until they end */
	uint64_t name_bits;
	struct filter_code hit, end;
	struct filter_code point; /* for calls that are events: `hit` for tracepoints */
	uint32_t sites;
};

struct plan {
	const struct filter_expr *filter; /* owned by the caller */
	bool keep_children;
	bool tracks; /* the expression refers to parents */
	/* Set by the caller, for plan_warn(): the sites are those of a file, in which functions
	 * have names and calls have parents. */
	bool of_file;
	/* Every span site is armed: either the expression refers to parents, or it samples traces,
	 * which begin with spans. */
	bool arms_spans;
	/* No decisions at hits, and no tracking of parents: sites are armed as without a filter. */
	bool is_static;
	VEC(struct plan_class) classes;
	uint64_t uses[PLAN_CONTEXT + 1]; /* number of sites by use */
};

int plan_open(struct plan **plan, const struct filter_expr *filter, bool keep_children,
	      struct error *err);
void plan_free(struct plan *plan);

/* Decides what to do with a site. *class is valid if the site is armed. -E2BIG: too many
 * classes. */
int plan_site(struct plan *plan, const struct site_info *site, enum plan_use *use, uint32_t *class,
	      struct error *err);

/*
 * Warns about keys of the expression that no site seen so far declares with a type that can be
 * compared in this way. Calls `say` with a line for each: "no site declares the key 'byte'; near:
 * bytes (of copy, send)".
 */
void plan_warn(const struct plan *plan, void (*say)(const char *line, void *arg), void *arg);

#endif
