/* SPDX-License-Identifier: Apache-2.0 */
/* What all parts of an explanation's text print: words, threads and times, and the records. */
#ifndef WAFFLE_RENDER_TEXT_WHY_PUT_INTERNAL_H
#define WAFFLE_RENDER_TEXT_WHY_PUT_INTERNAL_H

#include <stdio.h>

#include "analyze/why/why_types.h"
#include "render/text/why_view.h"
#include "util/map.h"
#include "util/vec.h"

/* The waits whose chains were printed, so that a span and a span inside it do not both show them.
 */
struct why_explained {
	struct map waits; /* hash of a wait → number of the instance that was printed with it */
	VEC(uint32_t) shown; /* by number of the instance: how many of its parts were printed */
};

struct why_printer {
	const struct why *why;
	const struct model *model;
	const struct why_view *view;
	FILE *out;
	struct why_explained *explained; /* NULL: each instance shows all of its chains */
};

void why_paint(const struct why_printer *printer, const char *sequence);
void why_put(const struct why_printer *printer, const char *text);
void why_put_duration(const struct why_printer *printer, uint64_t ns);
/* Prints a thread as "loader-2 (2302)". */
void why_put_thread(const struct why_printer *printer, uint32_t thread);
/* Prints a time since the beginning of the capture. */
void why_put_time(const struct why_printer *printer, uint64_t ts);

/* Prints how many records the capture has and how many were lost. */
void why_print_records(const struct why_printer *printer);

#endif
