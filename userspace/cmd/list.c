// SPDX-License-Identifier: Apache-2.0
/* waffle-bpf list: the sites of files, or of a process and all its libraries. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/command.h"
#include "target/object.h"
#include "target/process.h"
#include "util/json.h"

struct list_options {
	uint64_t pid;
	bool json;
};

/* What was gathered: objects, each file once. */
struct listing {
	VEC(struct object *) objects;
	uint64_t bad_notes;
};

static int set_pid(void *options, const char *value, struct error *err)
{
	return option_number("pid", value, 1, 4194304, &((struct list_options *)options)->pid, err);
}

static int set_json(void *options, const char *value, struct error *err)
{
	(void)value;
	(void)err;
	((struct list_options *)options)->json = true;
	return 0;
}

static const struct option_row rows[] = {
	{"pid", 'p', "PID", "list the sites of a running process and of its libraries", set_pid},
	{"json", 0, NULL, "print JSON", set_json},
};

static bool listed(const struct listing *listing, const struct object *object)
{
	for (size_t i = 0; i < listing->objects.len; i++)
		if (listing->objects.data[i]->dev == object->dev &&
		    listing->objects.data[i]->ino == object->ino)
			return true;
	return false;
}

static int list_fd(struct listing *listing, int fd, const char *path, struct error *err)
{
	struct object *object;
	int result = object_read(&object, fd, path, err);

	if (result)
		return result;
	if (listed(listing, object) || !vec_push(&listing->objects, object))
		object_free(object);
	else
		listing->bad_notes += object->bad_notes;
	return 0;
}

static int list_file(struct listing *listing, const char *path, struct error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), result;

	if (fd < 0)
		return error_set(err, errno, "%s: %s", path, strerror(errno));
	result = list_fd(listing, fd, path, err);
	close(fd);
	return result;
}

static int list_process(struct listing *listing, pid_t pid, struct error *err)
{
	struct mappings mappings;
	int result = process_check(pid, err) ?: process_mappings(&mappings, pid, err);

	if (result)
		return result;
	if (!mappings.list.len && geteuid() != 0)
		result = error_set(err, EPERM, "pid %d: its mappings can't be read; run as root",
				   pid);
	for (size_t i = 0; i < mappings.list.len && !result; i++) {
		struct error ignored = ERROR_INIT; /* mapped data that is not ELF is no error */
		char path[4096];
		int fd = mapping_open(&mappings.list.data[i], pid, path, sizeof(path));

		if (fd < 0)
			continue;
		list_fd(listing, fd, mappings.list.data[i].path, &ignored);
		close(fd);
	}
	mappings_free(&mappings);
	return result;
}

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

static int print_json(const struct listing *listing)
{
	struct json *json = json_new(stdout, true);

	json_object_begin(json);
	json_key(json, "sites");
	json_array_begin(json);
	for (size_t i = 0; i < listing->objects.len; i++)
		for (size_t s = 0; s < listing->objects.data[i]->sites.len; s++)
			json_site(json, listing->objects.data[i], s);
	json_array_end(json);
	json_field_u64(json, "bad_notes", listing->bad_notes);
	json_object_end(json);
	return json_close(json) ? EXIT_FAILED : EXIT_DONE;
}

static int print(const struct listing *listing, bool json)
{
	size_t sites = 0;

	if (json)
		return print_json(listing);
	for (size_t i = 0; i < listing->objects.len; i++) {
		sites += listing->objects.data[i]->sites.len;
		if (listing->objects.data[i]->sites.len)
			print_object(listing->objects.data[i]);
	}
	if (!sites)
		puts("no sites: built without waffle.h, or its notes were stripped");
	if (listing->bad_notes)
		fprintf(stderr, "waffle-bpf: list: %llu notes make no sense and were left out\n",
			(unsigned long long)listing->bad_notes);
	return EXIT_DONE;
}

static int list(struct listing *listing, const struct list_options *options, int argc, char **argv,
		struct error *err)
{
	int result = options->pid ? list_process(listing, (pid_t)options->pid, err) : 0;

	for (int i = 0; i < argc && !result; i++)
		result = list_file(listing, argv[i], err);
	return result;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct list_options options = {0};
	struct listing listing = {0};
	struct error err = ERROR_INIT;
	int first, code = options_parse(command, argc, argv, false, &options, &first, &err);

	if (!code && first == argc && !options.pid)
		code = error_set(&err, EINVAL, "nothing to list; give a FILE or --pid PID");
	if (code)
		return command_parse_failed(command, code, &err);
	code = list(&listing, &options, argc - first, argv + first, &err)
		       ? command_fail(command, &err, EXIT_FAILED)
		       : print(&listing, options.json);
	for (size_t i = 0; i < listing.objects.len; i++)
		object_free(listing.objects.data[i]);
	vec_free(&listing.objects);
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
