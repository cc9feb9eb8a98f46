// SPDX-License-Identifier: Apache-2.0
/* batch(): holds copies of records until there are many. */
#include <stdlib.h>

#include "export/process/processors_internal.h"
#include "util/clock.h"

/* A batch of long records is passed on earlier. */
#define BATCH_BYTES_MAX (4u << 20)

struct batch_config {
	uint64_t size, time_ns;
};

struct batch_state {
	struct full_record **records;
	size_t count, bytes;
	uint64_t first_ns; /* when the first of them came */
};

static const struct processor_option options[] = {
	{"size", "1 to 65536", "So many records are passed on at once. Default: 512.",
	 .type = PROCESSOR_NUMBER, .first = true, .min = 1, .max = 65536, .value = 512,
	 .at = offsetof(struct batch_config, size)},
	{"time", "100ms to 1h", "None waits longer for that, to within a second. Default: 1s.",
	 .type = PROCESSOR_TIME, .min = 100000000ull, .max = 3600000000000ull,
	 .value = 1000000000ull, .at = offsetof(struct batch_config, time_ns)},
};

static int batch_open(struct processor *processor, struct error *err)
{
	const struct batch_config *config = processor->config;
	struct batch_state *state = processor->state;

	state->records = calloc(config->size, sizeof(*state->records));
	return state->records ? 0
			      : error_set(err, ENOMEM, "%s: batch(): out of memory",
					  processor->host->origin);
}

static void batch_flush(struct processor *processor)
{
	struct batch_state *state = processor->state;

	if (!state->count)
		return;
	processor_pass(processor, state->records, state->count);
	for (size_t i = 0; i < state->count; i++)
		free(state->records[i]);
	state->count = state->bytes = 0;
}

static void batch_records(struct processor *processor, struct full_record *const *records,
			  size_t count)
{
	const struct batch_config *config = processor->config;
	struct batch_state *state = processor->state;

	for (size_t i = 0; i < count; i++) {
		struct full_record *copy = full_record_copy(records[i]);

		if (!copy) {
			/* Memory may be there again without these, and this one passes alone. */
			batch_flush(processor);
			processor_pass(processor, &records[i], 1);
			continue;
		}
		if (!state->count)
			state->first_ns = clock_monotonic_ns();
		state->records[state->count++] = copy;
		state->bytes += full_record_bytes(copy);
		if (state->count >= config->size || state->bytes >= BATCH_BYTES_MAX)
			batch_flush(processor);
	}
}

static void batch_tick(struct processor *processor, uint64_t now_ns)
{
	const struct batch_config *config = processor->config;
	const struct batch_state *state = processor->state;

	if (state->count && now_ns - state->first_ns >= config->time_ns)
		batch_flush(processor);
}

static void batch_close(struct processor *processor, uint64_t until_ns)
{
	struct batch_state *state = processor->state;

	(void)until_ns;
	for (size_t i = 0; i < state->count; i++)
		free(state->records[i]);
	free(state->records);
}

const struct processor_type processor_batch = {
	.name = "batch",
	.help = "Passes records on in groups. An exporter sends each group as one request; without "
		"batch() before it, it has one with the defaults.",
	.example = "batch(1000,time=5s)",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.config_bytes = sizeof(struct batch_config),
	.state_bytes = sizeof(struct batch_state),
	.open = batch_open,
	.records = batch_records,
	.tick = batch_tick,
	.save = batch_flush,
	.end = batch_flush,
	.close = batch_close,
};
