/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel's records of waits leave out about limits: which process uses the memory of a
 * cgroup, and how much of a disk a process may use. Both are read from the cgroup's folder while
 * the capture runs, seldom enough to cost little.
 */
#ifndef WAFFLE_CAPTURE_ENRICH_LIMITS_INTERNAL_H
#define WAFFLE_CAPTURE_ENRICH_LIMITS_INTERNAL_H

#include "bpf/record.h"
#include "target/process/cgroup.h"

struct limits;

/* NULL: out of memory. */
struct limits *limits_open(void);
void limits_close(struct limits *limits);

/* Adds the process with the most memory to a record. It is looked for once a second at most, and
 * less often if that takes long. */
void limits_memory(struct limits *limits, struct waffle_rec_memory *memory);
/* Reads the limits of a process that waited for a disk. Returns their number, and 0 from the second
 * call for a process on. *found has room for LIMITS_OF_PROCESS. */
#define LIMITS_OF_PROCESS 32
size_t limits_process(struct limits *limits, uint32_t pid, struct cgroup_io_limit *found);
/* A process has ended. Another one may get its pid. */
void limits_forget(struct limits *limits, uint32_t pid);
/* Passes these limits on as records. A non-zero return of `pass` stops, and is returned. */
int limits_each(struct limits *limits, uint64_t ts, int (*pass)(struct waffle_rec *rec, void *arg),
		void *arg);

#endif
