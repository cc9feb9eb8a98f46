// SPDX-License-Identifier: Apache-2.0
#include "kernel/cpus_internal.h"

#include <stdio.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "kernel/types_internal.h"

/* Whether KVM reports stolen time
 * (Documentation/virt/kvm/x86/cpuid.rst,
 * KVM_FEATURE_STEAL_TIME). */
static bool kvm_tells(void)
{
#if defined(__x86_64__)
	unsigned eax, signature[3];

	if (!__get_cpuid(1, &eax, &signature[0], &signature[1], &signature[2]) ||
	    !(signature[1] >> 31)) /* not a guest */
		return false;
	__cpuid(0x40000000, eax, signature[0], signature[1], signature[2]);
	if (memcmp(signature, "KVMKVMKVM\0\0\0", sizeof(signature)) || eax < 0x40000001)
		return false;
	__cpuid(0x40000001, eax, signature[0], signature[1], signature[2]);
	return eax >> 5 & 1;
#else
	return false;
#endif
}

/* Whether any time was stolen since boot, which shows that another hypervisor reports it. */
static bool was_stolen(void)
{
	unsigned long long ticks = 0;
	FILE *file = fopen("/proc/stat", "re");

	if (!file)
		return false;
	if (fscanf(file, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &ticks) != 1)
		ticks = 0;
	fclose(file);
	return ticks > 0;
}

/* Whether the administrator has configured the scheduler to count stolen time as the task's.
 * Ticks count it nevertheless. */
static bool is_disabled(void)
{
	char line[4096] = "";
	FILE *file = fopen("/proc/cmdline", "re");

	if (!file)
		return false;
	if (!fgets(line, sizeof(line), file))
		line[0] = '\0';
	fclose(file);
	return strstr(line, "no-steal-acc") != NULL;
}

/*
 * The names are those of members that only `struct rq` and `struct cfs_rq` have
 * (kernel/sched/sched.h). The last one exists if `sched_entity.cfs_rq` and `cfs_rq.rq` do, with
 * CONFIG_FAIR_GROUP_SCHED.
 */
enum cpus_steal cpus_steal(const struct kernel_types *kernel)
{
	if (!kernel_types_has(kernel, "leaf_cfs_rq_list") || !(kvm_tells() || was_stolen()))
		return CPUS_STEAL_NONE;
	if (kernel_types_has(kernel, "prev_steal_time_rq") && !is_disabled())
		return CPUS_STEAL_CLOCK;
	return kernel_types_has(kernel, "prev_steal_time") ? CPUS_STEAL_TICK : CPUS_STEAL_NONE;
}

void cpus_online(bool *online, uint32_t count, const char *folder)
{
	unsigned first, last;
	char path[512];
	FILE *file;
	int next;

	snprintf(path, sizeof(path), "%s/online", folder);
	file = fopen(path, "re");
	for (uint32_t cpu = 0; cpu < count; cpu++)
		online[cpu] = !file;
	if (!file)
		return;
	while (fscanf(file, "%u", &first) == 1) {
		next = getc(file);
		last = first;
		if (next == '-') {
			if (fscanf(file, "%u", &last) != 1)
				break;
			next = getc(file);
		}
		for (unsigned cpu = first; cpu <= last && cpu < count; cpu++)
			online[cpu] = true;
		if (next != ',')
			break;
	}
	fclose(file);
}

static uint32_t number_read(const char *folder, uint32_t cpu, const char *name)
{
	uint32_t number = 0;
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/cpu%u/cpufreq/%s", folder, cpu, name);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%u", &number) != 1)
		number = 0;
	fclose(file);
	return number;
}

bool cpu_frequency_read(struct cpu_frequency *frequency, const char *folder, uint32_t cpu)
{
	frequency->khz = number_read(folder, cpu, "scaling_cur_freq");
	frequency->max_khz = number_read(folder, cpu, "cpuinfo_max_freq");
	return frequency->khz > 0;
}
