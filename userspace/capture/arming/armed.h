/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of the sites and calls that a session has armed, and their text form. */
#ifndef WAFFLE_CAPTURE_ARMING_ARMED_H
#define WAFFLE_CAPTURE_ARMING_ARMED_H

#include <stddef.h>
#include <stdint.h>

#include "target/elf/site.h"

struct armed_counts {
	uint64_t sites;           /* of macros */
	uint64_t cuda, hip, nccl; /* calls in these categories */
	uint64_t probes;          /* other calls */
	uint64_t functions;       /* of Python */
	uint64_t simulated;       /* how many of the calls are in stand-ins */
};

void armed_count(struct armed_counts *counts, const struct site_info *site);

/* Size of "3 sites, 57 CUDA and NCCL calls, 2 probes, 1 Python function"; "57 simulated CUDA
 * calls"; "nothing". */
#define ARMED_TEXT 192
char *armed_text(char text[ARMED_TEXT], const struct armed_counts *counts);

#endif
