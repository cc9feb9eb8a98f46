/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WAFFLE_RENDER_JSON_IMPAIRED_JSON_INTERNAL_H
#define WAFFLE_RENDER_JSON_IMPAIRED_JSON_INTERNAL_H

#include "model/model.h"
#include "util/json.h"

/* Writes "impaired" as a member of the open object: the processes that cannot do their work, if
 * there are any. */
void impaired_json(struct json *json, const struct model *model);

#endif
