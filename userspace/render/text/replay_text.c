// SPDX-License-Identifier: Apache-2.0
#include "render/text/replay_text.h"

#include <inttypes.h>
#include <string.h>

#include "analyze/gpu/replay.h"
#include "analyze/gpu/replay_device.h"
#include "model/gpu/gpu_op_kind.h"
#include "model/gpu/gpu.h"
#include "render/text/notices.h"
#include "util/terminal.h"
#include "util/units.h"

#define VIOLATIONS_SHOWN 10
#define SPREAD_SHOWN 10
#define NAME_COLUMNS 40

/* ---- parts of lines ---- */

static void put_text(FILE *out, const char *text)
{
	terminal_put(out, text, strlen(text));
}

static void put_duration(FILE *out, uint64_t ns)
{
	char text[UNITS_TEXT];

	fputs(units_format_duration(text, ns), out);
}

static void put_count(FILE *out, uint64_t count)
{
	char text[UNITS_TEXT];

	fputs(units_format_count(text, count), out);
}

static void put_cell(FILE *out, uint32_t width, uint64_t ns)
{
	char text[UNITS_TEXT];

	terminal_put_cell(out, width, units_format_duration(text, ns));
}

static void put_heading(FILE *out, bool colour, const char *text)
{
	terminal_paint(out, colour, TERMINAL_BOLD);
	fputs(text, out);
	terminal_paint(out, colour, TERMINAL_END);
	fputc('\n', out);
}

/* A signed share. One that is rounded to 0 is +0, not -0. */
static double percent(double share, double half_a_digit)
{
	double value = share * 100;

	return value > -half_a_digit && value < 0 ? 0 : value;
}

/* A name in a column, cut if it is longer. */
static void put_name(FILE *out, const char *text)
{
	size_t len = strlen(text), at = 0;
	uint32_t columns = 0;

	while (at < len && columns < NAME_COLUMNS - 1) {
		struct terminal_char one = terminal_char(text + at, len - at);

		fwrite(one.shown, 1, one.shown_bytes, out);
		at += one.bytes;
		columns++;
	}
	if (at < len) {
		fputs("…", out);
		columns++;
	}
	fprintf(out, "%*s", (int)(NAME_COLUMNS - columns), "");
}

/* ---- replay ---- */

static void put_op(FILE *out, const struct gpu_timeline *timeline, const struct gpu_timeline_op *op)
{
	const struct gpu_timeline_stream *stream = &timeline->streams.data[op->stream];

	put_text(out, gpu_timeline_name(timeline, op));
	fprintf(out, " (stream %" PRIu64 " of GPU %" PRIu64 ")", stream->number,
		timeline->devices.data[stream->device].number);
}

static void put_node(FILE *out, const struct replay_build *build, uint32_t node)
{
	const struct gpu_timeline *timeline = build->timeline;
	struct replay_origin origin = build->origins.data[node];

	switch (origin.kind) {
	case REPLAY_ORIGIN_LAUNCH:
		fputs("a launch", out);
		break;
	case REPLAY_ORIGIN_MEETING:
		fputs("a collective", out);
		break;
	case REPLAY_ORIGIN_SYNC:
		put_text(out,
			 gpu_timeline_sync_name(timeline, &timeline->syncs.data[origin.index]));
		break;
	default:
		put_op(out, timeline, &timeline->ops.data[origin.index]);
		break;
	}
	fputs(" at ", out);
	put_duration(out, build->graph.nodes.data[node].start_ts - timeline->model->start_ts);
}

static void put_violations(const struct replay_report *report, FILE *out)
{
	size_t shown = report->violations.len;
	char more[UNITS_TEXT];

	if (shown > VIOLATIONS_SHOWN)
		shown = VIOLATIONS_SHOWN;
	for (size_t i = 0; i < shown; i++) {
		const struct replay_violation *violation = &report->violations.data[i];

		fputs("  ", out);
		put_node(out, report->build, violation->to);
		fputs(" began ", out);
		put_duration(out, violation->early_ns);
		fputs(" before it could, after ", out);
		put_node(out, report->build, violation->from);
		fputc('\n', out);
	}
	if (shown < report->violations.len)
		fprintf(out, "  …%s\n", units_format_more(more, report->violations.len - shown));
}

static void put_order(const struct replay_report *report, FILE *out)
{
	fputs("order     ", out);
	put_count(out, report->dependencies);
	fputs(units_plural(report->dependencies, " dependency, ", " dependencies, "), out);
	if (report->violations.len) {
		put_count(out, report->violations.len);
		fputs(" violated:\n", out);
		put_violations(report, out);
	} else {
		fputs("all in order\n", out);
	}
}

static void put_waits(const struct gpu_timeline *timeline, FILE *out)
{
	if (!timeline->unknown_waits)
		return;
	fputs("waits     ", out);
	put_count(out, timeline->unknown_waits);
	fputs(units_plural(timeline->unknown_waits, " call of the host waited ",
			   " calls of the host waited "),
	      out);
	put_duration(out, timeline->unknown_wait_ns);
	fputs(" for unknown operations of the GPU\n", out);
}

static void put_rows(const struct replay_report *report, bool colour, FILE *out)
{
	if (!report->rows.len)
		return;
	fputc('\n', out);
	put_heading(out, colour,
		    "what if                                     replayed    at least     at most  "
		    " change");
	for (size_t i = 0; i < report->rows.len; i++) {
		const struct replay_row *row = &report->rows.data[i];

		put_name(out, row->what_if->text);
		put_cell(out, 12, row->replayed_ns);
		put_cell(out, 12, row->low_ns);
		put_cell(out, 12, row->high_ns);
		fprintf(out, "  %+6.1f %%  (", percent(row->change, 0.05));
		put_count(out, row->matched);
		fputs(" changed", out);
		if (row->untimed) {
			fputs(", ", out);
			put_count(out, row->untimed);
			fputs(" not: their time is unknown", out);
		}
		fputs(")\n", out);
	}
}

static void put_on_gpu(const struct replay_report *report, FILE *out)
{
	const struct replay_device_result *device = &report->device;

	fputs("on GPU    ", out);
	put_duration(out, device->ns);
	fprintf(out, ", error %+.2f %% (", percent(replay_report_device_error(report), 0.005));
	put_text(out, device->name);
	if (device->simulated)
		fputs(", simulated", out);
	fputs(")\n", out);
}

void replay_print_text(const struct replay_report *report, bool colour, FILE *out)
{
	const struct replay_result *result = &report->result;

	if (report->build->timeline->simulated)
		notice_put_simulated(out, report->build->timeline->model);
	put_count(out, result->operations_total);
	fputs(units_plural(result->operations_total, " operation and ", " operations and "), out);
	put_count(out, result->nodes_total - result->operations_total);
	fputs(units_plural(result->nodes_total - result->operations_total, " call of the host",
			   " calls of the host"),
	      out);
	if (report->build->meetings.len)
		fputs(" and arrivals at collectives", out);
	if (result->operations_executed < result->operations_total &&
	    report->mode != REPLAY_DRY_RUN) {
		fputs(", of which ", out);
		put_count(out, result->operations_executed);
		fputs(" operations were executed", out);
	}
	fputs("\nmeasured  ", out);
	put_duration(out, result->measured_ns);
	if (report->mode != REPLAY_DRY_RUN) {
		fputs("\nreplayed  ", out);
		put_duration(out, result->replayed_ns);
		fprintf(out, ", error %+.2f %%", percent(report->error, 0.005));
	}
	fputc('\n', out);
	if (report->on_gpu)
		put_on_gpu(report, out);
	put_order(report, out);
	put_waits(report->build->timeline, out);
	put_rows(report, colour, out);
}

/* ---- comparison ---- */

static void put_side(FILE *out, char which, const struct gpu_timeline *timeline, uint32_t index)
{
	static const char *const keys[] = {"grid", "block", "shared_bytes", "bytes", "kind"};
	const struct gpu_timeline_op *op;
	struct value value;

	fprintf(out, "  %c: ", which);
	if (index == MODEL_NONE) {
		fputs("no more operations\n", out);
		return;
	}
	op = &timeline->ops.data[index];
	if (strcmp(gpu_op_kind_names[op->kind], gpu_timeline_name(timeline, op)) != 0)
		fprintf(out, "%s ", gpu_op_kind_names[op->kind]);
	put_op(out, timeline, op);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (!model_gpu_value(timeline->model, MODEL_NODE_SPAN, op->span, keys[i], &value))
			continue;
		fprintf(out, ", %s ", keys[i]);
		if (value.type == WAFFLE_KEY_STR && !value.null)
			terminal_put(out, value.text, value.text_len);
		else if (value.type == WAFFLE_KEY_DIM3)
			fprintf(out, "%" PRIu32 ",%" PRIu32 ",%" PRIu32, value.dim[0], value.dim[1],
				value.dim[2]);
		else
			fprintf(out, "%" PRIu64, value.u64);
	}
	fputs(", at ", out);
	put_duration(out, op->start_ts - timeline->model->start_ts);
	fputc('\n', out);
}

static void put_divergence(const struct replay_comparison *comparison, FILE *out)
{
	const struct replay_divergence *first = &comparison->first;

	if (!comparison->diverging_streams) {
		fputs("the same operations in the same order on all streams\n", out);
		return;
	}
	put_count(out, comparison->diverging_streams);
	fputs(units_plural(comparison->diverging_streams, " stream differs", " streams differ"),
	      out);
	fprintf(out, "; first on stream number %" PRIu32 " by use, operation ", first->stream);
	put_count(out, first->position);
	fprintf(out, ": %s\n", first->what);
	put_side(out, 'A', comparison->a, first->a);
	put_side(out, 'B', comparison->b, first->b);
}

static void put_spread(const struct replay_comparison *comparison, bool colour, FILE *out)
{
	char more[UNITS_TEXT];

	if (!comparison->spread.len)
		return;
	fputc('\n', out);
	put_heading(
		out, colour,
		"equal operations                          count       A sum       B sum     B/A  "
		"largest difference");
	for (size_t i = 0; i < comparison->spread.len; i++) {
		const struct replay_spread *row = &comparison->spread.data[i];
		char count[UNITS_TEXT];

		if (i == SPREAD_SHOWN) {
			fprintf(out, "…%s\n", units_format_more(more, comparison->spread.len - i));
			break;
		}
		put_name(out, row->name);
		terminal_put_cell(out, 7, units_format_count(count, row->count));
		put_cell(out, 12, row->a_ns);
		put_cell(out, 12, row->b_ns);
		if (row->a_ns)
			fprintf(out, "  %6.2f", (double)row->b_ns / (double)row->a_ns);
		else
			fputs("       -", out);
		put_cell(out, 12, row->max_diff_ns);
		fputc('\n', out);
	}
}

static void put_total(FILE *out, const char *before, uint64_t ops, uint32_t streams)
{
	fputs(before, out);
	put_count(out, ops);
	fputs(units_plural(ops, " operation on ", " operations on "), out);
	put_count(out, streams);
	fputs(units_plural(streams, " stream", " streams"), out);
}

void replay_print_comparison_text(const struct replay_comparison *comparison, bool colour,
				  FILE *out)
{
	if (comparison->a->simulated)
		notice_put_simulated(out, comparison->a->model);
	else if (comparison->b->simulated)
		notice_put_simulated(out, comparison->b->model);
	put_total(out, "A: ", comparison->ops_a, comparison->streams_a);
	put_total(out, "; B: ", comparison->ops_b, comparison->streams_b);
	fputc('\n', out);
	put_divergence(comparison, out);
	put_spread(comparison, colour, out);
}
