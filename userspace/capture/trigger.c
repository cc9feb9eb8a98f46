// SPDX-License-Identifier: Apache-2.0
#include "capture/trigger_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filter/stream/stream.h"
#include "util/units.h"
#include "util/vec.h"
#include "waffle/abi.h"

/* The begins of matching spans, for their durations. A collision costs the duration in a text. */
#define BEGINS 1024 /* a power of two */

enum site_state { SITE_NEW, SITE_USELESS, SITE_USED };

/* A site of the capture. */
struct trigger_site {
	enum site_state state;
	uint32_t number;        /* in the stream */
	struct site_info *copy; /* with its strings behind it */
};

struct begin {
	uint64_t id, ts;
};

struct trigger {
	struct filter_stream *stream;
	VEC(struct trigger_site) sites;     /* by the file's number */
	VEC(const struct site_info *) used; /* by the stream's number */
	struct begin begins[BEGINS];
	struct trigger_match match;
	uint64_t now; /* see trigger_look() */
	bool matched;
};

/* ---- matches ---- */

static struct begin *begin_of(struct trigger *trigger, uint64_t id)
{
	return &trigger->begins[(id * 0x9e3779b97f4a7c15ull) >> 54];
}

static void match_set(struct trigger *trigger, const struct waffle_rec *rec, uint32_t site,
		      uint64_t began)
{
	const struct site_info *info = site < trigger->used.len ? trigger->used.data[site] : NULL;
	char duration[UNITS_TEXT];

	if (trigger->matched)
		return;
	trigger->matched = true;
	trigger->match.ts = trigger->now;
	snprintf(trigger->match.text, sizeof(trigger->match.text), "%s \"%.200s\" of thread %u%s%s",
		 info ? site_kind_name(info->kind) : "span", info ? info->name : "?", rec->tid,
		 began ? ", " : "",
		 began ? units_format_duration(duration, rec->ts > began ? rec->ts - began : 0)
		       : "");
}

/* A hit that passes the stream. That of a span waits for its end. */
static void delivered(struct waffle_rec *rec, void *arg)
{
	struct trigger *trigger = arg;
	const struct waffle_rec_hit *hit = (const struct waffle_rec_hit *)rec;
	const struct waffle_rec_span_end *end = (const struct waffle_rec_span_end *)rec;
	const struct waffle_frame *frame = (const void *)(hit + 1);
	struct begin *begin;

	if (rec->kind == WAFFLE_REC_SPAN_END) {
		begin = begin_of(trigger, end->span_id);
		match_set(trigger, rec, end->site, begin->id == end->span_id ? begin->ts : 0);
	} else if (trigger->used.data[hit->site]->kind != WAFFLE_SITE_SPAN) {
		match_set(trigger, rec, hit->site, 0);
	} else if (hit->frame_bytes >= sizeof(*frame)) {
		*begin_of(trigger, frame->id) = (struct begin){frame->id, rec->ts};
	}
}

/* ---- sites ---- */

static const char *text_keep(char **at, const char *text)
{
	const char *kept = *at;
	size_t bytes = strlen(text ? text : "") + 1;

	memcpy(*at, text ? text : "", bytes);
	*at += bytes;
	return kept;
}

/* Copies a site and its strings, in one block. */
static struct site_info *site_copy(const struct site_info *site)
{
	const char *texts[] = {site->name, site->category, site->file, site->func, site->object};
	size_t bytes = sizeof(*site);
	struct site_info *copy;
	char *at;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		bytes += strlen(texts[i] ? texts[i] : "") + 1;
	for (unsigned i = 0; i < site->key_count; i++)
		bytes += strlen(site->keys[i].name) + 1;
	copy = malloc(bytes);
	if (!copy)
		return NULL;
	*copy = *site;
	at = (char *)(copy + 1);
	copy->name = text_keep(&at, site->name);
	copy->category = text_keep(&at, site->category);
	copy->file = text_keep(&at, site->file);
	copy->func = text_keep(&at, site->func);
	copy->object = text_keep(&at, site->object);
	for (unsigned i = 0; i < site->key_count; i++)
		copy->keys[i].name = text_keep(&at, site->keys[i].name);
	return copy;
}

static void site_add(struct trigger *trigger, struct trigger_site *row,
		     const struct site_info *site)
{
	row->state = SITE_USELESS;
	if (filter_stream_use(trigger->stream, site) == FILTER_STREAM_DORMANT)
		return;
	row->copy = site_copy(site);
	if (!row->copy || !vec_push(&trigger->used, row->copy))
		return;
	row->number = (uint32_t)trigger->used.len - 1;
	if (filter_stream_add_site(trigger->stream, row->copy))
		row->state = SITE_USED;
	else
		trigger->used.len--;
}

/* The row of a site whose records are of use; NULL: they are not. */
static const struct trigger_site *site_of(struct trigger *trigger, uint32_t number,
					  const struct site_info *site)
{
	struct trigger_site *row;

	if (number >= trigger->sites.len) {
		size_t more = number + 1 - trigger->sites.len;

		if (number == WAFFLE_SITE_UNKNOWN || !site || !vec_reserve(&trigger->sites, more))
			return NULL;
		memset(trigger->sites.data + trigger->sites.len, 0,
		       more * sizeof(*trigger->sites.data));
		trigger->sites.len += more;
	}
	row = &trigger->sites.data[number];
	if (row->state == SITE_NEW && site)
		site_add(trigger, row, site);
	return row->state == SITE_USED ? row : NULL;
}

/* ---- records ---- */

static void hit_look(struct trigger *trigger, struct waffle_rec_hit *hit,
		     const struct site_info *site)
{
	const struct trigger_site *row = site_of(trigger, hit->site, site);
	uint32_t number = hit->site;

	if (!row)
		return;
	hit->site = row->number;
	filter_stream_hit(trigger->stream, hit, trigger->now);
	hit->site = number;
}

static void end_look(struct trigger *trigger, struct waffle_rec_span_end end)
{
	const struct trigger_site *row = site_of(trigger, end.site, NULL);

	if (!row)
		return;
	end.site = row->number;
	filter_stream_end(trigger->stream, &end, trigger->now);
}

static void return_look(struct trigger *trigger, const struct waffle_rec_return *call)
{
	struct waffle_rec_span_end end = {
		.rec = call->rec, .span_id = call->span_id, .tgid = call->tgid, .site = call->site};

	end.rec.kind = WAFFLE_REC_SPAN_END;
	end_look(trigger, end);
}

static void exit_look(struct trigger *trigger, const struct waffle_rec_exit *end)
{
	if (end->rec.kind == WAFFLE_REC_EXEC || end->rec.tid == end->tgid)
		filter_stream_process_exit(trigger->stream, end->tgid);
	else
		filter_stream_thread_exit(trigger->stream, end->tgid, end->rec.tid);
}

const struct trigger_match *trigger_look(struct trigger *trigger, struct waffle_rec *rec,
					 const struct site_info *site, uint64_t now)
{
	const struct waffle_rec_task *task = (const struct waffle_rec_task *)rec;

	trigger->matched = false;
	trigger->now = now;
	switch (rec->kind) {
	case WAFFLE_REC_HIT:
		hit_look(trigger, (struct waffle_rec_hit *)rec, site);
		break;
	case WAFFLE_REC_SPAN_END:
		end_look(trigger, *(const struct waffle_rec_span_end *)rec);
		break;
	case WAFFLE_REC_RETURN:
		return_look(trigger, (const struct waffle_rec_return *)rec);
		break;
	case WAFFLE_REC_TASK:
		filter_stream_name(trigger->stream, task->tgid, rec->tid, task->comm);
		break;
	case WAFFLE_REC_EXEC:
	case WAFFLE_REC_EXIT:
		exit_look(trigger, (const struct waffle_rec_exit *)rec);
		break;
	default:
		break;
	}
	return trigger->matched ? &trigger->match : NULL;
}

/* ---- the whole ---- */

int trigger_open(struct trigger **trigger, const struct filter_expr *expression, struct error *err)
{
	struct trigger *made = calloc(1, sizeof(*made));
	struct filter_stream_options options = {
		.filter = expression, .decides_calls = true, .deliver = delivered, .arg = made};
	int result;

	*trigger = NULL;
	if (!made)
		return error_set(err, ENOMEM, "out of memory");
	result = filter_stream_open(&made->stream, &options, err);
	if (result)
		trigger_free(made);
	else
		*trigger = made;
	return result;
}

void trigger_free(struct trigger *trigger)
{
	if (!trigger)
		return;
	filter_stream_free(trigger->stream);
	for (size_t i = 0; i < trigger->sites.len; i++)
		free(trigger->sites.data[i].copy);
	vec_free(&trigger->sites);
	vec_free(&trigger->used);
	free(trigger);
}
