/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about the CPUs of a machine: stolen time, and frequencies. */
#ifndef WAFFLE_KERNEL_CPUS_INTERNAL_H
#define WAFFLE_KERNEL_CPUS_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#define CPUS_FOLDER "/sys/devices/system/cpu"

struct kernel_types;

/* How the kernel accounts the time that the hypervisor took from a CPU (steal time). */
enum cpus_steal {
	CPUS_STEAL_NONE,  /* bare metal, or the hypervisor or the kernel does not report it */
	CPUS_STEAL_CLOCK, /* the scheduler's clock: whenever it is updated */
	CPUS_STEAL_TICK,  /* at the timer's ticks */
};
enum cpus_steal cpus_steal(const struct kernel_types *kernel);

/* Finds which of `count` CPUs are online, by the list in `folder` ("0-3,8"); without it, all. */
void cpus_online(bool *online, uint32_t count, const char *folder);

struct cpu_frequency {
	uint32_t khz;
	uint32_t max_khz; /* 0: unknown */
};

/* Reads the current frequency of a CPU from `folder`. False: it can't be read. */
bool cpu_frequency_read(struct cpu_frequency *frequency, const char *folder, uint32_t cpu);

#endif
