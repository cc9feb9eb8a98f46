// SPDX-License-Identifier: Apache-2.0
/*
 * Processes that wait for each other: a parent for its children, and these for a lock that they all
 * share, whose owner the capture does not have. If a process ends while it holds such a lock,
 * nobody is left who could release it.
 */
#include <stdlib.h>

#include "analyze/why/hang/why_hang_internal.h"
#include "analyze/why/lookup/why_roots.h"
#include "util/memory.h"
#include "util/syscall_names.h"

/* A process that no traced one has started, and its descendants. */
struct process_family {
	uint32_t threads, waiting; /* living ones; those that wait for others of the family */
	uint32_t shared;           /* those that wait for a lock that processes share */
	/* The oldest process waits for one, which it may share with its parent; or there is a child
	 * that is not traced. */
	bool outside;
};

/* The parent of a process, if it is traced; MODEL_NONE: it is not. */
static uint32_t parent_of(const struct model *model, uint32_t process)
{
	uint32_t parent = map_get(&model->pids, model->processes.data[process].ppid);
	uint32_t main = parent < model->processes.len ? model->processes.data[parent].main_thread
						      : MODEL_NONE;

	return model_is_traced(model, main) && !why_is_of_waker(model, main) ? parent : MODEL_NONE;
}

/* Makes heads[i] the oldest process of the family of process i. Each process is passed once: the
 * parents in a damaged file may be a circle. */
static uint32_t *heads_new(const struct model *model)
{
	size_t count = model->processes.len;
	uint32_t *heads = memory_get((count + 1) * sizeof(*heads));
	bool *passed = memory_zeroed(count + 1, sizeof(*passed));

	for (uint32_t i = 0; i < count; i++)
		heads[i] = MODEL_NONE;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t end = i, parent;

		while (!passed[end] && (parent = parent_of(model, end)) != MODEL_NONE) {
			passed[end] = true;
			end = parent;
		}
		passed[end] = true;
		if (heads[end] == MODEL_NONE)
			heads[end] = end;
		for (uint32_t at = i; at != end; at = parent_of(model, at))
			heads[at] = heads[end];
	}
	free(passed);
	return heads;
}

/* Whether only a thread of the family can end a wait that was there when the capture began. */
static bool waits_within(const struct why_hangs *hangs, const struct model *model,
			 const struct why_hung *hung)
{
	const struct model_open_wait *wait = &model->open_waits.data[hung->wait];
	uint32_t children[WHY_CHILDREN];

	if (!wait->before)
		return false;
	return wait->flags & WAFFLE_OPEN_WAIT_INSIDE || hung->awaits == WHY_AWAITS_SHARED ||
	       why_hang_children(hangs, model, wait, children);
}

static const struct why_hung *hung_of(const struct why_hangs *hangs, const struct model *model,
				      uint32_t thread)
{
	const struct model_open_wait *wait = model_open_wait_of(model, thread);

	return wait ? &hangs->waits.data[wait - model->open_waits.data] : NULL;
}

static uint32_t process_index(const struct model *model, uint32_t thread)
{
	const struct model_process *process = model_process_of(model, thread);

	return process ? (uint32_t)(process - model->processes.data) : MODEL_NONE;
}

static void families_fill(struct process_family *families, const uint32_t *heads,
			  const struct why_hangs *hangs, const struct model *model)
{
	for (uint32_t i = 0; i < model->threads.len; i++) {
		uint32_t process = process_index(model, i);
		const struct why_hung *hung;
		struct process_family *family;

		if (process == MODEL_NONE || !why_hang_is_alive(&model->threads.data[i]))
			continue;
		family = &families[heads[process]];
		hung = hung_of(hangs, model, i);
		family->threads++;
		if (!hung || !waits_within(hangs, model, hung))
			continue;
		family->waiting++;
		family->shared += hung->awaits == WHY_AWAITS_SHARED;
		family->outside |= hung->awaits == WHY_AWAITS_SHARED && heads[process] == process;
	}
}

/* A child that is not traced may end a wait: of its parent, or for a lock that it shares. */
static void families_add_untraced(struct process_family *families, const uint32_t *heads,
				  const struct why_hangs *hangs, const struct model *model)
{
	for (size_t i = 0; i < hangs->children.len; i++) {
		const struct why_child *child = &hangs->children.data[i];
		uint32_t parent = map_get(&model->pids, child->ppid);

		if (parent < model->processes.len && !model->threads.data[child->thread].traced)
			families[heads[parent]].outside = true;
	}
}

static bool is_stuck(const struct process_family *family)
{
	return family->shared && !family->outside && family->waiting == family->threads;
}

/* Whether only others of its process, or one that shares its lock, can end a thread's wait. */
static bool shares(const struct model *model, struct stack_names *names, uint32_t thread)
{
	const struct model_open_wait *wait = model_open_wait_of(model, thread);

	return wait && (wait->flags & WAFFLE_OPEN_WAIT_INSIDE ||
			why_awaited_by(model, names, wait) == WHY_AWAITS_SHARED);
}

/* Whether a thread waits for a child to end. */
static bool waits_for_children(const struct model *model, uint32_t thread)
{
	const struct model_open_wait *wait = model_open_wait_of(model, thread);
	struct why_wanted_children wanted;

	return wait && wait->args < model->syscall_args.len &&
	       why_wanted_children(&wanted, syscall_name(model->meta->machine, wait->syscall),
				   &model->syscall_args.data[wait->args]);
}

bool why_hang_children_share(const struct model *model, struct stack_names *names, uint32_t ended)
{
	const struct model_process *of = model_process_of(model, ended);

	for (uint32_t i = 0; of && i < model->threads.len; i++) {
		const struct model_thread *thread = &model->threads.data[i];
		const struct model_process *process = model_process_of(model, i);
		bool parent = process && process->pid == of->ppid;

		if (!process || (process->ppid != of->ppid && !parent) || thread->track ||
		    thread->gone || thread->exit_ts)
			continue;
		if (!thread->traced ||
		    (!parent && thread->born_ts > model->threads.data[ended].exit_ts) ||
		    !(shares(model, names, i) || (parent && waits_for_children(model, i))))
			return false;
	}
	return of;
}

void why_families_find(struct why_hangs *hangs, const struct model *model)
{
	uint32_t *heads = heads_new(model);
	struct process_family *families =
		memory_zeroed(model->processes.len + 1, sizeof(*families));

	families_fill(families, heads, hangs, model);
	families_add_untraced(families, heads, hangs, model);
	for (uint32_t i = 0; i < model->processes.len; i++)
		if (is_stuck(&families[i]))
			vec_add(&hangs->standstills,
				(struct why_standstill){
					.thread = model->processes.data[i].main_thread,
					.threads = families[i].threads,
					.of = families[i].threads,
					.family = true});
	for (size_t i = 0; i < hangs->waits.len; i++) {
		struct why_hung *hung = &hangs->waits.data[i];
		uint32_t process = process_index(model, model->open_waits.data[hung->wait].thread);

		if (process != MODEL_NONE && is_stuck(&families[heads[process]]))
			hung->stuck = true;
	}
	free(families);
	free(heads);
}
