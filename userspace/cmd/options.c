// SPDX-License-Identifier: Apache-2.0
#include "cmd/command.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/help.h"
#include "util/memory_limit.h"
#include "util/near.h"
#include "util/terminal.h"
#include "util/units.h"

/* State of options_parse(). Positional arguments are collected at the front of argv during the
 * parse. */
#define MEMORY_LIMIT_MIN (64u << 20)

struct parse {
	const struct command *command;
	int argc;
	char **argv;
	int at;         /* next argument */
	int positional; /* number of positional arguments found */
	void *options;
	struct error *err;
};

static const struct option_row *row_by_name(const struct command *command, const char *name,
					    size_t len)
{
	for (size_t i = 0; i < command->option_count; i++)
		if (strlen(command->options[i].name) == len &&
		    !memcmp(command->options[i].name, name, len))
			return &command->options[i];
	return NULL;
}

static const struct option_row *row_by_letter(const struct command *command, char letter)
{
	for (size_t i = 0; i < command->option_count; i++)
		if (command->options[i].letter == letter)
			return &command->options[i];
	return NULL;
}

static int unknown_option(const struct parse *parse, const char *name, size_t len)
{
	char word[64];

	snprintf(word, sizeof(word), "%.*s", (int)len, name);
	for (size_t i = 0; i < parse->command->option_count; i++)
		if (near_name(word, parse->command->options[i].name))
			return error_set(parse->err, EINVAL,
					 "--%s: no such option; did you mean --%s?", word,
					 parse->command->options[i].name);
	return error_set(parse->err, EINVAL, "--%s: no such option; see waffle-bpf help %s", word,
			 parse->command->name);
}

/* Gets the value of an option from `glued`, the text attached to it, or from the next argument. */
static int option_apply(struct parse *parse, const struct option_row *row, const char *glued)
{
	const char *value = glued;

	if (!row->argument && glued)
		return error_set(parse->err, EINVAL, "--%s takes no value, got '%s'", row->name,
				 glued);
	if (row->argument && !value) {
		if (parse->at == parse->argc)
			return error_set(parse->err, EINVAL, "--%s needs a value: --%s %s",
					 row->name, row->name, row->argument);
		value = parse->argv[parse->at++];
	}
	if (row->set)
		return row->set((char *)parse->options + row->at, value, parse->err);
	if (row->argument)
		*(const char **)((char *)parse->options + row->at) = value;
	else
		*(bool *)((char *)parse->options + row->at) = true;
	return 0;
}

static int parse_long(struct parse *parse, const char *text)
{
	const char *equals = strchr(text, '=');
	size_t len = equals ? (size_t)(equals - text) : strlen(text);
	const struct option_row *row = row_by_name(parse->command, text, len);

	if (row)
		return option_apply(parse, row, equals ? equals + 1 : NULL);
	if (!strcmp(text, "help")) {
		help_command(stdout, parse->command);
		return -ECANCELED;
	}
	return unknown_option(parse, text, len);
}

/* Letters may be combined: -ab. The first one that takes a value takes the rest: -oFILE. */
static int parse_letters(struct parse *parse, const char *text)
{
	while (*text) {
		const struct option_row *row = row_by_letter(parse->command, *text);
		int ret;

		if (!row && *text == 'h') {
			help_command(stdout, parse->command);
			return -ECANCELED;
		}
		if (!row)
			return error_set(parse->err, EINVAL,
					 "-%c: no such option; see waffle-bpf help %s", *text,
					 parse->command->name);
		text++;
		if (row->argument)
			return option_apply(parse, row, *text ? text : NULL);
		ret = option_apply(parse, row, NULL);
		if (ret)
			return ret;
	}
	return 0;
}

static void keep_positional(struct parse *parse, char *argument)
{
	parse->argv[parse->positional++] = argument;
}

int options_parse(const struct command *command, int argc, char **argv, bool stop_at_first,
		  void *options, int *first, struct error *err)
{
	struct parse parse = {
		.command = command, .argc = argc, .argv = argv, .options = options, .err = err};
	bool ended = false;

	while (parse.at < argc) {
		char *argument = argv[parse.at++];
		int ret = 0;

		if (ended || argument[0] != '-' || !argument[1]) {
			keep_positional(&parse, argument);
			ended = ended || stop_at_first;
		} else if (!strcmp(argument, "--")) {
			ended = true;
		} else if (argument[1] == '-') {
			ret = parse_long(&parse, argument + 2);
		} else {
			ret = parse_letters(&parse, argument + 1);
		}
		if (ret)
			return ret;
	}
	*first = argc - parse.positional;
	memmove(argv + *first, argv, (size_t)parse.positional * sizeof(*argv));
	return 0;
}

int option_duration(const char *name, const char *value, uint64_t *ns, struct error *err)
{
	if (units_parse_duration(value, ns))
		return 0;
	return error_set(err, EINVAL, "--%s: '%s' is not a time, write 10s, 500ms, 1m30s", name,
			 value);
}

int option_bytes(const char *name, const char *value, uint64_t *bytes, struct error *err)
{
	if (units_parse_bytes(value, bytes))
		return 0;
	return error_set(err, EINVAL, "--%s: '%s' is not a size, write 64MiB, 512k, 4096", name,
			 value);
}

int option_number(const char *name, const char *value, uint64_t min, uint64_t max, uint64_t *number,
		  struct error *err)
{
	uint64_t parsed;

	if (units_parse_number(value, &parsed) && parsed >= min && parsed <= max) {
		*number = parsed;
		return 0;
	}
	return error_set(err, EINVAL, "--%s: '%s' is not a number from %" PRIu64 " to %" PRIu64,
			 name, value, min, max);
}

int set_memory_limit(void *options, const char *value, struct error *err)
{
	uint64_t bytes;
	int result = option_bytes("memory-limit", value, &bytes, err);

	(void)options;
	if (!result && bytes < MEMORY_LIMIT_MIN)
		result = error_set(err, EINVAL, "--memory-limit: must be at least 64MiB");
	if (!result)
		memory_limit_set(bytes);
	return result;
}

int command_fail(const struct command *command, const struct error *err, enum exit_code code)
{
	bool none = command->reads_captures && memory_limit_get() &&
		    strstr(err->message, "out of memory");
	char limit[UNITS_TEXT];

	fflush(stdout);
	if (none)
		terminal_fault(stderr,
			       "waffle-bpf: %s: %s; the limit is %s, and --memory-limit sets "
			       "another",
			       command->name, err->message,
			       units_format_bytes(limit, memory_limit_get()));
	else
		terminal_fault(stderr, "waffle-bpf: %s: %s", command->name, err->message);
	return code;
}

int command_parse_failed(const struct command *command, int parse_result, const struct error *err)
{
	return parse_result == -ECANCELED ? EXIT_DONE : command_fail(command, err, EXIT_USAGE);
}
