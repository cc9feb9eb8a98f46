// SPDX-License-Identifier: Apache-2.0
#include "export/process/chain.h"
#include "export/process/processor_internal.h"

const char *chain_processor(size_t index, const char **help)
{
	if (index >= processor_type_count)
		return NULL;
	*help = processor_types[index]->help;
	return processor_types[index]->name;
}

void chain_help_markdown(FILE *out)
{
	for (size_t i = 0; i < processor_type_count; i++) {
		const struct processor_type *type = processor_types[i];

		fprintf(out,
			"### %s\n\n%s\n\n    %s\n\n| option | value | meaning |\n|---|---|---|\n",
			type->name, type->help, type->example);
		for (size_t j = 0; j < type->option_count; j++) {
			const struct processor_option *option = &type->options[j];

			fprintf(out, "| `%s=`%s | `%s` | ", option->name,
				option->type == PROCESSOR_REST ? ", which is never written"
				: option->first                ? ", which may be left out"
							       : "",
				option->argument);
			fprintf(out, "%s |\n", option->help);
		}
		fputc('\n', out);
	}
}
