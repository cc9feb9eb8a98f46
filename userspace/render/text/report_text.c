// SPDX-License-Identifier: Apache-2.0
#include "render/text/report_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "render/disorder.h"
#include "render/place.h"
#include "render/text/hang_text.h"
#include "render/text/impaired_text_internal.h"
#include "render/text/killed_text_internal.h"
#include "render/text/notices.h"
#include "render/text/report_causes.h"
#include "render/text/report_stragglers_internal.h"
#include "render/text/values_text_internal.h"
#include "render/text/why_text.h"
#include "store/record.h"
#include "util/syscall_names.h"
#include "util/template_fold.h"
#include "util/terminal.h"
#include "util/units.h"
#include "util/utf8.h"

/* Maximum width of the column of names; longer names do not widen it. */
#define NAME_COLUMNS_MAX 40
#define CAUSES_OF_THREAD 3

struct report_printer {
	const struct report *report;
	const struct model *model;
	const struct report_view *view;
	FILE *out;
	int name_columns;
};

static int put(const struct report_printer *printer, const char *text)
{
	return terminal_put(printer->out, text, strlen(text));
}

static void paint(const struct report_printer *printer, const char *sequence)
{
	terminal_paint(printer->out, printer->view->colour, sequence);
}

/* The names of a library's kernels are mostly arguments of templates, so they are folded. */
static void put_name(const struct report_printer *printer, const char *name)
{
	char *folded = template_fold(*name ? name : "(no name)", NAME_COLUMNS_MAX);
	int columns;

	fputs("  ", printer->out);
	columns = put(printer, folded);
	free(folded);
	fprintf(printer->out, "%*s",
		columns < printer->name_columns ? printer->name_columns - columns : 0, "");
}

static void put_heading(const struct report_printer *printer, const char *name, const char *columns)
{
	paint(printer, TERMINAL_BOLD);
	fprintf(printer->out, "\n%-*s%s", printer->name_columns + 2, name, columns);
	paint(printer, TERMINAL_END);
	fputc('\n', printer->out);
}

static void put_duration(const struct report_printer *printer, uint32_t width, uint64_t ns)
{
	char text[UNITS_TEXT];

	terminal_put_cell(printer->out, width, units_format_duration(text, ns));
}

/* A time since the start of the capture. What is on a track may be before it. */
static void put_since_start(const struct report_printer *printer, uint32_t width, uint64_t ts)
{
	uint64_t start = printer->model->meta->start_ts;
	char text[UNITS_TEXT], cell[UNITS_TEXT + 1];

	snprintf(cell, sizeof(cell), "%s%s", ts < start ? "-" : "",
		 units_format_duration(text, ts < start ? start - ts : ts - start));
	terminal_put_cell(printer->out, width, cell);
}

static void put_count(const struct report_printer *printer, uint32_t width, uint64_t count)
{
	char text[UNITS_TEXT];

	terminal_put_cell(printer->out, width, units_format_count(text, count));
}

static void put_share(const struct report_printer *printer, uint32_t width, uint64_t part,
		      uint64_t whole)
{
	char text[UNITS_TEXT];

	terminal_put_cell(printer->out, width, units_format_share(text, part, whole));
}

static size_t rows_shown(const struct report_printer *printer, size_t rows)
{
	return printer->view->rows && printer->view->rows < rows ? printer->view->rows : rows;
}

static void put_rest(const struct report_printer *printer, size_t rows)
{
	size_t shown = rows_shown(printer, rows);

	if (shown == rows)
		return;
	paint(printer, TERMINAL_DIM);
	fprintf(printer->out, "  … %zu more; --top 0 shows all\n", rows - shown);
	paint(printer, TERMINAL_END);
}

/* ---- tables ---- */

static void put_span_notes(const struct report_printer *printer, const struct report_span *row)
{
	const char *before = "  ";

	if (row->unfinished) {
		fprintf(printer->out, "%s%" PRIu64 " unfinished", before, row->unfinished);
		before = ", ";
	}
	if (row->begun_before) {
		fprintf(printer->out, "%s%" PRIu64 " begun before", before, row->begun_before);
		before = ", ";
	}
	if (row->left) {
		fprintf(printer->out, "%s%" PRIu64 " left", before, row->left);
		before = ", ";
	}
	if (row->with_loss)
		fprintf(printer->out, "%s%" PRIu64 " with loss", before, row->with_loss);
}

static void print_spans(const struct report_printer *printer)
{
	const struct report *report = printer->report;

	if (!report->spans.len)
		return;
	put_heading(printer, "SPANS",
		    "     count      total        p50        p99        max  running runnable"
		    "  blocked");
	for (size_t i = 0; i < rows_shown(printer, report->spans.len); i++) {
		const struct report_span *row = &report->spans.data[i];

		put_name(printer, row->name);
		put_count(printer, 10, row->count);
		put_duration(printer, 11, row->total_ns);
		put_duration(printer, 11, row->p50_ns);
		put_duration(printer, 11, row->p99_ns);
		put_duration(printer, 11, row->max_ns);
		put_share(printer, 9, row->running_ns, row->sched_ns);
		put_share(printer, 9, row->runnable_ns, row->sched_ns);
		put_share(printer, 9, row->blocked_ns, row->sched_ns);
		put_span_notes(printer, row);
		fputc('\n', printer->out);
	}
	put_rest(printer, report->spans.len);
}

static void put_thread(const struct report_printer *printer, uint32_t thread)
{
	char place[PLACE_TEXT];

	put(printer, model_thread_name(printer->model, thread));
	if (thread == MODEL_NONE)
		return;
	fputs(" (", printer->out);
	put(printer, place_thread(place, printer->model, thread));
	fputc(')', printer->out);
}

/* Prints "longest wait: 812 ms from 3.21 s on, blocked in fsync(5), woken by jbd2/sda1-8 (311)". */
static void put_wait(const struct report_printer *printer, const struct report_slow *slow)
{
	const struct model *model = printer->model;
	char text[UNITS_TEXT];

	if (!slow->wait_ns)
		return;
	fprintf(printer->out, "      longest wait %s", units_format_duration(text, slow->wait_ns));
	fprintf(printer->out, ", %s", model_blocked_text(slow->task_state));
	if (slow->syscall >= 0) {
		const char *name = syscall_name(model->meta->machine, slow->syscall);

		if (name)
			fprintf(printer->out, " in %s", name);
		else
			fprintf(printer->out, " in system call %d", slow->syscall);
		if (slow->args < model->syscall_args.len)
			fprintf(printer->out, "(0x%" PRIx64 ", …)",
				model->syscall_args.data[slow->args]);
	}
	if (slow->interrupt) {
		fputs(", woken by an interrupt", printer->out);
	} else if (slow->waker != MODEL_NONE) {
		fputs(", woken by ", printer->out);
		put_thread(printer, slow->waker);
	}
	fputc('\n', printer->out);
}

static void print_slow(const struct report_printer *printer, const struct report_slow *slow)
{
	const struct model *model = printer->model;
	const struct model_span *span = &model->spans.data[slow->span];
	uint64_t duration = span->end_ts - span->start_ts;

	put_name(printer, model_site(model, span->site)->name);
	put_duration(printer, 10, duration);
	put_since_start(printer, 11, span->start_ts);
	if (span->flags & MODEL_SPAN_HAS_SCHED) {
		put_share(printer, 9, span->running_ns, duration);
		put_share(printer, 9, span->runnable_ns, duration);
		put_share(printer, 9, duration - span->running_ns - span->runnable_ns, duration);
	} else {
		fprintf(printer->out, "%9s%9s%9s", "?", "?", "?");
	}
	fputs("  ", printer->out);
	put_thread(printer, span->thread);
	fputs(span->flags & MODEL_SPAN_UNFINISHED ? "  unfinished" : "", printer->out);
	fputs(span->flags & MODEL_SPAN_BEGUN_BEFORE ? "  begun before" : "", printer->out);
	fputs(span->flags & MODEL_SPAN_LEFT ? "  left" : "", printer->out);
	fputs(span->flags & MODEL_SPAN_LOSS ? "  with loss" : "", printer->out);
	values_put(printer->out, printer->model, span->site, span->frame);
	fputc('\n', printer->out);
	put_wait(printer, slow);
}

static void print_slowest(const struct report_printer *printer)
{
	if (!printer->report->slowest.len)
		return;
	put_heading(printer, "SLOWEST", "  duration         at  running runnable  blocked  thread");
	for (size_t i = 0; i < printer->report->slowest.len; i++)
		print_slow(printer, &printer->report->slowest.data[i]);
}

static void print_counters(const struct report_printer *printer)
{
	const struct report *report = printer->report;

	if (!report->counters.len)
		return;
	put_heading(printer, "COUNTERS",
		    "     count         min        mean         max        last");
	for (size_t i = 0; i < rows_shown(printer, report->counters.len); i++) {
		const struct report_counter *row = &report->counters.data[i];

		put_name(printer, row->name);
		put_count(printer, 10, row->count);
		if (row->count)
			fprintf(printer->out, " %11.6g %11.6g %11.6g %11.6g", row->min, row->mean,
				row->max, row->last);
		if (row->ignored)
			fprintf(printer->out, "  %" PRIu64 " not finite", row->ignored);
		fputc('\n', printer->out);
	}
	put_rest(printer, report->counters.len);
}

static void print_events(const struct report_printer *printer)
{
	const struct report *report = printer->report;

	if (!report->events.len)
		return;
	put_heading(printer, "EVENTS", "     count  kind");
	for (size_t i = 0; i < rows_shown(printer, report->events.len); i++) {
		put_name(printer, report->events.data[i].name);
		put_count(printer, 10, report->events.data[i].count);
		fprintf(printer->out, "  %s\n", site_kind_name(report->events.data[i].kind));
	}
	put_rest(printer, report->events.len);
}

/* The rank and host of a thread's process, which end its line. */
static void put_place(const struct report_printer *printer, uint32_t thread)
{
	const struct model_process *process = model_process_of(printer->model, thread);
	char place[PLACE_TEXT];

	if (process && *place_of_process(place, printer->model, process)) {
		fputs("  ", printer->out);
		put(printer, place);
	}
	fputc('\n', printer->out);
}

static void print_threads(const struct report_printer *printer)
{
	const struct report *report = printer->report;

	if (!report->threads.len || !printer->model->sched)
		return;
	put_heading(printer, "THREADS", "   running   runnable    blocked       tid       pid");
	for (size_t i = 0; i < rows_shown(printer, report->threads.len); i++) {
		const struct model_thread *thread =
			&printer->model->threads.data[report->threads.data[i]];

		put_name(printer, model_thread_name(printer->model, report->threads.data[i]));
		if (thread->has_sched) {
			put_duration(printer, 10, thread->running_ns);
			put_duration(printer, 11, thread->runnable_ns);
			put_duration(printer, 11, thread->blocked_ns);
		} else {
			fprintf(printer->out, "%10s%11s%11s", "?", "?", "?");
		}
		fprintf(printer->out, "%10u%10u", model_pid_real(printer->model, thread->tid),
			model_pid_real(printer->model, thread->pid));
		put_place(printer, report->threads.data[i]);
	}
	put_rest(printer, report->threads.len);
}

static struct hang_view hang_view_of(const struct report_printer *printer)
{
	return (struct hang_view){.model = printer->model,
				  .names = printer->report->names,
				  .colour = printer->view->colour};
}

static void print_deadlocks(const struct report_printer *printer)
{
	const struct hang_view view = hang_view_of(printer);

	hang_print_deadlocks(&printer->report->hangs, &view, printer->out);
}

/* Without spans, the threads are all that can be explained. */
static void print_explained(const struct report_printer *printer)
{
	const struct why_view view = {
		.causes = CAUSES_OF_THREAD, .colour = printer->view->colour, .brief = true};
	const struct report *report = printer->report;

	if (!report->busiest || !report->busiest->instances.len)
		return;
	put_heading(printer, "THE BUSIEST THREAD", "");
	why_print_text(report->busiest, &view, printer->out);
	if (report->waiting && report->waiting->instances.len) {
		put_heading(printer, "THE LONGEST WAITING THREAD", "");
		why_print_text(report->waiting, &view, printer->out);
	}
	fputs("  waffle-bpf why FILE --thread NUMBER shows how it came to that, and the longest "
	      "waits\n",
	      printer->out);
}

/* ---- notes on the whole report ---- */

static void print_filtered(const struct report_printer *printer)
{
	const struct model *model = printer->model;
	const struct model_filtered *filtered = &model->filtered;
	uint64_t kept = model->spans.len + model->events.len;
	char kept_text[UNITS_TEXT], all_text[UNITS_TEXT];

	notice_put_where(printer->out, model);
	if (!filtered->expression)
		return;
	fputs("filter: ", printer->out);
	notice_put_expression(printer->out, filtered->expression);
	fprintf(printer->out, " (kept %s of %s spans and events)\n",
		units_format_count(kept_text, kept),
		units_format_count(all_text, kept + filtered->spans + filtered->events));
}

static void print_head(const struct report_printer *printer)
{
	const struct model *model = printer->model;
	size_t threads = printer->report->threads.len;
	uint64_t shown = model->spans.len - printer->report->bookkeeping;
	char duration[UNITS_TEXT], spans[UNITS_TEXT], events[UNITS_TEXT];

	paint(printer, TERMINAL_BOLD);
	put(printer, *model->meta->command ? model->meta->command : "capture");
	paint(printer, TERMINAL_END);
	fprintf(printer->out, ": %s, %s %s, %s %s, %zu %s",
		units_format_duration(duration, model->end_ts - model->start_ts),
		units_format_count(spans, shown), units_plural(shown, "span", "spans"),
		units_format_count(events, model->events.len),
		units_plural(model->events.len, "event", "events"), threads,
		units_plural(threads, "thread", "threads"));
	if (model->track_count)
		fprintf(printer->out, ", %" PRIu32 " %s", model->track_count,
			units_plural(model->track_count, "track", "tracks"));
	if (printer->report->bookkeeping)
		fprintf(printer->out, "; %s %s of book-keeping are left out",
			units_format_count(spans, printer->report->bookkeeping),
			units_plural(printer->report->bookkeeping, "call", "calls"));
	fputc('\n', printer->out);
	if (*model->meta->filter) {
		fputs("recorded with the filter: ", printer->out);
		notice_put_expression(printer->out, model->meta->filter);
		fputc('\n', printer->out);
	}
	if (*model->meta->trigger) {
		fputs("triggered by ", printer->out);
		notice_put_trigger(printer->out, model);
		fputc('\n', printer->out);
	}
	print_filtered(printer);
	if (!model->sched)
		fprintf(printer->out,
			"scheduler not %s: running, runnable and blocked are unknown\n",
			model->meta->sched ? "kept by the filter" : "recorded");
}

/* What enlarges the buffer of a source: an option of attach and run, or a variable for libwaffle.
 */
static const char *buffer_setting(const struct model *model, enum waffle_source source)
{
	bool traced = strcmp(model->meta->sources, "spans"), rings = false;

	for (size_t i = 0; i < model->processes.len; i++)
		if (model->processes.data[i].transport) {
			traced = true;
			rings = rings || model->processes.data[i].transport->ring;
		}
	if (source == WAFFLE_SOURCE_SCHED)
		return "--sched-size";
	if (source != WAFFLE_SOURCE_SPANS || (traced && !rings))
		return "--ring-size";
	return traced ? "--ring-size, or WAFFLE_RING_SIZE for programs with libwaffle"
		      : "WAFFLE_RING_SIZE";
}

static bool has_calls(const struct model *model)
{
	for (uint32_t i = 0; i < model_site_count(model); i++)
		if (model_site(model, i)->call && model_site(model, i)->kind == WAFFLE_SITE_SPAN)
			return true;
	return false;
}

static void print_warnings(const struct report_printer *printer)
{
	const struct report *report = printer->report;
	char count[UNITS_TEXT];

	paint(printer, TERMINAL_WARN);
	if (report->truncated)
		fprintf(printer->out,
			"the file is still being recorded, or was cut off: its last records are "
			"missing, %s at its end are unusable\n",
			units_format_bytes(count, report->bytes_cut));
	if (report->skipped)
		fprintf(printer->out, "%s %s left out: there are too many\n",
			units_format_count(count, report->skipped),
			units_plural(report->skipped, "stack or name of the file is",
				     "stacks and names of the file are"));
	for (unsigned i = 0; i < WAFFLE_SOURCE_COUNT; i++)
		if (report->losses[i].count)
			fprintf(printer->out,
				"lost %s %s %s in %" PRIu64 " interval%s: results there are "
				"incomplete; record with a larger %s%s\n",
				units_format_count(count, report->losses[i].count),
				record_source_name(i),
				units_plural(report->losses[i].count, "record", "records"),
				report->losses[i].intervals,
				units_plural(report->losses[i].intervals, "", "s"),
				buffer_setting(report->model, (enum waffle_source)i),
				i == WAFFLE_SOURCE_SPANS && has_calls(report->model)
					? ", unless calls were too deep (docs/probes.md)"
					: "");
	disorder_print_text(report->model, "", printer->out);
	if (report->model->bad_records)
		fprintf(printer->out, "%s %s left out\n",
			units_format_count(count, report->model->bad_records),
			units_plural(report->model->bad_records, BAD_RECORD));
	paint(printer, TERMINAL_END);
}

static void print_records(const struct report_printer *printer)
{
	fputs("\nrecords: ", printer->out);
	notice_put_counts(printer->out, &printer->model->counts);
	notice_put_simulated(printer->out, printer->model);
}

static int name_columns(const struct report *report)
{
	size_t widest = 8;

	for (size_t i = 0; i < report->threads.len && report->model->sched; i++) {
		size_t columns = (size_t)terminal_columns(
			model_thread_name(report->model, report->threads.data[i]));

		widest = columns > widest ? columns : widest;
	}
	for (size_t i = 0; i < report->spans.len; i++)
		if (strlen(report->spans.data[i].name) > widest)
			widest = strlen(report->spans.data[i].name);
	return widest < NAME_COLUMNS_MAX ? (int)widest : NAME_COLUMNS_MAX;
}

static struct report_printer printer_of(const struct report *report, const struct report_view *view,
					FILE *out)
{
	return (struct report_printer){.report = report,
				       .model = report->model,
				       .view = view,
				       .out = out,
				       .name_columns = name_columns(report)};
}

void report_print_spans(const struct report *report, const struct report_view *view, FILE *out)
{
	const struct report_printer printer = printer_of(report, view, out);

	print_head(&printer);
	print_warnings(&printer);
	killed_print(printer.model, view->colour, out);
	impaired_print(printer.model, view->colour, out);
	print_deadlocks(&printer);
	print_spans(&printer);
	report_print_causes(report, view, out);
}

void report_print_text(const struct report *report, const struct report_view *view, FILE *out)
{
	struct report_printer printer = printer_of(report, view, out);

	report_print_spans(report, view, out);
	print_slowest(&printer);
	report_print_stragglers(report, view, out);
	print_counters(&printer);
	print_events(&printer);
	print_threads(&printer);
	print_explained(&printer);
	print_records(&printer);
}
