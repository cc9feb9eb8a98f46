// SPDX-License-Identifier: Apache-2.0
#include "capture/sources_internal.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "bpf/wait.h"
#include "util/suggest.h"

static const struct source_row {
	const char *name;
	uint32_t source; /* enum capture_source */
	uint32_t wait;   /* enum waffle_wait_source; 0: none */
} rows[] = {
	{"spans", CAPTURE_SPANS, 0},
	{"cuda", CAPTURE_CUDA, 0},
	{"nccl", CAPTURE_NCCL, 0},
	{"frameworks", CAPTURE_FRAMEWORKS, 0},
	{"sched", CAPTURE_SCHED, 0},
	{"stacks", CAPTURE_STACKS, WAFFLE_WAIT_STACKS},
	{"files", CAPTURE_FILES, WAFFLE_WAIT_FILES},
	{"faults", CAPTURE_FAULTS, WAFFLE_WAIT_FAULTS},
	{"io", CAPTURE_IO, WAFFLE_WAIT_IO},
	{"signals", CAPTURE_SIGNALS, WAFFLE_WAIT_SIGNALS},
	{"quota", CAPTURE_QUOTA, WAFFLE_WAIT_QUOTA},
	{"steal", CAPTURE_STEAL, WAFFLE_WAIT_STEAL},
	{"frequency", CAPTURE_FREQUENCY, WAFFLE_WAIT_FREQUENCY},
	{"samples", CAPTURE_SAMPLES, WAFFLE_WAIT_SAMPLES},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static const struct source_row *row_find(const char *name, size_t len)
{
	for (size_t i = 0; i < ROWS; i++)
		if (strlen(rows[i].name) == len && !memcmp(rows[i].name, name, len))
			return &rows[i];
	return NULL;
}

static int unknown(const char *name, size_t len, struct error *err)
{
	char word[32], all[SOURCES_TEXT];

	snprintf(word, sizeof(word), "%.*s", (int)len, name);
	for (size_t i = 0; i < ROWS; i++)
		if (len && suggest_similar(word, rows[i].name))
			return error_set(err, EINVAL,
					 "--sources: there is no '%s'; did you mean %s?", word,
					 rows[i].name);
	return error_set(err, EINVAL, "--sources: there is no '%s'; there are %s", word,
			 sources_text(all, CAPTURE_ALL));
}

int sources_parse(uint32_t *sources, const char *text, struct error *err)
{
	bool changes = *text == '+' || *text == '-';
	uint32_t chosen = changes ? CAPTURE_DEFAULT : 0;

	for (const char *at = text;; at++) {
		char sign = *at == '+' || *at == '-' ? *at++ : '\0';
		size_t len = strcspn(at, ",");
		const struct source_row *row = row_find(at, len);

		if (!row)
			return unknown(at, len, err);
		if (changes != (sign != '\0'))
			return error_set(err, EINVAL,
					 "--sources: '%s' mixes names with and without a sign; "
					 "write those wanted, sched,io, or changes, -stacks,-io",
					 text);
		if (sign == '-')
			chosen &= ~row->source;
		else
			chosen |= row->source;
		at += len;
		if (!*at)
			break;
	}
	if (changes && !(chosen & CAPTURE_SCHED))
		chosen &= CAPTURE_PROBES; /* -sched also removes the sources that need it */
	if (!(chosen & (CAPTURE_PROBES | CAPTURE_SCHED)))
		return error_set(err, EINVAL,
				 "--sources: '%s' records nothing: all others need sched", text);
	if (chosen & ~(CAPTURE_PROBES | CAPTURE_SCHED) && !(chosen & CAPTURE_SCHED))
		return error_set(err, EINVAL,
				 "--sources: '%s' lacks sched, which all but spans, cuda, nccl and "
				 "frameworks "
				 "need",
				 text);
	*sources = chosen;
	return 0;
}

char *sources_text(char text[SOURCES_TEXT], uint32_t sources)
{
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < ROWS; i++)
		if (sources & rows[i].source)
			len += (size_t)snprintf(text + len, SOURCES_TEXT - len, "%s%s",
						len ? "," : "", rows[i].name);
	return text;
}

uint32_t sources_to_waits(uint32_t sources)
{
	uint32_t waits = 0;

	for (size_t i = 0; i < ROWS; i++)
		if (sources & rows[i].source)
			waits |= rows[i].wait;
	return waits;
}

uint32_t sources_of_waits(uint32_t waits)
{
	uint32_t sources = 0;

	for (size_t i = 0; i < ROWS; i++)
		if (waits & rows[i].wait)
			sources |= rows[i].source;
	return sources;
}
