// SPDX-License-Identifier: Apache-2.0
/*
 * Launches: which calls gave work to the GPU. libwaffle-gpu records a `launch` from within the
 * call, so on the same thread the probes have recorded the call just before (an event), or its span
 * is open.
 */
#include <stdlib.h>
#include <string.h>

#include "model/gpu/gpu_records.h"
#include "model/gpu/gpu_timeline_internal.h"
#include "model/order.h"
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
	/* The records of the launches, by ts. The launches overwrite those that were read. */
	const char *records;
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

/* Finds the call that a `launch` is part of: of the open calls and the last launching one, that
 * which began last. */
static void launch_find_host(struct launch_scan *scan, struct gpu_timeline_launch *launch,
			     uint32_t parent)
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
	launch->span = gpu_timeline_program_span(scan->build->timeline, around);
	if (launch->span == MODEL_NONE)
		launch->span = gpu_timeline_program_span(scan->build->timeline, parent);
}

/* The runtime calls the driver within one call, and a recorder may report both with one id. */
static bool is_nested(const struct timeline_build *build, uint32_t known,
		      const struct gpu_timeline_launch *launch)
{
	size_t count = build->timeline->launches.len;

	return known + 1 == count && build->timeline->launches.data[known].thread == launch->thread;
}

static struct gpu_record_launch launch_record(const struct launch_scan *scan, size_t index)
{
	struct gpu_record_launch record;

	memcpy(&record, scan->records + index * sizeof(record), sizeof(record));
	return record;
}

/* The span around a launch, as the program declared it. */
static uint32_t launch_parent(const struct model *model, const struct gpu_record_launch *record)
{
	if (record->event != MODEL_NONE)
		return model->events.data[record->event].parent;
	return record->parent_id ? model_span_find(model, record->parent_id) : MODEL_NONE;
}

static void launch_add(struct launch_scan *scan, size_t index)
{
	struct timeline_build *build = scan->build;
	struct gpu_record_launch record = launch_record(scan, index);
	struct gpu_timeline_launch launch = {.ts = record.ts,
					     .correlation = record.correlation,
					     .event = record.event,
					     .thread = record.thread,
					     .host_kind = MODEL_NODE_SPAN,
					     .host = MODEL_NONE,
					     .span = MODEL_NONE};
	uint32_t pid = build->model->threads.data[launch.thread].pid;
	uint32_t known, arming = timeline_arming_at(build, pid, launch.ts);
	uint32_t number = (uint32_t)build->timeline->launches.len;

	if (arming == MODEL_NONE)
		return;
	known = timeline_launch_at(&build->launch_at, arming, launch.correlation);
	if (known != MODEL_NONE && known != TIMELINE_REPEATED && is_nested(build, known, &launch))
		return;
	launch_find_host(scan, &launch, launch_parent(build->model, &record));
	timeline_launch_put(&build->launch_at, arming, launch.correlation,
			    known == MODEL_NONE ? number : TIMELINE_REPEATED);
	build->timeline->launches.data[build->timeline->launches.len++] = launch;
	if (build->handles.len)
		vec_add(&build->launch_stream, record.handle);
}

static void event_values_read(const struct timeline_build *build, const struct model_event *event,
			      struct timeline_values *values)
{
	timeline_values_read(timeline_site(build->sites, event->site),
			     model_values(build->model, event->site, event->frame), values);
}

static void capture_add(struct timeline_build *build, uint32_t index)
{
	const struct model_event *event = &build->model->events.data[index];
	struct timeline_values values;
	uint64_t key[3] = {build->model->threads.data[event->thread].pid};

	event_values_read(build, event, &values);
	if (!timeline_has(&values, TIMELINE_GRAPH_NODE))
		return;
	key[1] = timeline_has(&values, TIMELINE_GRAPH) ? values.number[TIMELINE_GRAPH] : 0;
	key[2] = values.number[TIMELINE_GRAPH_NODE];
	keymap_put(&build->captured_at, key, sizeof(key), index);
}

/* Notes which thread waits in a call. */
static void wait_add(struct timeline_build *build, uint32_t index)
{
	const struct model_event *event = &build->model->events.data[index];
	uint32_t pid = build->model->threads.data[event->thread].pid, known, correlation;
	uint32_t arming = timeline_arming_at(build, pid, event->ts);
	struct timeline_values values;

	event_values_read(build, event, &values);
	if (arming == MODEL_NONE || !timeline_has(&values, TIMELINE_CORRELATION) ||
	    values.number[TIMELINE_CORRELATION] > UINT32_MAX)
		return;
	correlation = (uint32_t)values.number[TIMELINE_CORRELATION];
	known = timeline_launch_at(&build->wait_at, arming, correlation);
	/* A call of the driver may make another one, with the same id. */
	if (known < TIMELINE_REPEATED && build->model->events.data[known].thread == event->thread)
		return;
	timeline_launch_put(&build->wait_at, arming, correlation,
			    known == MODEL_NONE ? index : TIMELINE_REPEATED);
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
	event_values_read(build, event, &values);
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

/* A process has GPU times from here on, or at least launches. */
static void arming_add(struct timeline_build *build, struct map *known, uint32_t pid, uint64_t ts)
{
	if (map_get(known, pid) == MAP_NONE || ts)
		vec_add(&build->armings, (struct timeline_arming){pid, ts});
	map_put(known, pid, 1);
}

/* Finds all processes that have a launch or a session, and when they were armed. The first arming
 * also has what came before it. */
static void armings_find(struct timeline_build *build)
{
	const struct model *model = build->model;
	struct map known = {0}, armed = {0};
	uint32_t last = MODEL_NONE; /* most launches are of the thread of the one before */

	for (size_t i = 0; i < build->records->launches.len; i++) {
		uint32_t thread = build->records->launches.data[i].thread;

		if (thread != last)
			arming_add(build, &known, model->threads.data[thread].pid, 0);
		last = thread;
	}
	for (size_t i = 0; i < model->events.len; i++) {
		const struct model_event *event = &model->events.data[i];
		uint32_t pid = model->threads.data[event->thread].pid;
		struct timeline_values values;

		if (timeline_site(build->sites, event->site)->kind != TIMELINE_SITE_SESSION)
			continue;
		arming_add(build, &known, pid, 0);
		event_values_read(build, event, &values);
		if (!state_is(&values, "armed"))
			continue;
		if (map_get(&armed, pid) != MAP_NONE)
			arming_add(build, &known, pid, event->ts);
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

	switch (timeline_site(scan->build->sites, event->site)->kind) {
	case TIMELINE_SITE_CAPTURE:
		capture_add(scan->build, index);
		return;
	case TIMELINE_SITE_SESSION:
		session_add(scan->build, index);
		return;
	case TIMELINE_SITE_WAIT:
		wait_add(scan->build, index);
		return;
	default:
		if (model_site(model, event->site)->role == SITE_ROLE_LAUNCH)
			scan->threads[event->thread].event = index;
	}
}

/* Whether a launch comes before an event of the model. At one instant the call's own event, which
 * its probe recorded at its begin, comes first. */
static bool launch_is_before(const struct model *model, const struct gpu_record_launch *launch,
			     size_t event)
{
	if (event == model->events.len)
		return true;
	if (launch->event != MODEL_NONE)
		return launch->event <= event;
	return launch->ts < model->events.data[event].ts;
}

/* Goes through spans, events and launches in order of time. */
static void launches_scan(struct launch_scan *scan, size_t count)
{
	const struct model *model = scan->build->model;
	size_t span = 0, event = 0, at = 0;

	while (at < count || event < model->events.len) {
		struct gpu_record_launch launch = {0};
		bool is_launch = false;
		uint64_t ts;

		if (at < count) {
			launch = launch_record(scan, at);
			is_launch = launch_is_before(model, &launch, event);
		}
		ts = is_launch ? launch.ts : model->events.data[event].ts;
		if (span < model->spans.len && model->spans.data[span].start_ts <= ts)
			scan_span(scan, (uint32_t)span++);
		else if (is_launch)
			launch_add(scan, at++);
		else
			scan_event(scan, (uint32_t)event++);
	}
}

/* The launches take the memory of their records: none needs more. */
void timeline_launches_load(struct timeline_build *build)
{
	const struct model *model = build->model;
	struct gpu_timeline *timeline = build->timeline;
	struct gpu_records *records = build->records;
	struct launch_scan scan = {
		.build = build,
		.threads = memory_zeroed(model->threads.len, sizeof(*scan.threads))};
	size_t count = records->launches.len;

	_Static_assert(sizeof(*records->launches.data) == sizeof(*timeline->launches.data),
		       "a launch takes the place of its record");
	armings_find(build);
	for (size_t i = 0; i < model->threads.len; i++)
		scan.threads[i].event = MODEL_NONE;
	vec_need(&records->launches, 1);
	free(order_vec(&records->launches, ts));
	scan.records = (const char *)records->launches.data;
	build->handles.data = records->handles.data;
	build->handles.len = build->handles.cap = records->handles.len;
	records->handles.data = NULL;
	records->handles.len = records->handles.cap = 0;
	if (build->handles.len)
		vec_need(&build->launch_stream, count);
	timeline->launches.data = (void *)records->launches.data;
	timeline->launches.cap = records->launches.cap;
	records->launches.data = NULL;
	records->launches.len = records->launches.cap = 0;
	launches_scan(&scan, count);
	memset(&timeline->launches.data[timeline->launches.len], 0,
	       sizeof(*timeline->launches.data));
	for (size_t i = 0; i < model->threads.len; i++)
		vec_free(&scan.threads[i].open);
	free(scan.threads);
}
