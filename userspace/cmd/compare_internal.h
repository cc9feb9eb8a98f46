/* SPDX-License-Identifier: Apache-2.0 */
/* The option --compare of `why` and `report`. */
#ifndef WAFFLE_CMD_COMPARE_INTERNAL_H
#define WAFFLE_CMD_COMPARE_INTERNAL_H

#include "cmd/filter_options_internal.h"

#define COMPARE_OPTION_ROW(type, member)                                                           \
	{                                                                                          \
		"compare", 0, NULL,                                                                \
			"Compare two captures, FILE FILE: show how much longer or shorter spans "  \
			"take in the second one, by name and cause, the largest change first.",    \
			.at = offsetof(type, member)                                               \
	}

struct compare {
	const struct filter_options *filter;
	const char *name; /* of the spans to compare; NULL: of all */
	uint32_t rows;    /* names shown; 0: all of them, with all causes */
	bool json;
};

/* Prints the comparison of two files. Returns 0 or a negative errno with a message. */
int compare_files(const struct command *command, const struct compare *compare,
		  const struct capture_files *files, struct error *err);

#endif
