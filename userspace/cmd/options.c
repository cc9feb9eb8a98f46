// SPDX-License-Identifier: Apache-2.0
#include "cmd/command_internal.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/help_internal.h"
#include "util/memory_limit.h"
#include "util/suggest.h"
#include "util/terminal.h"
#include "util/units.h"

/* State of options_parse(). Positional arguments are collected at the front of argv during the
 * parse. */
struct option_parse {
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

static int unknown_option(const struct option_parse *parse, const char *name, size_t len)
{
	char word[64];

	snprintf(word, sizeof(word), "%.*s", (int)len, name);
	for (size_t i = 0; i < parse->command->option_count; i++)
		if (suggest_similar(word, parse->command->options[i].name))
			return error_set(parse->err, EINVAL,
					 "--%s: no such option; did you mean --%s?", word,
					 parse->command->options[i].name);
	return error_set(parse->err, EINVAL, "--%s: no such option; see waffle-bpf help %s", word,
			 parse->command->name);
}

static bool parses(enum option_type type, const char *value, uint64_t *result)
{
	switch (type) {
	case OPTION_TIME:
		return units_parse_duration(value, result);
	case OPTION_SIZE:
		return units_parse_bytes(value, result);
	default:
		return units_parse_number(value, result);
	}
}

/* A bound as a user may write it. */
static char *bound_text(char text[UNITS_TEXT], enum option_type type, uint64_t bound)
{
	static const struct bound_unit {
		uint64_t size;
		const char *name;
	} times[] = {{1000000000, "s"}, {1000000, "ms"}, {1000, "us"}, {1, "ns"}},
	  sizes[] = {{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}, {1, ""}};
	const struct bound_unit *unit = type == OPTION_TIME ? times : sizes;

	while (bound % unit->size)
		unit++;
	snprintf(text, UNITS_TEXT, "%" PRIu64 "%s", bound / unit->size, unit->name);
	return text;
}

static int out_of_bounds(const struct option_row *row, const char *value, struct error *err)
{
	char min[UNITS_TEXT], max[UNITS_TEXT];

	if (row->max)
		return error_set(err, EINVAL, "--%s: '%s' is not between %s and %s", row->name,
				 value, bound_text(min, row->type, row->min),
				 bound_text(max, row->type, row->max));
	if (row->min == 1)
		return error_set(err, EINVAL, "--%s: must be longer than 0", row->name);
	return error_set(err, EINVAL, "--%s: must be at least %s", row->name,
			 bound_text(min, row->type, row->min));
}

static int option_value(const struct option_row *row, const char *value, uint64_t *result,
			struct error *err)
{
	static const char *const faults[] = {
		[OPTION_TIME] = "a time, write 10s, 500ms, 1m30s",
		[OPTION_SIZE] = "a size, write 64MiB, 512k, 4096",
	};
	uint64_t parsed, max = row->max ? row->max : UINT64_MAX;
	bool valid = parses(row->type, value, &parsed);

	if (valid && parsed >= row->min && parsed <= max) {
		*result = parsed;
		return 0;
	}
	if (row->type >= OPTION_NUMBER)
		return error_set(err, EINVAL,
				 "--%s: '%s' is not a number from %" PRIu64 " to %" PRIu64,
				 row->name, value, row->min, max);
	return valid ? out_of_bounds(row, value, err)
		     : error_set(err, EINVAL, "--%s: '%s' is not %s", row->name, value,
				 faults[row->type]);
}

/* Finds the choice with this name, or lists all. */
static int choice_find(const struct option_row *row, const char *value, unsigned *index,
		       struct error *err)
{
	char list[256] = "", what[32] = "";
	const char *name, *help;

	for (unsigned i = 0; (name = row->choice(i, &help)); i++) {
		size_t len = strlen(list);

		if (!strcmp(name, value)) {
			*index = i;
			return 0;
		}
		snprintf(list + len, sizeof(list) - len, "%s%s",
			 !i                          ? ""
			 : row->choice(i + 1, &help) ? ", "
						     : " or ",
			 name);
	}
	for (size_t i = 0; row->argument[i] && i < sizeof(what) - 1; i++)
		what[i] = (char)tolower((unsigned char)row->argument[i]);
	return error_set(err, EINVAL, "--%s: unknown %s '%s'; write %s", row->name, what, value,
			 list);
}

static int option_set(const struct option_row *row, const char *value, void *place,
		      struct error *err)
{
	uint64_t number;
	int result;

	switch (row->type) {
	case OPTION_PLAIN:
	case OPTION_PATH:
		if (!row->argument)
			*(bool *)place = true;
		else if (!*value && row->type == OPTION_PATH)
			return error_set(err, EINVAL, "--%s: the name is empty", row->name);
		else
			*(const char **)place = value;
		return 0;
	case OPTION_UNSET:
		*(bool *)place = false;
		return 0;
	case OPTION_CHOICE:
		return choice_find(row, value, place, err);
	case OPTION_LIST:
		return vec_push((option_list *)place, (struct option_item){row, value})
			       ? 0
			       : error_set(err, ENOMEM, "out of memory");
	case OPTION_NUMBERS:
		result = option_value(row, value, &number, err);
		return result || vec_push((option_numbers *)place, number)
			       ? result
			       : error_set(err, ENOMEM, "out of memory");
	default:
		return option_value(row, value, place, err);
	}
}

/* Gets the value of an option from `glued`, the text attached to it, or from the next argument. */
static int option_apply(struct option_parse *parse, const struct option_row *row, const char *glued)
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
	return option_set(row, value, (char *)parse->options + row->at, parse->err);
}

static int parse_long(struct option_parse *parse, const char *text)
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
static int parse_letters(struct option_parse *parse, const char *text)
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

static void keep_positional(struct option_parse *parse, char *argument)
{
	parse->argv[parse->positional++] = argument;
}

int options_parse(const struct command *command, int argc, char **argv, bool stop_at_first,
		  void *options, int *first, struct error *err)
{
	struct option_parse parse = {
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
