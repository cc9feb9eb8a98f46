// SPDX-License-Identifier: Apache-2.0
/* waffle-bpf export: converts a .waffle file to the format of another tool. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/command_internal.h"
#include "cmd/filter_options_internal.h"
#include "cmd/process_options_internal.h"
#include "export/backend/send.h"
#include "export/backend/service.h"
#include "export/export.h"
#include "render/json/summary_json.h"
#include "util/json.h"
#include "util/output.h"
#include "util/terminal.h"
#include "util/units.h"

/* --format was not given: what --to says, or else the first one. */
#define FORMAT_UNSET UINT_MAX
#define WAIT_NS 60000000000ull

struct export_options {
	unsigned format; /* index in `exporters` */
	const char *output;
	option_list to;     /* a time, and a URL or file: to_resolve() splits them */
	const char *server; /* the URL of --to; NULL: a file is written */
	const char *headers, *ca;
	uint64_t wait_ns;
	const char *process; /* NULL: a format is written */
	bool json;
	uint64_t from_ns, to_ns; /* since the beginning of the capture */
	struct filter_options filter;
};

static const char *format_choice(size_t index, const char **help)
{
	if (index >= exporter_count)
		return NULL;
	*help = exporters[index].help;
	return exporters[index].name;
}

static bool is_format(const struct export_options *o, const char *name)
{
	return o->format < exporter_count && !strcmp(exporters[o->format].name, name);
}

static const struct option_row rows[] = {
	{"format", 'f', "FORMAT", "The format. Default: the first of these.", .type = OPTION_CHOICE,
	 .choice = format_choice, .at = offsetof(struct export_options, format)},
	{"output", 'o', "OUT",
	 "The file to write; - is standard output. Default: FILE's name with the format's "
	 "extension. Required if you give several files.",
	 .type = OPTION_PATH, .at = offsetof(struct export_options, output)},
	{"from", 0, "TIME", "Start at this time since the begin of the capture.",
	 .type = OPTION_TIME, .at = offsetof(struct export_options, from_ns)},
	{"to", 0, "TIME, URL or OUT",
	 "A TIME: end at this time since the begin of the capture. A URL: send to this server, "
	 "with "
	 "the formats otlp (http://localhost:4318, or grpc://localhost:4317), zipkin "
	 "(http://localhost:9411/api/v2/spans) and prometheus "
	 "(http://localhost:9090/api/v1/write). "
	 "Otherwise the same as --output. Times and a URL or OUT may be given together.",
	 .type = OPTION_LIST, .at = offsetof(struct export_options, to)},
	{"headers", 0, "FILE",
	 "With --to URL, send the headers of this file, which has lines 'Name: value'. Also those "
	 "of OTEL_EXPORTER_OTLP_HEADERS are sent.",
	 .type = OPTION_PATH, .at = offsetof(struct export_options, headers)},
	{"ca", 0, "FILE",
	 "With --to URL, trust the certificates of this file instead of the system's.",
	 .type = OPTION_PATH, .at = offsetof(struct export_options, ca)},
	{"wait", 0, "TIME",
	 "With --to URL, how long to try a server that is down or overloaded. Default: 1m.",
	 .type = OPTION_TIME, .min = 1000000, .max = 86400000000000ull,
	 .at = offsetof(struct export_options, wait_ns)},
	{"json", 0, NULL, "Print what was written as a JSON object.",
	 .at = offsetof(struct export_options, json)},
	PROCESS_OPTION_ROW(struct export_options, process),
	FILTER_OPTION_ROWS(struct export_options, filter),
	ALIGN_OPTION_ROW(struct export_options, filter.align),
	MEMORY_OPTION_ROW(struct export_options, filter.memory_limit),
};

/* FILE with ".waffle" replaced by the extension. NULL: out of memory. */
static char *default_path(const char *file, const char *extension)
{
	size_t len = strlen(file), suffix = strlen(".waffle");
	char *path;

	if (len > suffix && strcmp(file + len - suffix, ".waffle") == 0)
		len -= suffix;
	return asprintf(&path, "%.*s%s", (int)len, file, extension) < 0 ? NULL : path;
}

static uint64_t file_bytes(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISREG(status.st_mode) ? (uint64_t)status.st_size : 0;
}

static void print_json(const struct export_options *o, const char *path, const struct model *model)
{
	struct json *json = json_new(stdout, true);

	json_object_begin(json);
	json_field_string(json, "format", exporters[o->format].name);
	json_field_string(json, "output", path);
	json_field_u64(json, "bytes", file_bytes(path));
	json_field_u64(json, "spans", model->spans.len);
	json_field_u64(json, "events", model->events.len);
	json_field_u64(json, "links", model->links.len);
	json_field_u64(json, "switches", model->switches.len);
	summary_json_filter(json, model);
	json_key(json, "records");
	json_object_begin(json);
	summary_json_counts(json, &model->counts);
	json_object_end(json);
	json_object_end(json);
	json_close(json);
}

/* Ends the line. */
static void print_lost(const struct model *model)
{
	char lost[UNITS_TEXT];

	if (model->counts.lost)
		printf(" %s %s lost; the export shows where.",
		       units_format_count(lost, model->counts.lost),
		       units_plural(model->counts.lost, "record was", "records were"));
	putchar('\n');
}

static void print_line(const struct export_options *o, const char *path, const struct model *model)
{
	char bytes[UNITS_TEXT];

	terminal_put(stdout, path, strlen(path));
	printf(" (%s): %s", units_format_bytes(bytes, file_bytes(path)), exporters[o->format].help);
	print_lost(model);
}

static int export_model(const struct export_options *o, const struct model *model,
			const struct capture_files *files, struct error *err)
{
	char *named =
		o->output ? NULL : default_path(files->paths[0], exporters[o->format].extension);
	const char *path = o->output ? o->output : named;
	int code;

	if (!path)
		code = error_set(err, ENOMEM, "out of memory");
	else
		code = capture_files_spare(files, path, err)
			       ?: export_to_path(&exporters[o->format], model, path, err);
	if (code < 0 && strcmp(path, "-") == 0 && output_reader_is_gone())
		code = EXIT_READER_GONE;

	/* Standard output already has the export itself. */
	if (code == 0 && strcmp(path, "-") != 0)
		(o->json ? print_json : print_line)(o, path, model);
	free(named);
	return code;
}

static void say_retry(const char *line, void *arg)
{
	char program[64];

	snprintf(program, sizeof(program), "waffle-bpf: %s", ((const struct command *)arg)->name);
	chain_say(program, line);
}

static int send_model(const struct command *command, const struct export_options *o,
		      const struct model *model, struct error *err)
{
	char service[SERVICE_BYTES], records[UNITS_TEXT];
	struct backend_server server = {
		.kind = is_format(o, "zipkin")       ? BACKEND_ZIPKIN
			: is_format(o, "prometheus") ? BACKEND_PROMETHEUS
						     : BACKEND_OTLP,
		.url = o->server,
		.service = service_name(service, model->meta),
		.headers_file = o->headers,
		.ca_file = o->ca,
		.wait_ns = o->wait_ns,
		.say = say_retry,
		.arg = (void *)(uintptr_t)command,
	};
	struct backend_sent sent;
	int code = backend_send(model, &server, &sent, err);

	if (code)
		return code;
	if (o->json) {
		print_json(o, o->server, model);
		return 0;
	}
	terminal_put(stdout, o->server, strlen(o->server));
	printf(": %s %s were sent.", units_format_count(records, sent.records),
	       server.kind == BACKEND_PROMETHEUS
		       ? units_plural(sent.records, "series", "series")
		       : units_plural(sent.records, "span or event", "spans and events"));
	if (sent.counters > sent.skipped)
		printf(" So were %s %s.", units_format_count(records, sent.counters - sent.skipped),
		       units_plural(sent.counters - sent.skipped, "value of a counter",
				    "values of counters"));
	if (sent.skipped)
		printf(" %s %s not: the server takes no metrics.",
		       units_format_count(records, sent.skipped),
		       units_plural(sent.skipped, "value of a counter was",
				    "values of counters were"));
	print_lost(model);
	return 0;
}

static int process_file(const struct command *command, const struct export_options *o,
			struct store_reader *reader, struct store_window window, struct error *err)
{
	const struct store_meta *meta = store_reader_meta(reader);
	struct chain *chain;
	char service[SERVICE_BYTES];

	if (o->filter.filter)
		return error_set(err, EINVAL,
				 "--process: write the filter into the chain: filter(EXPRESSION)");
	return process_options_open(&chain, command, "--process", o->process,
				    service_name(service, meta),
				    (int64_t)(meta->real_ns - meta->start_ts), true, err)
		       ?: process_options_file(chain, reader, window, err);
}

static int export_files(const struct command *command, const void *arg,
			const struct capture_files *files, struct error *err)
{
	const struct export_options *o = arg;
	struct store_reader *reader = NULL;
	struct model *model = NULL;
	struct store_window window;
	const struct model_filter keep = {.filter = o->filter.filter,
					  .keep_children = o->filter.keep_children};
	int code = filter_options_open_files(command, &o->filter, files, &reader, err);

	if (code < 0)
		return code;
	window = capture_files_window(reader, o->from_ns, o->to_ns);
	if (o->process) {
		code = process_file(command, o, reader, window, err);
		store_reader_close(reader);
		return code;
	}
	code = model_load(&model, reader, window, &keep, err)
		       ?: model_reaches(model, window.from_ts, err);
	if (code == 0)
		code = o->server ? send_model(command, o, model, err)
				 : export_model(o, model, files, err);
	model_free(model);
	store_reader_close(reader);
	return code;
}

static const char *const server_formats[] = {
	[BACKEND_OTLP] = "otlp", [BACKEND_ZIPKIN] = "zipkin", [BACKEND_PROMETHEUS] = "prometheus"};

/* Splits what --to was given, and chooses the format. */
static int to_resolve(struct export_options *o, struct error *err)
{
	for (size_t i = 0; i < o->to.len; i++) {
		const char *text = o->to.data[i].text;

		/* A number is a time, also a wrong one; the file of that name is ./10s. */
		if (*text >= '0' && *text <= '9' && !strpbrk(text, "/") &&
		    (units_parse_duration(text, &o->to_ns) || !strchr(text, '.'))) {
			if (!units_parse_duration(text, &o->to_ns))
				return error_set(err, EINVAL,
						 "--to '%s': expected a time such as 10s, a URL, "
						 "or a file such as ./%s",
						 text, text);
		} else if (backend_is_url(text)) {
			o->server = text;
		} else if (o->output) {
			return error_set(err, EINVAL, "--to '%s': the output is already '%s'", text,
					 o->output);
		} else {
			o->output = text;
		}
	}
	if (o->format == FORMAT_UNSET) {
		o->format = 0;
		while (o->server && !is_format(o, server_formats[backend_kind_of(o->server)]))
			o->format++;
	}
	return 0;
}

static int options_check(const struct export_options *o, int files, struct error *err)
{
	if (files < 1)
		return error_set(err, EINVAL, "which FILE?");
	if (o->process && (files > 1 || o->output || o->server || o->json))
		return error_set(err, EINVAL,
				 "--process takes one FILE, and no --output, --to URL or --json");
	if (o->server && o->output)
		return error_set(err, EINVAL, "give either a URL or a file to write");
	if (o->server && !is_format(o, "otlp") && !is_format(o, "zipkin") &&
	    !is_format(o, "prometheus"))
		return error_set(
			err, EINVAL,
			"--to URL: %s is a format of files; otlp, zipkin and prometheus are "
			"sent",
			exporters[o->format].name);
	if (!o->server && (o->headers || o->ca))
		return error_set(err, EINVAL, "--headers and --ca need --to URL");
	if (files > 1 && !o->output && !o->server)
		return error_set(err, EINVAL,
				 "say with --output where to write what several files make");
	if (o->from_ns >= o->to_ns)
		return error_set(err, EINVAL, "--from has to be before --to");
	return 0;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct export_options options = {
		.format = FORMAT_UNSET, .to_ns = UINT64_MAX, .wait_ns = WAIT_NS};
	struct error err = ERROR_INIT;
	struct capture_files files;
	int first, code = options_parse(command, argc, argv, false, &options, &first, &err);

	if (code)
		return command_parse_failed(command, code, &err);
	if (to_resolve(&options, &err) || options_check(&options, argc - first, &err))
		return command_fail(command, &err, EXIT_USAGE);
	files = capture_files_of(argc, argv, first);
	code = filter_options_on_files(command, &options.filter, &files, options.json, export_files,
				       &options);
	vec_free(&options.to);
	return code;
}

const struct command command_export = {
	.name = "export",
	.arguments = "FILE…",
	.summary = "Write a .waffle file in the format of another tool",
	.details = "In Perfetto, spans are slices on their threads, with their keys as arguments. "
		   "Events are instants, and links are arrows from cause to effect. The CPU tracks "
		   "and the thread states show what the scheduler did. Below a thread, a track has "
		   "its waits of at least 1 ms, with their causes. Lost records are marked on a "
		   "track of their own.",
	.options = rows,
	.option_count = sizeof(rows) / sizeof(rows[0]),
	.reads_captures = true,
	.run = run,
};
