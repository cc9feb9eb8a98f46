/* SPDX-License-Identifier: Apache-2.0 */
/* The options about filters, which attach, run, report and export share. */
#ifndef WAFFLE_CMD_FILTER_OPTIONS_H
#define WAFFLE_CMD_FILTER_OPTIONS_H

#include "cmd/command.h"
#include "filter/filter.h"
#include "store/store.h"

struct filter_options {
	const char *argument; /* of --filter; NULL: not given */
	bool keep_children, explain;
	struct filter_expr *filter; /* by filter_options_open(); NULL: none */
};

/* The rows of a command whose options struct has a struct filter_options as `member`. */
#define FILTER_OPTION_ROWS(type, member)                                                           \
	{"filter", 0, "EXPR",                                                                      \
	 "keep only what matches, such as 'name ~ \"nccl*\" && dur > 10ms'; @FILE reads the "      \
	 "expression from a file; default: $WAFFLE_FILTER ('' turns that off); see "               \
	 "docs/filter.md",                                                                         \
	 .at = offsetof(type, member.argument)},                                                   \
		{"keep-children", 0, NULL,                                                         \
		 "with --filter, keep also what happened inside a span that matches",              \
		 .at = offsetof(type, member.keep_children)},                                      \
	{                                                                                          \
		"explain", 0, NULL,                                                                \
			"show how the filter would be carried out, and where, and do nothing "     \
			"else",                                                                    \
			.at = offsetof(type, member.explain)                                       \
	}

/* The expression of --filter, or else of the environment. EXIT_DONE, or what is wrong was printed
 * and the command has to end with this code. */
enum exit_code filter_options_open(const struct command *command, struct filter_options *options);
void filter_options_free(struct filter_options *options);

/* Opens the file that the filter is for, and says on stderr if a key of the filter is declared by
 * no site of it. */
int filter_options_open_file(const struct command *command, const struct filter_options *options,
			     const char *file, struct store_reader **reader, struct error *err);
/* What a command does with its file, for filter_options_on_file(); `cli` are its options. Returns
 * 0, EXIT_READER_GONE or a negative errno. */
typedef int (*filter_file_work)(const struct command *command, const void *cli, const char *file,
				struct error *err);
/* All that is left to do for a command that reads a file, once its usage is right: the filter, then
 * the work, or with --explain what the filter means for the file (as JSON if `json`). Errors are
 * printed, and the filter is freed. */
enum exit_code filter_options_on_file(const struct command *command, struct filter_options *options,
				      const char *file, bool json, filter_file_work work,
				      const void *cli);

#endif
