// SPDX-License-Identifier: Apache-2.0
/*
 * Threads that wait for a CPU and may not run on all (affinity or cpuset). What has the CPU is the
 * culprit of such a wait, but the thread may be bound to that CPU while others are idle.
 */
#include "analyze/why/cause/why_allowed_cpus.h"

#include <inttypes.h>
#include <stdio.h>

#include "util/memory.h"
#include "util/search.h"
#include "util/units.h"

/* The limit counts if such waits take at least this part of the time. */
#define WAIT_PARTS 10

/* NULL: the thread may run on all CPUs, or that is not known. */
static const struct model_io_limit *limit_of(const struct model *model, uint32_t thread)
{
	const struct model_io_limit *all = model->io_limits.data;
	size_t len = model->io_limits.len;
	uint32_t tid = model->threads.data[thread].tid;

	for (size_t i = lower_bound(len, k, all[k].pid < tid); i < len && all[i].pid == tid; i++)
		if (all[i].kind == WAFFLE_IO_LIMIT_CPUS && all[i].thread == thread)
			return &all[i];
	return NULL;
}

/* The number of other threads of the process that have the same limit. */
static uint64_t others_count(const struct model *model, const struct model_io_limit *limit)
{
	const struct model_io_limit *all = model->io_limits.data;
	uint32_t pid = model->threads.data[limit->thread].pid;
	uint64_t count = 0;

	for (size_t i = 0; i < model->io_limits.len; i++)
		count += all[i].kind == WAFFLE_IO_LIMIT_CPUS && all[i].thread != limit->thread &&
			 all[i].limit == limit->limit && all[i].dev == limit->dev &&
			 model->threads.data[all[i].thread].pid == pid;
	return count;
}

/* "it and 3 more threads of its process may run on cpu 1 only (affinity or cpuset)" */
static uint32_t limit_text(struct why_walk *walk, const struct model_io_limit *limit, bool own)
{
	const struct model *model = walk->model;
	uint64_t others = others_count(model, limit);
	char text[256], who[64] = "it", more[64] = "", where[48];
	int len;

	if (!own)
		snprintf(who, sizeof(who), "%.32s (%u)", model_thread_name(model, limit->thread),
			 model_pid_real(model, limit->pid));
	if (others)
		snprintf(more, sizeof(more), " and %" PRIu64 " more %s of its process", others,
			 units_plural(others, "thread", "threads"));
	if (limit->limit == 1)
		snprintf(where, sizeof(where), "cpu %u", limit->dev);
	else
		snprintf(where, sizeof(where), "%" PRIu64 " CPUs", limit->limit);
	len = snprintf(text, sizeof(text), "%s%s may run on %s only (affinity or cpuset)", who,
		       more, where);
	return strtab_put(walk->why->texts, text, (size_t)len);
}

uint32_t why_allowed_cpus(struct why_walk *walk, const struct why_instance *instance)
{
	const struct model_io_limit *shown = NULL; /* its own, else that of the longest wait */
	uint64_t ns = 0;

	if (!walk->model->io_limits.len || walk->no_chains)
		return 0;
	for (size_t i = 0; i < walk->sums.len; i++) {
		const struct why_sum *sum = &walk->sums.data[i];
		const struct why_step *step =
			&walk->chains.data[sum->chain].steps[sum->part.step_count - 1];
		const struct model_io_limit *limit = sum->part.cause == WHY_CPU_CONTENTION
							     ? limit_of(walk->model, step->thread)
							     : NULL;

		if (!limit)
			continue;
		ns += sum->part.ns;
		if (!shown || limit->thread == instance->thread)
			shown = limit;
	}
	return shown && ns >= (instance->to_ts - instance->from_ts) / WAIT_PARTS
		       ? limit_text(walk, shown, shown->thread == instance->thread)
		       : 0;
}
