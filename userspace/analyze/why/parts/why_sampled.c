// SPDX-License-Identifier: Apache-2.0
/* The samples of the running time that a part sums up. */
#include "analyze/why/parts/why_sampled.h"

#include "analyze/why/lookup/why_evidence.h"
#include "analyze/why/why_verdict.h"
#include "analyze/why/why_walk_types.h"
#include "util/memory.h"
#include "util/search.h"

/* Index of the thread's first sample at or after ts. Most look-ups are near the last one. */
static size_t sample_after(struct why_walk *walk, uint32_t thread, uint64_t ts)
{
	const struct model_sample *samples = walk->model->samples.data;

	walk->sample_found = lower_bound_near(
		walk->model->samples.len, walk->sample_found, i,
		samples[i].thread < thread || (samples[i].thread == thread && samples[i].ts < ts));
	return walk->sample_found;
}

/* Whether the culprit runs during the step: it is the step's thread, or has the CPU that this one
 * waits for. Waits for other ranks are not the work of the thread's code. */
static bool is_running(const struct why_verdict *verdict, const struct why_step *step)
{
	if (step->state == WAFFLE_THREAD_RUNNABLE)
		return verdict->thread == step->by;
	return step->state == WAFFLE_THREAD_RUNNING && verdict->thread == step->thread;
}

/* Whether a sample is of the kind that the verdict is about. */
static bool is_wanted(const struct why_walk *walk, const struct why_sampling *sampling,
		      const struct model_sample *sample)
{
	bool fault;

	if (!sampling->faults && sample->ts >= sampling->faults_from_ts)
		return true;
	fault = sample->kernel && why_stack_is_fault(walk, sample->kernel_stack);
	return fault == sampling->faults;
}

void why_sampled_add(struct why_walk *walk, struct why_sum *sum, const struct why_verdict *verdict)
{
	const struct why_step *step = &walk->path[walk->depth - 1];
	const struct why_sampling *sampling = &verdict->sampling;
	const struct model *model = walk->model;

	if (!model->samples.len || sampling->from_ts == sampling->to_ts ||
	    !is_running(verdict, step))
		return;
	for (size_t i = sample_after(walk, verdict->thread, sampling->from_ts);
	     i < model->samples.len && model->samples.data[i].thread == verdict->thread &&
	     model->samples.data[i].ts < sampling->to_ts;
	     i++) {
		uint32_t node = (uint32_t)walk->sampled.len;

		if (!is_wanted(walk, sampling, &model->samples.data[i]))
			continue;
		vec_add(&walk->sampled, (struct why_sampled){(uint32_t)i, MODEL_NONE});
		if (sum->sampled_first == MODEL_NONE)
			sum->sampled_first = node;
		else
			walk->sampled.data[sum->sampled_last].next = node;
		sum->sampled_last = node;
	}
}

void why_sampled_join(struct why_walk *walk, struct why_sum *to, const struct why_sum *from)
{
	if (from->sampled_first == MODEL_NONE)
		return;
	if (to->sampled_first == MODEL_NONE)
		to->sampled_first = from->sampled_first;
	else
		walk->sampled.data[to->sampled_last].next = from->sampled_first;
	to->sampled_last = from->sampled_last;
}

/* Counts the samples from `at` on that are the same. Returns the next other one. */
static uint32_t samples_count(struct why_walk *walk, uint32_t at)
{
	struct sample_places *places = walk->why->sample_places;
	uint32_t first = walk->sampled.data[at].sample, count = 0;

	do {
		at = walk->sampled.data[at].next;
		count++;
	} while (at != MODEL_NONE &&
		 sample_places_match(places, first, walk->sampled.data[at].sample));
	sample_counts_add_samples(&walk->sample_counts, places, first, count);
	return at;
}

void why_sampled_take(struct why_walk *walk, const struct why_sum *sum, struct why_part *part)
{
	struct why *why = walk->why;
	sample_counts *counts = &walk->sample_counts;

	part->place = (uint32_t)why->places.len;
	part->place_count = 0;
	if (sum->sampled_first == MODEL_NONE)
		return;
	if (!why->sample_places)
		why->sample_places = sample_places_new(walk->model, walk->names, why->texts);
	counts->len = 0;
	for (uint32_t at = sum->sampled_first; at != MODEL_NONE;)
		at = samples_count(walk, at);
	sample_counts_finish(counts);
	part->place_count = (uint32_t)counts->len;
	for (size_t i = 0; i < counts->len; i++)
		vec_add(&why->places, counts->data[i]);
}
