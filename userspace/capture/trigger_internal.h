/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks for the span or event that makes the flight recorder write a file. The expression is that
 * of filters (docs/filter.md). An event matches when it happens, a span or call when it ends, so
 * that its duration can be asked for.
 */
#ifndef WAFFLE_CAPTURE_TRIGGER_INTERNAL_H
#define WAFFLE_CAPTURE_TRIGGER_INTERNAL_H

#include "bpf/record.h"
#include "filter/filter.h"
#include "target/elf/site.h"
#include "util/error.h"

struct trigger;

#define TRIGGER_TEXT 512

struct trigger_match {
	uint64_t ts;             /* `now` of trigger_look() */
	char text[TRIGGER_TEXT]; /* span "request" of thread 123, 1.20 s */
};

/* `expression` lives as long as the trigger. */
int trigger_open(struct trigger **trigger, const struct filter_expr *expression, struct error *err);
void trigger_free(struct trigger *trigger);

/*
 * Follows a record, which has the file's number of its site. `site`: the site of a hit or return,
 * which need not live longer than this call; NULL: unknown. `now`: the time up to which records
 * were delivered, since a program may give records of tracks any time. Returns the first match in
 * this record, or NULL. It is valid until the next call.
 */
const struct trigger_match *trigger_look(struct trigger *trigger, struct waffle_rec *rec,
					 const struct site_info *site, uint64_t now);

#endif
