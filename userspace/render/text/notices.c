// SPDX-License-Identifier: Apache-2.0
#include "render/text/notices.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/memory.h"
#include "util/terminal.h"
#include "util/units.h"

const char *notice_simulated(const struct model *model)
{
	return model_simulated(model)
		       ? "simulated: CUDA and NCCL are stand-ins here, no GPU has worked"
		       : NULL;
}

void notice_put_simulated(FILE *out, const struct model *model)
{
	const char *says = notice_simulated(model);

	if (says)
		fprintf(out, "%s\n", says);
}

void notice_put_counts(FILE *out, const struct store_counts *counts)
{
	char produced[UNITS_TEXT], delivered[UNITS_TEXT], lost[UNITS_TEXT];

	fprintf(out, "%s produced, %s delivered, %s lost\n",
		units_format_count(produced, counts->produced),
		units_format_count(delivered, counts->delivered),
		units_format_count(lost, counts->lost));
}

void notice_put_trigger(FILE *out, const struct model *model)
{
	const struct store_meta *meta = model->meta;
	bool before = meta->trigger_ts < model->start_ts;
	char ago[UNITS_TEXT];

	notice_put_expression(out, meta->trigger);
	fprintf(out, ", %s %s the start",
		units_format_duration(ago, before ? model->start_ts - meta->trigger_ts
						  : meta->trigger_ts - model->start_ts),
		before ? "before" : "after");
}

/* Copies an expression as one line to `to`, which is as large as the expression. Returns its
 * length. */
static size_t expression_line(char *to, const char *expression)
{
	bool quoted = false, blank = false;
	size_t len = 0;

	for (const char *at = expression; *at; at++) {
		if (!quoted && *at == '#') {
			at += strcspn(at, "\n") - 1;
			continue;
		}
		if (!quoted && strchr(" \t\r\n", *at)) {
			blank = len > 0;
			continue;
		}
		if (blank)
			to[len++] = ' ';
		blank = false;
		to[len++] = *at;
		if (*at == '"')
			quoted = !quoted;
		else if (quoted && *at == '\\' && at[1])
			to[len++] = *++at;
	}
	return len;
}

void notice_put_expression(FILE *out, const char *expression)
{
	char *line = memory_get(strlen(expression) + 1);

	terminal_put(out, line, expression_line(line, expression));
	free(line);
}

void notice_put_where(FILE *out, const struct model *model)
{
	if (!model->selecting)
		return;
	fputs("where: ", out);
	notice_put_expression(out, model->selecting);
	fputc('\n', out);
}
