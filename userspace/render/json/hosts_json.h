/* SPDX-License-Identifier: Apache-2.0 */
/* The hosts of a job and how their clocks were aligned, as JSON. */
#ifndef WAFFLE_RENDER_JSON_HOSTS_JSON_H
#define WAFFLE_RENDER_JSON_HOSTS_JSON_H

#include "model/model.h"
#include "util/json.h"

/* Writes the member "hosts" of the open object, but nothing for a capture of one host. */
void hosts_json(struct json *json, const struct model *model);

#endif
