// SPDX-License-Identifier: Apache-2.0
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>

#include "kernel/kernel_internal.h"

enum skipped_kind { SKIPPED_NOTHING, SKIPPED_SCHED, SKIPPED_WAITS, SKIPPED_SPANS, SKIPPED_TASKS };

/*
 * What is missing if a run of these programs is skipped. Nothing is missing after others: the
 * thread's own counters show page faults, samples need not be complete, and what else the programs
 * of waits note is a hint that the model can do without.
 */
static const struct {
	const char *program;
	enum skipped_kind kind;
} programs[] = {
	{"on_switch", SKIPPED_SCHED},     {"on_waking", SKIPPED_SCHED},
	{"on_wakeup_new", SKIPPED_SCHED}, {"on_migrate", SKIPPED_SCHED},
	{"on_io_start", SKIPPED_WAITS},   {"on_io_issue", SKIPPED_WAITS},
	{"on_io_merge", SKIPPED_WAITS},   {"on_io_complete", SKIPPED_WAITS},
	{"on_signal", SKIPPED_WAITS},     {"on_received", SKIPPED_SPANS},
	{"on_sent", SKIPPED_SPANS},       {"on_state", SKIPPED_SPANS},
	{"on_fork", SKIPPED_TASKS},       {"on_exec", SKIPPED_TASKS},
	{"on_exit", SKIPPED_TASKS},       {"on_rename", SKIPPED_TASKS},
};

static enum skipped_kind kind_of(const struct bpf_program *program)
{
	enum bpf_prog_type type = bpf_program__type(program);

	if (type == BPF_PROG_TYPE_KPROBE || type == BPF_PROG_TYPE_TRACEPOINT)
		return SKIPPED_SPANS;
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		if (!strcmp(programs[i].program, bpf_program__name(program)))
			return programs[i].kind;
	return SKIPPED_NOTHING;
}

uint64_t skipped_program(int fd)
{
	struct bpf_prog_info info = {0};
	__u32 len = sizeof(info);

	return bpf_prog_get_info_by_fd(fd, &info, &len) ? 0 : info.recursion_misses;
}

static uint64_t object_skipped(const struct bpf_object *object, enum skipped_kind kind)
{
	struct bpf_program *program;
	uint64_t count = 0;

	bpf_object__for_each_program(program, object)
	{
		int fd = bpf_program__fd(program);

		if (fd >= 0 && kind_of(program) == kind)
			count += skipped_program(fd);
	}
	return count;
}

void skipped_add(const struct bpf_object *object, uint64_t counts[WAFFLE_SOURCE_COUNT])
{
	counts[WAFFLE_SOURCE_SPANS] += object_skipped(object, SKIPPED_SPANS);
	counts[WAFFLE_SOURCE_SCHED] += object_skipped(object, SKIPPED_SCHED);
	counts[WAFFLE_SOURCE_WAITS] += object_skipped(object, SKIPPED_WAITS);
}

uint64_t skipped_tasks(const struct bpf_object *object)
{
	return object_skipped(object, SKIPPED_TASKS);
}
