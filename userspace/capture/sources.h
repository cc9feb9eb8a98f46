/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a capture records: sources that are switched on and off one by one (--sources). Spans and
 * calls stand for themselves; all others explain what the scheduler shows, and are of no use
 * without it.
 */
#ifndef WAFFLE_CAPTURE_SOURCES_H
#define WAFFLE_CAPTURE_SOURCES_H

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
};
#define CAPTURE_ALL 4095u
/* Recorded by probes in the processes themselves. */
#define CAPTURE_PROBES (CAPTURE_SPANS | CAPTURE_CUDA | CAPTURE_NCCL)
/* Of these many machines have nothing to tell: no news unless they were asked for. */
#define CAPTURE_OF_MACHINE (CAPTURE_STEAL | CAPTURE_FREQUENCY)
#define CAPTURE_DEFAULT CAPTURE_ALL
#define SOURCES_TEXT 128 /* room for the names of all of them */

/*
 * Reads a list of names with commas between: either the sources that are wanted, or changes to
 * the default, each with + or - before it. -EINVAL with a message that shows what was not
 * understood.
 */
int sources_parse(uint32_t *sources, const char *text, struct error *err);

/* Their names with commas between. */
char *sources_text(char text[SOURCES_TEXT], uint32_t sources);

/* Of these sources, as bpf/wait.h names them; and the other way. */
uint32_t sources_to_waits(uint32_t sources);
uint32_t sources_of_waits(uint32_t waits);

#endif
