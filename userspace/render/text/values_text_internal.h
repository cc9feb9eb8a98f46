/* SPDX-License-Identifier: Apache-2.0 */
/* The values of spans and events as text. */
#ifndef WAFFLE_RENDER_TEXT_VALUES_TEXT_INTERNAL_H
#define WAFFLE_RENDER_TEXT_VALUES_TEXT_INTERNAL_H

#include <stdio.h>

#include "target/elf/site.h"

/* Prints "step=3" or "path=/data/shard-7"; a long string is cut. */
void values_put(FILE *out, const struct value *value);

#endif
