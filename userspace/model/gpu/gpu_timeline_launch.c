// SPDX-License-Identifier: Apache-2.0
/*
 * Launches: which calls gave work to the GPU. libwaffle-gpu records a `launch` from within the
 * call, so on the same thread the probes have recorded the call just before (an event), or its span
 * is open.
 */
#include <stdlib.h>
#include <string.h>

#include "model/gpu/gpu_timeline_internal.h"
#include "util/memory.h"
#include "util/search.h"

/* A call of the probes that is open on a thread. */
struct host_open {
	uint64_t end_ts;
	uint32_t span;
};

struct host_thread {
	VEC(struct host_open) open; /* the innermost last */
	uint32_t event;             /* launching call without a `launch` so far, or MODEL_NONE */
};

struct launch_scan {
	struct timeline_build *build;
	struct host_thread *threads;
};

/* Whether a call may launch or wait for operations. */
static bool is_host_call(const struct site_info *site)
{
	switch (site->role) {
	case SITE_ROLE_LAUNCH:
	case SITE_ROLE_COPY:
	case SITE_ROLE_SET:
	case SITE_ROLE_SYNC_STREAM:
	case SITE_ROLE_SYNC_EVENT:
	case SITE_ROLE_SYNC_DEVICE:
	case SITE_ROLE_COLLECTIVE:
	case SITE_ROLE_P2P:
	case SITE_ROLE_SEND:
	case SITE_ROLE_RECV:
	case SITE_ROLE_GROUP_END:
	case SITE_ROLE_MAY_SYNC:
		return true;
	default:
		return false;
	}
}

static void scan_span(struct launch_scan *scan, uint32_t index)
{
	const struct model_span *span = &scan->build->model->spans.data[index];
	struct host_thread *thread = &scan->threads[span->thread];

	if (!is_host_call(model_site(scan->build->model, span->site)))
		return;
	while (thread->open.len && thread->open.data[thread->open.len - 1].end_ts < span->start_ts)
		thread->open.len--;
	vec_add(&thread->open, (struct host_open){span->end_ts, index});
}

/* The innermost span around a span or event that is the program's own, not a call of CUDA or
 * NCCL. */
static uint32_t program_span(const struct model *model, uint32_t span)
{
	while (span != MODEL_NONE) {
		const struct site_info *site = model_site(model, model->spans.data[span].site);

		if (site->role == SITE_ROLE_NONE || site_role_is_mpi(site->role))
			return span;
		span = model->spans.data[span].parent;
	}
	return MODEL_NONE;
}

/* Finds the call that a `launch` is part of: of the open calls and the last launching one, that
 * which began last. */
static void launch_find_host(struct launch_scan *scan, struct gpu_timeline_launch *launch)
{
	const struct model *model = scan->build->model;
	struct host_thread *thread = &scan->threads[launch->thread];
	uint32_t span = MODEL_NONE, event = thread->event, around = MODEL_NONE;

	while (thread->open.len && thread->open.data[thread->open.len - 1].end_ts < launch->ts)
		thread->open.len--;
	if (thread->open.len)
		span = thread->open.data[thread->open.len - 1].span;
	if (event != MODEL_NONE &&
	    (span == MODEL_NONE ||
	     model->events.data[event].ts >= model->spans.data[span].start_ts)) {
		launch->host_kind = MODEL_NODE_EVENT;
		launch->host = event;
		around = model->events.data[event].parent;
		thread->event = MODEL_NONE;
	} else if (span != MODEL_NONE) {
		launch->host = span;
		around = span;
	}
	launch->span = program_span(model, around);
	if (launch->span == MODEL_NONE)
		launch->span = program_span(model, model->events.data[launch->event].parent);
}

/* The runtime calls the driver within one call, and a recorder may report both with one id. */
static bool is_nested(const struct timeline_build *build, uint32_t known,
		      const struct gpu_timeline_launch *launch)
{
	size_t count = build->timeline->launches.len;

	return known + 1 == count && build->timeline->launches.data[known].thread == launch->thread;
}

static void launch_add(struct launch_scan *scan, uint32_t index)
{
	struct timeline_build *build = scan->build;
	const struct model_event *event = &build->model->events.data[index];
	struct gpu_timeline_launch launch = {.ts = event->ts,
					     .event = index,
					     .thread = event->thread,
					     .pid = build->model->threads.data[event->thread].pid,
					     .host_kind = MODEL_NODE_SPAN,
					     .host = MODEL_NONE,
					     .span = MODEL_NONE};
	struct timeline_values values;
	uint64_t key;
	uint32_t known, arming = timeline_arming_at(build, launch.pid, launch.ts);

	timeline_values_read(build, event->site, event->frame, &values);
	if (!timeline_has(&values, TIMELINE_CORRELATION) || arming == MODEL_NONE)
		return;
	launch.correlation = values.number[TIMELINE_CORRELATION];
	key = timeline_launch_key(arming, launch.correlation);
	known = map_get(&build->launch_at, key);
	if (known != MAP_NONE && known != TIMELINE_REPEATED && is_nested(build, known, &launch))
		return;
	launch_find_host(scan, &launch);
	map_put(&build->launch_at, key,
		known == MAP_NONE ? (uint32_t)build->timeline->launches.len : TIMELINE_REPEATED);
	vec_add(&build->timeline->launches, launch);
}

static void capture_add(struct timeline_build *build, uint32_t index)
{
	const struct model_event *event = &build->model->events.data[index];
	struct timeline_values values;
	uint64_t key[3] = {build->model->threads.data[event->thread].pid};

	timeline_values_read(build, event->site, event->frame, &values);
	if (!timeline_has(&values, TIMELINE_GRAPH_NODE))
		return;
	key[1] = timeline_has(&values, TIMELINE_GRAPH) ? values.number[TIMELINE_GRAPH] : 0;
	key[2] = values.number[TIMELINE_GRAPH_NODE];
	keymap_put(&build->captured_at, key, sizeof(key), index);
}

/* ---- sessions ---- */

static struct gpu_timeline_session *session_at(struct gpu_timeline *timeline, uint32_t pid)
{
	uint32_t found = map_get(&timeline->session_of, pid);

	if (found == MAP_NONE) {
		found = (uint32_t)timeline->sessions.len;
		map_put(&timeline->session_of, pid, found);
		vec_add(&timeline->sessions,
			(struct gpu_timeline_session){.disarmed_ts = UINT64_MAX, .pid = pid});
	}
	return &timeline->sessions.data[found];
}

static bool state_is(const struct timeline_values *values, const char *state)
{
	return timeline_has(values, TIMELINE_STATE) &&
	       values->text_len[TIMELINE_STATE] == strlen(state) &&
	       !memcmp(values->text[TIMELINE_STATE], state, strlen(state));
}

/* The counts of a session only grow, so that the last event has them. */
static void session_add(struct timeline_build *build, uint32_t index)
{
	const struct model_event *event = &build->model->events.data[index];
	uint32_t pid = build->model->threads.data[event->thread].pid;
	struct gpu_timeline_session *session = session_at(build->timeline, pid);
	struct timeline_values values;
	uint64_t *to[][2] = {
		{&session->dropped, &values.number[TIMELINE_DROPPED]},
		{&session->zero_times, &values.number[TIMELINE_ZERO_TIMES]},
		{&session->clamped, &values.number[TIMELINE_CLAMPED]},
		{&session->unknown, &values.number[TIMELINE_UNKNOWN]},
		{&session->clock_error_ns, &values.number[TIMELINE_CLOCK_ERROR]},
		{&session->cupti, &values.number[TIMELINE_CUPTI]},
	};

	memset(&values, 0, sizeof(values));
	timeline_values_read(build, event->site, event->frame, &values);
	session->event = index;
	session->unavailable = state_is(&values, "unavailable");
	for (size_t i = 0; i < sizeof(to) / sizeof(to[0]); i++)
		*to[i][0] = *to[i][1] > *to[i][0] ? *to[i][1] : *to[i][0];
	if (state_is(&values, "armed")) {
		session->armed_ts = session->armed_ts ? session->armed_ts : event->ts;
		session->disarmed_ts = UINT64_MAX;
	} else if (state_is(&values, "disarmed")) {
		session->disarmed_ts = event->ts;
	}
}

const struct gpu_timeline_session *gpu_timeline_session(const struct gpu_timeline *timeline,
							uint32_t pid)
{
	uint32_t found = map_get(&timeline->session_of, pid);

	return found == MAP_NONE ? NULL : &timeline->sessions.data[found];
}

/* ---- armings ---- */

static int compare_armings(const void *left, const void *right)
{
	const struct timeline_arming *a = left, *b = right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a->ts < b->ts ? -1 : a->ts > b->ts;
}

/* Finds all processes that have a launch or a session, and when they were armed. The first arming
 * also has what came before it. */
static void armings_find(struct timeline_build *build)
{
	const struct model *model = build->model;
	struct map known = {0}, armed = {0};

	for (size_t i = 0; i < model->events.len; i++) {
		const struct model_event *event = &model->events.data[i];
		unsigned kind = timeline_site(build, event->site)->kind;
		uint32_t pid = model->threads.data[event->thread].pid;
		struct timeline_values values;

		if (kind != TIMELINE_SITE_LAUNCH && kind != TIMELINE_SITE_SESSION)
			continue;
		if (map_get(&known, pid) == MAP_NONE) {
			map_put(&known, pid, 1);
			vec_add(&build->armings, (struct timeline_arming){pid, 0});
		}
		if (kind == TIMELINE_SITE_LAUNCH)
			continue;
		timeline_values_read(build, event->site, event->frame, &values);
		if (!state_is(&values, "armed"))
			continue;
		if (map_get(&armed, pid) != MAP_NONE)
			vec_add(&build->armings, (struct timeline_arming){pid, event->ts});
		map_put(&armed, pid, 1);
	}
	if (build->armings.len)
		qsort(build->armings.data, build->armings.len, sizeof(*build->armings.data),
		      compare_armings);
	map_free(&known);
	map_free(&armed);
}

uint32_t timeline_arming_at(const struct timeline_build *build, uint32_t pid, uint64_t ts)
{
	size_t after = lower_bound(
		build->armings.len, i,
		build->armings.data[i].pid < pid ||
			(build->armings.data[i].pid == pid && build->armings.data[i].ts <= ts));

	return after && build->armings.data[after - 1].pid == pid ? (uint32_t)after - 1
								  : MODEL_NONE;
}

/* ---- all of them ---- */

static void scan_event(struct launch_scan *scan, uint32_t index)
{
	const struct model *model = scan->build->model;
	const struct model_event *event = &model->events.data[index];

	switch (timeline_site(scan->build, event->site)->kind) {
	case TIMELINE_SITE_LAUNCH:
		launch_add(scan, index);
		return;
	case TIMELINE_SITE_CAPTURE:
		capture_add(scan->build, index);
		return;
	case TIMELINE_SITE_SESSION:
		session_add(scan->build, index);
		return;
	default:
		if (model_site(model, event->site)->role == SITE_ROLE_LAUNCH)
			scan->threads[event->thread].event = index;
	}
}

void timeline_launches_load(struct timeline_build *build)
{
	const struct model *model = build->model;
	struct launch_scan scan = {build, memory_zeroed(model->threads.len, sizeof(*scan.threads))};
	size_t span = 0, event = 0;

	armings_find(build);
	for (size_t i = 0; i < model->threads.len; i++)
		scan.threads[i].event = MODEL_NONE;
	while (event < model->events.len) {
		if (span < model->spans.len &&
		    model->spans.data[span].start_ts <= model->events.data[event].ts)
			scan_span(&scan, (uint32_t)span++);
		else
			scan_event(&scan, (uint32_t)event++);
	}
	for (size_t i = 0; i < model->threads.len; i++)
		vec_free(&scan.threads[i].open);
	free(scan.threads);
}
