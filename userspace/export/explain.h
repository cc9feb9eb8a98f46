/* SPDX-License-Identifier: Apache-2.0 */
/* What --explain prints: which sites are armed, the instructions, where the rest is decided. */
#ifndef WAFFLE_EXPORT_EXPLAIN_H
#define WAFFLE_EXPORT_EXPLAIN_H

#include <stdio.h>

#include "filter/explain.h"

void explain_print_text(const struct explain *explain, FILE *out);
/* Returns 0 or a negative errno of json_close(). */
int explain_print_json(const struct explain *explain, FILE *out);

#endif
