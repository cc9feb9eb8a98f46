// SPDX-License-Identifier: Apache-2.0
#include "render/text/why_put_internal.h"

#include <string.h>

#include "render/place.h"
#include "render/text/notices.h"
#include "store/record.h"
#include "util/terminal.h"
#include "util/units.h"

void why_paint(const struct why_printer *printer, const char *sequence)
{
	terminal_paint(printer->out, printer->view->colour, sequence);
}

void why_put(const struct why_printer *printer, const char *text)
{
	terminal_put(printer->out, text, strlen(text));
}

void why_put_duration(const struct why_printer *printer, uint64_t ns)
{
	char text[UNITS_TEXT];

	fputs(units_format_duration(text, ns), printer->out);
}

void why_put_thread(const struct why_printer *printer, uint32_t thread)
{
	char place[PLACE_TEXT];

	why_put(printer, model_thread_name(printer->model, thread));
	if (thread >= printer->model->threads.len)
		return;
	fputs(" (", printer->out);
	why_put(printer, place_thread_apart(place, printer->model, thread));
	fputc(')', printer->out);
}

static uint64_t since_begin(const struct model *model, uint64_t ts)
{
	return ts > model->meta->start_ts ? ts - model->meta->start_ts : 0;
}

void why_put_time(const struct why_printer *printer, uint64_t ts)
{
	why_put_duration(printer, since_begin(printer->model, ts));
}

void why_print_records(const struct why_printer *printer)
{
	const struct model *model = printer->model;
	uint64_t bytes_cut;

	fputc('\n', printer->out);
	if (model->filtered.expression) {
		fputs("filter: ", printer->out);
		notice_put_expression(printer->out, model->filtered.expression);
		fputc('\n', printer->out);
	}
	notice_put_where(printer->out, model);
	if (store_reader_truncated(model->reader, &bytes_cut))
		fputs("the file is still being recorded, or was cut off: its last records are "
		      "missing\n",
		      printer->out);
	fputs("records: ", printer->out);
	notice_put_counts(printer->out, &model->counts);
	notice_put_simulated(printer->out, model);
}
