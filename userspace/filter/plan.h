/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a capture does with each site under a filter. Sites for which the same is to be done share a
 * class: its programs are loaded once.
 */
#ifndef WAFFLE_FILTER_PLAN_H
#define WAFFLE_FILTER_PLAN_H

#include "filter/codegen.h"
#include "filter/filter.h"
#include "util/error.h"

enum plan_use {
	PLAN_DORMANT, /* can't match: not armed */
	PLAN_MATCHES, /* armed; always matches, or its class's code decides */
	PLAN_CONTEXT, /* can't match; armed for what it tells of others: depth and parent.name of
			 its children, or as a child of a kept span */
};

struct plan_class {
	bool is_span;
	bool always;                /* nothing to decide at a hit: `hit` is empty */
	bool context;               /* PLAN_CONTEXT: `hit` is empty */
	bool holds;                 /* `end` decides when the span ends */
	bool call;                  /* of calls: bpf/call.h */
	enum waffle_held_size held; /* where it is held meanwhile */
	uint64_t name_bits;
	struct filter_code hit, end;
	struct filter_code point; /* of calls that are events: `hit` for tracepoints */
	uint32_t sites;
};

struct plan {
	const struct filter_expr *filter; /* belongs to the caller */
	bool keep_children;
	bool tracks; /* parents are asked */
	/* Set by the caller, for plan_warn(): the sites are a file's, in which functions have names
	 * and calls have parents. */
	bool of_file;
	/* Every span site is armed: parents are asked, or traces are sampled, which begin in spans.
	 */
	bool arms_spans;
	/* Nothing is decided at hits and nothing is tracked: sites are armed as without a filter.
	 */
	bool is_static;
	VEC(struct plan_class) classes;
	uint64_t uses[PLAN_CONTEXT + 1]; /* sites by use */
};

int plan_open(struct plan **plan, const struct filter_expr *filter, bool keep_children,
	      struct error *err);
void plan_free(struct plan *plan);

/* What is done with a site; *class is valid if it is armed. -E2BIG: too many classes. */
int plan_site(struct plan *plan, const struct site_info *site, enum plan_use *use, uint32_t *class,
	      struct error *err);

/*
 * "no site declares the key 'byte'; near: bytes (of copy, send)": for each key of the expression
 * that none of the sites seen so far declares, or declares with a type that can't be compared so.
 * Calls `say` with a line for each.
 */
void plan_warn(const struct plan *plan, void (*say)(const char *line, void *arg), void *arg);

#endif
