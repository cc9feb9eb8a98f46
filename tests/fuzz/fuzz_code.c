// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as a function's code, which is decoded to place probes, and as a code object from an
 * interpreter's memory. The first byte of the input selects: x, a, p.
 */
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "probe/args/struct_offsets.h"
#include "probe/find/probe_site.h"
#include "probe/find/return_sites_internal.h"
#include "target/dwarf/callsite.h"
#include "target/process/python.h"
#include "require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ADDRESS 0x401000ull

/* Alternately returns "unknown" and all possible states. */
static enum cfi_stack stack_at(uint64_t address, void *arg)
{
	const int *turn = arg;

	return *turn ? (enum cfi_stack)(address % (CFI_STACK_NONE + 1)) : CFI_STACK_UNKNOWN;
}

static void find_probe_site(uint16_t machine, const uint8_t *code, size_t size)
{
	static const struct probe_site_kernel kernels[] = {{6001, 0}, {6018, 5}, {6018, 10}};

	for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
		for (int whole = 0; whole < 2; whole++) {
			struct probe_site place = probe_site_function(&kernels[i], machine, code,
								      size, whole, ADDRESS);

			require(place.shift < size || !place.shift);
		}
		probe_site_cost(&kernels[i], machine, code, size, ADDRESS);
	}
}

static void find_returns(uint16_t machine, const uint8_t *code, size_t size)
{
	struct return_sites returns = {.count = 0};

	/* Repeats, like functions that jump to each other, until there is no room. */
	for (int turn = 0; turn < 3; turn++) {
		bool all =
			return_sites_add(&returns, machine, code, size, ADDRESS, stack_at, &turn);

		require(returns.count <= RETURN_SITES_MAX && returns.leave_count <= LEAVES_MAX);
		for (uint32_t i = 0; i < returns.count; i++)
			require(returns.list[i] - ADDRESS < size);
		for (uint32_t i = 0; all && i < returns.leave_count; i++)
			require(returns.leaves[i] - ADDRESS >= size);
	}
}

static void read_code(uint16_t machine, const uint8_t *code, size_t size)
{
	int32_t offset;

	find_probe_site(machine, code, size);
	find_returns(machine, code, size);
	struct_offset_in_getter(machine, code, size, ADDRESS, &offset);
	for (size_t at = 0; at + CALLSITE_BYTES <= size; at++) {
		callsite_is_call(code + at, machine);
		callsite_is_pause(code + at, machine);
	}
}

static void read_python(const uint8_t *data, size_t size)
{
	struct waffle_rec_code *code = calloc(1, sizeof(*code));
	struct python python = {.kernel = {.code_instructions = 192}};
	struct python_frame frame;
	uint32_t form;

	require(code);
	memcpy(code, data, size < sizeof(*code) ? size : sizeof(*code));
	for (form = 0; form <= 2; form++) { /* the forms of line tables: 3.11, 3.8 and 3.10 */
		python.kernel.index_bytes = form;
		for (uint64_t at = 0; at < 4096; at += 62) {
			if (!python_frame_of(&python, code, code->code + at, &frame))
				continue;
			require(memchr(frame.function, '\0', sizeof(frame.function)) &&
				memchr(frame.file, '\0', sizeof(frame.file)));
			require(frame.line <= INT32_MAX);
		}
	}
	free(code);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;

	if (size < 2)
		return 0;
	/* A block of exactly this size, so that any access outside is detected. */
	copy = malloc(size - 1);
	require(copy);
	memcpy(copy, data + 1, size - 1);
	if (data[0] == 'p')
		read_python(copy, size - 1);
	else
		read_code(data[0] == 'a' ? EM_AARCH64 : EM_X86_64, copy, size - 1);
	free(copy);
	return 0;
}
