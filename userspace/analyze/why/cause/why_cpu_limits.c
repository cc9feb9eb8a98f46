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

	/* A later thread may have its number. */
	if (of->exit_ts || of->gone)
		return (struct cpu_limits){.cpus = NULL};
	return (struct cpu_limits){limit_of(model, of->tid, WAFFLE_IO_LIMIT_CPUS),
				   limit_of(model, of->tid, WAFFLE_IO_LIMIT_NICE),
				   limit_of(model, of->pid, WAFFLE_IO_LIMIT_WEIGHT)};
}

/* How far others go before a thread: farther for a higher nice value, the farthest for SCHED_IDLE.
 */
static uint64_t niceness(const struct model_io_limit *nice)
{
	if (!nice)
		return 0;
	return nice->dev == SCHED_IDLE ? UINT64_MAX : nice->limit;
}

/* What limits the thread that waits for a CPU at the end of the sum's chain. Not what limits the
 * one that has it as well: a nice value, or the weight of a cgroup that both are in. */
static struct cpu_limits limits_of_waiter(const struct why_walk *walk, const struct why_sum *sum,
					  uint32_t *waiter)
{
	struct cpu_limits limits, other = {.cpus = NULL};

	*waiter = walk->chains.data[sum->chain].steps[sum->part.step_count - 1].thread;
	limits = limits_of(walk->model, *waiter);
	if (sum->part.thread != MODEL_NONE)
		other = limits_of(walk->model, sum->part.thread);
	if (niceness(other.nice) >= niceness(limits.nice))
		limits.nice = NULL;
	if (limits.weight && other.weight && limits.weight->cgroup == other.weight->cgroup)
		limits.weight = NULL;
	return limits;
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
static uint32_t limits_text(struct why_walk *walk, const struct why_sum *sum, uint32_t own_thread)
{
	const struct model *model = walk->model;
	uint32_t thread;
	struct cpu_limits limits = limits_of_waiter(walk, sum, &thread);
	bool own = thread == own_thread;
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
	uint64_t least_ns = (instance->to_ts - instance->from_ts) / WAIT_PARTS;
	const struct why_sum *own = NULL, *longest = NULL;
	uint64_t own_ns = 0, ns = 0;

	if (!walk->model->io_limits.len || walk->no_chains)
		return 0;
	for (size_t i = 0; i < walk->sums.len; i++) {
		const struct why_sum *sum = &walk->sums.data[i];
		struct cpu_limits limits;
		uint32_t waiter;

		if (sum->part.cause != WHY_CPU_CONTENTION)
			continue;
		limits = limits_of_waiter(walk, sum, &waiter);
		if (!limits.cpus && !limits.nice && !limits.weight)
			continue;
		ns += sum->part.ns;
		if (!longest || sum->part.ns > longest->part.ns)
			longest = sum;
		if (waiter != instance->thread)
			continue;
		own_ns += sum->part.ns;
		own = own ?: sum;
	}
	if (!longest || ns < least_ns)
		return 0;
	return limits_text(walk, own && own_ns >= least_ns ? own : longest, instance->thread);
}
