/* SPDX-License-Identifier: Apache-2.0 */
/* The output of --explain: which sites are armed, the generated instructions, and where each part
 * of the filter is decided. */
#ifndef WAFFLE_RENDER_EXPLAIN_H
#define WAFFLE_RENDER_EXPLAIN_H

#include <stdio.h>

#include "filter/explain.h"

void explain_print_text(const struct explain *explain, FILE *out);
/* Returns 0 or a negative errno of json_close(). */
int explain_print_json(const struct explain *explain, FILE *out);

/* For a filter on an existing file: everything is decided when the file is read. */
void explain_print_file_text(const struct filter_expr *filter, const char *file, FILE *out);
int explain_print_file_json(const struct filter_expr *filter, FILE *out);

#endif
