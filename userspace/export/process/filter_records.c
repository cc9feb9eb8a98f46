// SPDX-License-Identifier: Apache-2.0
/* filter(): the expression of docs/filter.md. */
#include <stdio.h>

#include "export/process/processors_internal.h"
#include "filter/filter.h"

struct filter_config {
	const char *text;
};

struct filter_state {
	struct filter_expr *filter;
	struct filter_rate_state rate;
};

static const struct processor_option options[] = {
	{"expression", "EXPRESSION", "What to pass on, as in docs/filter.md.",
	 .type = PROCESSOR_REST, .first = true, .required = true,
	 .at = offsetof(struct filter_config, text)},
};

static int filter_state_open(struct processor *processor, struct error *err)
{
	const struct filter_config *config = processor->config;
	struct filter_state *state = processor->state;
	char origin[128];

	snprintf(origin, sizeof(origin), "%s: filter()", processor->host->origin);
	return filter_parse(&state->filter, origin, config->text, err);
}

static bool keeps(struct filter_state *state, const struct full_record *full)
{
	const struct filter_rate *rate = &state->filter->rate;
	struct filter_subject subject = full_record_subject(full);

	return filter_eval(state->filter, &subject) == FILTER_YES &&
	       (!rate->unit_ns || filter_rate_take(rate, &state->rate, full->record.end_ns));
}

static void filter_records(struct processor *processor, struct full_record *const *records,
			   size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (keeps(processor->state, records[i]))
			processor_pass(processor, &records[i], 1);
}

static void filter_state_close(struct processor *processor, uint64_t until_ns)
{
	struct filter_state *state = processor->state;

	(void)until_ns;
	if (state->filter)
		filter_free(state->filter);
}

const struct processor_type processor_filter = {
	.name = "filter",
	.help = "Passes on what matches an expression.",
	.example = "filter(name ~ \"db*\" && dur > 10ms)",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.config_bytes = sizeof(struct filter_config),
	.state_bytes = sizeof(struct filter_state),
	.open = filter_state_open,
	.records = filter_records,
	.close = filter_state_close,
};
