/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WAFFLE_EXPORT_NDJSON_WAITS_INTERNAL_H
#define WAFFLE_EXPORT_NDJSON_WAITS_INTERNAL_H

#include "model/model.h"
#include "util/json.h"

/* Writes a row for each record that helps to explain waits. */
void ndjson_waits(struct json *json, const struct model *model);

#endif
