// SPDX-License-Identifier: Apache-2.0
#include "target/dwarf/callsite.h"

#include <elf.h>
#include <string.h>

/* Length of an indirect call, from its ModRM byte and the byte after it. 0: not a call. */
static unsigned indirect_bytes(uint8_t modrm, uint8_t sib)
{
	unsigned mod = modrm >> 6, rm = modrm & 7, bytes = 2;

	if ((modrm >> 3 & 7) != 2) /* only FF /2 is a call */
		return 0;
	if (mod == 3)
		return bytes;
	if (rm == 4)
		bytes++;
	if (mod == 1)
		return bytes + 1;
	if (mod == 2 || rm == 5 || (rm == 4 && (sib & 7) == 5))
		return bytes + 4;
	return bytes;
}

static bool is_call_x86(const uint8_t *before)
{
	if (before[CALLSITE_BYTES - 5] == 0xe8)
		return true;
	for (unsigned bytes = 2; bytes <= CALLSITE_BYTES; bytes++) {
		const uint8_t *code = before + CALLSITE_BYTES - bytes;

		if (code[0] == 0xff && indirect_bytes(code[1], bytes > 2 ? code[2] : 0) == bytes)
			return true;
	}
	return false;
}

/* BL, and BLR with or without pointer authentication (Arm ARM, "Unconditional branch
 * (register)"). */
static bool is_call_aarch64(const uint8_t *before)
{
	uint32_t word;

	memcpy(&word, before + CALLSITE_BYTES - 4, sizeof(word));
	return (word & 0xfc000000) == 0x94000000 || (word & 0xfefff000) == 0xd63f0000;
}

bool callsite_is_call(const uint8_t before[CALLSITE_BYTES], uint16_t machine)
{
	switch (machine) {
	case EM_X86_64:
		return is_call_x86(before);
	case EM_AARCH64:
		return is_call_aarch64(before);
	}
	return true;
}

/* F3 90. An operand of another instruction may end with these bytes, too, which is rare. */
static bool is_pause_x86(const uint8_t *before)
{
	return before[CALLSITE_BYTES - 2] == 0xf3 && before[CALLSITE_BYTES - 1] == 0x90;
}

/* ISB with any option, and YIELD. */
static bool is_pause_aarch64(const uint8_t *before)
{
	uint32_t word;

	memcpy(&word, before + CALLSITE_BYTES - 4, sizeof(word));
	return (word & 0xfffff0ff) == 0xd50330df || word == 0xd503203f;
}

bool callsite_is_pause(const uint8_t before[CALLSITE_BYTES], uint16_t machine)
{
	switch (machine) {
	case EM_X86_64:
		return is_pause_x86(before);
	case EM_AARCH64:
		return is_pause_aarch64(before);
	}
	return false;
}
