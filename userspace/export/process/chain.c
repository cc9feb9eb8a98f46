// SPDX-License-Identifier: Apache-2.0
#include "export/process/chain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/process/chain_text_internal.h"
#include "export/process/joiner_internal.h"
#include "export/process/processor_internal.h"
#include "util/clock.h"
#include "util/units.h"

/* Smaller steps of the clock would only tear spans apart. */
#define CLOCK_STEP_NS 1000000

struct chain {
	struct chain_host host;
	char *origin, *service;
	struct chain_stages stages;
	struct processor *processors;
	size_t count;
	struct joiner *joiner;
	bool lossy; /* a processor has lost records */
};

static void joined(struct full_record *record, void *arg)
{
	struct chain *chain = arg;

	processor_give(&chain->processors[0], &record, 1);
}

/* Exporters send what they get as one request. */
static int batches_insert(struct chain *chain, struct error *err)
{
	const struct processor_type *batch = processor_type_find("batch", 5);

	for (size_t i = 0; i < chain->stages.stages.len; i++) {
		const struct chain_stage *list = chain->stages.stages.data;

		if (!list[i].type->batched || (i && list[i - 1].type == batch))
			continue;
		if (!chain_stages_insert(&chain->stages, i, batch))
			return error_set(err, ENOMEM, "%s: out of memory", chain->origin);
		i++;
	}
	return 0;
}

static int processors_make(struct chain *chain, struct error *err)
{
	size_t count = chain->stages.stages.len;

	chain->processors = calloc(count, sizeof(*chain->processors));
	if (!chain->processors)
		return error_set(err, ENOMEM, "%s: out of memory", chain->origin);
	for (size_t i = 0; i < count; i++) {
		struct processor *processor = &chain->processors[i];
		const struct chain_stage *stage = &chain->stages.stages.data[i];

		*processor = (struct processor){
			.type = stage->type,
			.host = &chain->host,
			.next = i + 1 < count ? processor + 1 : NULL,
			.config = stage->config,
			.state = calloc(1, stage->type->state_bytes + 1),
			.joiner = chain->joiner,
			.lossy = &chain->lossy,
		};
		chain->count = i + 1;
		if (!processor->state)
			return error_set(err, ENOMEM, "%s: out of memory", chain->origin);
	}
	return 0;
}

static void chain_free(struct chain *chain, uint64_t until_ns)
{
	for (size_t i = 0; i < chain->count; i++) {
		struct processor *processor = &chain->processors[i];

		if (processor->state && processor->type->close)
			processor->type->close(processor, until_ns);
		free(processor->state);
	}
	free(chain->processors);
	chain_stages_free(&chain->stages);
	joiner_free(chain->joiner);
	free(chain->origin);
	free(chain->service);
	free(chain);
}

int chain_open(struct chain **result, const char *text, const struct chain_host *host,
	       struct error *err)
{
	struct chain *chain = calloc(1, sizeof(*chain));
	int code;

	*result = NULL;
	if (!chain)
		return error_set(err, ENOMEM, "%s: out of memory", host->origin);
	chain->host = *host;
	chain->host.origin = chain->origin = strdup(host->origin);
	chain->host.service = chain->service = strdup(host->service);
	chain->joiner = joiner_new(JOINER_OPEN_BYTES, joined, chain);
	if (!chain->origin || !chain->service || !chain->joiner)
		code = error_set(err, ENOMEM, "%s: out of memory", host->origin);
	else
		code = chain_text_parse(&chain->stages, chain->origin, text, err);
	code = code ?: batches_insert(chain, err) ?: processors_make(chain, err);
	for (size_t i = 0; !code && i < chain->count; i++)
		if (chain->processors[i].type->open)
			code = chain->processors[i].type->open(&chain->processors[i], err);
	if (code) {
		chain->host.say = NULL;
		chain_free(chain, 0);
		return code;
	}
	joiner_set_unix_offset(chain->joiner, host->unix_offset_ns);
	*result = chain;
	return 0;
}

int chain_prepare(const char *text, const char *origin, struct error *err)
{
	struct chain_stages stages = {0};
	int result = chain_text_parse(&stages, origin, text, err);

	for (size_t i = 0; !result && i < stages.stages.len; i++) {
		const struct processor_type *type = stages.stages.data[i].type;

		result = type->prepare ? type->prepare(err) : 0;
	}
	chain_stages_free(&stages);
	return result;
}

bool chain_is_shareable(const char *text)
{
	struct chain_stages stages = {0};
	bool shareable = !chain_text_parse(&stages, "", text, NULL);

	for (size_t i = 0; shareable && i < stages.stages.len; i++) {
		const struct chain_stage *stage = &stages.stages.data[i];

		for (size_t j = 0; j < stage->type->option_count; j++) {
			const struct processor_option *option = &stage->type->options[j];
			const char *path = option->replaces
						   ? *(char **)((char *)stage->config + option->at)
						   : NULL;

			shareable = shareable && (!path || strstr(path, "%p"));
		}
	}
	chain_stages_free(&stages);
	return shareable;
}

void chain_record(struct chain *chain, const struct waffle_rec *rec, const struct site_info *site)
{
	joiner_record(chain->joiner, rec, site);
}

/* Steps of the clock, such as by NTP. */
static void clock_follow(struct chain *chain)
{
	int64_t offset = (int64_t)(clock_ns(CLOCK_REALTIME) - clock_monotonic_ns());
	int64_t step = offset - chain->host.unix_offset_ns;

	if (chain->host.finished || (step < CLOCK_STEP_NS && step > -CLOCK_STEP_NS))
		return;
	chain->host.unix_offset_ns = offset;
	joiner_set_unix_offset(chain->joiner, offset);
}

void chain_tick(struct chain *chain, uint64_t now_ns)
{
	clock_follow(chain);
	for (size_t i = 0; i < chain->count; i++)
		if (chain->processors[i].type->tick)
			chain->processors[i].type->tick(&chain->processors[i], now_ns);
}

void chain_flush(struct chain *chain)
{
	for (size_t i = 0; i < chain->count; i++)
		if (chain->processors[i].type->flush)
			chain->processors[i].type->flush(&chain->processors[i]);
}

void chain_save(struct chain *chain, uint64_t wait_ns)
{
	uint64_t until_ns = clock_monotonic_ns() + wait_ns;

	for (size_t i = 0; i < chain->count; i++)
		if (chain->processors[i].type->save)
			chain->processors[i].type->save(&chain->processors[i]);
	for (size_t i = 0; i < chain->count; i++)
		if (chain->processors[i].type->drain)
			chain->processors[i].type->drain(&chain->processors[i], until_ns);
}

static void counts_say(const struct chain *chain)
{
	struct joiner_counts counts = joiner_counts(chain->joiner);
	char line[512];
	int len;

	if (!chain->host.say ||
	    !(counts.unfinished | counts.ends_alone | counts.lost | counts.out_of_memory))
		return;
	len = snprintf(line, sizeof(line), "%s: ", chain->origin);
#define COUNT(value, one, many)                                                                    \
	if (value)                                                                                 \
	len += snprintf(line + len, sizeof(line) - (size_t)len, "%s%" PRIu64 " %s",                \
			line[len - 2] == ':' ? "" : "; ", value, units_plural(value, one, many))
	COUNT(counts.unfinished, "span had not ended", "spans had not ended");
	COUNT(counts.ends_alone, "end of a span had no begin", "ends of spans had no begin");
	COUNT(counts.lost, "record was lost", "records were lost");
	COUNT(counts.out_of_memory, "record found no memory", "records found no memory");
#undef COUNT
	chain->host.say(line, chain->host.arg);
}

int chain_close(struct chain *chain, uint64_t end_ts, uint64_t wait_ns)
{
	uint64_t until_ns = clock_monotonic_ns() + wait_ns;
	bool lossy = false;

	joiner_finish(chain->joiner, end_ts);
	for (size_t i = 0; i < chain->count; i++) {
		if (chain->processors[i].type->flush)
			chain->processors[i].type->flush(&chain->processors[i]);
		if (chain->processors[i].type->end)
			chain->processors[i].type->end(&chain->processors[i]);
	}
	counts_say(chain);
	for (size_t i = 0; i < chain->count; i++)
		chain->processors[i].lossy = &lossy;
	chain_free(chain, until_ns);
	return lossy ? -EIO : 0;
}
