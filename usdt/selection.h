/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a recording keeps under a filter (WAFFLE_FILTER). The static part decides which sites are
 * armed, and the rest is evaluated for each record, as filter/eval.h defines it. Fields that are
 * known only later or from other records (dur, depth, parent.name) are not supported yet.
 */
#ifndef WAFFLE_USDT_SELECTION_H
#define WAFFLE_USDT_SELECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "filter/eval.h"
#include "target/elf/site.h"
#include "util/error.h"

struct selection;

/* `text` is an expression, or NULL. -EINVAL: it is not valid, or uses what is not supported. */
int selection_open(struct selection **selection, const char *text, struct error *err);
void selection_free(struct selection *selection);
/* The expression; "" if there is none. */
const char *selection_text(const struct selection *selection);

enum selection_use {
	SELECTION_NEVER,  /* no hit of the site can match: it stays dormant */
	SELECTION_ALWAYS, /* every hit matches */
	SELECTION_ASKS,   /* selection_takes() decides */
};
/* Any thread may call it. */
enum selection_use selection_site(const struct selection *selection, const struct site_info *site);

/* Whether a hit is kept. To be called in the order of time. */
bool selection_takes(struct selection *selection, const struct filter_subject *subject,
		     uint64_t ts);

#endif
