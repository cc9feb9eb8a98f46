/* SPDX-License-Identifier: Apache-2.0 */
/* Whether an address can be a return address: the instruction before it is a call. */
#ifndef WAFFLE_TARGET_CALLSITE_H
#define WAFFLE_TARGET_CALLSITE_H

#include <stdbool.h>
#include <stdint.h>

/* The longest call: FF /2 with SIB and 32 bits of displacement (Intel SDM volume 2, CALL). */
#define CALLSITE_BYTES 7

/* `before`: the bytes in front of the address, the last one next to it. machine: EM_X86_64 or
 * EM_AARCH64; any other is believed. */
bool callsite_is_call(const uint8_t before[CALLSITE_BYTES], uint16_t machine);

#endif
