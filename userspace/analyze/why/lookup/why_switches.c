// SPDX-License-Identifier: Apache-2.0
/* Looks up switches by time. */
#include "analyze/why/lookup/why_switches.h"

#include "util/search.h"

size_t why_switch_after(const struct model *model, uint64_t ts)
{
	return lower_bound(model->switches.len, i, model->switches.data[i].ts < ts);
}

const struct model_switch *why_switch_in(const struct model *model, size_t first, uint32_t thread,
					 uint64_t ts)
{
	for (size_t i = first; i < model->switches.len && model->switches.data[i].ts == ts; i++)
		if (model->switches.data[i].next == thread)
			return &model->switches.data[i];
	return NULL;
}
