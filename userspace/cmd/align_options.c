// SPDX-License-Identifier: Apache-2.0
#include "cmd/align_options_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "util/terminal.h"

const char *align_option_choice(size_t index, const char **help)
{
	static const char *const helps[CLOCK_ALIGN_COUNT] = {
		[CLOCK_ALIGN_AUTO] = "by what the hosts did together, or else by the wall clock.",
		[CLOCK_ALIGN_WALL] = "by the wall clock.",
		[CLOCK_ALIGN_NONE] = "not at all.",
	};

	*help = index < CLOCK_ALIGN_COUNT ? helps[index] : NULL;
	return index < CLOCK_ALIGN_COUNT ? clock_align_names[index] : NULL;
}

int align_clocks(const struct command *command, struct store_reader *reader, enum clock_align how,
		 struct error *err)
{
	uint32_t unaligned;
	int result = clock_align(reader, how, &unaligned, err);

	if (!result && unaligned)
		terminal_message(
			stderr,
			"waffle-bpf: %s: %" PRIu32 " of %" PRIu32
			" hosts: no collective or message with the others is of a "
			"communicator whose creation was recorded, so their clocks are "
			"aligned by the wall clock, and no order of times between hosts is "
			"certain; start the ranks with waffle-bpf run",
			command->name, unaligned, store_reader_host_count(reader));
	return result;
}
