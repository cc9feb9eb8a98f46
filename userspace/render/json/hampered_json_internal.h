/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WAFFLE_RENDER_JSON_HAMPERED_JSON_INTERNAL_H
#define WAFFLE_RENDER_JSON_HAMPERED_JSON_INTERNAL_H

#include "model/model.h"
#include "util/json.h"

/* Writes "hampered" as a member of the open object: the processes that cannot do their work, if
 * there are any. */
void hampered_json(struct json *json, const struct model *model);

#endif
