// SPDX-License-Identifier: Apache-2.0
/* The spans as comma-separated values (RFC 4180), one a line: name, thread, begin and duration. */
#include <inttypes.h>

#include "export/formats.h"

static void write_quoted(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++)
		fputs((const char[]){*text, *text == '"' ? '"' : '\0', '\0'}, out);
	fputc('"', out);
}

int csv_write(const struct model *model, FILE *out, struct error *err)
{
	(void)err;
	fputs("name,tid,start_ns,duration_ns\r\n", out);
	for (size_t i = 0; i < model->spans.len; i++) {
		const struct model_span *span = &model->spans.data[i];

		write_quoted(out, model_site(model, span->site)->name);
		fprintf(out, ",%u,%" PRIu64 ",%" PRIu64 "\r\n",
			model_pid_real(model, model->threads.data[span->thread].tid),
			span->start_ts - model->start_ts, span->end_ts - span->start_ts);
	}
	return 0;
}
