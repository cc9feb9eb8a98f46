/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WAFFLE_TARGET_PROCESS_CPU_TIME_H
#define WAFFLE_TARGET_PROCESS_CPU_TIME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct cpu_time {
	uint64_t ran_ns;   /* of all its threads, also of those that have ended */
	uint64_t start_ns; /* when the process started: CLOCK_BOOTTIME */
};

/* How long a process has run, in units of the kernel's ticks (proc_pid_stat(5)), mostly 10 ms.
 * False: it is gone. */
bool process_cpu_time(struct cpu_time *time, pid_t pid);

#endif
