/* SPDX-License-Identifier: Apache-2.0 */
/* Tells what the instruction before an address is: before a return address it must be a call. */
#ifndef WAFFLE_TARGET_DWARF_CALLSITE_H
#define WAFFLE_TARGET_DWARF_CALLSITE_H

#include <stdbool.h>
#include <stdint.h>

/* The longest call: FF /2 with SIB and 32 bits of displacement (Intel SDM volume 2, CALL). */
#define CALLSITE_BYTES 7

/* `before` holds the bytes that precede the address. `machine` is EM_X86_64 or EM_AARCH64; for any
 * other machine the result is true. */
bool callsite_is_call(const uint8_t before[CALLSITE_BYTES], uint16_t machine);

/* Whether it is the instruction with which a loop says that it only waits for another CPU: PAUSE
 * (Intel SDM volume 2), or ISB or YIELD (Arm ARM), which compilers make of such hints. False for
 * any other machine. */
bool callsite_is_pause(const uint8_t before[CALLSITE_BYTES], uint16_t machine);

/* What the instruction before an address is. */
enum callsite { CALLSITE_UNKNOWN, CALLSITE_CALL, CALLSITE_PAUSE, CALLSITE_OTHER, CALLSITE_COUNT };

#endif
