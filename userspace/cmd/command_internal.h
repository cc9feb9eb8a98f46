/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command of waffle-bpf is a row in the table of main.c; its options are rows here. Help texts,
 * the man page and docs/commands.md are generated from these tables.
 */
#ifndef WAFFLE_CMD_COMMAND_INTERNAL_H
#define WAFFLE_CMD_COMMAND_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"
#include "util/vec.h"

enum exit_code {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_READER_GONE = 141, /* as shells report an end by SIGPIPE; without a message */
};

enum option_type {
	OPTION_PLAIN,  /* a text, as const char *; of an option without argument a bool, set true */
	OPTION_UNSET,  /* a bool, set false */
	OPTION_PATH,   /* a text that is not empty, as const char * */
	OPTION_CHOICE, /* unsigned: the index of the row's choice with this name */
	OPTION_LIST,   /* option_list: each use of the option adds its text */
	OPTION_TIME,   /* uint64_t: "10s" "500ms" "1m30s", in nanoseconds */
	OPTION_SIZE,   /* uint64_t: "64MiB" "512k", in bytes */
	OPTION_NUMBER, /* uint64_t, decimal */
	OPTION_NUMBERS, /* option_numbers: each use of the option adds one */
};

/* Several options may share a list, which keeps the order in which they were given. */
typedef VEC(struct option_item {
	const struct option_row *row;
	const char *text;
}) option_list;
typedef VEC(uint64_t) option_numbers;

/* An option. Its value is at offset `at` in the command's own options struct. */
struct option_row {
	const char *name;     /* "duration", without dashes */
	char letter;          /* 'o' for -o, or 0 */
	const char *argument; /* "TIME"; NULL: the option takes none */
	const char *help;     /* one sentence */
	size_t at;
	enum option_type type;
	uint64_t min, max; /* of a time, size or number; max 0: no upper bound */
	/* The name of each value that an OPTION_CHOICE takes; NULL: there are no more. Its help is
	 * added to the row's, if it has any. */
	const char *(*choice)(size_t index, const char **help);
};

struct command {
	const char *name;
	const char *arguments; /* for the synopsis: "FILE", "-- CMD…"; "": none */
	const char *summary;   /* one line */
	const char *details;   /* paragraphs for the man page, or "" */
	const struct option_row *options;
	size_t option_count;
	bool reads_captures; /* limits its memory (util/memory_limit.h) */
	/* It may record the capture first, and sets the limit itself after that. */
	bool records;
	/* Runs the command with the arguments after its name. Returns an enum exit_code. */
	int (*run)(const struct command *command, int argc, char **argv);
};

extern const struct command command_attach, command_run, command_list, command_check,
	command_report, command_why, command_view, command_info, command_export, command_demo,
	command_merge, command_repair, command_gpu, command_replay;

/*
 * Parses options into `options` by the command's rows, in GNU style:
 *
 *	--name=value, --name value, -o value; -- ends the options
 *
 * Options may follow positional arguments unless `stop_at_first` is set. Positional arguments are
 * moved to the end: argv[*first] … argv[argc-1]. Returns 0; -ECANCELED after it printed --help
 * (exit with EXIT_DONE); -EINVAL with a message (exit with EXIT_USAGE).
 */
int options_parse(const struct command *command, int argc, char **argv, bool stop_at_first,
		  void *options, int *first, struct error *err);

/* For commands that read captures, whose options struct has a uint64_t as `member`: what they pass
 * to memory_limit_set(), if it is not 0. */
#define MEMORY_OPTION_ROW(options, member)                                                         \
	{                                                                                          \
		"memory-limit", 0, "SIZE",                                                         \
			"Take no more memory than SIZE. Default: half of the machine's.",          \
			.type = OPTION_SIZE, .min = 64u << 20, .at = offsetof(options, member)     \
	}

/* Prints "waffle-bpf: COMMAND: MESSAGE" on stderr and returns the code. */
int command_fail(const struct command *command, const struct error *err, enum exit_code code);
/* Handles an options_parse() that did not return 0. Returns EXIT_DONE after --help; else prints the
 * message and returns EXIT_USAGE. */
int command_parse_failed(const struct command *command, int parse_result, const struct error *err);

#endif
