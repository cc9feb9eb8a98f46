// SPDX-License-Identifier: Apache-2.0
#include "render/text/samples_text_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/terminal.h"
#include "util/units.h"

#define PLACES_SHOWN 3
#define PERCENT_MIN 5
#define PLACE_COLUMNS 60 /* names of templates in C++ may be very long */

static void put_place(FILE *out, const struct sample_places *places, uint32_t place)
{
	char *text = sample_place_text(places, place);
	size_t len = strlen(text);
	bool cut = terminal_columns(text) > PLACE_COLUMNS;

	if (cut)
		len = (size_t)(terminal_skip(text, PLACE_COLUMNS - 1) - text);
	terminal_put(out, text, len);
	if (cut)
		fputs("…", out);
	free(text);
}

void samples_print(FILE *out, const struct sample_places *places, const struct sample_count *counts,
		   size_t len, int indent)
{
	uint64_t total = sample_counts_total(counts, len);
	char text[UNITS_TEXT];

	if (total < SAMPLE_COUNT_MIN)
		return;
	fprintf(out, "%*srunning: ", indent, "");
	for (size_t i = 0; i < len && i < PLACES_SHOWN; i++) {
		unsigned percent = sample_percent(counts[i].count, total);

		if (i && percent < PERCENT_MIN)
			break;
		fprintf(out, "%s%u %% ", i ? "; " : "", percent);
		put_place(out, places, counts[i].place);
	}
	fprintf(out, " (%s samples)\n", units_format_count(text, total));
}
