// SPDX-License-Identifier: Apache-2.0
#include "analyze/killed.h"

#include <stdlib.h>

#include "util/map.h"
#include "util/memory.h"

/* A process that a signal ended. */
struct end {
	uint32_t comm, ppid, signo, thread;
	uint64_t lived_ns; /* 0: unknown */
};

static int compare(uint32_t a, uint32_t b)
{
	return a < b ? -1 : a > b;
}

static int end_group(const struct end *a, const struct end *b)
{
	return compare(a->signo, b->signo) ?: compare(a->ppid, b->ppid)
		       ?: compare(a->comm, b->comm);
}

static int end_compare(const void *left, const void *right)
{
	const struct end *a = left, *b = right;

	return end_group(a, b) ?: compare(a->thread, b->thread);
}

static int killed_compare(const void *left, const void *right)
{
	const struct killed *a = left, *b = right;

	return compare(b->count, a->count) ?: compare(a->thread, b->thread);
}

static bool is_killed(const struct model_thread *thread)
{
	return thread->tid == thread->pid && model_thread_signal(thread);
}

static struct end end_of(const struct model *model, uint32_t index)
{
	const struct model_thread *thread = &model->threads.data[index];
	const struct model_process *process = model_process_of(model, index);
	bool born = thread->born_ts && thread->born_ts < thread->exit_ts;

	return (struct end){.comm = thread->comm,
			    .ppid = process ? process->ppid : 0,
			    .signo = model_thread_signal(thread),
			    .thread = index,
			    .lived_ns = born ? thread->exit_ts - thread->born_ts : 0};
}

static uint32_t parent_of(const struct model *model, uint32_t ppid)
{
	uint32_t parent = ppid ? map_get(&model->pids, ppid) : MAP_NONE;

	return parent == MAP_NONE ? MODEL_NONE : model->processes.data[parent].main_thread;
}

static struct killed killed_of(const struct model *model, const struct end *ends, size_t count)
{
	struct killed killed = {.signo = ends->signo,
				.count = (uint32_t)count,
				.thread = ends->thread,
				.ppid = ends->ppid,
				.parent = parent_of(model, ends->ppid),
				.lived_ns = ends->lived_ns};
	bool all = true;

	for (size_t i = 0; i < count; i++) {
		all &= ends[i].lived_ns != 0;
		if (ends[i].lived_ns > killed.lived_ns) {
			killed.lived_ns = ends[i].lived_ns;
			killed.thread = ends[i].thread;
		}
	}
	killed.lived_ns = all ? killed.lived_ns : 0;
	return killed;
}

void killed_find(killed_list *list, const struct model *model)
{
	VEC(struct end) ends = {0};

	for (uint32_t i = 0; i < model->threads.len; i++)
		if (is_killed(&model->threads.data[i]))
			vec_add(&ends, end_of(model, i));
	if (ends.len)
		qsort(ends.data, ends.len, sizeof(*ends.data), end_compare);
	for (size_t i = 0, end; i < ends.len; i = end) {
		for (end = i + 1; end < ends.len && !end_group(&ends.data[i], &ends.data[end]);)
			end++;
		vec_add(list, killed_of(model, &ends.data[i], end - i));
	}
	if (list->len)
		qsort(list->data, list->len, sizeof(*list->data), killed_compare);
	vec_free(&ends);
}
