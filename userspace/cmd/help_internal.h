/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Help generated from the command tables: for a terminal, as a man page (roff), and as Markdown.
 * Options that every command has (--help) are added here.
 */
#ifndef WAFFLE_CMD_HELP_INTERNAL_H
#define WAFFLE_CMD_HELP_INTERNAL_H

#include <stdio.h>

#include "cmd/command_internal.h"

struct command_table {
	const struct command *const *commands;
	size_t count;
};

/* The help of one command, or the overview of all. */
void help_command(FILE *out, const struct command *command);
void help_overview(FILE *out, const struct command_table *table);

/* The man page waffle-bpf(8) and docs/commands.md. */
void help_man(FILE *out, const struct command_table *table);
void help_markdown(FILE *out, const struct command_table *table);

#endif
