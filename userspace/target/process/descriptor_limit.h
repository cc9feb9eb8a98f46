/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WAFFLE_TARGET_PROCESS_DESCRIPTOR_LIMIT_H
#define WAFFLE_TARGET_PROCESS_DESCRIPTOR_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Whether a process has as many descriptors open as it may (RLIMIT_NOFILE), so that accept(),
 * open() and the like fail with EMFILE; then with that number. False as well if it is not known. */
bool descriptors_are_used_up(uint64_t *limit, pid_t pid);

#endif
