/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that others waited for, as JSON. */
#ifndef WAFFLE_RENDER_JSON_STRAGGLERS_JSON_INTERNAL_H
#define WAFFLE_RENDER_JSON_STRAGGLERS_JSON_INTERNAL_H

#include "analyze/stragglers.h"
#include "util/json.h"

/* Writes the members "stragglers", "collectives" and "collective_waits" of the open object, none of
 * them if no collective has calls of two ranks. */
void stragglers_json(struct json *json, const struct stragglers *stragglers);

#endif
