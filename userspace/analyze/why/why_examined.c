// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/why_examined_internal.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/why/lookup/why_roots.h"
#include "target/process/descriptors.h"
#include "util/memory.h"
#include "util/text.h"

/* How often the threads to examine left a CPU together, at most. */
#define SWITCHES_MAX 1000000
/* The descriptor of which a thread reads its signals. */
#define SIGNALS "anon_inode:[signalfd"

/* ---- the threads to examine ---- */

struct choice {
	uint32_t thread;
	uint64_t switches;
};

int why_examined_compare(const struct model *model, uint32_t left, uint32_t right)
{
	const struct model_thread *a = &model->threads.data[left];
	const struct model_thread *b = &model->threads.data[right];

	if ((a->tid == a->pid) != (b->tid == b->pid))
		return a->tid == a->pid ? -1 : 1;
	if (a->running_ns != b->running_ns)
		return a->running_ns > b->running_ns ? -1 : 1;
	return left < right ? -1 : left > right;
}

static int choices_compare(const void *left, const void *right, void *model)
{
	const struct choice *a = left, *b = right;

	return why_examined_compare(model, a->thread, b->thread);
}

static struct choice *choices_new(size_t *count, const struct model *model)
{
	struct choice *all = memory_get((model->threads.len + 1) * sizeof(*all));
	uint64_t *switches = memory_zeroed(model->threads.len, sizeof(*switches));

	*count = 0;
	for (size_t i = 0; i < model->switches.len; i++)
		if (model->switches.data[i].prev < model->threads.len)
			switches[model->switches.data[i].prev]++;
	for (uint32_t i = 0; i < model->threads.len; i++) {
		const struct model_thread *thread = &model->threads.data[i];

		if (thread->traced && thread->has_sched && !thread->own &&
		    !why_is_of_waker(model, i))
			all[(*count)++] = (struct choice){i, switches[i]};
	}
	free(switches);
	return all;
}

size_t why_examined_choose(struct why_window *windows, const struct model *model,
			   const struct why_query *query, why_examined_fn wanted, const void *arg)
{
	size_t count, chosen = 0;
	struct choice *all = choices_new(&count, model);
	uint64_t left = SWITCHES_MAX;

	qsort_r(all, count, sizeof(*all), choices_compare, (void *)model);
	for (size_t i = 0; i < count && chosen < WHY_EXAMINED_MAX; i++) {
		if (all[i].switches > left || !wanted(model, all[i].thread, arg))
			continue;
		left -= all[i].switches;
		windows[chosen++] =
			(struct why_window){query->from_ts, query->to_ts, all[i].thread};
	}
	free(all);
	return chosen;
}

/* ---- waits for work ---- */

/* Whether a thread waits for signals, and its own timeouts end most of these waits. A lock that its
 * program made itself may be such a wait, too. */
static bool is_signal_loop(const struct why *why, const struct why_step *step)
{
	return text_begins(strtab_get(why->texts, step->object), SIGNALS) && !step->meaning &&
	       step->wakes > 1 && step->woken_by == MODEL_NONE &&
	       2 * step->woken_count > step->wakes - 1;
}

/* Whether a server waits for no client in particular. One that waits for the next request of a
 * connection may hold what others of its threads want. */
static bool has_no_client(const struct why *why, const struct why_step *step)
{
	const char *object = strtab_get(why->texts, step->object);

	return !strstr(object, DESCRIPTOR_BETWEEN) && !strstr(object, "(unix");
}

bool why_waits_for_work(const struct why *why, const struct why_part *part, uint32_t tid)
{
	const struct model_thread *threads = why->model->threads.data;
	const struct why_step *steps = &why->steps.data[part->step];

	if (!part->step_count || steps->state != WAFFLE_THREAD_BLOCKED || steps->owned)
		return false;
	for (uint32_t i = 0; i < part->step_count; i++) {
		if (threads[steps[i].thread].pid != threads[steps->thread].pid ||
		    threads[steps[i].thread].tid == tid)
			break;
		if (steps[i].serves && (!i || has_no_client(why, &steps[i])))
			return true;
	}
	return is_signal_loop(why, steps);
}
