/* SPDX-License-Identifier: Apache-2.0 */
/* --stacks LIST: chooses the spans and events that record stacks. */
#ifndef WAFFLE_CAPTURE_ENRICH_STACK_CHOICE_H
#define WAFFLE_CAPTURE_ENRICH_STACK_CHOICE_H

#include <stdbool.h>

#include "target/elf/site.h"
#include "util/error.h"

/* Also remembers which words of the list matched. */
struct stack_choice;

/*
 * Adds a comma-separated list: `cuda`, `nccl`, `probes` (all other calls), `spans` (all sites of
 * waffle's macros), `span:NAME`, where NAME may contain *, ? and [a-z], `sched` (waits). *choice is
 * made if it is NULL. -EINVAL with a message that shows the invalid part.
 */
int stack_choice_add(struct stack_choice **choice, const char *text, struct error *err);
void stack_choice_free(struct stack_choice *choice);

/* Whether stacks of a site are recorded. With `choice` NULL, no site has stacks. */
bool stack_choice_has(struct stack_choice *choice, const struct site_info *site);
/* Whether sites of waffle's macros may have stacks, as far as it is known without them. */
bool stack_choice_has_sites(const struct stack_choice *choice);
/* Whether any spans or events may have stacks. */
bool stack_choice_has_nodes(const struct stack_choice *choice);
/* Whether user stacks of waits and wake-ups are unwound by tables. */
bool stack_choice_has_waits(const struct stack_choice *choice);

/* Reports each word of the list that has matched no site yet. `name` is the NAME of a word
 * span:NAME, otherwise NULL. */
typedef void stack_choice_report(const char *word, const char *name, void *arg);
void stack_choice_unfound(const struct stack_choice *choice, stack_choice_report *say, void *arg);

#endif
