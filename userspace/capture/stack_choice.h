/* SPDX-License-Identifier: Apache-2.0 */
/* --stacks LIST: of which spans and events stacks are taken. */
#ifndef WAFFLE_CAPTURE_STACK_CHOICE_H
#define WAFFLE_CAPTURE_STACK_CHOICE_H

#include <stdbool.h>

#include "target/site.h"
#include "util/error.h"

/* Remembers what of the list was found. */
struct stack_choice;

/*
 * Adds a list with commas between: `cuda`, `nccl`, `probes` (all other calls), `spans` (all sites
 * of waffle's macros), `span:NAME`, where NAME may have *, ? and [a-z], `sched` (waits). *choice is
 * made if it is NULL. -EINVAL with what was not understood.
 */
int stack_choice_add(struct stack_choice **choice, const char *text, struct error *err);
void stack_choice_free(struct stack_choice *choice);

/* Whether a site's stacks are wanted. NULL: of no site. */
bool stack_choice_has(struct stack_choice *choice, const struct site_info *site);
/* Whether the user stacks of waits and wake-ups are to be walked by tables. */
bool stack_choice_has_waits(const struct stack_choice *choice);

/* Says each word of the list that no site has had so far; of a span:NAME also its NAME, else NULL.
 */
typedef void stack_choice_say(const char *word, const char *name, void *arg);
void stack_choice_unfound(const struct stack_choice *choice, stack_choice_say *say, void *arg);

#endif
