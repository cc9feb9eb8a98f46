/* SPDX-License-Identifier: Apache-2.0 */
/* The TCP ports on which somebody listens in the network namespace of a process. */
#ifndef WAFFLE_TARGET_PROCESS_LISTENING_H
#define WAFFLE_TARGET_PROCESS_LISTENING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/vec.h"

struct listening {
	VEC(uint16_t) ports;
};

/* Reads /proc/PID/net/tcp and tcp6. What can't be read is left out. The caller frees the result. */
void listening_read(struct listening *listening, pid_t pid);
bool listening_has(const struct listening *listening, uint16_t port);
void listening_free(struct listening *listening);

#endif
