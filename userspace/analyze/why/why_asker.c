// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/why_asker_internal.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/why/lookup/why_roots.h"
#include "analyze/why/why_requests_internal.h"
#include "target/process/descriptors.h"
#include "util/memory.h"

struct talker {
	bool answers;         /* a thread with requests */
	uint64_t left_ts;     /* when it left its CPU last */
	uint32_t answers_got; /* times that such a thread has woken it */
};

/* Marks a thread with requests, unless it is of those that the user has named: they answer. */
static bool answers(const struct model *model, uint32_t thread, void *arg)
{
	struct talker *talkers = arg;

	talkers[thread].answers = true;
	return !why_is_of_root(model, thread);
}

/* Whether a thread waited for a connection over a network when it left its CPU. */
static bool waited_for_connection(const struct model *model, uint32_t thread, uint64_t from_ts)
{
	const struct model_wait *wait = model_wait_at(model, thread, from_ts);
	const struct store_object *object = wait ? model_wait_object(model, wait) : NULL;

	return object && descriptor_is_socket(object->name) &&
	       strstr(object->detail, DESCRIPTOR_BETWEEN);
}

/* Counts whom the threads with requests have woken while they waited for a connection. */
static void answers_count(struct talker *talkers, const struct model *model)
{
	for (size_t i = 0; i < model->switches.len; i++) {
		const struct model_switch *sw = &model->switches.data[i];

		if (sw->wake_ts && sw->next < model->threads.len &&
		    sw->waker < model->threads.len && talkers[sw->waker].answers &&
		    waited_for_connection(model, sw->next, talkers[sw->next].left_ts))
			talkers[sw->next].answers_got++;
		if (sw->prev < model->threads.len)
			talkers[sw->prev].left_ts = sw->ts;
	}
}

uint32_t why_asker_find(const struct model *model)
{
	struct talker *talkers = memory_zeroed(model->threads.len, sizeof(*talkers));
	size_t requests = why_requests_only(model, answers, talkers), got = 0;
	uint32_t found = MODEL_NONE;

	if (requests)
		answers_count(talkers, model);
	for (uint32_t i = 0; requests && i < model->threads.len; i++) {
		if (!model->threads.data[i].traced || !model->threads.data[i].has_sched ||
		    !why_is_of_root(model, i))
			continue;
		got += talkers[i].answers_got;
		if (talkers[i].answers_got &&
		    (found == MODEL_NONE || talkers[i].answers_got > talkers[found].answers_got))
			found = i;
	}
	free(talkers);
	return 2 * got >= requests ? found : MODEL_NONE;
}
