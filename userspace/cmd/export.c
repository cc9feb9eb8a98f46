// SPDX-License-Identifier: Apache-2.0
/* waffle-bpf export: converts a .waffle file to the format of another tool. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/command_internal.h"
#include "cmd/filter_options_internal.h"
#include "cmd/process_options_internal.h"
#include "export/export.h"
#include "render/json/summary_json.h"
#include "util/json.h"
#include "util/output.h"
#include "util/terminal.h"
#include "util/units.h"

struct export_options {
	unsigned format; /* index in `exporters` */
	const char *output;
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

static const struct option_row rows[] = {
	{"format", 'f', "FORMAT", "The format. Default: the first of these.", .type = OPTION_CHOICE,
	 .choice = format_choice, .at = offsetof(struct export_options, format)},
	{"output", 'o', "OUT",
	 "The file to write; - is standard output. Default: FILE's name with the format's "
	 "extension. Required if you give several files.",
	 .type = OPTION_PATH, .at = offsetof(struct export_options, output)},
	{"from", 0, "TIME", "Start at this time since the begin of the capture.",
	 .type = OPTION_TIME, .at = offsetof(struct export_options, from_ns)},
	{"to", 0, "TIME", "End at this time since the begin of the capture.", .type = OPTION_TIME,
	 .at = offsetof(struct export_options, to_ns)},
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

static void print_line(const struct export_options *o, const char *path, const struct model *model)
{
	char bytes[UNITS_TEXT], lost[UNITS_TEXT];

	terminal_put(stdout, path, strlen(path));
	printf(" (%s): %s", units_format_bytes(bytes, file_bytes(path)), exporters[o->format].help);
	if (model->counts.lost)
		printf(" %s %s lost; the export shows where.",
		       units_format_count(lost, model->counts.lost),
		       units_plural(model->counts.lost, "record was", "records were"));
	putchar('\n');
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
	else if (strcmp(path, "-") != 0 && capture_files_have(files, path))
		code = error_set(err, EINVAL, "%s: is the capture itself; write to another file",
				 path);
	else
		code = export_to_path(&exporters[o->format], model, path, err);
	if (code < 0 && strcmp(path, "-") == 0 && output_reader_is_gone())
		code = EXIT_READER_GONE;

	/* Standard output already has the export itself. */
	if (code == 0 && strcmp(path, "-") != 0)
		(o->json ? print_json : print_line)(o, path, model);
	free(named);
	return code;
}

/* The program's name, as far as the capture has it: the beginning of its command. */
static const char *service_name(char name[64], const struct store_meta *meta)
{
	size_t len = strcspn(meta->command, " ");
	const char *slash = memrchr(meta->command, '/', len), *first = meta->command;

	if (slash) {
		len -= (size_t)(slash + 1 - first);
		first = slash + 1;
	}
	snprintf(name, 64, "%.*s", (int)len, len ? first : "");
	return *name ? name : "waffle";
}

static int process_file(const struct command *command, const struct export_options *o,
			struct store_reader *reader, struct store_window window, struct error *err)
{
	const struct store_meta *meta = store_reader_meta(reader);
	struct chain *chain;
	char service[64];

	if (o->filter.filter)
		return error_set(err, EINVAL,
				 "--process: write the filter into the chain: filter(EXPRESSION)");
	return process_options_open(&chain, command, o->process, service_name(service, meta),
				    (int64_t)(meta->real_ns - meta->start_ts), true, err)
		       ?: process_options_file(chain, reader, window, err);
}

static int export_files(const struct command *command, const void *arg,
			const struct capture_files *files, struct error *err)
{
	const struct export_options *o = arg;
	struct store_reader *reader = NULL;
	struct model *model = NULL;
	struct store_window window = STORE_ALL;
	const struct model_filter keep = {.filter = o->filter.filter,
					  .keep_children = o->filter.keep_children};
	uint64_t start_ts;
	int code = filter_options_open_files(command, &o->filter, files, &reader, err);

	if (code < 0)
		return code;
	start_ts = store_reader_meta(reader)->start_ts;
	if (o->from_ns)
		window.from_ts = start_ts + o->from_ns;
	if (o->to_ns != UINT64_MAX && o->to_ns < UINT64_MAX - start_ts)
		window.to_ts = start_ts + o->to_ns;
	if (o->process) {
		code = process_file(command, o, reader, window, err);
		store_reader_close(reader);
		return code;
	}
	code = model_load(&model, reader, window, &keep, err);
	if (code == 0) {
		code = export_model(o, model, files, err);
		model_free(model);
	}
	store_reader_close(reader);
	return code;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct export_options options = {.to_ns = UINT64_MAX};
	struct error err = ERROR_INIT;
	struct capture_files files;
	int first, code = options_parse(command, argc, argv, false, &options, &first, &err);

	if (code)
		return command_parse_failed(command, code, &err);
	if (argc - first < 1) {
		error_set(&err, EINVAL, "which FILE?");
		return command_fail(command, &err, EXIT_USAGE);
	}
	if (options.process && (argc - first > 1 || options.output || options.json)) {
		error_set(&err, EINVAL, "--process takes one FILE, and no --output or --json");
		return command_fail(command, &err, EXIT_USAGE);
	}
	if (argc - first > 1 && !options.output) {
		error_set(&err, EINVAL, "say with --output where to write what several files make");
		return command_fail(command, &err, EXIT_USAGE);
	}
	if (options.from_ns >= options.to_ns) {
		error_set(&err, EINVAL, "--from and --to: nothing is between them");
		return command_fail(command, &err, EXIT_USAGE);
	}
	files = capture_files_of(argc, argv, first);
	return filter_options_on_files(command, &options.filter, &files, options.json, export_files,
				       &options);
}

const struct command command_export = {
	.name = "export",
	.arguments = "FILE…",
	.summary = "Write a .waffle file in the format of another tool",
	.details = "In Perfetto, spans are slices on their threads, with their keys as arguments. "
		   "Events are instants, and links are arrows from cause to effect. The CPU tracks "
		   "and the thread states show what the scheduler did. Lost records are marked on "
		   "a track of their own.",
	.options = rows,
	.option_count = sizeof(rows) / sizeof(rows[0]),
	.reads_captures = true,
	.run = run,
};
