// SPDX-License-Identifier: Apache-2.0
#include "cmd/probe_options_internal.h"

#include <errno.h>
#include <string.h>

#include "cmd/workers_internal.h"

static bool is_function(const struct option_item *item)
{
	return !strcmp(item->row->name, "probe") && python_spec_is(item->text);
}

static int function_add(struct probe_options *options, const char *text, struct error *err)
{
	if (options->function_count == PYTHON_SPECS_MAX)
		return error_set(err, EINVAL, "--probe: more than %d functions of Python",
				 PYTHON_SPECS_MAX);
	return python_spec_parse(&options->functions[options->function_count++], text, err);
}

static int probes_read(struct probe_options *options, unsigned tables, struct error *err)
{
	bool calls = tables;
	int result = 0;

	for (size_t i = 0; i < options->list.len && !result; i++) {
		if (is_function(&options->list.data[i]))
			result = function_add(options, options->list.data[i].text, err);
		else
			calls = true;
	}
	if (result || !calls)
		return result;
	result = call_set_open(&options->calls, err);
	for (size_t i = 0; i < options->list.len && !result; i++) {
		const struct option_item *item = &options->list.data[i];

		if (is_function(item))
			continue;
		result = strcmp(item->row->name, "probe")
				 ? call_set_add_file(options->calls, item->text, err)
				 : call_set_add(options->calls, item->text, "--probe", err);
	}
	for (unsigned i = 0; i < CALL_TABLE_COUNT && !result; i++)
		if (tables >> i & 1)
			result = call_set_add_table(options->calls, (enum call_table)i, err);
	return result;
}

enum exit_code probe_options_open(const struct command *command, struct probe_options *options,
				  unsigned tables)
{
	struct error err = ERROR_INIT;
	int result = probes_read(options, tables, &err);

	if (!result)
		return workers_start(command, options->calls);
	return command_fail(command, &err, result == -EINVAL ? EXIT_USAGE : EXIT_FAILED);
}

void probe_options_free(struct probe_options *options)
{
	vec_free(&options->list);
	call_set_free(options->calls);
	options->calls = NULL;
}
