/* SPDX-License-Identifier: Apache-2.0 */
/* Why spans were slow, as text. */
#ifndef WAFFLE_RENDER_TEXT_WHY_TEXT_H
#define WAFFLE_RENDER_TEXT_WHY_TEXT_H

#include <stdio.h>

#include "analyze/why/why.h"
#include "render/text/why_view.h"

/* If the instances are several threads, it prints their causes together, except with evidence. */
void why_print_text(const struct why *why, const struct why_view *view, FILE *out);

#endif
