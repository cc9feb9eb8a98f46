/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timeline of a capture, drawn with characters: the nested spans of each thread, and its state
 * below them. A column is a period of time and shows what took most of it. It tells how many spans
 * it hides.
 */
#ifndef WAFFLE_RENDER_TEXT_VIEW_TEXT_H
#define WAFFLE_RENDER_TEXT_VIEW_TEXT_H

#include <stdio.h>

#include "model/model.h"
#include "render/text/view_options.h"
#include "util/error.h"

/* Fails if the span or the thread does not exist, or the window is empty. */
int view_print_text(const struct model *model, const struct view_options *options, FILE *out,
		    struct error *err);

/* Width of the terminal: $COLUMNS, else the terminal's own, else 80. */
uint32_t view_width_of(FILE *out);
/* Whether the locale uses UTF-8. */
bool view_utf8_locale(void);

#endif
