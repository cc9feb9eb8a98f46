/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why calls of ranks are not matched, for `info` and `report`: collectives that ranks called in
 * different order, which is an error of the traced program, and ranks that two processes claim.
 */
#ifndef WAFFLE_RENDER_DISORDER_H
#define WAFFLE_RENDER_DISORDER_H

#include <stdio.h>

#include "model/model.h"
#include "util/json.h"

/* A line for each communicator and one for the claims, each after `head`. */
void disorder_print_text(const struct model *model, const char *head, FILE *out);
/* The array "collectives_in_different_order" of an object, and "ranks_claimed_twice" if there are
 * any. */
void disorder_put_json(const struct model *model, struct json *json);

#endif
