/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Common parts of all stand-ins for kernel/kernel.c. The including file defines
 *
 *	CPUS	number of CPUs
 *	QUEUES	number of record queues, which its kernel_ring_take() empties
 *	struct kernel, with `cpu` and `tail`, arrays of CPUS entries
 */
#ifndef WAFFLE_TESTS_FAKE_KERNEL_H
#define WAFFLE_TESTS_FAKE_KERNEL_H

#include "kernel/kernel.h"

uint32_t kernel_cpu_count(const struct kernel *kernel)
{
	(void)kernel;
	return CPUS;
}

const struct waffle_cpu *kernel_cpu(const struct kernel *kernel, uint32_t cpu)
{
	return cpu < CPUS ? &kernel->cpu[cpu] : NULL;
}

struct waffle_tail *kernel_tail(const struct kernel *kernel, uint32_t cpu)
{
	return cpu < CPUS ? (struct waffle_tail *)(uintptr_t)&kernel->tail[cpu] : NULL;
}

uint32_t kernel_ring_count(const struct kernel *kernel)
{
	(void)kernel;
	return QUEUES;
}

#endif
