// SPDX-License-Identifier: Apache-2.0
/* waffle-bpf list: the sites of files, or of a process and all its libraries. */
#include <stdio.h>

#include "cmd/command.h"
#include "target/objects.h"
#include "util/json.h"

struct list_options {
	uint64_t pid;
	bool json;
};

static int set_pid(void *options, const char *value, struct error *err)
{
	return option_number("pid", value, 1, 4194304, &((struct list_options *)options)->pid, err);
}

static const struct option_row rows[] = {
	{"pid", 'p', "PID", "list the sites of a running process and of its libraries",
	 .set = set_pid},
	{"json", 0, NULL, "print JSON", .at = offsetof(struct list_options, json)},
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

static unsigned copies(const struct object *object, size_t site)
{
	unsigned count = 0;

	for (size_t i = 0; i < object->probes.len; i++)
		count += object->probes.data[i].site == site;
	return count;
}

/* For people: a file's sites, one a line. Control characters of foreign names are not shown as
 * such. */
static void print_text(const char *text)
{
	for (; *text; text++)
		putchar((unsigned char)*text < ' ' || *text == 127 ? '?' : *text);
}

static void print_object(const struct object *object)
{
	print_text(object->path);
	printf(": %zu sites\n", object->sites.len);
	for (size_t i = 0; i < object->sites.len; i++) {
		const struct site_info *site = &object->sites.data[i];

		printf("  %-9s ", site_kind_name(site->kind));
		print_text(site->name);
		printf("  ");
		print_text(site->file);
		printf(":%u", site->line);
		if (site->func[0]) {
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
}

static void json_site(struct json *json, const struct object *object, size_t index)
{
	const struct site_info *site = &object->sites.data[index];

	json_object_begin(json);
	json_field_string(json, "kind", site_kind_name(site->kind));
	json_field_string(json, "name", site->name);
	json_field_string(json, "category", site->category);
	json_field_string(json, "file", site->file);
	json_field_u64(json, "line", site->line);
	json_field_string(json, "func", site->func);
	json_field_string(json, "lib", object->path);
	json_field_u64(json, "copies", copies(object, index));
	json_key(json, "keys");
	json_array_begin(json);
	for (unsigned k = 0; k < site->key_count; k++) {
		json_object_begin(json);
		json_field_string(json, "name", site->keys[k].name);
		json_field_string(json, "type", key_type_name(site->keys[k].type));
		json_object_end(json);
	}
	json_array_end(json);
	json_object_end(json);
}

static int print_json(const struct objects *objects)
{
	struct json *json = json_new(stdout, true);

	json_object_begin(json);
	json_key(json, "sites");
	json_array_begin(json);
	for (size_t i = 0; i < objects->list.len; i++)
		for (size_t s = 0; s < objects->list.data[i]->sites.len; s++)
			json_site(json, objects->list.data[i], s);
	json_array_end(json);
	json_field_u64(json, "bad_notes", objects->bad_notes);
	json_object_end(json);
	return json_close(json) ? EXIT_FAILED : EXIT_DONE;
}

static int print(const struct objects *objects, bool json)
{
	size_t sites = 0;

	if (json)
		return print_json(objects);
	for (size_t i = 0; i < objects->list.len; i++) {
		sites += objects->list.data[i]->sites.len;
		if (objects->list.data[i]->sites.len)
			print_object(objects->list.data[i]);
	}
	if (!sites)
		puts("no sites: built without waffle.h, or its notes were stripped");
	if (objects->bad_notes)
		fprintf(stderr, "waffle-bpf: list: %llu notes make no sense and were left out\n",
			(unsigned long long)objects->bad_notes);
	return EXIT_DONE;
}

static int list(struct objects *objects, const struct list_options *options, int argc, char **argv,
		struct error *err)
{
	int result = options->pid ? objects_add_process(objects, (pid_t)options->pid, err) : 0;

	for (int i = 0; i < argc && !result; i++)
		result = objects_add_file(objects, argv[i], err);
	return result;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct list_options options = {0};
	struct objects objects = {0};
	struct error err = ERROR_INIT;
	int first, code = options_parse(command, argc, argv, false, &options, &first, &err);

	if (!code && first == argc && !options.pid)
		code = error_set(&err, EINVAL, "nothing to list; give a FILE or --pid PID");
	if (code)
		return command_parse_failed(command, code, &err);
	code = list(&objects, &options, argc - first, argv + first, &err)
		       ? command_fail(command, &err, EXIT_FAILED)
		       : print(&objects, options.json);
	objects_free(&objects);
	return code;
}

const struct command command_list = {
	.name = "list",
	.arguments = "[FILE…]",
	.summary = "List the sites of ELF files or of a running process",
	.details =
		"Reads the notes that the macros of waffle.h leave in a program or library; "
		"nothing is run or armed. With --pid, all files that the process has mapped, also "
		"deleted ones and those of a container.",
	.options = rows,
	.option_count = sizeof(rows) / sizeof(rows[0]),
	.run = run,
};
