/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that cannot do their work, as text (as JSON: render/json/impaired_json_internal.h). */
#ifndef WAFFLE_RENDER_TEXT_IMPAIRED_TEXT_INTERNAL_H
#define WAFFLE_RENDER_TEXT_IMPAIRED_TEXT_INTERNAL_H

#include <stdbool.h>
#include <stdio.h>

#include "model/model.h"

/* Prints a line for each. Returns whether there is one. */
bool impaired_print(const struct model *model, bool colour, FILE *out);

#endif
