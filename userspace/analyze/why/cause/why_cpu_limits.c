// SPDX-License-Identifier: Apache-2.0
/*
 * What keeps threads that wait for a CPU from it: they may not run on all (affinity or cpuset), or
 * others go before them (nice value, policy, weight of the cgroup). What has the CPU is the culprit
 * of such a wait, but the thread may be bound to that CPU while others are idle.
 */
#include "analyze/why/cause/why_cpu_limits.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyze/why/lookup/why_evidence.h"
#include "util/memory.h"
#include "util/search.h"
#include "util/units.h"

/* The limits count if such waits take at least this part of the time. */
#define WAIT_PARTS 10

/* What limits a thread; NULL: nothing, or that is not known. */
struct cpu_limits {
	const struct model_io_limit *cpus, *nice, *weight;
};

static const struct model_io_limit *limit_of(const struct model *model, uint32_t tid, uint32_t kind)
{
	const struct model_io_limit *all = model->io_limits.data;
	size_t len = model->io_limits.len;

	for (size_t i = lower_bound(len, k, all[k].pid < tid); i < len && all[i].pid == tid; i++)
		if (all[i].kind & kind)
			return &all[i];
	return NULL;
}

static struct cpu_limits limits_of(const struct model *model, uint32_t thread)
{
	const struct model_thread *of = &model->threads.data[thread];

	return (struct cpu_limits){limit_of(model, of->tid, WAFFLE_IO_LIMIT_CPUS),
				   limit_of(model, of->tid, WAFFLE_IO_LIMIT_NICE),
				   limit_of(model, of->pid, WAFFLE_IO_LIMIT_WEIGHT)};
}

/* The number of other threads of the process that may run on the same CPUs. */
static uint64_t others_count(const struct model *model, const struct model_io_limit *cpus)
{
	const struct model_io_limit *all = model->io_limits.data;
	uint32_t pid = model->threads.data[cpus->thread].pid;
	uint64_t count = 0;

	for (size_t i = 0; i < model->io_limits.len; i++)
		count += all[i].kind == WAFFLE_IO_LIMIT_CPUS && all[i].thread != cpus->thread &&
			 all[i].limit == cpus->limit && all[i].dev == cpus->dev &&
			 model->threads.data[all[i].thread].pid == pid;
	return count;
}

/* " and 3 more threads of its process may run on cpu 1 only (affinity or cpuset)" */
static void put_cpus(FILE *out, const struct model *model, const struct model_io_limit *cpus)
{
	uint64_t others = others_count(model, cpus);

	if (others)
		fprintf(out, " and %" PRIu64 " more %s of its process", others,
			units_plural(others, "thread", "threads"));
	if (cpus->limit == 1)
		fprintf(out, " may run on cpu %u only (affinity or cpuset)", cpus->dev);
	else
		fprintf(out, " may run on %" PRIu64 " CPUs only (affinity or cpuset)", cpus->limit);
}

/* "it may run on cpu 1 only (affinity or cpuset); its nice value is 10; its cgroup
 * /sys/fs/cgroup/app has cpu.weight 4, not 100" */
static uint32_t limits_text(struct why_walk *walk, uint32_t thread, bool own)
{
	const struct model *model = walk->model;
	struct cpu_limits limits = limits_of(model, thread);
	bool old = limits.weight && limits.weight->kind & WAFFLE_IO_LIMIT_OLD;
	const char *glue = own ? "" : ": ";
	char *text = NULL;
	uint32_t number;
	size_t len;
	FILE *out = memory_stream(&text, &len);

	if (own && limits.cpus)
		fputs("it", out);
	else if (!own)
		fprintf(out, "%.32s (%u)", model_thread_name(model, thread),
			model_pid_real(model, model->threads.data[thread].tid));
	if (limits.cpus) {
		put_cpus(out, model, limits.cpus);
		glue = "; ";
	}
	if (limits.nice && limits.nice->dev == SCHED_IDLE)
		fprintf(out, "%sits policy is SCHED_IDLE", glue);
	else if (limits.nice)
		fprintf(out, "%sits nice value is %" PRIu64, glue, limits.nice->limit);
	if (limits.nice)
		glue = "; ";
	if (limits.weight)
		fprintf(out, "%sits cgroup %s has %s %" PRIu64 ", not %u", glue,
			strtab_get(walk->why->texts,
				   why_cgroup(walk, limits.weight->cgroup, "cpu")),
			old ? "cpu.shares" : "cpu.weight", limits.weight->limit, old ? 1024 : 100);
	memory_require(!fclose(out));
	number = strtab_put(walk->why->texts, text, len);
	free(text);
	return number;
}

uint32_t why_cpu_limits(struct why_walk *walk, const struct why_instance *instance)
{
	uint32_t shown = MODEL_NONE; /* the thread itself, else the one with the longest wait */
	uint64_t ns = 0;

	if (!walk->model->io_limits.len || walk->no_chains)
		return 0;
	for (size_t i = 0; i < walk->sums.len; i++) {
		const struct why_sum *sum = &walk->sums.data[i];
		const struct why_step *step =
			&walk->chains.data[sum->chain].steps[sum->part.step_count - 1];
		struct cpu_limits limits = {.cpus = NULL};

		if (sum->part.cause == WHY_CPU_CONTENTION)
			limits = limits_of(walk->model, step->thread);
		if (!limits.cpus && !limits.nice && !limits.weight)
			continue;
		ns += sum->part.ns;
		if (shown == MODEL_NONE || step->thread == instance->thread)
			shown = step->thread;
	}
	return shown != MODEL_NONE && ns >= (instance->to_ts - instance->from_ts) / WAIT_PARTS
		       ? limits_text(walk, shown, shown == instance->thread)
		       : 0;
}
