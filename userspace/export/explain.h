/* SPDX-License-Identifier: Apache-2.0 */
/* What --explain prints: which sites are armed, the instructions, where the rest is decided. */
#ifndef WAFFLE_EXPORT_EXPLAIN_H
#define WAFFLE_EXPORT_EXPLAIN_H

#include <stdio.h>

#include "filter/explain.h"

void explain_print_text(const struct explain *explain, FILE *out);
/* Returns 0 or a negative errno of json_close(). */
int explain_print_json(const struct explain *explain, FILE *out);

/* Of a filter on a file that is read: all of it is decided afterwards. */
void explain_print_file_text(const struct filter_expr *filter, const char *file, FILE *out);
int explain_print_file_json(const struct filter_expr *filter, FILE *out);

#endif
