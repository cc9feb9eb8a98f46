// SPDX-License-Identifier: Apache-2.0
/* Descriptors of processes, threads and other tracks. */
#include <stdlib.h>
#include <string.h>

#include "export/perfetto/perfetto_internal.h"
#include "render/place.h"
#include "util/memory.h"

/* The model's entry for this life of a process, or for any life of the pid. */
static const struct model_process *track_process_model(const struct model *m,
						       const struct track_process *process)
{
	const struct model_process *found = NULL;

	for (size_t i = 0; i < m->processes.len; i++) {
		const struct model_process *candidate = &m->processes.data[i];

		if (candidate->pid != process->pid)
			continue;
		if (candidate->main_thread == process->main_thread)
			return candidate;
		found = candidate;
	}
	return found;
}

static void describe_process(struct perfetto *p, const struct track_process *process)
{
	const struct model *m = p->model;
	const struct model_process *known = track_process_model(m, process);
	char place[PLACE_TEXT], name[PLACE_TEXT + 64];
	struct track_names names = {
		.uuid = process->uuid,
		.ts = process->start_ts,
		.pid = process->pid,
		.cmdline = known ? strtab_get(m->strings, known->cmdline) : "",
	};

	if (process->main_thread != MODEL_NONE) {
		const char *comm = model_thread_name(m, process->main_thread);
		int len = snprintf(name, sizeof(name), "%.*s", WAFFLE_COMM_BYTES, comm);

		if (known && *place_of_process(place, m, known))
			snprintf(name + len, sizeof(name) - (size_t)len, " %s", place);
		names.name = name;
	}
	track_describe_process(&p->encoder, &names);
}

static void describe_thread(struct perfetto *p, uint32_t thread)
{
	const struct model_thread *t = &p->model->threads.data[thread];
	struct track_names names = {
		.uuid = p->threads[thread].uuid,
		.ts = t->first_ts,
		.pid = t->pid,
		.tid = t->tid,
		.name = model_thread_name(p->model, thread),
	};

	track_describe_thread(&p->encoder, &names,
			      p->processes.data[p->threads[thread].process].uuid);
}

/* The life of a pid to which a thread first seen at `ts` belongs: the last one that began by
 * then. */
static uint32_t process_find(const struct perfetto *p, uint32_t pid, uint64_t ts)
{
	uint32_t found = map_get(&p->pids, pid);

	for (uint32_t i = found; i != MODEL_NONE; i = p->processes.data[i].next) {
		if (p->processes.data[i].start_ts <= ts)
			found = i;
	}
	return found;
}

static uint32_t process_add(struct perfetto *p, uint32_t pid, uint64_t ts)
{
	uint32_t first = map_get(&p->pids, pid), index = (uint32_t)p->processes.len;

	vec_add(&p->processes, (struct track_process){.pid = pid,
						      .main_thread = MODEL_NONE,
						      .next = MODEL_NONE,
						      .start_ts = ts,
						      .uuid = ++p->encoder.next_uuid});
	if (first == MAP_NONE) {
		map_put(&p->pids, pid, index);
		return index;
	}
	while (p->processes.data[first].next != MODEL_NONE)
		first = p->processes.data[first].next;
	p->processes.data[first].next = index;
	return index;
}

/* Each main thread starts a process; another main thread with the same pid starts another life of
 * it. */
static void add_main_threads(struct perfetto *p)
{
	const struct model *m = p->model;

	for (uint32_t i = 0; i < m->threads.len; i++) {
		const struct model_thread *t = &m->threads.data[i];
		uint32_t process;

		if (t->tid != t->pid || t->tid == 0)
			continue;
		process = process_add(p, t->pid, t->first_ts);
		p->processes.data[process].main_thread = i;
		p->threads[i].process = process;
	}
}

static void add_other_threads(struct perfetto *p)
{
	const struct model *m = p->model;

	for (uint32_t i = 0; i < m->threads.len; i++) {
		const struct model_thread *t = &m->threads.data[i];
		uint32_t process;

		if ((t->tid == 0 && !t->track) || t->pid == 0 ||
		    p->threads[i].process != MODEL_NONE)
			continue;
		process = process_find(p, t->pid, t->first_ts);
		if (process == MODEL_NONE)
			process = process_add(p, t->pid, t->first_ts);
		p->threads[i].process = process;
		if (t->track)
			continue;
		/* A thread may be seen before the main thread of its process. */
		if (p->processes.data[process].start_ts > t->first_ts)
			p->processes.data[process].start_ts = t->first_ts;
	}
}

uint64_t tracks_lane(struct perfetto *p, uint32_t thread)
{
	const struct model_thread *t = &p->model->threads.data[thread];
	uint64_t uuid = ++p->encoder.next_uuid;

	track_describe(&p->encoder, uuid, p->threads[thread].parent,
		       strtab_get(p->model->strings, t->track_name), false, t->first_ts);
	return uuid;
}

/* The track that holds those of a group of a process. */
static uint64_t group_get(struct perfetto *p, struct map *groups, uint32_t thread)
{
	const struct model_thread *t = &p->model->threads.data[thread];
	uint64_t process = tracks_process_uuid(p, thread);
	uint32_t uuid = map_get(groups, process << 32 | t->group);

	if (!t->group)
		return process;
	if (uuid != MAP_NONE)
		return uuid;
	uuid = (uint32_t)++p->encoder.next_uuid;
	map_put(groups, process << 32 | t->group, uuid);
	track_describe(&p->encoder, uuid, process, strtab_get(p->model->strings, t->group), false,
		       p->encoder.start_ts);
	return uuid;
}

/* Tracks that the program declared are no threads, but have a track of their own, too. */
static void add_tracks(struct perfetto *p)
{
	const struct model *m = p->model;
	struct map groups = {0};

	for (uint32_t i = 0; m->track_count && i < m->threads.len; i++) {
		if (!model_is_track(m, i))
			continue;
		p->threads[i].parent = group_get(p, &groups, i);
		p->threads[i].uuid = tracks_lane(p, i);
	}
	map_free(&groups);
}

void tracks_begin(struct perfetto *p)
{
	const struct model *m = p->model;

	p->threads = memory_zeroed(m->threads.len + 1, sizeof(*p->threads));
	for (size_t i = 0; i < m->threads.len; i++)
		p->threads[i].process = MODEL_NONE;
	add_main_threads(p);
	add_other_threads(p);
	for (size_t i = 0; i < p->processes.len; i++)
		describe_process(p, &p->processes.data[i]);
	for (uint32_t i = 0; i < m->threads.len; i++) {
		if (p->threads[i].process == MODEL_NONE || model_is_track(m, i))
			continue;
		p->threads[i].uuid = ++p->encoder.next_uuid;
		describe_thread(p, i);
	}
	add_tracks(p);
}

void tracks_end(struct perfetto *p)
{
	free(p->threads);
	vec_free(&p->processes);
	map_free(&p->pids);
}

uint64_t tracks_process_uuid(const struct perfetto *p, uint32_t thread)
{
	if (thread >= p->model->threads.len || p->threads[thread].process == MODEL_NONE)
		return 0;
	return p->processes.data[p->threads[thread].process].uuid;
}
