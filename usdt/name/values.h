/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lays values of the program (waffle_named.h) out as a frame has them (waffle/abi.h). Both
 * functions are async-signal-safe, and read no more of a string than is copied.
 */
#ifndef WAFFLE_USDT_NAME_VALUES_H
#define WAFFLE_USDT_NAME_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/elf/site.h"
#include "waffle_named.h"

/* What a use needs. Strings are measured once, since another thread may change them meanwhile. */
struct values_layout {
	size_t bytes;                     /* of the values in a frame */
	unsigned count;                   /* values that have a key */
	uint16_t string[WAFFLE_KEYS_MAX]; /* bytes of each string that are copied … */
	bool cut[WAFFLE_KEYS_MAX];        /* … if it is longer */
};

struct values_layout values_measure(const struct site_info *site, const waffle_value_t *values,
				    unsigned count);
/* Writes layout->bytes bytes. */
void values_put(unsigned long long *to, const struct site_info *site, const waffle_value_t *values,
		const struct values_layout *layout);

#endif
