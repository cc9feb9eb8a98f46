// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/lookup/why_pool.h"

#include "util/memory.h"
#include "util/text.h"

static uint64_t pair_key(uint32_t woken, uint32_t waker)
{
	return (uint64_t)woken << 32 | waker;
}

static void find_wakers(struct why_walk *walk)
{
	const struct model *model = walk->model;
	const struct model_thread *threads = model->threads.data;

	for (size_t i = 0; i < model->switches.len; i++) {
		const struct model_switch *in = &model->switches.data[i];

		if (in->next < model->threads.len && in->waker < model->threads.len &&
		    threads[in->next].pid == threads[in->waker].pid &&
		    !(in->flags & WAFFLE_SWITCH_WAKER_INTERRUPT))
			map_put(&walk->wakers, pair_key(in->next, in->waker), 1);
	}
	walk->wakers_known = true;
}

static bool has_woken(struct why_walk *walk, uint32_t waiter, uint32_t waker)
{
	if (!walk->wakers_known)
		find_wakers(walk);
	return map_get(&walk->wakers, pair_key(waiter, waker)) != MAP_NONE;
}

static bool may_be_of_pool(const struct model *model, uint32_t thread)
{
	const struct model_thread *of = &model->threads.data[thread];

	return of->traced && of->tid != of->pid;
}

bool why_pool_works_for(struct why_walk *walk, uint32_t waiter, uint32_t worker, uint32_t other)
{
	const struct model *model = walk->model;
	const struct model_thread *threads = model->threads.data;

	if (other >= model->threads.len || other == waiter || other == worker ||
	    threads[other].pid != threads[worker].pid || !may_be_of_pool(model, worker) ||
	    !may_be_of_pool(model, other) ||
	    text_compare_without_numbers(model_thread_name(model, worker),
					 model_thread_name(model, other)))
		return false;
	return has_woken(walk, waiter, worker) && has_woken(walk, waiter, other);
}

void why_pool_free(struct why_walk *walk)
{
	map_free(&walk->wakers);
}
