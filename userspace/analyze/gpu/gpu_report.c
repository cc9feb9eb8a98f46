// SPDX-License-Identifier: Apache-2.0
#include "analyze/gpu/gpu_report.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/gpu/gpu_report_internal.h"
#include "util/memory.h"

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * When a tracer ends before libwaffle-gpu has delivered the last operations, the last launches of a
 * process have none. Returns when the first of these was, for each session of the timeline;
 * UINT64_MAX: there are none, or the session's end is known.
 */
static uint64_t *known_until(const struct gpu_timeline *timeline)
{
	uint64_t *until = memory_get(timeline->sessions.len * sizeof(*until));
	bool *found = memory_zeroed(timeline->sessions.len, sizeof(*found));
	size_t left = timeline->sessions.len;

	memset(until, 0xff, timeline->sessions.len * sizeof(*until));
	for (size_t i = timeline->launches.len; i-- && left;) {
		const struct gpu_timeline_launch *launch = &timeline->launches.data[i];
		const struct gpu_timeline_session *session =
			gpu_timeline_session(timeline, gpu_launch_pid(timeline, launch));
		size_t at = session ? (size_t)(session - timeline->sessions.data) : 0;

		if (!session || found[at])
			continue;
		if (gpu_launch_op_count(launch) || session->disarmed_ts != UINT64_MAX) {
			found[at] = true;
			left--;
		} else {
			until[at] = launch->ts;
		}
	}
	free(found);
	return until;
}

/* Before its process recorded GPU times nothing is known of a device. */
static void window_find(struct gpu_report *report, uint32_t device, const uint64_t *until,
			const struct gpu_report_options *options)
{
	const struct gpu_timeline *timeline = report->timeline;
	const struct gpu_timeline_session *session =
		gpu_timeline_session(timeline, timeline->devices.data[device].pid);
	struct gpu_device_report *to = &report->devices[device];

	to->from_ts = later(timeline->model->threads_start_ts, options->from_ts);
	to->to_ts = earlier(timeline->model->threads_end_ts, options->to_ts);
	if (session) {
		to->from_ts = later(to->from_ts, session->armed_ts);
		to->to_ts = earlier(to->to_ts, session->disarmed_ts);
		to->to_ts = earlier(to->to_ts, until[session - timeline->sessions.data]);
	}
	to->to_ts = later(to->from_ts, to->to_ts);
}

struct gpu_report *gpu_report_new(const struct gpu_timeline *timeline,
				  const struct gpu_report_options *options)
{
	struct gpu_report *report = memory_zeroed(1, sizeof(*report));
	uint64_t *until = known_until(timeline);

	report->timeline = timeline;
	report->devices = memory_zeroed(timeline->devices.len, sizeof(*report->devices));
	report->streams = memory_zeroed(timeline->streams.len, sizeof(*report->streams));
	for (uint32_t i = 0; i < timeline->devices.len; i++) {
		window_find(report, i, until, options);
		gpu_busy_report(report, i, options->stretches);
	}
	free(until);
	gpu_states_report(report);
	gpu_sums_report(report);
	gpu_memory_report(report);
	gpu_paths_find(report, options->pieces);
	return report;
}

void gpu_report_free(struct gpu_report *report)
{
	if (!report)
		return;
	for (size_t i = 0; i < report->timeline->devices.len; i++) {
		vec_free(&report->devices[i].levels);
		vec_free(&report->devices[i].kernels);
		vec_free(&report->devices[i].copies);
		vec_free(&report->devices[i].sets);
		vec_free(&report->devices[i].spans);
		vec_free(&report->devices[i].starved);
	}
	for (size_t i = 0; i < report->paths.len; i++) {
		vec_free(&report->paths.data[i].pieces);
		vec_free(&report->paths.data[i].sums);
	}
	vec_free(&report->paths);
	vec_free(&report->memory);
	free(report->devices);
	free(report->streams);
	free(report);
}
