// SPDX-License-Identifier: Apache-2.0
#include "export/backend/causes.h"

#include <stdlib.h>

#include "symbolize/stack_names.h"
#include "util/memory.h"

struct causes_loading {
	struct span_cause *spans;
	span_causes_fn ready;
	void *arg;
};

static int instance_take(const struct why *why, const struct why_instance *instance, void *arg)
{
	const struct causes_loading *loading = arg;
	struct span_cause *first = &loading->spans[instance->span];

	for (uint32_t i = 0; i < instance->part_count; i++) {
		const struct why_part *part = &why->parts.data[instance->part + i];

		if (part->ns < first->ns || (part->ns == first->ns && part->cause >= first->cause))
			continue;
		*first = (struct span_cause){part->ns, part->thread, part->object,
					     (uint8_t)part->cause, (uint8_t)part->grade};
	}
	return loading->ready(instance->span, loading->arg);
}

int span_causes_each(struct why **why, const struct model *model, why_each_fn each, void *arg,
		     struct error *err)
{
	/* Symbols tell an interpreter's lock from others. */
	struct stack_names *names = stack_names_open(model->reader, false);
	int result = why_each(why, model, names, each, arg, err);

	stack_names_close(names);
	return result;
}

int span_causes_load(struct span_causes *causes, const struct model *model, span_causes_fn ready,
		     void *arg, struct error *err)
{
	struct causes_loading loading = {.ready = ready, .arg = arg};
	int result;

	*causes = (struct span_causes){0};
	if (!model->sched || !model->spans.len)
		return 0;
	causes->spans = memory_zeroed(model->spans.len, sizeof(*causes->spans));
	loading.spans = causes->spans;
	result = span_causes_each(&causes->why, model, instance_take, &loading, err);
	if (result < 0)
		span_causes_free(causes);
	return result < 0 ? result : 0;
}

void span_causes_free(struct span_causes *causes)
{
	free(causes->spans);
	why_free(causes->why);
	*causes = (struct span_causes){0};
}

const struct span_cause *span_causes_of(const struct span_causes *causes, uint32_t span)
{
	return causes->spans && causes->spans[span].ns ? &causes->spans[span] : NULL;
}
