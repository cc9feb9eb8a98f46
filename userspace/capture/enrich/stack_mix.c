// SPDX-License-Identifier: Apache-2.0
#include "capture/enrich/stack_mix_internal.h"

#include "bpf/stack.h"

_Static_assert(WAFFLE_FRAMES_PYTHON_MAX <= 64, "a bit for each");

/* Whether an address is in [start, end). A return address may be that of the next function's first
 * byte, so for callers the byte before it counts. */
static bool is_in(uint64_t address, uint32_t depth, uint64_t start, uint64_t end)
{
	return address - (depth > 0) - start < end - start;
}

uint32_t stack_mix(const struct stack_mix *mix, const struct python_code_range *interpreter,
		   uint64_t *mixed)
{
	uint32_t count = 0, next = 0;
	bool seen = false;

	for (uint32_t i = 0; i < mix->native_count; i++) {
		uint64_t address = mix->native[i];

		if (next < mix->python_count &&
		    is_in(address, i, interpreter->eval_start, interpreter->eval_end)) {
			do
				mixed[count++] = mix->python[next];
			while (!(mix->python_ends >> next++ & 1) && next < mix->python_count);
			seen = true;
		} else if (!seen || !is_in(address, i, interpreter->start, interpreter->end)) {
			mixed[count++] = address;
		}
	}
	while (next < mix->python_count)
		mixed[count++] = mix->python[next++];
	return count;
}
