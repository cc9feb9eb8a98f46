/* SPDX-License-Identifier: Apache-2.0 */
/* Filter options, shared by attach, run, report and export. */
#ifndef WAFFLE_CMD_FILTER_OPTIONS_INTERNAL_H
#define WAFFLE_CMD_FILTER_OPTIONS_INTERNAL_H

#include "cmd/align_options_internal.h"
#include "cmd/capture_files_internal.h"
#include "cmd/command_internal.h"
#include "filter/filter.h"
#include "store/store.h"

struct filter_options {
	const char *argument; /* of --filter; NULL: not given */
	bool keep_children, explain;
	unsigned align;             /* enum clock_align, of commands that read files */
	uint64_t memory_limit;      /* of commands that read a file; 0: the default */
	struct filter_expr *filter; /* set by filter_options_open(); NULL: no filter */
	const char *where_argument; /* of --where; NULL: not given */
	struct filter_expr *where;  /* set by filter_options_open(); NULL: all spans */
};

/* Rows for a command whose options struct has a struct filter_options as `member`. */
#define FILTER_OPTION_ROWS(type, member)                                                           \
	{"filter", 0, "EXPR",                                                                      \
	 "Keep only what matches, such as 'name ~ \"nccl*\" && dur > 10ms'. @FILE "                \
	 "reads the expression from a file. Default: $WAFFLE_FILTER; '' turns that "               \
	 "off. See docs/filter.md.",                                                               \
	 .at = offsetof(type, member.argument)},                                                   \
		{"keep-children", 0, NULL,                                                         \
		 "With --filter, also keep what happened inside a span that matches.",             \
		 .at = offsetof(type, member.keep_children)},                                      \
	{                                                                                          \
		"explain", 0, NULL,                                                                \
			"Show where each part of the filter is decided, and do nothing else.",     \
			.at = offsetof(type, member.explain)                                       \
	}

/* Row of a command that shows a choice of the spans. */
#define WHERE_OPTION_ROW(type, member)                                                             \
	{                                                                                          \
		"where", 0, "EXPR",                                                                \
			"Show only the spans that match, such as 'name == \"request\" && "         \
			"kv.user == 7'. Unlike --filter, it removes nothing: the causes of "       \
			"these spans are looked for in everything.",                               \
			.at = offsetof(type, member.where_argument)                                \
	}

/* Parses the expression of --filter, or else of the environment. Returns EXIT_DONE; otherwise it
 * printed an error, and the command has to exit with this code. */
enum exit_code filter_options_open(const struct command *command, struct filter_options *options);
void filter_options_free(struct filter_options *options);

/* Opens the files to which the filter applies, and warns on stderr if no site declares a key of the
 * filter. */
int filter_options_open_files(const struct command *command, const struct filter_options *options,
			      const struct capture_files *files, struct store_reader **reader,
			      struct error *err);
/* The work of a command on its files, for filter_options_on_files(). `cli` are the command's
 * options. Returns 0, EXIT_READER_GONE or a negative errno. */
typedef int (*filter_files_work)(const struct command *command, const void *cli,
				 const struct capture_files *files, struct error *err);
/* Does the rest of a command that reads files, after its options were parsed. It opens the filter
 * and runs `work`, or with --explain prints how the filter applies to the files (as JSON if
 * `json`). It prints errors and frees the filter. */
enum exit_code filter_options_on_files(const struct command *command,
				       struct filter_options *options,
				       const struct capture_files *files, bool json,
				       filter_files_work work, const void *cli);

#endif
