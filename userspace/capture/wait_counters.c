// SPDX-License-Identifier: Apache-2.0
#include "capture/wait_counters_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/vec.h"
#include "waffle/abi.h"

/* Limits of the names, which programs choose, and of each list below. One process may use up half
 * of them. */
#define NAMES_MAX 64
#define ROWS_MAX 16384
#define NAME_BYTES 64

/* The site of all spans of a name. It lives as long as arming, which has the pointer. */
struct counter_site {
	struct site_info info;
	char name[NAME_BYTES];
	uint32_t number; /* arming's; WAFFLE_SITE_UNKNOWN: the filter wants none of them */
	uint32_t tgid;   /* the first process that used the name */
};

/* What is known of an id or an address in a process. */
struct counter_known {
	uint64_t value;
	uint32_t tgid, tid; /* tid: of a lookup */
	uint32_t site;      /* index of its site */
	bool is_part;       /* it has spans only where no span of the site is around it */
};

/* The begin of a span that is open, as it is delivered. */
struct counter_span {
	struct waffle_rec_hit hit;
	struct waffle_frame frame;
};

struct wait_counters {
	struct wait_counters_options options;
	VEC(struct counter_site *) sites;
	VEC(struct counter_known) lookups;  /* calls that have not returned, by their id */
	VEC(struct counter_known) counters; /* by their address */
	VEC(struct counter_span) spans;
};

int wait_counters_open(struct wait_counters **counters, const struct wait_counters_options *options,
		       struct error *err)
{
	*counters = calloc(1, sizeof(**counters));
	if (!*counters)
		return error_set(err, ENOMEM, "wait counters: out of memory");
	(*counters)->options = *options;
	return 0;
}

void wait_counters_close(struct wait_counters *counters)
{
	if (!counters)
		return;
	for (size_t i = 0; i < counters->sites.len; i++)
		free(counters->sites.data[i]);
	vec_free(&counters->sites);
	vec_free(&counters->lookups);
	vec_free(&counters->counters);
	vec_free(&counters->spans);
	free(counters);
}

/* ---- names ---- */

/*
 * The name of a counter's spans. NULL: it has none.
 *
 * All of a compilation is within one of two counters, and most of it within a third one. Older
 * versions have only that one, which also measures what is compiled or tuned later, at a call.
 * Functions of torch.distributed have counters, too: in 2.15 those that make process groups.
 */
static const char *span_name(const char *counter, bool *is_part)
{
	static const char prefix[] = "pytorch.wait_counter.", group[] = "c10d.";
	char initial;

	if (strncmp(counter, prefix, strlen(prefix)))
		return NULL;
	counter += strlen(prefix);
	*is_part = !strcmp(counter, "dynamo_compile");
	if (*is_part || !strcmp(counter, "entire_forward_compile") ||
	    !strcmp(counter, "entire_backward_compile"))
		return "compile";
	if (strncmp(counter, group, strlen(group)) || strlen(counter) >= NAME_BYTES)
		return NULL;
	initial = counter[strlen(group)];
	return initial && initial != '_' ? counter : NULL;
}

/* Whether a process that has `own` of `count` rows may have one more. */
static bool has_room(size_t count, size_t own, size_t max)
{
	return count < max && own < max / 2;
}

static bool has_name_left(const struct wait_counters *counters, uint32_t tgid)
{
	size_t own = 0;

	for (size_t i = 0; i < counters->sites.len; i++)
		own += counters->sites.data[i]->tgid == tgid;
	return has_room(counters->sites.len, own, NAMES_MAX);
}

/* Adds a site, and returns its index. MAP_NONE: there is no room. */
static uint32_t site_add(struct wait_counters *counters, const char *name, uint32_t tgid)
{
	struct record_filter *filter = counters->options.filter;
	struct counter_site *site = has_name_left(counters, tgid) ? calloc(1, sizeof(*site)) : NULL;

	if (!site || !vec_push(&counters->sites, site)) {
		free(site);
		return MAP_NONE;
	}
	site->tgid = tgid;
	memcpy(site->name, name, strnlen(name, sizeof(site->name) - 1)); /* the rest is zeroed */
	site->info = (struct site_info){.name = site->name,
					.category = "torch",
					.file = "",
					.func = "",
					.object = "",
					.kind = WAFFLE_SITE_SPAN,
					/* The filter of records leaves calls to the kernel. */
					.call = !filter};
	site->number = filter && !record_filter_wants(filter, &site->info)
			       ? WAFFLE_SITE_UNKNOWN
			       : arming_add_name(counters->options.arming, &site->info);
	return (uint32_t)counters->sites.len - 1;
}

/* The index of the site of a counter's spans. MAP_NONE: nobody wants them. */
static uint32_t site_of(struct wait_counters *counters, const char *counter, uint32_t tgid,
			bool *is_part)
{
	const char *name = span_name(counter, is_part);
	uint32_t at = 0;

	if (!name)
		return MAP_NONE;
	while (at < counters->sites.len && strcmp(counters->sites.data[at]->name, name))
		at++;
	if (at == counters->sites.len)
		at = site_add(counters, name, tgid);
	return at != MAP_NONE && counters->sites.data[at]->number != WAFFLE_SITE_UNKNOWN ? at
											 : MAP_NONE;
}

/* ---- spans ---- */

/* Delivers a span and removes it from the list. `end`: NULL if it has none. */
static int span_end(struct wait_counters *counters, size_t at, const struct waffle_rec_return *end)
{
	const struct wait_counters_options *options = &counters->options;
	struct counter_span span = counters->spans.data[at];
	struct waffle_rec_hit *hit = &span.hit;
	struct waffle_rec_return ended = {.rec = hit->rec};
	struct waffle_rec_span_end filtered = {.rec = hit->rec};

	counters->spans.data[at] = counters->spans.data[--counters->spans.len];
	if (end)
		ended = *end;
	ended.frame_bytes = 0;
	ended.site = hit->site;
	if (!options->filter)
		return options->deliver(&hit->rec, options->arg)
			       ?: (end ? options->deliver(&ended.rec, options->arg) : 0);
	filtered.rec = ended.rec;
	filtered.rec.kind = end && !(end->flags & WAFFLE_RETURN_LEFT) ? WAFFLE_REC_SPAN_END : 0;
	filtered.span_id = span.frame.id;
	filtered.tgid = hit->tgid;
	filtered.site = hit->site;
	return record_filter_pass_track(options->filter, hit, &filtered, ended.rec.ts);
}

/* A refused span holds nothing else up. */
static int span_leave(struct wait_counters *counters, size_t at)
{
	int result = span_end(counters, at, NULL);

	return result == -EINVAL ? 0 : result;
}

/* -EINVAL: there is no room. */
static int span_add(struct wait_counters *counters, const struct counter_span *span)
{
	size_t own = 0;

	for (size_t i = 0; i < counters->spans.len; i++)
		own += counters->spans.data[i].hit.tgid == span->hit.tgid;
	return has_room(counters->spans.len, own, ROWS_MAX) && vec_push(&counters->spans, *span)
		       ? 0
		       : -EINVAL;
}

static bool has_span(const struct wait_counters *counters, const struct waffle_rec_hit *hit)
{
	for (size_t i = 0; i < counters->spans.len; i++)
		if (counters->spans.data[i].hit.rec.tid == hit->rec.tid &&
		    counters->spans.data[i].hit.site == hit->site)
			return true;
	return false;
}

static int span_begin(struct wait_counters *counters, const struct waffle_rec_hit *hit,
		      const struct counter_known *counter)
{
	struct counter_span span = {.hit = *hit};

	span.hit.site = counters->sites.data[counter->site]->number;
	if (counter->is_part && has_span(counters, &span.hit))
		return 0;
	span.hit.frame_bytes = sizeof(span.frame);
	memcpy(&span.frame, hit + 1, sizeof(span.frame));
	return span_add(counters, &span);
}

/* ---- records ---- */

/* Whether a list has room for one more of a process. */
static bool has_known_left(const struct counter_known *list, size_t len, uint32_t tgid)
{
	size_t own = 0;

	for (size_t i = 0; i < len; i++)
		own += list[i].tgid == tgid;
	return has_room(len, own, ROWS_MAX);
}

/* The lookups of a thread are over when it begins another one, or ends: returns may be lost. */
static void lookups_drop(struct wait_counters *counters, uint32_t tid)
{
	for (size_t i = counters->lookups.len; i > 0; i--)
		if (counters->lookups.data[i - 1].tid == tid)
			counters->lookups.data[i - 1] =
				counters->lookups.data[--counters->lookups.len];
}

static bool is_known(const struct counter_known *known, uint32_t tgid, uint64_t value)
{
	return known->value == value && known->tgid == tgid;
}

/* The first value of this type. False: there is none. */
static bool value_read(struct value_walk walk, char type, struct value *value)
{
	while (value_walk_next(&walk, value))
		if (value->type == type)
			return true;
	return false;
}

static int lookup_begins(struct wait_counters *counters, const struct site_info *site,
			 const struct waffle_rec_hit *hit)
{
	struct value_walk walk = value_walk_begin(site, hit + 1, hit->frame_bytes);
	struct counter_known lookup = {.tgid = hit->tgid, .tid = hit->rec.tid};
	struct waffle_frame frame;
	char text[WAFFLE_STR_MAX + 1];
	struct value name;

	if (hit->frame_bytes < sizeof(frame) || !value_read(walk, WAFFLE_KEY_STR, &name))
		return -EINVAL;
	lookups_drop(counters, hit->rec.tid);
	snprintf(text, sizeof(text), "%.*s", (int)name.text_len, name.text);
	lookup.site = site_of(counters, text, hit->tgid, &lookup.is_part);
	if (lookup.site == MAP_NONE)
		return 0;
	memcpy(&frame, hit + 1, sizeof(frame));
	lookup.value = frame.id;
	return has_known_left(counters->lookups.data, counters->lookups.len, hit->tgid) &&
			       vec_push(&counters->lookups, lookup)
		       ? 0
		       : -EINVAL;
}

static int lookup_ends(struct wait_counters *counters, const struct site_info *site,
		       const struct waffle_rec_return *end)
{
	struct value_walk walk = value_walk_from(site, site->begin_keys, end + 1, end->frame_bytes);
	struct counter_known counter;
	struct value address;
	size_t at = counters->lookups.len;

	while (at > 0 && !is_known(&counters->lookups.data[at - 1], end->tgid, end->span_id))
		at--;
	if (!at)
		return 0; /* of a counter that nobody wants */
	counter = counters->lookups.data[at - 1];
	counters->lookups.data[at - 1] = counters->lookups.data[--counters->lookups.len];
	if (end->flags & WAFFLE_RETURN_LEFT || !value_read(walk, WAFFLE_KEY_PTR, &address))
		return 0;
	for (size_t i = 0; i < counters->counters.len; i++)
		if (is_known(&counters->counters.data[i], end->tgid, address.u64))
			return 0;
	counter.value = address.u64;
	return has_known_left(counters->counters.data, counters->counters.len, end->tgid) &&
			       vec_push(&counters->counters, counter)
		       ? 0
		       : -EINVAL;
}

static int counter_starts(struct wait_counters *counters, const struct site_info *site,
			  const struct waffle_rec_hit *hit)
{
	struct value_walk walk = value_walk_begin(site, hit + 1, hit->frame_bytes);
	struct value address;

	if (!value_read(walk, WAFFLE_KEY_PTR, &address))
		return -EINVAL;
	for (size_t i = 0; i < counters->counters.len; i++)
		if (is_known(&counters->counters.data[i], hit->tgid, address.u64))
			return span_begin(counters, hit, &counters->counters.data[i]);
	return 0;
}

static int counter_stops(struct wait_counters *counters, const struct waffle_rec_return *end)
{
	for (size_t i = counters->spans.len; i > 0; i--)
		if (counters->spans.data[i - 1].frame.id == end->span_id)
			return span_end(counters, i - 1, end);
	return 0;
}

int wait_counters_pass(struct wait_counters *counters, const struct site_info *site,
		       const struct waffle_rec *rec)
{
	const struct waffle_rec_hit *hit = (const struct waffle_rec_hit *)rec;
	const struct waffle_rec_return *end = (const struct waffle_rec_return *)rec;
	bool begins = rec->kind == WAFFLE_REC_HIT;

	if (site->role == SITE_ROLE_COUNTER_NAME)
		return begins ? lookup_begins(counters, site, hit)
			      : lookup_ends(counters, site, end);
	return begins ? counter_starts(counters, site, hit) : counter_stops(counters, end);
}

/* ---- processes ---- */

static void known_forget(struct counter_known *list, size_t *len, uint32_t tgid)
{
	for (size_t i = *len; i > 0; i--)
		if (list[i - 1].tgid == tgid)
			list[i - 1] = list[--*len];
}

void wait_counters_forget(struct wait_counters *counters, uint32_t tgid)
{
	known_forget(counters->lookups.data, &counters->lookups.len, tgid);
	known_forget(counters->counters.data, &counters->counters.len, tgid);
}

int wait_counters_process(struct wait_counters *counters, const struct waffle_rec_exit *rec)
{
	bool exec = rec->rec.kind == WAFFLE_REC_EXEC;
	int result = 0;

	for (size_t i = counters->spans.len; i > 0 && !result; i--) {
		const struct waffle_rec_hit *hit = &counters->spans.data[i - 1].hit;

		if (exec ? hit->tgid == rec->tgid : hit->rec.tid == rec->rec.tid)
			result = span_leave(counters, i - 1);
	}
	lookups_drop(counters, rec->rec.tid);
	if (exec || rec->rec.tid == rec->tgid)
		wait_counters_forget(counters, rec->tgid);
	return result;
}

int wait_counters_finish(struct wait_counters *counters)
{
	int result = 0;

	while (counters->spans.len && !result)
		result = span_leave(counters, counters->spans.len - 1);
	return result;
}
