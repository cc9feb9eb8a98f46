// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/lookup/why_manager.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "util/memory.h"
#include "util/search.h"

/* So many stacks of a thread's waits, and of its samples, are searched for the function. The first
 * ones may be cut: they were taken before the tables for unwinding were ready. */
#define STACKS_MAX 64

/* The function, without its class, and its source: CPython 3.6 to 3.14. */
#define SERVES "serve_client"
#define SOURCE "multiprocessing/managers.py"

static void frame_take(const struct stack_frame *frame, void *arg)
{
	bool *serves = arg;
	const char *name = stack_frame_plain_name(frame);

	*serves |= name && stack_frame_is_python(frame) && !strcmp(name, SERVES) &&
		   stack_frame_is_in(frame, SOURCE);
}

/* The stacks of a thread that are looked at. */
struct manager_search {
	const struct why_walk *walk;
	unsigned count;
	bool found;
};

static bool is_over(const struct manager_search *search)
{
	return search->found || search->count == STACKS_MAX;
}

static void stack_look(struct manager_search *search, uint32_t stack, uint64_t ts)
{
	if (!stack || is_over(search))
		return;
	search->count++;
	stack_names_each(search->walk->names, stack, ts, frame_take, &search->found);
}

static bool serves(const struct why_walk *walk, uint32_t thread)
{
	const struct model_wait *waits = walk->model->waits.data;
	const struct model_sample *samples = walk->model->samples.data;
	size_t wait_count = walk->model->waits.len, sample_count = walk->model->samples.len;
	size_t wait = lower_bound(wait_count, i, waits[i].thread < thread);
	size_t sample = lower_bound(sample_count, i, samples[i].thread < thread);
	struct manager_search search = {.walk = walk};

	for (; wait < wait_count && waits[wait].thread == thread && !is_over(&search); wait++)
		stack_look(&search, waits[wait].user_stack, waits[wait].from_ts);
	search.count = 0;
	for (; sample < sample_count && samples[sample].thread == thread && !is_over(&search);
	     sample++)
		stack_look(&search, samples[sample].user_stack, samples[sample].ts);
	return search.found;
}

/* Until Python gives the thread its name, it has that of its process. */
static bool has_own_name(const struct model *model, uint32_t thread)
{
	const struct model_process *process = model_process_of(model, thread);

	return process && process->main_thread != MODEL_NONE &&
	       strcmp(model_thread_name(model, thread),
		      model_thread_name(model, process->main_thread)) != 0;
}

uint32_t why_manager_text(struct why_walk *walk, uint32_t thread)
{
	const struct model *model = walk->model;
	uint32_t text = 0;
	char line[160];
	int len;

	if (!walk->names || !model_is_traced(model, thread))
		return 0;
	if (map_get(&walk->managers, thread) != MAP_NONE)
		return map_get(&walk->managers, thread);
	if (serves(walk, thread)) {
		len = snprintf(line, sizeof(line),
			       "%.64s (%" PRIu32 ") serves a client of a multiprocessing manager%s",
			       model_thread_name(model, thread),
			       model_pid_real(model, model->threads.data[thread].tid),
			       has_own_name(model, thread) ? ", and has the client's name" : "");
		text = strtab_put(walk->why->texts, line, (size_t)len);
	}
	map_put(&walk->managers, thread, text);
	return text;
}
