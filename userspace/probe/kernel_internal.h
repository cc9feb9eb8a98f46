/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of struct kernel, for probe/ only. */
#ifndef WAFFLE_PROBE_KERNEL_INTERNAL_H
#define WAFFLE_PROBE_KERNEL_INTERNAL_H

#include "probe/kernel.h"

struct waffle_bpf;

struct kernel {
	struct waffle_bpf *bpf;
	bool multi; /* one link arms many sites */
	bool sched;
	uint32_t cpus, slots, ring_count;
	int *ring_fds;
	const struct waffle_cpu *cpu_memory;
	struct waffle_tail *tail_memory;
	const struct waffle_rec_switch *slot_memory;
	size_t cpu_bytes, slot_bytes;
	pid_t guardian;
	int guardian_pipe; /* -1: none */
};

#endif
