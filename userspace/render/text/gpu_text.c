// SPDX-License-Identifier: Apache-2.0
#include "render/text/gpu_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/gpu/gpu_starved.h"
#include "render/gpu_texts.h"
#include "render/text/notices.h"
#include "util/memory.h"
#include "util/template_fold.h"
#include "util/terminal.h"
#include "util/units.h"

#define NAME_COLUMNS 44
/* Kernels of a library differ in the arguments of their templates, so their names stand last and
 * have more room. */
#define LAST_COLUMNS 130

struct gpu_printer {
	const struct gpu_report *report;
	const struct gpu_view *view;
	FILE *out;
};

static void put_heading(const struct gpu_printer *printer, const char *name, const char *columns)
{
	terminal_paint(printer->out, printer->view->colour, TERMINAL_BOLD);
	fprintf(printer->out, "\n%-*s%s", NAME_COLUMNS, name, columns);
	terminal_paint(printer->out, printer->view->colour, TERMINAL_END);
	fputc('\n', printer->out);
}

/* Prints at most `room` characters of a name. Returns their number. */
static int put_cut(const struct gpu_printer *printer, const char *whole, unsigned room)
{
	char *name = template_fold(whole, room);
	size_t len = 0;
	int columns;

	for (unsigned i = 0; name[len] && i < room; i++)
		len += terminal_char(name + len, strlen(name + len)).bytes;
	columns = terminal_put(printer->out, name, len);
	if (name[len]) {
		fputs("…", printer->out);
		columns++;
	}
	free(name);
	return columns;
}

static void put_name(const struct gpu_printer *printer, const char *name)
{
	int columns;

	fputs("  ", printer->out);
	columns = put_cut(printer, name, NAME_COLUMNS - 4);
	fprintf(printer->out, "%*s", columns < NAME_COLUMNS - 2 ? NAME_COLUMNS - 2 - columns : 0,
		"");
}

static void put_last(const struct gpu_printer *printer, const char *name)
{
	fputs("  ", printer->out);
	put_cut(printer, name, LAST_COLUMNS);
	fputc('\n', printer->out);
}

static void put_title(const struct gpu_printer *printer, const char *name, const char *columns)
{
	terminal_paint(printer->out, printer->view->colour, TERMINAL_BOLD);
	fprintf(printer->out, "\n%s\n%s", name, columns);
	terminal_paint(printer->out, printer->view->colour, TERMINAL_END);
	fputc('\n', printer->out);
}

static void put_duration(const struct gpu_printer *printer, uint64_t ns)
{
	char text[UNITS_TEXT];

	terminal_put_cell(printer->out, 11, units_format_duration(text, ns));
}

static void put_count(const struct gpu_printer *printer, uint64_t count)
{
	char text[UNITS_TEXT];

	terminal_put_cell(printer->out, 11, units_format_count(text, count));
}

static void put_share(const struct gpu_printer *printer, uint64_t part, uint64_t whole)
{
	char text[UNITS_TEXT];

	terminal_put_cell(printer->out, 9, units_format_share(text, part, whole));
}

static size_t rows_shown(const struct gpu_printer *printer, size_t rows)
{
	return printer->view->rows && printer->view->rows < rows ? printer->view->rows : rows;
}

static void put_rest(const struct gpu_printer *printer, size_t rows)
{
	size_t shown = rows_shown(printer, rows);

	if (shown < rows)
		fprintf(printer->out, "  … %zu more; --top 0 shows all\n", rows - shown);
}

static void put_line(const struct gpu_printer *printer, const char *name, uint64_t ns,
		     uint64_t whole)
{
	put_name(printer, name);
	put_duration(printer, ns);
	put_share(printer, ns, whole);
	fputc('\n', printer->out);
}

/* ---- a device ---- */

static void print_sums(const struct gpu_printer *printer, const char *heading, const gpu_sums *sums,
		       uint64_t window, bool bytes)
{
	if (!sums->len)
		return;
	put_title(printer, heading,
		  bytes ? "      count      total    share      bytes      per s"
			: "      count      total    share       mean        max");
	for (size_t i = 0; i < rows_shown(printer, sums->len); i++) {
		const struct gpu_sum *sum = &sums->data[i];
		char text[UNITS_TEXT];

		put_count(printer, sum->count);
		put_duration(printer, sum->total_ns);
		put_share(printer, sum->total_ns, window);
		if (bytes) {
			terminal_put_cell(printer->out, 11, units_format_bytes(text, sum->bytes));
			terminal_put_cell(
				printer->out, 11,
				sum->total_ns
					? units_format_bytes(
						  text, (uint64_t)((double)sum->bytes /
								   (double)sum->total_ns * 1e9))
					: "-");
		} else {
			put_duration(printer, sum->total_ns / sum->count);
			put_duration(printer, sum->max_ns);
		}
		put_last(printer, sum->name);
	}
	put_rest(printer, sums->len);
}

static void print_idle(const struct gpu_printer *printer, const struct gpu_device_report *device)
{
	uint64_t window = device->to_ts - device->from_ts;

	put_heading(printer, "IDLE, UNTIL THE NEXT OPERATION BEGAN", "       time    share");
	for (unsigned i = 0; i < GPU_IDLE_COUNT; i++)
		if (i != GPU_IDLE_UNKNOWN || device->idle_ns[i])
			put_line(printer, gpu_idle_texts[i], device->idle_ns[i], window);
}

static void print_levels(const struct gpu_printer *printer, const struct gpu_device_report *device)
{
	put_heading(printer, "OPERATIONS AT A TIME", "       time    share");
	for (size_t i = 0; i < rows_shown(printer, device->levels.len); i++) {
		char text[UNITS_TEXT];

		put_line(printer, units_format_count(text, device->levels.data[i].level),
			 device->levels.data[i].ns, device->to_ts - device->from_ts);
	}
	put_rest(printer, device->levels.len);
}

static void print_stream(const struct gpu_printer *printer, uint32_t index, uint64_t window)
{
	const struct gpu_stream_report *stream = &printer->report->streams[index];
	char text[UNITS_TEXT];

	snprintf(text, sizeof(text), "%" PRIu64,
		 printer->report->timeline->streams.data[index].number);
	put_name(printer, text);
	put_count(printer, stream->operations);
	terminal_put_cell(printer->out, 8, units_format_count(text, stream->queue_max));
	for (unsigned state = 0; state < GPU_STATE_COUNT; state++)
		put_share(printer, stream->state_ns[state], window);
	fputc('\n', printer->out);
}

/* Streams that only have synchronisations, or nothing in the window, would be rows of zeros. */
static void print_streams(const struct gpu_printer *printer, const struct gpu_timeline_device *at,
			  const struct gpu_device_report *device)
{
	uint64_t window = device->to_ts - device->from_ts;
	size_t used = 0, shown = 0;
	char text[UNITS_TEXT];

	for (uint32_t i = 0; i < at->stream_count; i++)
		used += printer->report->streams[at->stream + i].operations > 0;
	put_heading(printer, "STREAMS",
		    " operations   queue     idle   queued  running  waiting complete");
	for (uint32_t i = 0; i < at->stream_count && shown < rows_shown(printer, used); i++) {
		if (!printer->report->streams[at->stream + i].operations)
			continue;
		print_stream(printer, at->stream + i, window);
		shown++;
	}
	put_rest(printer, used);
	if (used < at->stream_count)
		fprintf(printer->out, "  %s %s without operations in this time\n",
			units_format_count(text, at->stream_count - used),
			units_plural(at->stream_count - used, "stream", "streams"));
}

static void print_numbers(const struct gpu_printer *printer, const struct gpu_device_report *device)
{
	uint64_t window = device->to_ts - device->from_ts;
	char text[UNITS_TEXT], more[UNITS_TEXT], most[UNITS_TEXT];

	fprintf(printer->out, "  busy %s", units_format_share(text, device->busy_ns, window));
	fprintf(printer->out, " of %s", units_format_duration(text, window));
	fprintf(printer->out, ", %s %s, at most %s at a time\n",
		units_format_count(text, device->operations),
		units_plural(device->operations, "operation", "operations"),
		units_format_count(more, device->max_concurrency));
	if (device->launches)
		fprintf(printer->out,
			"  from the launch to the begin: median %s, 99 %% within %s, at most %s; "
			"at most %" PRIu32 " %s queued on a stream\n",
			units_format_duration(text, device->delay_p50_ns),
			units_format_duration(more, device->delay_p99_ns),
			units_format_duration(most, device->delay_max_ns), device->queue_max,
			units_plural(device->queue_max, "launch", "launches"));
	if (device->comm_ns)
		fprintf(printer->out,
			"  communication %s, of which %s without another kernel beside it\n",
			units_format_duration(text, device->comm_ns),
			units_format_duration(more, device->exposed_ns));
}

static void print_device(const struct gpu_printer *printer, uint32_t index)
{
	const struct gpu_timeline *timeline = printer->report->timeline;
	const struct gpu_timeline_device *at = &timeline->devices.data[index];
	const struct gpu_device_report *device = &printer->report->devices[index];
	uint64_t window = device->to_ts - device->from_ts;

	terminal_paint(printer->out, printer->view->colour, TERMINAL_BOLD);
	fprintf(printer->out, "%sGPU %" PRIu64 " of process %" PRIu32, index ? "\n\n" : "",
		at->number, model_pid_real(timeline->model, at->pid));
	terminal_paint(printer->out, printer->view->colour, TERMINAL_END);
	fputc('\n', printer->out);
	print_numbers(printer, device);
	print_sums(printer, "KERNELS", &device->kernels, window, false);
	print_sums(printer, "COPIES", &device->copies, window, true);
	print_sums(printer, "SETS", &device->sets, window, true);
	print_sums(printer, "SPANS THAT LAUNCHED THEM", &device->spans, window, false);
	print_idle(printer, device);
	print_levels(printer, device);
	print_streams(printer, at, device);
}

/* ---- the host ---- */

/* Only the longest launch-starved times are explained, which may be a small part of all. */
static void put_explained(const struct gpu_printer *printer, uint64_t explained, uint64_t ns)
{
	char some[UNITS_TEXT], all[UNITS_TEXT], time[UNITS_TEXT];
	uint64_t count = 0;

	for (uint32_t i = 0; i < printer->report->timeline->devices.len; i++)
		count += printer->report->devices[i].starved_count;
	if (explained < count)
		fprintf(printer->out,
			"  explained: the longest %s of %s launch-starved times, together %s\n",
			units_format_count(some, explained), units_format_count(all, count),
			units_format_duration(time, ns));
}

static void print_starved(const struct gpu_printer *printer)
{
	const struct why *why = printer->view->why;
	gpu_causes sums = {0};
	uint64_t total = 0;

	if (!printer->report->timeline->model->sched)
		fputs("\n" GPU_TEXT_NO_SCHED "\n", printer->out);
	if (!why || !why->instances.len)
		return;
	gpu_starved_causes(why, &sums);
	for (size_t i = 0; i < sums.len; i++)
		total += sums.data[i].ns;
	put_heading(printer, "WHILE NOTHING WAS LAUNCHED, THE THREAD", "       time    share");
	for (size_t i = 0; i < rows_shown(printer, sums.len); i++) {
		const struct why_part *part = &why->parts.data[sums.data[i].part];
		const char *object = strtab_get(why->texts, part->object);

		put_name(printer, why_causes[sums.data[i].cause].text);
		put_duration(printer, sums.data[i].ns);
		put_share(printer, sums.data[i].ns, total);
		fputs("  ", printer->out);
		if (part->thread != MODEL_NONE) {
			const char *name = model_thread_name(why->model, part->thread);

			terminal_put(printer->out, name, strlen(name));
			fputc(' ', printer->out);
		}
		put_cut(printer, object, LAST_COLUMNS);
		fprintf(printer->out, " (%s)\n", why_grade_names[part->grade]);
	}
	put_rest(printer, sums.len);
	put_explained(printer, why->instances.len, total);
	vec_free(&sums);
}

static void print_path(const struct gpu_printer *printer, const struct gpu_path *path)
{
	const struct gpu_timeline *timeline = printer->report->timeline;

	if (timeline->devices.len > 1)
		fprintf(printer->out, "\nProcess %" PRIu32 ":",
			model_pid_real(timeline->model, path->pid));
	put_title(printer, "CRITICAL PATH", "      count      total    share");
	for (size_t i = 0; i < rows_shown(printer, path->sums.len); i++) {
		const struct gpu_path_sum *sum = &path->sums.data[i];

		put_count(printer, sum->count);
		put_duration(printer, sum->total_ns);
		put_share(printer, sum->total_ns, path->to_ts - path->from_ts);
		fprintf(printer->out, "  %s", gpu_piece_texts[sum->kind]);
		put_cut(printer, sum->name, LAST_COLUMNS);
		fputs(sum->span ? " in " : "", printer->out);
		if (sum->span)
			terminal_put(printer->out, sum->span, strlen(sum->span));
		fputc('\n', printer->out);
	}
	put_rest(printer, path->sums.len);
}

/* Prints what is unknown. With it, the critical paths might be others. */
static void print_path_unknown(const struct gpu_printer *printer)
{
	const struct gpu_timeline *timeline = printer->report->timeline;
	char count[UNITS_TEXT];
	bool streams = !timeline->ordered && timeline->streams.len > 1;

	if (!printer->report->paths.len ||
	    (!timeline->unknown_waits && !streams && timeline->model->sched))
		return;
	fputc('\n', printer->out);
	if (timeline->unknown_waits)
		fprintf(printer->out, "what %s %s\n",
			units_format_count(count, timeline->unknown_waits),
			units_plural(timeline->unknown_waits,
				     "call of the host waited for is unknown: it counts as time of "
				     "its thread",
				     "calls of the host waited for is unknown: they count as time "
				     "of their threads"));
	if (streams)
		fputs("what streams waited for is unknown: the calls of CUDA were not recorded\n",
		      printer->out);
	if (!timeline->model->sched)
		fputs("the wakers of threads are unknown: the scheduler was not recorded\n",
		      printer->out);
}

static void print_memory(const struct gpu_printer *printer)
{
	for (size_t i = 0; i < printer->report->memory.len; i++) {
		const struct gpu_memory *memory = &printer->report->memory.data[i];
		char count[UNITS_TEXT], peak[UNITS_TEXT], end[UNITS_TEXT];

		if (!memory->allocations)
			continue;
		fprintf(printer->out,
			"%sProcess %" PRIu32 " allocated GPU memory %s times: at most %s, %s at "
			"the end\n",
			i ? "" : "\n",
			model_pid_real(printer->report->timeline->model, memory->pid),
			units_format_count(count, memory->allocations),
			units_format_bytes(peak, memory->peak_bytes),
			units_format_bytes(end, memory->end_bytes));
	}
}

/* ---- what is missing ---- */

static void print_problems(const struct gpu_printer *printer)
{
	uint64_t error_ns = gpu_clock_error_max(printer->report->timeline);
	char problems[GPU_PROBLEMS][GPU_PROBLEM_TEXT];
	size_t count = gpu_problems(printer->report->timeline, problems);
	char text[UNITS_TEXT];

	fputc('\n', printer->out);
	if (error_ns)
		fprintf(printer->out, GPU_TEXT_CLOCK "\n", units_format_duration(text, error_ns));
	for (size_t i = 0; i < count; i++) {
		terminal_paint(printer->out, printer->view->colour, TERMINAL_WARN);
		fprintf(printer->out, "%s\n", problems[i]);
		terminal_paint(printer->out, printer->view->colour, TERMINAL_END);
	}
}

void gpu_print_text(const struct gpu_report *report, const struct gpu_view *view, FILE *out)
{
	const struct gpu_printer printer = {report, view, out};

	notice_put_simulated(out, report->timeline->model);
	for (uint32_t i = 0; i < report->timeline->devices.len; i++)
		print_device(&printer, i);
	print_starved(&printer);
	for (size_t i = 0; i < report->paths.len; i++)
		print_path(&printer, &report->paths.data[i]);
	print_path_unknown(&printer);
	print_memory(&printer);
	print_problems(&printer);
}
