// SPDX-License-Identifier: Apache-2.0
/* waffle-bpf list: prints the sites and calls of files, or of a process and all its libraries. */
#include <stdio.h>
#include <string.h>

#include "cmd/command_internal.h"
#include "cmd/probe_options_internal.h"
#include "target/elf/objects.h"
#include "target/process/process.h"
#include "util/json.h"
#include "util/terminal.h"
#include "util/units.h"

struct list_options {
	uint64_t pid;
	bool json;
	struct probe_options probes;
};

static const struct option_row rows[] = {
	{"pid", 'p', "PID", "List the sites and calls of a running process and its libraries.",
	 .at = offsetof(struct list_options, pid), .type = OPTION_NUMBER, .min = 1,
	 .max = PROCESS_PID_MAX},
	PROBE_OPTION_ROWS(struct list_options, probes),
	{"json", 0, NULL, "Print JSON.", .at = offsetof(struct list_options, json)},
};

static const char *key_type_name(char type)
{
	switch (type) {
	case WAFFLE_KEY_I64:
		return "i64";
	case WAFFLE_KEY_U64:
		return "u64";
	case WAFFLE_KEY_F64:
		return "f64";
	case WAFFLE_KEY_BOOL:
		return "bool";
	case WAFFLE_KEY_PTR:
		return "ptr";
	case WAFFLE_KEY_STR:
		return "str";
	case WAFFLE_KEY_NUMBER:
		return "number";
	case WAFFLE_KEY_CAUSE_SPAN:
		return "cause_span";
	case WAFFLE_KEY_CAUSE_EVENT:
		return "cause_event";
	case WAFFLE_KEY_CODE:
		return "code";
	case WAFFLE_KEY_DIM3:
		return "dim3";
	default:
		return "?";
	}
}

static const char *const probe_types[] = {
	[OBJECT_PROBE_SITE] = "site",    [OBJECT_PROBE_INSTANT] = "entry",
	[OBJECT_PROBE_INNER] = "entry",  [OBJECT_PROBE_ENTER] = "entry",
	[OBJECT_PROBE_LEAVE] = "return", [OBJECT_PROBE_END] = "end",
	[OBJECT_PROBE_RETURN] = "ret",
};
static const char *const probe_costs[] = {
	[OBJECT_COST_UNKNOWN] = "unknown",   [OBJECT_COST_OPTIMISED] = "optimised",
	[OBJECT_COST_EMULATED] = "emulated", [OBJECT_COST_STEPPED] = "single-stepped",
	[OBJECT_COST_REFUSED] = "refused",
};

static unsigned copies(const struct object *object, size_t site)
{
	unsigned count = 0;

	for (size_t i = 0; i < object->probes.len; i++)
		count += object->probes.data[i].site == site &&
			 object->probes.data[i].type != OBJECT_PROBE_LEAVE &&
			 object->probes.data[i].type != OBJECT_PROBE_RETURN;
	return count;
}

/* Output for people: a file's sites, one a line. */
static void print_text(const char *text)
{
	terminal_put(stdout, text, strlen(text));
}

static void print_site(const struct site_info *site)
{
	printf("  %-9s ", site_kind_name(site->kind));
	print_text(site->name);
	if (!site->call) {
		printf("  ");
		print_text(site->file);
		printf(":%u", site->line);
	}
	if (site->func[0] && (!site->call || strcmp(site->func, site->name))) {
		printf(" in ");
		print_text(site->func);
	}
	if (site->category[0]) {
		printf(" [");
		print_text(site->category);
		putchar(']');
	}
	for (unsigned k = 0; k < site->key_count; k++) {
		printf("%s%s ", k ? ", " : "  (", key_type_name(site->keys[k].type));
		print_text(site->keys[k].name);
	}
	puts(site->key_count ? ")" : "");
}

/* Prints where a call is probed, and how. */
static void print_probes(const struct object *object, size_t site)
{
	const char *func = object->sites.data[site].func;

	for (size_t i = 0; i < object->probes.len; i++) {
		const struct object_probe *probe = &object->probes.data[i];

		if (probe->site != site)
			continue;
		printf("            %s ", probe_types[probe->type]);
		if (func[0] && probe->type != OBJECT_PROBE_END) {
			print_text(func);
			if (probe->shift)
				printf("+%u", probe->shift);
			putchar(' ');
		}
		printf("at 0x%llx, %s\n", (unsigned long long)probe->offset,
		       probe_costs[probe->cost]);
	}
}

static size_t call_count(const struct object *object)
{
	size_t count = 0;

	for (size_t i = 0; i < object->sites.len; i++)
		count += object->sites.data[i].call;
	return count;
}

static void print_object(const struct object *object)
{
	size_t calls = call_count(object), sites = object->sites.len - calls;

	print_text(object->path);
	if (sites || !calls)
		printf(": %zu site%s", sites, units_plural(sites, "", "s"));
	if (calls)
		printf("%s %zu call%s", sites ? "," : ":", calls, units_plural(calls, "", "s"));
	puts(object->simulation ? ", simulated" : "");
	for (size_t i = 0; i < object->sites.len; i++) {
		print_site(&object->sites.data[i]);
		if (object->sites.data[i].call)
			print_probes(object, i);
	}
}

static void print_tracepoints(const struct call_set *calls)
{
	const struct call_tracepoint *list;
	size_t count = call_set_tracepoints(calls, &list);

	if (count)
		printf("kernel: %zu tracepoint%s\n", count, units_plural(count, "", "s"));
	for (size_t i = 0; i < count; i++) {
		print_site(&list[i].site);
		printf("            tracepoint ");
		print_text(list[i].name);
		putchar('\n');
	}
}

static void json_probes(struct json *json, const struct object *object, size_t site)
{
	json_key(json, "probes");
	json_array_begin(json);
	for (size_t i = 0; i < object->probes.len; i++) {
		const struct object_probe *probe = &object->probes.data[i];

		if (probe->site != site)
			continue;
		json_object_begin(json);
		json_field_string(json, "at", probe_types[probe->type]);
		json_field_u64(json, "offset", probe->offset);
		json_field_u64(json, "shift", probe->shift);
		json_field_string(json, "cost", probe_costs[probe->cost]);
		json_object_end(json);
	}
	json_array_end(json);
}

/* Writes the members that all sites have; the object stays open. */
static void json_site_begin(struct json *json, const struct site_info *site)
{
	json_object_begin(json);
	json_field_string(json, "kind", site_kind_name(site->kind));
	json_field_string(json, "name", site->name);
	json_field_string(json, "category", site->category);
	json_field_string(json, "file", site->file);
	json_field_u64(json, "line", site->line);
	json_field_string(json, "func", site->func);
	json_key(json, "call");
	json_bool(json, site->call);
	json_key(json, "simulated");
	json_bool(json, site->simulated);
	json_key(json, "keys");
	json_array_begin(json);
	for (unsigned k = 0; k < site->key_count; k++) {
		json_object_begin(json);
		json_field_string(json, "name", site->keys[k].name);
		json_field_string(json, "type", key_type_name(site->keys[k].type));
		json_object_end(json);
	}
	json_array_end(json);
}

static void json_site(struct json *json, const struct object *object, size_t index)
{
	json_site_begin(json, &object->sites.data[index]);
	json_field_string(json, "lib", object->path);
	json_field_u64(json, "copies", copies(object, index));
	if (object->sites.data[index].call)
		json_probes(json, object, index);
	json_object_end(json);
}

static int print_json(const struct objects *objects, const struct call_set *calls)
{
	const struct call_tracepoint *tracepoints;
	size_t count = call_set_tracepoints(calls, &tracepoints);
	struct json *json = json_new(stdout, true);

	json_object_begin(json);
	json_key(json, "sites");
	json_array_begin(json);
	for (size_t i = 0; i < objects->list.len; i++)
		for (size_t s = 0; s < objects->list.data[i]->sites.len; s++)
			json_site(json, objects->list.data[i], s);
	for (size_t i = 0; i < count; i++) {
		json_site_begin(json, &tracepoints[i].site);
		json_field_string(json, "tracepoint", tracepoints[i].name);
		json_object_end(json);
	}
	json_array_end(json);
	json_field_u64(json, "bad_notes", objects->bad_notes);
	json_object_end(json);
	return json_close(json) ? EXIT_FAILED : EXIT_DONE;
}

/* Probe specs that match nothing. */
struct list_unfound {
	const struct command *command;
	bool missing;
};

static void unfound_print(const char *line, bool missing, void *arg)
{
	struct list_unfound *unfound = arg;

	unfound->missing |= missing;
	terminal_fault(stderr, "waffle-bpf: %s: %s", unfound->command->name, line);
}

static int print(const struct command *command, const struct objects *objects,
		 const struct list_options *options)
{
	const struct call_tracepoint *tracepoints;
	struct list_unfound unfound = {.command = command};
	size_t sites = call_set_tracepoints(options->probes.calls, &tracepoints);
	int code = EXIT_DONE;

	if (options->json) {
		code = print_json(objects, options->probes.calls);
	} else {
		for (size_t i = 0; i < objects->list.len; i++) {
			sites += objects->list.data[i]->sites.len;
			if (objects->list.data[i]->sites.len)
				print_object(objects->list.data[i]);
		}
		print_tracepoints(options->probes.calls);
		if (!sites && !objects->denied.message[0])
			puts(options->pid && process_is_kernel_thread(options->pid)
				     ? "no sites: it is a thread of the kernel"
				     : "no sites: built without waffle.h, or its notes were "
				       "stripped; "
				       "and no calls of CUDA or NCCL");
		if (objects->bad_notes)
			terminal_message(
				stderr, "waffle-bpf: list: %llu %s no sense: left out",
				(unsigned long long)objects->bad_notes,
				units_plural(objects->bad_notes, "note makes", "notes make"));
	}
	fflush(stdout);
	call_set_unfound(options->probes.calls,
			 options->pid ? CALL_SCOPE_PROCESS : CALL_SCOPE_FILES, unfound_print,
			 &unfound);
	if (objects->denied.message[0])
		code = command_fail(command, &objects->denied, EXIT_FAILED);
	return code == EXIT_DONE && unfound.missing ? EXIT_FAILED : code;
}

static int calls_find(struct object *object, int fd, void *arg, struct error *err)
{
	return call_set_wants(arg, object->path) ? call_set_find(arg, object, fd, err) : 0;
}

static int list(const struct command *command, const struct list_options *options, int argc,
		char **argv)
{
	struct objects objects = {.more = calls_find, .arg = options->probes.calls};
	struct error err = ERROR_INIT;
	int code, result = 0;

	if (options->pid) {
		call_set_process(options->probes.calls, (pid_t)options->pid);
		result = objects_add_process(&objects, (pid_t)options->pid, &err);
		call_set_process(options->probes.calls, 0);
	}
	for (int i = 0; i < argc && !result; i++)
		result = objects_add_file(&objects, argv[i], &err);
	code = result ? command_fail(command, &err, EXIT_FAILED)
		      : print(command, &objects, options);
	objects_free(&objects);
	return code;
}

/* They are in no file, but in the memory of a process that has imported them. */
static int functions_refuse(const struct command *command)
{
	struct error err = ERROR_INIT;

	error_set(&err, EINVAL, "functions of Python are found by attach and run only");
	return command_fail(command, &err, EXIT_USAGE);
}

static int run(const struct command *command, int argc, char **argv)
{
	struct list_options options = {0};
	struct error err = ERROR_INIT;
	int first, code = options_parse(command, argc, argv, false, &options, &first, &err);

	if (!code && first == argc && !options.pid)
		code = error_set(&err, EINVAL, "nothing to list; give a FILE or --pid PID");
	if (code)
		code = command_parse_failed(command, code, &err);
	else if ((code = probe_options_open(command, &options.probes, ~0u)) == EXIT_DONE)
		code = options.probes.function_count
			       ? functions_refuse(command)
			       : list(command, &options, argc - first, argv + first);
	probe_options_free(&options.probes);
	return code;
}

const struct command command_list = {
	.name = "list",
	.arguments = "[FILE…]",
	.summary = "List the sites and calls of ELF files or of a running process",
	.details = "Reads the notes that the macros of waffle.h leave in a program or library, and "
		   "looks for the calls of CUDA, NCCL and --probe. Runs and arms nothing. With "
		   "--pid, reads all files that the process has mapped, including deleted files "
		   "and those of a container. For each call, shows where it is probed and how the "
		   "kernel executes the instruction there. A single-stepped instruction costs "
		   "about twenty times as much as an emulated one.",
	.options = rows,
	.option_count = sizeof(rows) / sizeof(rows[0]),
	.run = run,
};
