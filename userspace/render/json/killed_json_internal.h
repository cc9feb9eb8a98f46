/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WAFFLE_RENDER_JSON_KILLED_JSON_INTERNAL_H
#define WAFFLE_RENDER_JSON_KILLED_JSON_INTERNAL_H

#include "model/model.h"
#include "util/json.h"

/* Writes "killed" as a member of the open object: the processes that a signal ended, if there are
 * any. */
void killed_json(struct json *json, const struct model *model);

#endif
