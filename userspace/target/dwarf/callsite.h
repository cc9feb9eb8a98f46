/* SPDX-License-Identifier: Apache-2.0 */
/* Tells whether an address can be a return address: the instruction before it must be a call. */
#ifndef WAFFLE_TARGET_DWARF_CALLSITE_H
#define WAFFLE_TARGET_DWARF_CALLSITE_H

#include <stdbool.h>
#include <stdint.h>

/* The longest call: FF /2 with SIB and 32 bits of displacement (Intel SDM volume 2, CALL). */
#define CALLSITE_BYTES 7

/* `before` holds the bytes that precede the address. `machine` is EM_X86_64 or EM_AARCH64; for any
 * other machine the result is true. */
bool callsite_is_call(const uint8_t before[CALLSITE_BYTES], uint16_t machine);

#endif
