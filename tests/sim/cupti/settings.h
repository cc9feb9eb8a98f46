/* SPDX-License-Identifier: Apache-2.0 */
/* WAFFLE_SIM_CUPTI_VERSION and WAFFLE_SIM_CUPTI (docs/simulation.md). */
#ifndef SIM_CUPTI_SETTINGS_H
#define SIM_CUPTI_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct settings {
	uint32_t version; /* as cuptiGetVersion() returns it */
	unsigned row;     /* its index in the table of layouts */
	/* Each N-th operation has such a fault; 0: none. */
	uint64_t zero, reversed, early, drop, unknown;
	bool shuffle, late, held, shared, other_clock, mig;
	char holder[64];
	FILE *log; /* the file that WAFFLE_SIM_CUPTI_LOG names, or NULL */
};

/* Read once. A wrong setting ends the program with a message. */
const struct settings *settings(void);

#endif
