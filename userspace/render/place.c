// SPDX-License-Identifier: Apache-2.0
#include "render/place.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The name of a thread's host; NULL: the job has one host. */
static const char *host_name(const struct model *model, uint32_t host)
{
	return model->host_count > 1 ? model->hosts[host]->name : NULL;
}

static uint32_t rank_of(const struct model *model, uint32_t thread)
{
	const struct model_process *process = model_process_of(model, thread);

	return process ? process->rank : MODEL_NONE;
}

static const char *place(char *text, const struct model *model, uint32_t thread, const char *before,
			 uint32_t number)
{
	const char *host = host_name(model, model_host_of(model, thread));
	uint32_t rank = rank_of(model, thread);
	int len = snprintf(text, PLACE_TEXT, "%s%" PRIu32, before, number);

	if (rank != MODEL_NONE)
		len += snprintf(text + len, PLACE_TEXT - (size_t)len, ", rank %" PRIu32, rank);
	if (host)
		snprintf(text + len, PLACE_TEXT - (size_t)len, " on %.255s", host);
	return text;
}

const char *place_thread(char *text, const struct model *model, uint32_t thread)
{
	if (model_is_track(model, thread))
		return place(text, model, thread, "track of ", place_pid(model, thread));
	return place(text, model, thread, "", place_tid(model, thread));
}

/* Whether its name and number look like those of its process, which has another number. */
static bool looks_like_process(const struct model *model, uint32_t thread)
{
	const struct model_process *process = model_process_of(model, thread);
	uint32_t main = process ? process->main_thread : MODEL_NONE;

	return main != MODEL_NONE && main != thread &&
	       !strcmp(model_thread_name(model, main), model_thread_name(model, thread));
}

const char *place_thread_apart(char *text, const struct model *model, uint32_t thread)
{
	if (looks_like_process(model, thread))
		return place(text, model, thread, "thread ", place_tid(model, thread));
	return place_thread(text, model, thread);
}

const char *place_process(char *text, const struct model *model, uint32_t thread)
{
	return place(text, model, thread, "", place_pid(model, thread));
}

const char *place_threads(char *text, const struct model *model, uint32_t thread, const char *name,
			  uint32_t threads, uint32_t processes)
{
	char at[PLACE_TEXT];

	if (threads < 2)
		snprintf(text, PLACE_THREADS_TEXT, "%.64s (%s)", name,
			 place_thread(at, model, thread));
	else if (processes < 2)
		snprintf(text, PLACE_THREADS_TEXT, "%" PRIu32 " threads of %.64s (%s)", threads,
			 name, place_process(at, model, thread));
	else if (processes == threads)
		snprintf(text, PLACE_THREADS_TEXT, "%" PRIu32 " processes named %.64s", processes,
			 name);
	else
		snprintf(text, PLACE_THREADS_TEXT,
			 "%" PRIu32 " threads of %" PRIu32 " processes named %.64s", threads,
			 processes, name);
	return text;
}

const char *place_of_process(char *text, const struct model *model,
			     const struct model_process *process)
{
	const char *host = host_name(model, process->host);

	text[0] = '\0';
	if (process->rank != MODEL_NONE && host)
		snprintf(text, PLACE_TEXT, "rank %" PRIu32 " on %.255s", process->rank, host);
	else if (process->rank != MODEL_NONE)
		snprintf(text, PLACE_TEXT, "rank %" PRIu32, process->rank);
	else if (host)
		snprintf(text, PLACE_TEXT, "%.255s", host);
	return text;
}

void place_track_json(struct json *json, const struct model *model, uint32_t thread)
{
	const struct model_thread *track;

	if (!model_is_track(model, thread))
		return;
	track = &model->threads.data[thread];
	json_field_string(json, "track", strtab_get(model->strings, track->track_name));
	if (track->group)
		json_field_string(json, "group", strtab_get(model->strings, track->group));
}

void place_json(struct json *json, const struct model *model, uint32_t thread)
{
	const char *host = host_name(model, model_host_of(model, thread));
	uint32_t rank = rank_of(model, thread);

	if (rank != MODEL_NONE)
		json_field_u64(json, "rank", rank);
	if (host)
		json_field_string(json, "host", host);
	place_track_json(json, model, thread);
}
