/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names a running waffle-bpf in an environment variable, so that libwaffle-gpu in a program that
 * `run --gpu` has started can tell whether it still runs. Pids are used again, so the name also has
 * the time at which the process began.
 */
#ifndef WAFFLE_TARGET_PROCESS_TRACER_ID_H
#define WAFFLE_TARGET_PROCESS_TRACER_ID_H

#include <stdbool.h>

#define TRACER_ID_VARIABLE "WAFFLE_GPU_TRACER"
#define TRACER_ID_BYTES 48

/* Writes the name of this process. False: /proc is not there. */
bool tracer_id_make(char id[TRACER_ID_BYTES]);
/* Whether the process with that name runs, as far as this process can see. Allocates nothing. */
bool tracer_id_is_alive(const char *id);

#endif
