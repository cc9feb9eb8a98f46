// SPDX-License-Identifier: Apache-2.0
/*
 * Files of OTLP and Zipkin: the same messages that a server would get.
 *
 *	otlp    a request in JSON a line, as the collector's file exporter writes them
 *	        (opentelemetry.io/docs/specs/otel/protocol/file-exporter)
 *	zipkin  one list of spans, as GET /api/v2/trace answers and POST /api/v2/spans takes
 */
#include <string.h>

#include "export/backend/records_internal.h"
#include "export/backend/service.h"
#include "export/formats.h"
#include "export/process/otlp_traces.h"
#include "export/process/zipkin.h"
#include "util/memory.h"

struct file_out {
	FILE *file;
	bool follows; /* Zipkin: the next batch needs a comma */
	struct model_records *records;
	struct pending_events pending;
	struct out_bytes text;
	struct otlp_source source;
};

static void file_begin(struct file_out *out, FILE *file, const struct model *model,
		       char service[SERVICE_BYTES])
{
	*out = (struct file_out){.file = file, .records = model_records_open(model)};
	out->source =
		(struct otlp_source){service_name(service, model->meta), NULL, &out->pending, NULL};
}

static void file_end(struct file_out *out)
{
	pending_events_clear(&out->pending);
	model_records_close(out->records);
	bytes_free(&out->text);
}

static void text_write(struct file_out *out)
{
	memory_require(!out->text.failed);
	fwrite(out->text.data, 1, out->text.len, out->file);
	bytes_clear(&out->text);
}

static int otlp_batch_write(struct full_record *const *list, size_t count, void *arg)
{
	struct file_out *out = arg;

	if (otlp_traces(&out->text, true, &out->source, list, count))
		bytes_char(&out->text, '\n');
	text_write(out);
	return 0;
}

int otlp_write(const struct model *model, FILE *file, struct error *err)
{
	struct full_record *const *list;
	char service[SERVICE_BYTES];
	struct file_out out;
	size_t count;
	int result;

	file_begin(&out, file, model, service);
	result = model_records_each(out.records, true, &out.pending, otlp_batch_write, &out, err);
	while (!result && (count = model_records_next_counters(out.records, &list))) {
		if (otlp_counters(&out.text, true, &out.source, list, count))
			bytes_char(&out.text, '\n');
		text_write(&out);
	}
	file_end(&out);
	return result;
}

/* Each batch is a list of its own, of which the brackets are left out. */
static int zipkin_batch_write(struct full_record *const *list, size_t count, void *arg)
{
	struct file_out *out = arg;

	zipkin_spans(&out->text, &out->source, list, count);
	memory_require(!out->text.failed);
	if (out->text.len > 2) {
		fputs(out->follows ? ",\n" : "\n", out->file);
		fwrite(out->text.data + 1, 1, out->text.len - 2, out->file);
		out->follows = true;
	}
	bytes_clear(&out->text);
	return 0;
}

int zipkin_write(const struct model *model, FILE *file, struct error *err)
{
	char service[SERVICE_BYTES];
	struct file_out out;
	int result;

	file_begin(&out, file, model, service);
	fputc('[', file);
	result = model_records_each(out.records, true, &out.pending, zipkin_batch_write, &out, err);
	fputs("\n]\n", file);
	file_end(&out);
	return result;
}
