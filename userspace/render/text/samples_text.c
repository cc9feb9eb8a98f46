// SPDX-License-Identifier: Apache-2.0
#include "render/text/samples_text_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/memory.h"
#include "util/template_fold.h"
#include "util/terminal.h"
#include "util/units.h"

#define PLACES_SHOWN 3
#define PERCENT_MIN 5
#define PHASE_PERCENT_MIN 10 /* garbage collection costs all programs that have it a little */
#define PLACE_COLUMNS 60     /* names of templates in C++ may be very long */
#define WITHIN_COLUMNS 45
#define LINE_COLUMNS 100 /* with the number of samples at its end */

static void put_shortened(FILE *out, const char *text, unsigned columns)
{
	char *folded = function_fold(text, columns);
	bool cut = terminal_columns(folded) > columns;
	const char *end = cut ? terminal_skip(folded, columns - 1) : folded + strlen(folded);

	terminal_put(out, folded, (size_t)(end - folded));
	fputs(cut ? "…" : "", out);
	free(folded);
}

/* Returns "; 40 % compute (work.c:12), user", from malloc(). */
static char *item_text(const struct sample_places *places, const struct sample_count *count,
		       unsigned percent, bool first)
{
	char *place = sample_place_text(places, count->place), *text = NULL;
	size_t size;
	FILE *out = memory_stream(&text, &size);

	fprintf(out, "%s%u %% ", first ? "" : "; ", percent);
	put_shortened(out, place, PLACE_COLUMNS);
	memory_require(!fclose(out));
	free(place);
	return text;
}

/* The functions and the work of a run-time that samples are within; NULL: none. */
struct around {
	const struct sample_count *within, *own, *part, *phase;
};

static struct around around_of(const struct sample_places *places,
			       const struct sample_count *counts, size_t len)
{
	const struct sample_count *phase = sample_counts_phase(places, counts, len);
	uint64_t total = sample_counts_total(counts, len);

	if (phase && sample_percent(phase->within, total) < PHASE_PERCENT_MIN)
		phase = NULL;
	return (struct around){sample_counts_within(places, counts, len),
			       sample_counts_own(places, counts, len),
			       sample_counts_part(places, counts, len), phase};
}

static void put_within(FILE *out, const struct sample_places *places,
		       const struct sample_count *within, uint64_t total)
{
	fprintf(out, "%u %% within ", sample_percent(within->within, total));
	put_shortened(out, sample_place_function(places, within->place), WITHIN_COLUMNS);
}

/* Returns " (58 samples)", or with functions "; 90 % within forward (mlp.py), from step (train.py),
 * 30 % within gelu (act.py); 40 % in the garbage collection of Go (58 samples)", from malloc(). */
static char *end_text(const struct sample_places *places, const struct around *around,
		      uint64_t total, bool first)
{
	char number[UNITS_TEXT], *text = NULL;
	size_t size;
	FILE *out = memory_stream(&text, &size);

	if (around->within) {
		fputs(first ? "" : "; ", out);
		put_within(out, places, around->within, total);
	}
	if (around->own) {
		fputs(around->within ? ", from " : "; from ", out);
		put_shortened(out, sample_place_function(places, around->own->place),
			      WITHIN_COLUMNS);
	}
	if (around->part) {
		fputs(around->within || around->own ? ", " : "; ", out);
		put_within(out, places, around->part, total);
	}
	if (around->phase)
		fprintf(out, "; %u %% in %s", sample_percent(around->phase->within, total),
			sample_place_phase(places, around->phase->place));
	fprintf(out, " (%s samples)", units_format_count(number, total));
	memory_require(!fclose(out));
	return text;
}

void samples_print(FILE *out, const struct sample_places *places, const struct sample_count *counts,
		   size_t len, int indent)
{
	struct around around = around_of(places, counts, len);
	uint64_t total = sample_counts_total(counts, len);
	unsigned at;
	bool none; /* no place has a share of its own */
	char *end;

	if (total < SAMPLE_COUNT_MIN)
		return;
	none = around.within && sample_percent(counts[0].count, total) < PERCENT_MIN;
	end = end_text(places, &around, total, none);
	at = (unsigned)fprintf(out, "%*srunning: ", indent, "") + terminal_columns(end);
	for (size_t i = 0; i < len && i < PLACES_SHOWN && !none; i++) {
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
	free(end);
}
