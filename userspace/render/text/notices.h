/* SPDX-License-Identifier: Apache-2.0 */
/* What all that shows a capture says in the same words. */
#ifndef WAFFLE_RENDER_TEXT_NOTICES_H
#define WAFFLE_RENDER_TEXT_NOTICES_H

#include <stdio.h>

#include "model/model.h"

/* Arguments for units_plural(). */
#define BAD_RECORD "record made no sense and was", "records made no sense and were"

/* A notice that the capture is simulated, if model_simulated(); else NULL. notice_put_simulated()
 * prints it as a line. */
const char *notice_simulated(const struct model *model);
void notice_put_simulated(FILE *out, const struct model *model);

/* Prints "1,204 produced, 1,200 delivered, 4 lost" and ends the line. */
void notice_put_counts(FILE *out, const struct store_counts *counts);

/* Prints why the flight recorder wrote the file, without the end of a line: "span … of thread …,
 * 4.76 s after the start". The caller checks that meta->trigger is not empty. */
void notice_put_trigger(FILE *out, const struct model *model);

/* Prints a filter expression on one line: without comments, and with a blank for each line
 * break. */
void notice_put_expression(FILE *out, const char *expression);

/* Prints "where: EXPR" and a newline if an expression selects the spans that are shown. */
void notice_put_where(FILE *out, const struct model *model);

#endif
