// SPDX-License-Identifier: Apache-2.0
#include "render/text/samples_text_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/memory.h"
#include "util/terminal.h"
#include "util/units.h"

#define PLACES_SHOWN 3
#define PERCENT_MIN 5
#define PLACE_COLUMNS 60 /* names of templates in C++ may be very long */
#define LINE_COLUMNS 100 /* with the number of samples at its end */

/* Returns "; 40 % compute (work.c:12), user", from malloc(). */
static char *item_text(const struct sample_places *places, const struct sample_count *count,
		       unsigned percent, bool first)
{
	char *place = sample_place_text(places, count->place), *text = NULL;
	size_t size, len = strlen(place);
	bool cut = terminal_columns(place) > PLACE_COLUMNS;
	FILE *out = memory_stream(&text, &size);

	if (cut)
		len = (size_t)(terminal_skip(place, PLACE_COLUMNS - 1) - place);
	fprintf(out, "%s%u %% ", first ? "" : "; ", percent);
	terminal_put(out, place, len);
	fputs(cut ? "…" : "", out);
	memory_require(!fclose(out));
	free(place);
	return text;
}

void samples_print(FILE *out, const struct sample_places *places, const struct sample_count *counts,
		   size_t len, int indent)
{
	uint64_t total = sample_counts_total(counts, len);
	char text[UNITS_TEXT], end[UNITS_TEXT + 16];
	unsigned at;

	if (total < SAMPLE_COUNT_MIN)
		return;
	snprintf(end, sizeof(end), " (%s samples)", units_format_count(text, total));
	at = (unsigned)fprintf(out, "%*srunning: ", indent, "") + terminal_columns(end);
	for (size_t i = 0; i < len && i < PLACES_SHOWN; i++) {
		unsigned percent = sample_percent(counts[i].count, total);
		char *item = item_text(places, &counts[i], percent, !i);
		bool shown = !i || (percent >= PERCENT_MIN &&
				    at + terminal_columns(item) <= LINE_COLUMNS);

		if (shown)
			fputs(item, out);
		at += terminal_columns(item);
		free(item);
		if (!shown)
			break;
	}
	fprintf(out, "%s\n", end);
}
