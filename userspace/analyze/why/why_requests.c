// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/why_requests_internal.h"

#include "analyze/why/lookup/why_meaning.h"
#include "util/text.h"

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

/* Commands of redis that may block. A list as in why_meaning.h. */
#define BLOCKING "BLPOP BRPOP BLMOVE BRPOPLPUSH BLMPOP BZPOPMIN BZPOPMAX BZMPOP XREAD XREADGROUP "
#define RESP "RESP "

bool why_request_is_for_work(const struct model *model, uint32_t span)
{
	const struct site_info *site;

	if (span >= model->spans.len)
		return false;
	site = model_site(model, model->spans.data[span].site);
	return site_is_request(site) && text_begins(site->name, RESP) &&
	       meaning_is_listed(site->name + strlen(RESP), BLOCKING);
}
