// SPDX-License-Identifier: Apache-2.0
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>

#include "kernel/kernel_internal.h"
#include "waffle.skel.h"

static enum waffle_source source_of(const char *program)
{
	static const char *const of_sched[] = {"on_switch", "on_waking", "on_migrate",
					       "on_wakeup_new"};

	for (size_t i = 0; i < sizeof(of_sched) / sizeof(of_sched[0]); i++)
		if (!strcmp(program, of_sched[i]))
			return WAFFLE_SOURCE_SCHED;
	return waits_has_program(program) ? WAFFLE_SOURCE_WAITS : WAFFLE_SOURCE_SPANS;
}

static uint64_t program_skipped(int fd)
{
	struct bpf_prog_info info = {0};
	__u32 len = sizeof(info);

	return bpf_prog_get_info_by_fd(fd, &info, &len) ? 0 : info.recursion_misses;
}

void skipped_add(const struct bpf_object *object, uint64_t counts[WAFFLE_SOURCE_COUNT])
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, object)
	{
		int fd = bpf_program__fd(program);

		/* Samples need not be complete, and the thread's own counters show page faults
		 * that were skipped (bpf/wait.bpf.c). */
		if (fd >= 0 && bpf_program__type(program) != BPF_PROG_TYPE_PERF_EVENT)
			counts[source_of(bpf_program__name(program))] += program_skipped(fd);
	}
}

void kernel_skipped(const struct kernel *kernel, uint64_t counts[WAFFLE_SOURCE_COUNT])
{
	memcpy(counts, kernel->skipped, sizeof(kernel->skipped));
	skipped_add(kernel->bpf->obj, counts);
	if (kernel->call_bpf && !kernel->call_loading)
		skipped_add(kernel->call_bpf->obj, counts);
	for (size_t i = 0; i < kernel->classes.len; i++)
		if (kernel->classes.data[i].own)
			counts[WAFFLE_SOURCE_SPANS] += program_skipped(kernel->classes.data[i].hit);
}
