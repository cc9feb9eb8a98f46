/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the origin of an event, as text and as JSON. */
#ifndef WAFFLE_RENDER_ORIGIN_PRINT_H
#define WAFFLE_RENDER_ORIGIN_PRINT_H

#include "analyze/origin.h"
#include "render/text/why_text.h"

void origin_print_text(const struct origin *origin, const struct why_view *view, FILE *out);

/* Prints the same as why_print_json(), but with "origin" instead of instances. Returns 0 or a
 * negative errno. */
int origin_print_json(const struct origin *origin, FILE *out);

#endif
