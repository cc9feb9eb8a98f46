/* SPDX-License-Identifier: Apache-2.0 */
/* The origins of a symptom, as JSON. */
#ifndef WAFFLE_RENDER_JSON_ORIGIN_JSON_H
#define WAFFLE_RENDER_JSON_ORIGIN_JSON_H

#include <stdio.h>

#include "analyze/origin/origin.h"

/* Prints one object, as docs/origin.schema.json describes it. Returns 0 or a negative errno. */
int origin_print_json(const struct origin *origin, FILE *out);

#endif
