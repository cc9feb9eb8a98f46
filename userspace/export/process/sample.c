// SPDX-License-Identifier: Apache-2.0
/* sample(): whole traces, by the rule of filter/eval.h. */
#include "export/process/processors_internal.h"

struct sample_config {
	struct processor_fraction fraction;
};

static const struct processor_option options[] = {
	{"keep", "N/M", "The share of traces to pass on.", .type = PROCESSOR_FRACTION,
	 .first = true, .required = true, .at = offsetof(struct sample_config, fraction)},
};

static void sample_records(struct processor *processor, struct full_record *const *records,
			   size_t count)
{
	const struct sample_config *config = processor->config;

	for (size_t i = 0; i < count; i++) {
		const struct waffle_record *record = &records[i]->record;

		if (filter_sample(config->fraction.keep, config->fraction.of, record->trace_hi,
				  record->trace_lo, record->id))
			processor_pass(processor, &records[i], 1);
	}
}

const struct processor_type processor_sample = {
	.name = "sample",
	.help = "Passes on whole traces: all processes keep the same ones, as the filter's "
		"sample() "
		"does. Counters pass.",
	.example = "sample(1/10)",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.config_bytes = sizeof(struct sample_config),
	.records = sample_records,
};
