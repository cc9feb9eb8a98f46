/* SPDX-License-Identifier: Apache-2.0 */
/* The origins of a symptom, as text. */
#ifndef WAFFLE_RENDER_TEXT_ORIGIN_TEXT_H
#define WAFFLE_RENDER_TEXT_ORIGIN_TEXT_H

#include <stdio.h>

#include "analyze/origin/origin.h"
#include "render/text/why_view.h"

/* Prints the symptom and the way to each origin, and then the counts of records. view->causes is
 * the limit for the origins; 0: all. */
void origin_print_text(const struct origin *origin, const struct why_view *view, FILE *out);

/* The same without the counts of records. */
void origin_print_story(const struct origin *origin, const struct why_view *view, FILE *out);

#endif
