/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sources that a capture records, which can be switched on and off individually (--sources).
 * Spans and calls are independent. All others explain data of the scheduler, and are useless
 * without it.
 */
#ifndef WAFFLE_CAPTURE_SOURCES_INTERNAL_H
#define WAFFLE_CAPTURE_SOURCES_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

enum capture_source {
	CAPTURE_SPANS = 1,
	CAPTURE_SCHED = 2,
	CAPTURE_STACKS = 4,
	CAPTURE_FILES = 8,
	CAPTURE_FAULTS = 16,
	CAPTURE_IO = 32,
	CAPTURE_SIGNALS = 64,
	CAPTURE_QUOTA = 128,
	CAPTURE_STEAL = 256,
	CAPTURE_FREQUENCY = 512,
	CAPTURE_CUDA = 1024,
	CAPTURE_NCCL = 2048,
	CAPTURE_SAMPLES = 4096,
	CAPTURE_FRAMEWORKS = 8192,
};
#define CAPTURE_ALL 16383u
/* Recorded by probes in the processes themselves. */
#define CAPTURE_PROBES (CAPTURE_SPANS | CAPTURE_CUDA | CAPTURE_NCCL | CAPTURE_FRAMEWORKS)
/* Many machines do not have these. Only report that if the user requested them. */
#define CAPTURE_OF_MACHINE (CAPTURE_STEAL | CAPTURE_FREQUENCY)
#define CAPTURE_DEFAULT CAPTURE_ALL
#define SOURCES_TEXT 128 /* size for all names */

/*
 * Parses a comma-separated list of names: either the requested sources, or changes to the default,
 * each with + or - before it. -EINVAL with a message that shows the invalid part.
 */
int sources_parse(uint32_t *sources, const char *text, struct error *err);

/* The comma-separated names. */
char *sources_text(char text[SOURCES_TEXT], uint32_t sources);

/* Converts these sources to those of bpf/wait.h, and back. */
uint32_t sources_to_waits(uint32_t sources);
uint32_t sources_of_waits(uint32_t waits);

#endif
