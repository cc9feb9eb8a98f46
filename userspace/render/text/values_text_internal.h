/* SPDX-License-Identifier: Apache-2.0 */
/* The values of spans and events as text. */
#ifndef WAFFLE_RENDER_TEXT_VALUES_TEXT_INTERNAL_H
#define WAFFLE_RENDER_TEXT_VALUES_TEXT_INTERNAL_H

#include <stdio.h>

#include "model/model.h"

/* Prints "  step=3  path=/data/shard-7": the values of a frame without the ids of causes. A long
 * string is cut. */
void values_put(FILE *out, const struct model *model, uint32_t site, uint32_t frame);

#endif
