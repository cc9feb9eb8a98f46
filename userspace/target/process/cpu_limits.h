/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WAFFLE_TARGET_PROCESS_CPU_LIMITS_H
#define WAFFLE_TARGET_PROCESS_CPU_LIMITS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Whether a thread may run on fewer CPUs than the `online` ones, because of its affinity or its
 * cpuset; then on how many, and on which as the lowest. False as well if it is not known. */
bool cpus_are_limited(uint64_t *count, uint32_t *lowest, pid_t tid, long online);

/* Whether other threads go before a thread: its nice value is above 0, or its policy SCHED_IDLE. */
bool thread_is_nice(uint64_t *nice, uint32_t *policy, pid_t tid);

#endif
