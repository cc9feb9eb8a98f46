/* SPDX-License-Identifier: Apache-2.0 */
/* The hosts of a job and how their clocks were aligned, as JSON. */
#ifndef WAFFLE_RENDER_JSON_HOSTS_JSON_H
#define WAFFLE_RENDER_JSON_HOSTS_JSON_H

#include "model/model.h"
#include "util/json.h"

/* Writes the member "hosts" of the open object, but nothing for a capture of one host. */
void hosts_json(struct json *json, const struct model *model);

/* "reference", "wall", "aligned" or "none". */
const char *clock_kind_name(enum store_clock_kind kind);
/* The smallest of a clock's errors, where it is known best; UINT64_MAX: unknown. */
uint64_t clock_error_least(const struct store_clock *clock);

#endif
