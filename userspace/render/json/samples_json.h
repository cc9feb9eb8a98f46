/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WAFFLE_RENDER_JSON_SAMPLES_JSON_H
#define WAFFLE_RENDER_JSON_SAMPLES_JSON_H

#include "analyze/why/why.h"
#include "util/json.h"

/* Writes the field `samples` of a cause: the number of its samples, and the number at each place.
 * Writes nothing if there are none. */
void samples_json(struct json *json, const struct why *why, const struct sample_count *counts,
		  size_t len);

#endif
