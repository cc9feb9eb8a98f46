/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spans that a reader may leave out when only what links spans with each other matters. In most
 * captures they are the majority: the innermost ones, in which nothing happened.
 *
 * A leaf is a span whose end is the next record of its thread after its begin, and which nothing in
 * any file refers to: it is no parent and no cause, and no child process has a copy of it. Its site
 * has no role and no links. So nothing can lie inside of it, and the model of all other spans is
 * the same without it.
 *
 * leaves_find() reads all files and excludes the ids of spans that are no leaves. They are kept in
 * a Bloom filter: an id that is wrongly found there costs nothing but the time to read its span.
 */
#ifndef WAFFLE_STORE_LEAVES_INTERNAL_H
#define WAFFLE_STORE_LEAVES_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "store/record.h"
#include "target/elf/site.h"

struct leaves;

/* For a job of that many records. All spans are leaves until they are excluded. NULL: out of
 * memory. */
struct leaves *leaves_new(uint64_t records);
void leaves_free(struct leaves *leaves);

/* Threads may call it at the same time. */
void leaves_exclude(struct leaves *leaves, uint64_t id);
/* Whether spans of a site may be leaves. */
bool leaves_may_have(const struct site_info *site);
/* Whether a record is part of a leaf. Its site is one of those. */
bool leaves_has(const struct leaves *leaves, const struct waffle_rec *rec);

/* Whether the model accepts a hit as the begin of a span. Copies its head, or zeros. */
bool leaves_hit_is_valid(const struct waffle_rec_hit *hit, struct waffle_frame *frame);

#endif
