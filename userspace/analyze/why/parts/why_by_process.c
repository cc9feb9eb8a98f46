// SPDX-License-Identifier: Apache-2.0
/* The time of an instance by the process of its culprits. What one process did may have several
 * causes: a client waits for its answer, and for the CPU that it has. */
#include <stdlib.h>

#include "analyze/why/why.h"
#include "util/map.h"
#include "util/memory.h"

/* Index in model.processes of a culprit, if it is one process of the target; MODEL_NONE: it is
 * not. */
static uint32_t process_of(const struct why *why, const struct why_part *part)
{
	const struct model_process *process = model_process_of(why->model, part->thread);

	return process && process->main_thread != MODEL_NONE && part->processes == 1 &&
			       model_is_traced(why->model, part->thread)
		       ? (uint32_t)(process - why->model->processes.data)
		       : MODEL_NONE;
}

static int longer(const void *left, const void *right)
{
	const struct why_by_process *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return a->process < b->process ? -1 : a->process > b->process;
}

/* The time that the part's culprit has with its cause, for all objects. */
static uint64_t time_of_cause(const struct why *why, const struct why_instance *instance,
			      const struct why_part *part)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < instance->part_count; i++) {
		const struct why_part *other = &why->parts.data[instance->part + i];

		if (other->cause == part->cause && other->thread == part->thread)
			ns += other->ns;
	}
	return ns;
}

/* Adds up the times by process, without `largest_ns`. Returns their number; the caller frees them.
 */
static size_t sums_make(const struct why *why, const struct why_instance *instance,
			struct why_by_process **sums)
{
	struct map numbers = {0}; /* process → index in sums */
	size_t count = 0;

	*sums = memory_zeroed(instance->part_count + 1, sizeof(**sums));
	for (uint32_t i = 0; i < instance->part_count; i++) {
		const struct why_part *part = &why->parts.data[instance->part + i];
		uint32_t process = process_of(why, part), at;

		if (process == MODEL_NONE || part->capture)
			continue;
		at = map_get(&numbers, process);
		if (at == MAP_NONE) {
			at = (uint32_t)count++;
			(*sums)[at].process = process;
			(*sums)[at].largest = part;
			map_put(&numbers, process, at);
		}
		(*sums)[at].ns += part->ns;
		if (part->ns > (*sums)[at].largest->ns)
			(*sums)[at].largest = part;
	}
	map_free(&numbers);
	return count;
}

/* Whether another process than that of the instance is to blame for more than its largest cause
 * shows. */
static bool hides_process(const struct model *model, const struct why_instance *instance,
			  const struct why_by_process *sums, uint32_t count)
{
	uint64_t least_ns = (instance->to_ts - instance->from_ts) / WHY_BY_PROCESS_PARTS;
	const struct model_process *own = model_process_of(model, instance->thread);

	for (uint32_t i = 0; i < count; i++)
		if (&model->processes.data[sums[i].process] != own &&
		    sums[i].ns > sums[i].largest_ns + least_ns)
			return true;
	return false;
}

uint32_t why_by_process(const struct why *why, const struct why_instance *instance,
			struct why_by_process *sums)
{
	struct why_by_process *all;
	uint64_t least_ns = (instance->to_ts - instance->from_ts) / WHY_BY_PROCESS_PARTS;
	size_t count = sums_make(why, instance, &all);
	uint32_t listed = 0;

	qsort(all, count, sizeof(*all), longer);
	while (listed < count && listed < WHY_BY_PROCESS_MAX && all[listed].ns > least_ns) {
		sums[listed] = all[listed];
		sums[listed].largest_ns = time_of_cause(why, instance, all[listed].largest);
		listed++;
	}
	free(all);
	return hides_process(why->model, instance, sums, listed) ? listed : 0;
}

/* ---- short processes ---- */

/* A process is short if it lives for less than this part of the instance. */
#define SHORT_PARTS 20

static bool is_short(const struct model *model, const struct model_process *process,
		     const struct why_instance *instance)
{
	const struct model_thread *main = process && process->main_thread < model->threads.len
						  ? &model->threads.data[process->main_thread]
						  : NULL;

	return main && main->traced && main->born_ts && main->exit_ts > main->born_ts &&
	       main->exit_ts - main->born_ts < (instance->to_ts - instance->from_ts) / SHORT_PARTS;
}

struct why_short_processes why_short_processes(const struct why *why,
					       const struct why_instance *instance)
{
	const struct model *model = why->model;
	struct why_short_processes sum = {.thread = MODEL_NONE};
	uint64_t most_ns = 0;

	for (uint32_t i = 0; i < instance->part_count; i++) {
		const struct why_part *part = &why->parts.data[instance->part + i];

		if (!is_short(model, model_process_of(model, part->thread), instance))
			continue;
		sum.ns += part->ns;
		if (part->ns > most_ns) {
			most_ns = part->ns;
			sum.thread = part->thread;
		}
	}
	for (size_t i = 0; sum.ns && i < model->processes.len; i++) {
		const struct model_process *process = &model->processes.data[i];
		const struct model_thread *main;

		if (!is_short(model, process, instance))
			continue;
		main = &model->threads.data[process->main_thread];
		if (main->born_ts < instance->from_ts || main->born_ts >= instance->to_ts)
			continue;
		sum.count++;
		sum.lived_ns += main->exit_ts - main->born_ts;
	}
	return sum;
}
