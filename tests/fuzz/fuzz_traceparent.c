// SPDX-License-Identifier: Apache-2.0
/* Any text as a W3C traceparent. If it is accepted, writing it yields the same text, except for
 * version and flags. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "waffle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), again[WAFFLE_TRACEPARENT_SIZE];
	waffle_context_t context;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (waffle_context_from_traceparent(text, &context)) {
		if (!waffle_context_to_traceparent(context, again) ||
		    memcmp(again + 2, text + 2, 51) != 0)
			abort();
	} else if (context.span_id || context.trace_hi || context.trace_lo) {
		abort();
	}
	free(text);
	return 0;
}
