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
	struct model_records *records;
	struct pending_events pending;
	struct out_bytes text;
	struct otlp_source source;
};

static int file_begin(struct file_out *out, const struct model *model, char service[SERVICE_BYTES],
		      struct error *err)
{
	*out = (struct file_out){.records = model_records_open(model, true, err)};
	out->source = (struct otlp_source){service_name(service, model->meta), NULL, NULL, NULL};
	return out->records ? 0 : -EIO;
}

static void file_end(struct file_out *out)
{
	pending_events_clear(&out->pending);
	model_records_close(out->records);
	bytes_free(&out->text);
}

int otlp_write(const struct model *model, FILE *file, struct error *err)
{
	struct full_record *const *list;
	char service[SERVICE_BYTES];
	struct file_out out;
	size_t count;

	if (file_begin(&out, model, service, err))
		return -EIO;
	out.source.pending = &out.pending;
	while ((count = model_records_next(out.records, &out.pending, &list))) {
		if (otlp_traces(&out.text, true, &out.source, list, count))
			bytes_char(&out.text, '\n');
		memory_require(!out.text.failed);
		fwrite(out.text.data, 1, out.text.len, file);
		bytes_clear(&out.text);
	}
	while ((count = model_records_next_counters(out.records, &list))) {
		if (otlp_counters(&out.text, true, &out.source, list, count))
			bytes_char(&out.text, '\n');
		memory_require(!out.text.failed);
		fwrite(out.text.data, 1, out.text.len, file);
		bytes_clear(&out.text);
	}
	file_end(&out);
	return 0;
}

int zipkin_write(const struct model *model, FILE *file, struct error *err)
{
	struct full_record *const *list;
	char service[SERVICE_BYTES];
	struct file_out out;
	bool follows = false;
	size_t count;

	if (file_begin(&out, model, service, err))
		return -EIO;
	out.source.pending = &out.pending;
	fputc('[', file);
	while ((count = model_records_next(out.records, &out.pending, &list))) {
		zipkin_spans(&out.text, &out.source, list, count);
		memory_require(!out.text.failed);
		/* Each batch is a list of its own: without its brackets. */
		if (out.text.len > 2) {
			fputs(follows ? ",\n" : "\n", file);
			fwrite(out.text.data + 1, 1, out.text.len - 2, file);
			follows = true;
		}
		bytes_clear(&out.text);
	}
	fputs("\n]\n", file);
	file_end(&out);
	return 0;
}
