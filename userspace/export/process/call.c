// SPDX-License-Identifier: Apache-2.0
/* call(): the program's own callback (include/waffle_process.h). */
#include "export/process/joiner_internal.h"
#include "export/process/processors_internal.h"

struct call_config {
	const char *name;
};

struct call_state {
	struct full_record_values room;
};

static const struct processor_option options[] = {
	{"name", "NAME", "The name given to waffle_process_callback().", .type = PROCESSOR_TEXT,
	 .first = true, .required = true, .at = offsetof(struct call_config, name)},
};

static int call_open(struct processor *processor, struct error *err)
{
	const struct call_config *config = processor->config;

	if (processor->host->call)
		return 0;
	return error_set(err, EINVAL,
			 "%s: call(%s): only a program that is linked with libwaffle has "
			 "callbacks, in its own chain",
			 processor->host->origin, config->name);
}

static void call_records(struct processor *processor, struct full_record *const *records,
			 size_t count)
{
	const struct call_config *config = processor->config;
	const struct chain_host *host = processor->host;
	struct call_state *state = processor->state;

	for (size_t i = 0; i < count; i++) {
		joiner_decode(processor->joiner, records[i], &state->room);
		if (host->call(config->name, &records[i]->record, host->arg))
			processor_pass(processor, &records[i], 1);
	}
}

const struct processor_type processor_call = {
	.name = "call",
	.help = "Passes on what the program's own callback chooses.",
	.example = "call(mine)",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.config_bytes = sizeof(struct call_config),
	.state_bytes = sizeof(struct call_state),
	.open = call_open,
	.records = call_records,
};
