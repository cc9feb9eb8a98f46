/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the chains of an instance as text. Also the functions that why_text.c and why_chain.c
 * share. */
#ifndef WAFFLE_EXPORT_WHY_CHAIN_H
#define WAFFLE_EXPORT_WHY_CHAIN_H

#include "export/why_text.h"

struct why_printer {
	const struct why *why;
	const struct model *model;
	const struct why_view *view;
	FILE *out;
};

enum why_paint { WHY_PAINT_HEAD, WHY_PAINT_WARN, WHY_PAINT_DIM, WHY_PAINT_END };

void why_paint(const struct why_printer *printer, enum why_paint which);
void why_put(const struct why_printer *printer, const char *text);
void why_put_duration(const struct why_printer *printer, uint64_t ns);
/* Prints a thread as "loader-2 (2302)". */
void why_put_thread(const struct why_printer *printer, uint32_t thread);
/* Prints a time since the beginning of the capture. */
void why_put_time(const struct why_printer *printer, uint64_t ts);

/* For running on a CPU below its maximum frequency: ", at 1.2 of 3.5 GHz". */
void why_put_frequency(const struct why_printer *printer, const struct why_step *step);

/* Prints how many records the capture has and how many were lost. */
void why_print_records(const struct why_printer *printer);

/* Prints the chains of the first `shown` parts. Parts with a common beginning share its lines. */
void why_print_chains(const struct why_printer *printer, const struct why_instance *instance,
		      uint32_t shown);

#endif
