/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes use the CPU time of the cgroups that throttle traced threads. The kernel's
 * records show what traced threads run, but not what other processes of such a cgroup do. So we
 * read how long all of them have run, when a cgroup throttles for the first time and at the end of
 * the capture.
 */
#ifndef WAFFLE_CAPTURE_ENRICH_CPU_USERS_INTERNAL_H
#define WAFFLE_CAPTURE_ENRICH_CPU_USERS_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/record.h"

struct cpu_users;

/* NULL: out of memory. */
struct cpu_users *cpu_users_open(void);
void cpu_users_close(struct cpu_users *users);

/* A cgroup has throttled a thread of it, or of one below it. */
void cpu_users_throttled(struct cpu_users *users, uint64_t cgroup, uint32_t tid);
/* Passes on records of the processes of each of these cgroups that have run since, except those
 * that are recorded themselves. A non-zero return of `pass` stops, and is returned. */
int cpu_users_each(struct cpu_users *users, uint64_t ts, bool (*is_recorded)(pid_t pid, void *arg),
		   int (*pass)(struct waffle_rec *rec, void *arg), void *arg);

#endif
