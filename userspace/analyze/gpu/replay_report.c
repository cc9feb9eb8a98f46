// SPDX-License-Identifier: Apache-2.0
#include "analyze/gpu/replay_report.h"

#include <math.h>
#include <stdlib.h>

#include "util/memory.h"

/* Beyond it, sums of times could overflow. */
#define YEAR_NS 31556952000000000ull

const char *const replay_mode_names[REPLAY_MODE_COUNT] = {
	[REPLAY_FULL] = "full",
	[REPLAY_PARTIAL] = "partial",
	[REPLAY_STREAM] = "stream",
	[REPLAY_DRY_RUN] = "dry-run",
};

static enum replay_mode mode_of(const struct replay_part *part, bool dry_run)
{
	if (dry_run)
		return REPLAY_DRY_RUN;
	if (part->stream.given)
		return REPLAY_STREAM;
	return replay_part_is_all(part) ? REPLAY_FULL : REPLAY_PARTIAL;
}

/* From the first start to the last end of nodes, as recorded. `selected` NULL: of all. */
static uint64_t recorded_ns(const struct replay_graph *graph, const bool *selected)
{
	uint64_t from_ts = UINT64_MAX, to_ts = 0;

	for (size_t i = 0; i < graph->nodes.len; i++) {
		const struct replay_node *node = &graph->nodes.data[i];

		if (selected && !selected[i])
			continue;
		from_ts = node->start_ts < from_ts ? node->start_ts : from_ts;
		if (node->start_ts + node->dur_ns > to_ts)
			to_ts = node->start_ts + node->dur_ns;
	}
	return from_ts < to_ts ? to_ts - from_ts : 0;
}

/* A dry run executes nothing. */
static void totals_count(struct replay_report *report)
{
	const struct replay_graph *graph = &report->build->graph;
	struct replay_result *result = &report->result;

	for (size_t i = 0; i < graph->nodes.len; i++) {
		if (report->selected && !report->selected[i])
			continue;
		result->nodes_total++;
		result->operations_total += graph->nodes.data[i].is_operation;
	}
	result->measured_ns = recorded_ns(graph, report->selected);
}

static uint64_t scaled(uint64_t ns, double by)
{
	double result = (double)ns * by;

	return result <= 0 ? 0 : (uint64_t)llround(result);
}

static int row_add(struct replay_report *report, const struct replay_what_if *what_if,
		   struct error *err)
{
	struct replay_answer answer;
	double error = fabs(report->error);
	struct replay_row row = {.what_if = what_if};
	int result = replay_what_if_run(report->build, what_if, report->selected, &answer, err);

	if (result)
		return result;
	if (answer.result.replayed_ns > YEAR_NS) {
		replay_result_free(&answer.result);
		return error_set(err, ERANGE, "--what-if: '%s' would take more than a year",
				 what_if->text);
	}
	row.unmodified_ns = scaled(answer.result.measured_ns, 1 + report->error);
	row.matched = answer.matched;
	row.untimed = answer.untimed;
	row.replayed_ns = answer.result.replayed_ns;
	row.low_ns = scaled(row.replayed_ns, 1 - error);
	row.high_ns = scaled(row.replayed_ns, 1 + error);
	row.change =
		row.unmodified_ns ? (double)row.replayed_ns / (double)row.unmodified_ns - 1 : 0;
	vec_add(&report->rows, row);
	replay_result_free(&answer.result);
	return 0;
}

/* A wait for something unknown keeps its recorded time, whatever a what-if changes. With many such
 * waits a what-if is a guess. */
static int waits_check(const struct replay_report *report, struct error *err)
{
	const struct gpu_timeline *timeline = report->build->timeline;
	uint64_t all_ns;
	double share;

	/* Of a stream alone, no calls of the host are replayed. */
	if (report->mode == REPLAY_STREAM || !timeline->unknown_waits)
		return 0;
	all_ns = recorded_ns(&report->build->graph, NULL);
	share = all_ns ? (double)timeline->unknown_wait_ns / (double)all_ns : 0;
	if (share <= REPLAY_ERROR_MAX)
		return 0;
	return error_set(err, EDOM,
			 "calls of the host waited for unknown operations of the GPU during %.0f "
			 "%% of the time, so that what-ifs would be guesses; record the calls of "
			 "CUDA, too (--sources cuda)",
			 share * 100);
}

int replay_report_run(struct replay_report *report, const struct replay_build *build,
		      const struct replay_part *part, bool dry_run,
		      const struct replay_what_if *what_ifs, size_t count, struct error *err)
{
	struct replay_change change = {.cut = build->cut};
	int result;

	*report = (struct replay_report){.build = build, .mode = mode_of(part, dry_run)};
	result = replay_part_select(build, part, &report->selected, err);
	if (result)
		return result;
	report->dependencies = replay_check(&build->graph, report->selected, &report->violations);
	if (dry_run) {
		totals_count(report);
		return 0;
	}
	change.selected = report->selected;
	replay_run(&build->graph, &change, &report->result);
	report->error = replay_error(&report->result);
	if (count && fabs(report->error) > REPLAY_ERROR_MAX)
		return error_set(err, EDOM,
				 "the unmodified replay differs from the measured time by %+.1f "
				 "%%, and above %.0f %% what-ifs would be guesses; docs/replay.md "
				 "says why that may be",
				 report->error * 100, REPLAY_ERROR_MAX * 100);
	if (count)
		result = waits_check(report, err);
	for (size_t i = 0; i < count && !result; i++)
		result = row_add(report, &what_ifs[i], err);
	return result;
}

int replay_report_on_gpu(struct replay_report *report, struct error *err)
{
	int result = replay_device_run(report->build, report->selected, &report->device, err);

	report->on_gpu = !result;
	return result;
}

double replay_report_device_error(const struct replay_report *report)
{
	uint64_t measured_ns = report->result.measured_ns;

	return measured_ns ? (double)report->device.ns / (double)measured_ns - 1 : 0;
}

void replay_report_free(struct replay_report *report)
{
	free(report->selected);
	replay_result_free(&report->result);
	vec_free(&report->violations);
	vec_free(&report->rows);
}

bool replay_report_deterministic(const struct replay_report *report)
{
	const struct replay_result *result = &report->result;

	return !report->violations.len &&
	       (report->mode == REPLAY_DRY_RUN || result->nodes_executed == result->nodes_total);
}
