/* SPDX-License-Identifier: Apache-2.0 */
/* What a machine tells of its CPUs: whether time is stolen of them, and their frequency. */
#ifndef WAFFLE_PROBE_CPUS_H
#define WAFFLE_PROBE_CPUS_H

#include <stdbool.h>
#include <stdint.h>

#define CPUS_FOLDER "/sys/devices/system/cpu"

struct btf;

/*
 * Whether the scheduler leaves time out that a hypervisor took, so that it can be told. False on
 * bare metal, where there is none, and where the hypervisor or the kernel does not tell of it.
 */
bool cpus_tell_steal(const struct btf *kernel_types);

struct cpu_frequency {
	uint32_t khz;
	uint32_t max_khz; /* 0: not known */
};

/* The frequency of a CPU now, from `folder`; false: there is none to be read. */
bool cpu_frequency_read(struct cpu_frequency *frequency, const char *folder, uint32_t cpu);

#endif
