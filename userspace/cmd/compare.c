// SPDX-License-Identifier: Apache-2.0
#include "cmd/compare_internal.h"

#include <stdio.h>
#include <string.h>

#include "analyze/why/why_compare.h"
#include "render/text/compare_text.h"
#include "symbolize/stack_names.h"
#include "util/terminal.h"

/* A capture that was read; all are NULL before. */
struct compare_side {
	struct store_reader *reader;
	struct model *model;
	struct why_aggregate *causes;
};

static int side_open(struct compare_side *side, const struct command *command,
		     const struct compare *compare, const char *path, struct error *err)
{
	const struct model_filter keep = {.filter = compare->filter->filter,
					  .keep_children = compare->filter->keep_children,
					  .where = compare->filter->where};
	const struct capture_files file = {&path, 1};
	struct why_aggregate_options options = {.stretches = WHY_AGGREGATE_STRETCHES};
	int result = filter_options_open_files(command, compare->filter, &file, &side->reader, err);

	result = result ?: model_load(&side->model, side->reader, STORE_ALL, &keep, err);
	if (result)
		return result;
	if (!side->model->sched)
		return error_set(err, ENODATA,
				 "%s: the scheduler was not recorded, so there are no causes to "
				 "compare; record with the source sched",
				 path);
	options.names = stack_names_open(side->reader, true);
	result = why_aggregate_new(&side->causes, side->model, &options, err);
	stack_names_close(options.names);
	return result;
}

static void side_close(struct compare_side *side)
{
	why_aggregate_free(side->causes);
	model_free(side->model);
	store_reader_close(side->reader);
}

static int print(const struct compare_side *sides, const struct compare *compare,
		 const struct capture_files *files, struct error *err)
{
	const struct report_view view = {compare->rows, terminal_has_colour(stdout)};
	struct why_comparison comparison;
	int result = 0;

	why_compare(&comparison, sides[WHY_BEFORE].causes, sides[WHY_AFTER].causes, compare->name);
	if (compare->name && !comparison.names.len)
		result = error_set(err, ENOENT,
				   "no whole span is named '%s' in either file; waffle-bpf report "
				   "lists the names",
				   compare->name);
	else if (!compare->json)
		compare_print_text(&comparison, files->paths, &view, stdout);
	else if ((result = compare_print_json(&comparison, files->paths, stdout)))
		/* main() reports a failed write to standard output, for all commands. */
		result = ferror(stdout) ? 0 : error_set(err, -result, "%s", strerror(-result));
	why_comparison_free(&comparison);
	return result;
}

int compare_files(const struct command *command, const struct compare *compare,
		  const struct capture_files *files, struct error *err)
{
	struct compare_side sides[WHY_SIDES] = {{0}};
	int result = 0;

	for (unsigned i = 0; i < WHY_SIDES && !result; i++)
		result = side_open(&sides[i], command, compare, files->paths[i], err);
	if (!result)
		result = print(sides, compare, files, err);
	for (unsigned i = 0; i < WHY_SIDES; i++)
		side_close(&sides[i]);
	return result;
}
