/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives that different ranks called in different order: an error of the traced program, which
 * `info` and `report` show with ranks and places. */
#ifndef WAFFLE_RENDER_DISORDER_H
#define WAFFLE_RENDER_DISORDER_H

#include <stdio.h>

#include "model/model.h"
#include "util/json.h"

/* A line for each communicator, each after `head`; nothing if there are none. */
void disorder_print_text(const struct model *model, const char *head, FILE *out);
/* The array "collectives_in_different_order" of an object. */
void disorder_put_json(const struct model *model, struct json *json);

#endif
