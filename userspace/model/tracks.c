// SPDX-License-Identifier: Apache-2.0
/*
 * Tracks: lanes that programs declare. In the model a track stands among the threads, with `track`
 * set and without a tid, so that all that refers to a thread by its index can refer to a track.
 */
#include <stdio.h>
#include <string.h>

#include "model/build.h"
#include "util/memory.h"

/* The lane of a track of a process, added if it is new. */
static uint32_t track_get(struct builder *builder, uint32_t tgid, uint32_t number)
{
	struct model *model = builder->model;
	uint64_t key = (uint64_t)tgid << 32 | number;
	uint32_t index = map_get(&builder->tracks, key);

	if (index != MAP_NONE)
		return index;
	index = (uint32_t)model->threads.len;
	memory_require(index != MODEL_NONE);
	map_put(&builder->tracks, key, index);
	vec_add(&model->threads,
		(struct model_thread){.pid = tgid, .track = number, .first_ts = UINT64_MAX});
	vec_add(&builder->threads, (struct thread_build){.previous = MODEL_NONE});
	model->track_count++;
	return index;
}

static uint32_t text_put(struct model *model, const char text[WAFFLE_TRACK_NAME])
{
	return strtab_put(model->strings, text, strnlen(text, WAFFLE_TRACK_NAME));
}

void tracks_add(struct builder *builder, const struct waffle_rec_track *rec)
{
	struct model_thread *track;
	uint32_t index;

	if (!rec->tgid || !rec->track) {
		builder->model->bad_records++;
		return;
	}
	index = track_get(builder, rec->tgid, rec->track); /* it may move the threads */
	track = &builder->model->threads.data[index];
	track->track_name = text_put(builder->model, rec->name);
	track->group = text_put(builder->model, rec->group);
}

void tracks_expect(struct builder *builder, const struct waffle_rec_on_track *rec)
{
	if (!rec->tgid || !rec->track || !rec->id) {
		builder->model->bad_records++;
		return;
	}
	map_put(&builder->on_track, rec->id, track_get(builder, rec->tgid, rec->track));
}

uint32_t tracks_take(struct builder *builder, uint64_t id)
{
	return builder->on_track.len ? map_remove(&builder->on_track, id) : MODEL_NONE;
}

void tracks_touch(struct builder *builder, uint32_t thread, uint64_t ts)
{
	struct model_thread *track = &builder->model->threads.data[thread];

	if (ts < track->first_ts)
		track->first_ts = ts;
	if (ts > track->last_ts)
		track->last_ts = ts;
	if (ts < builder->tracks_first_ts)
		builder->tracks_first_ts = ts;
	if (ts > builder->tracks_last_ts)
		builder->tracks_last_ts = ts;
	builder->was_track = true;
}

/* Names a track. The kernel's limit of a thread's name does not apply. */
static void track_label(struct model *model, struct model_thread *track)
{
	char text[2 * WAFFLE_TRACK_NAME + 24];

	if (!track->track_name) {
		snprintf(text, sizeof(text), "track %u", track->track);
		track->track_name = strtab_put(model->strings, text, strlen(text));
	}
	track->comm = track->track_name;
	if (!track->group)
		return;
	snprintf(text, sizeof(text), "%s: %s", strtab_get(model->strings, track->group),
		 strtab_get(model->strings, track->track_name));
	track->comm = strtab_put(model->strings, text, strlen(text));
}

void tracks_finish(struct builder *builder)
{
	struct model *model = builder->model;

	for (size_t i = 0; i < model->threads.len && model->track_count; i++)
		if (model->threads.data[i].track)
			track_label(model, &model->threads.data[i]);
}
