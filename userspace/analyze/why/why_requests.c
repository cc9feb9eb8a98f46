// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/why_requests_internal.h"

size_t why_requests_only(const struct model *model,
			 bool (*takes)(const struct model *model, uint32_t thread, void *arg),
			 void *arg)
{
	size_t count = 0;

	for (size_t i = 0; i < model->spans.len; i++) {
		uint32_t thread = model->spans.data[i].thread;
		const struct site_info *site = model_site(model, model->spans.data[i].site);

		if (site_is_bookkeeping(site) || site_is_once(site))
			continue;
		if (!site_is_request(site) || thread >= model->threads.len ||
		    !takes(model, thread, arg))
			return 0;
		count++;
	}
	return count;
}
