// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/why_requests_internal.h"

#include "analyze/why/lookup/why_meaning.h"
#include "target/elf/request_site.h"
#include "util/search.h"

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

bool why_request_is_for_work(const struct model *model, uint32_t span)
{
	const char *command;

	if (span >= model->spans.len)
		return false;
	command = request_site_command(model_site(model, model->spans.data[span].site));
	return command && meaning_is_listed(command, BLOCKING);
}

/* Limit of the spans to look at, by their begins. A busy redis answers 100,000 requests per second,
 * and workers may ask it for a job once in ten. */
#define BEGUN_MAX (1u << 20)

bool why_requests_are_for_work(const struct model *model, uint32_t thread, uint64_t ts)
{
	size_t begun = lower_bound(model->spans.len, i, model->spans.data[i].start_ts <= ts);
	bool any = false;

	if (begun > BEGUN_MAX)
		return false;
	for (size_t i = 0; i < begun; i++) {
		const struct model_span *span = &model->spans.data[i];

		if (span->thread != thread || span->end_ts <= ts ||
		    !site_is_request(model_site(model, span->site)))
			continue;
		if (!why_request_is_for_work(model, (uint32_t)i))
			return false;
		any = true;
	}
	return any;
}
