/* SPDX-License-Identifier: Apache-2.0 */
/* --align, for commands that read the files of a job. */
#ifndef WAFFLE_CMD_ALIGN_OPTIONS_INTERNAL_H
#define WAFFLE_CMD_ALIGN_OPTIONS_INTERNAL_H

#include "cmd/command_internal.h"
#include "model/clock/clock.h"
#include "store/store.h"

/* The row for a command whose options struct has an enum clock_align as `member`. */
#define ALIGN_OPTION_ROW(options, member)                                                          \
	{                                                                                          \
		"align", 0, "METHOD", "Align the clocks of a job's hosts. Default: auto.",         \
			.type = OPTION_CHOICE, .at = offsetof(options, member),                    \
			.choice = align_option_choice                                              \
	}

const char *align_option_choice(size_t index, const char **help);

/* Sets the clocks of all hosts of a reader, and warns on stderr of those that could not be aligned.
 * Returns 0 or a negative errno with a message. */
int align_clocks(const struct command *command, struct store_reader *reader, enum clock_align how,
		 struct error *err);

#endif
