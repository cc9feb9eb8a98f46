// SPDX-License-Identifier: Apache-2.0
#include "capture/track_stage_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/map.h"
#include "util/vec.h"
#include "waffle/abi.h"

/* Times that are farther away are those of a wrong clock, as in usdt/record/collector.c. */
#define REACH_NS (30ull * 86400 * 1000000000)

struct told_process {
	uint32_t tgid;
	struct map tracks; /* whose names were recorded */
};

struct track_stage {
	struct track_stage_options options;
	VEC(struct told_process) told;
	struct map told_at; /* process → index in `told` */
	/* The record that the filter is asked about; NULL: none. */
	const struct waffle_rec_track_hit *current;
	uint64_t hit[(sizeof(struct waffle_rec_hit) + WAFFLE_FRAME_MAX) / 8 + 1];
};

int track_stage_open(struct track_stage **stage, const struct track_stage_options *options,
		     struct error *err)
{
	*stage = calloc(1, sizeof(**stage));
	if (!*stage)
		return error_set(err, ENOMEM, "out of memory");
	(*stage)->options = *options;
	return 0;
}

void track_stage_close(struct track_stage *stage)
{
	if (!stage)
		return;
	for (size_t i = 0; i < stage->told.len; i++)
		map_free(&stage->told.data[i].tracks);
	vec_free(&stage->told);
	map_free(&stage->told_at);
	free(stage);
}

static int deliver(struct track_stage *stage, struct waffle_rec *rec)
{
	return stage->options.deliver(rec, stage->options.arg);
}

/* Whether the name of a track is to be recorded: once, also if there is no memory to note it. */
static bool name_is_new(struct track_stage *stage, uint32_t tgid, uint32_t track)
{
	uint32_t at = map_get(&stage->told_at, tgid);

	if (at == MAP_NONE) {
		at = (uint32_t)stage->told.len;
		if (!vec_push(&stage->told, (struct told_process){.tgid = tgid}))
			return true;
		if (!map_set(&stage->told_at, tgid, at)) {
			stage->told.len--;
			return true;
		}
	}
	if (map_get(&stage->told.data[at].tracks, track) != MAP_NONE)
		return false;
	map_set(&stage->told.data[at].tracks, track, 1);
	return true;
}

void track_stage_forget(struct track_stage *stage, uint32_t tgid)
{
	uint32_t at = map_remove(&stage->told_at, tgid);
	struct told_process *last;

	if (at == MAP_NONE)
		return;
	map_free(&stage->told.data[at].tracks);
	last = &stage->told.data[--stage->told.len];
	if (last == &stage->told.data[at])
		return;
	stage->told.data[at] = *last;
	map_set(&stage->told_at, last->tgid, at); /* replaces a value, which always succeeds */
}

static int name_deliver(struct track_stage *stage, const struct waffle_rec_track_hit *hit,
			const struct name_set_track *track)
{
	struct waffle_rec_track rec = {.rec = hit->rec, .tgid = hit->tgid, .track = hit->track};

	if (!track->name || !name_is_new(stage, hit->tgid, hit->track))
		return 0;
	rec.rec.kind = WAFFLE_REC_TRACK;
	memcpy(rec.name, track->name, strnlen(track->name, sizeof(rec.name)));
	memcpy(rec.group, track->group, strnlen(track->group, sizeof(rec.group)));
	return deliver(stage, &rec.rec);
}

static int mark_deliver(struct track_stage *stage, const struct waffle_rec_track_hit *hit)
{
	struct waffle_rec_on_track rec = {.rec = hit->rec, .tgid = hit->tgid, .track = hit->track};

	rec.rec.kind = WAFFLE_REC_ON_TRACK;
	rec.rec.ts = hit->start_ts;
	memcpy(&rec.id, hit + 1, sizeof(rec.id)); /* struct waffle_frame */
	return deliver(stage, &rec.rec);
}

int track_stage_kept(struct track_stage *stage, struct waffle_rec *rec)
{
	int result = 0;

	if (stage->current) {
		rec->tid = stage->current->rec.tid;
		if (rec->kind == WAFFLE_REC_HIT)
			result = mark_deliver(stage, stage->current);
	}
	return result ?: deliver(stage, rec);
}

static int filter_ask(struct track_stage *stage, const struct waffle_rec_track_hit *from,
		      struct waffle_rec_hit *hit, struct waffle_rec_span_end *end,
		      const struct name_set_track *track)
{
	struct record_filter *filter = stage->options.filter;
	struct waffle_rec_task name = {.tgid = hit->tgid, .rec.kind = WAFFLE_REC_TASK};
	int result = 0;

	if (stage->options.keep_children) {
		/* The filter may deliver the hit later, and in the order of its thread. */
		result = mark_deliver(stage, from);
	} else {
		stage->current = from;
		hit->rec.tid = end->rec.tid = 0;
		if (track->name)
			memcpy(name.comm, track->name, strnlen(track->name, sizeof(name.comm) - 1));
		record_filter_thread(filter, &name.rec);
	}
	result = result ?: record_filter_pass_track(filter, hit, end, from->rec.ts);
	stage->current = NULL;
	return result;
}

static bool makes_sense(const struct waffle_rec_track_hit *hit)
{
	return hit->frame_bytes >= sizeof(struct waffle_frame) &&
	       hit->frame_bytes <= WAFFLE_FRAME_MAX && hit->start_ts <= hit->end_ts &&
	       hit->end_ts <= hit->rec.ts + REACH_NS && hit->start_ts + REACH_NS >= hit->rec.ts;
}

int track_stage_pass(struct track_stage *stage, const struct waffle_rec_track_hit *from)
{
	struct waffle_rec_hit *hit = (struct waffle_rec_hit *)stage->hit;
	struct waffle_rec_span_end end = {.rec = from->rec, .tgid = from->tgid, .site = from->site};
	const struct arming_site *site = arming_site(stage->options.arming, from->site);
	bool span = site && site->original->kind == WAFFLE_SITE_SPAN;
	struct name_set_track track = {NULL, NULL};
	int result;

	if (!site || !makes_sense(from))
		return -EINVAL;
	*hit = (struct waffle_rec_hit){.rec = from->rec,
				       .tgid = from->tgid,
				       .site = from->site,
				       .frame_bytes = from->frame_bytes};
	memcpy(hit + 1, from + 1, from->frame_bytes);
	hit->rec.kind = WAFFLE_REC_HIT;
	hit->rec.ts = from->start_ts;
	end.rec.kind = span ? WAFFLE_REC_SPAN_END : 0;
	end.rec.ts = from->end_ts;
	memcpy(&end.span_id, from + 1, sizeof(end.span_id));
	name_set_track(stage->options.names, (pid_t)from->tgid, from->track, &track);
	result = name_deliver(stage, from, &track);
	if (!result && stage->options.filter)
		return filter_ask(stage, from, hit, &end, &track);
	result = result ?: mark_deliver(stage, from) ?: deliver(stage, &hit->rec);
	return result ?: (span ? deliver(stage, &end.rec) : 0);
}
