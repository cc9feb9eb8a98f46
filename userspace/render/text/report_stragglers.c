// SPDX-License-Identifier: Apache-2.0
#include "render/text/report_stragglers_internal.h"

#include <inttypes.h>
#include <string.h>

#include "render/place.h"
#include "util/terminal.h"
#include "util/units.h"

#define NAME_COLUMNS 24

struct printer {
	const struct stragglers *stragglers;
	const struct model *model;
	const struct report_view *view;
	FILE *out;
};

static void put_heading(const struct printer *printer, const char *text)
{
	terminal_paint(printer->out, printer->view->colour, TERMINAL_BOLD);
	fprintf(printer->out, "\n%s", text);
	terminal_paint(printer->out, printer->view->colour, TERMINAL_END);
	fputc('\n', printer->out);
}

static void put_name(const struct printer *printer, const char *name)
{
	int columns;

	fputs("  ", printer->out);
	columns = terminal_put(printer->out, name, strlen(name));
	fprintf(printer->out, "%*s", columns < NAME_COLUMNS ? NAME_COLUMNS - columns : 0, "");
}

static void put_duration(const struct printer *printer, uint32_t width, uint64_t ns)
{
	char text[UNITS_TEXT];

	terminal_put_cell(printer->out, width, units_format_duration(text, ns));
}

static void put_share(const struct printer *printer, uint32_t width, uint64_t part, uint64_t whole)
{
	char text[UNITS_TEXT];

	terminal_put_cell(printer->out, width, units_format_share(text, part, whole));
}

static void put_count(const struct printer *printer, uint32_t width, uint64_t count)
{
	char text[UNITS_TEXT];

	terminal_put_cell(printer->out, width, units_format_count(text, count));
}

/* "rank 3, trainer (4711)" */
static void put_rank(const struct printer *printer, uint32_t index)
{
	const struct straggler_rank *rank = &printer->stragglers->ranks.data[index];
	const char *comm = model_thread_name(printer->model, rank->thread);

	if (rank->rank != MODEL_NONE)
		fprintf(printer->out, "rank %" PRIu32 ", ", rank->rank);
	terminal_put(printer->out, comm, strlen(comm));
	if (rank->thread < printer->model->threads.len)
		fprintf(printer->out, " (%" PRIu32 ")", place_tid(printer->model, rank->thread));
	if (printer->model->host_count > 1) {
		const char *host =
			printer->model->hosts[model_host_of(printer->model, rank->thread)]->name;

		fputs(" on ", printer->out);
		terminal_put(printer->out, host, strlen(host));
	}
}

static size_t rows_shown(const struct printer *printer, size_t rows)
{
	return printer->view->rows && printer->view->rows < rows ? printer->view->rows : rows;
}

static void put_rest(const struct printer *printer, size_t rows)
{
	size_t shown = rows_shown(printer, rows);

	if (shown == rows)
		return;
	terminal_paint(printer->out, printer->view->colour, TERMINAL_DIM);
	fprintf(printer->out, "  … %zu more; --top 0 shows all\n", rows - shown);
	terminal_paint(printer->out, printer->view->colour, TERMINAL_END);
}

static void print_ranks(const struct printer *printer)
{
	const struct stragglers *stragglers = printer->stragglers;
	uint64_t all = 0;

	for (size_t i = 0; i < stragglers->ranks.len; i++)
		all += stragglers->ranks.data[i].made_wait_ns;
	put_heading(printer, "STRAGGLERS  others waited    share  came last         of"
			     "  it waited  rank");
	for (uint32_t i = 0; i < rows_shown(printer, stragglers->ranks.len); i++) {
		const struct straggler_rank *rank = &stragglers->ranks.data[i];

		put_duration(printer, 25, rank->made_wait_ns);
		put_share(printer, 9, rank->made_wait_ns, all);
		put_count(printer, 11, rank->last);
		put_count(printer, 11, rank->calls);
		put_duration(printer, 11, rank->waited_ns);
		fputs("  ", printer->out);
		put_rank(printer, i);
		if (rank->unsure_ns) {
			fputs(", unsure", printer->out);
			put_share(printer, 0, rank->unsure_ns, rank->made_wait_ns);
		}
		fputc('\n', printer->out);
	}
	put_rest(printer, stragglers->ranks.len);
}

static void print_groups(const struct printer *printer)
{
	const struct stragglers *stragglers = printer->stragglers;

	put_heading(printer, "COLLECTIVES                    count    ranks      total"
			     "   transfer    waiting  most of it for");
	for (size_t i = 0; i < rows_shown(printer, stragglers->groups.len); i++) {
		const struct straggler_group *group = &stragglers->groups.data[i];
		char ranks[2 * UNITS_TEXT];

		put_name(printer, group->name);
		put_count(printer, 10, group->count);
		snprintf(ranks, sizeof(ranks), "%" PRIu32, group->traced);
		if (group->nranks > group->traced)
			snprintf(ranks, sizeof(ranks), "%" PRIu32 "/%" PRIu32, group->traced,
				 group->nranks);
		terminal_put_cell(printer->out, 9, ranks);
		put_duration(printer, 11, group->total_ns);
		put_share(printer, 11, group->transfer_ns, group->total_ns);
		put_share(printer, 11, group->waiting_ns, group->total_ns);
		fputs("  ", printer->out);
		if (group->worst != MODEL_NONE)
			put_rank(printer, group->worst);
		if (group->known < group->count)
			fprintf(printer->out, "  %" PRIu64 " without an end",
				group->count - group->known);
		fputc('\n', printer->out);
	}
	put_rest(printer, stragglers->groups.len);
}

static void print_waits(const struct printer *printer)
{
	const struct stragglers *stragglers = printer->stragglers;

	if (!stragglers->waits.len)
		return;
	put_heading(printer, "LONGEST WAITS FOR A RANK       seq        at  others waited"
			     "  transfer  came last");
	for (size_t i = 0; i < rows_shown(printer, stragglers->waits.len); i++) {
		const struct straggler_wait *wait = &stragglers->waits.data[i];
		const struct model_collective *collective =
			model_collective_at(stragglers->comm, wait->collective);
		uint64_t start_ts = printer->model->meta->start_ts;

		put_name(printer, model_site(printer->model, collective->site)->name);
		put_count(printer, 8, collective->seq);
		put_duration(printer, 10, wait->ts > start_ts ? wait->ts - start_ts : 0);
		put_duration(printer, 15, wait->made_wait_ns);
		put_duration(printer, 10, wait->transfer_ns);
		fputs("  ", printer->out);
		put_rank(printer, wait->rank);
		fputs(wait->sure ? "\n" : ", unsure\n", printer->out);
	}
}

void report_print_stragglers(const struct report *report, const struct report_view *view, FILE *out)
{
	const struct printer printer = {report->stragglers, report->model, view, out};

	if (!report->stragglers->groups.len)
		return;
	print_ranks(&printer);
	print_groups(&printer);
	print_waits(&printer);
}
