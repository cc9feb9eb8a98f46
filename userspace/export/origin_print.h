/* SPDX-License-Identifier: Apache-2.0 */
/* Where an event came from, for people and for machines. */
#ifndef WAFFLE_EXPORT_ORIGIN_PRINT_H
#define WAFFLE_EXPORT_ORIGIN_PRINT_H

#include "analyze/origin.h"
#include "export/why_text.h"

void origin_print_text(const struct origin *origin, const struct why_view *view, FILE *out);

/* What why_print_json() prints, without instances but with "origin". */
int origin_print_json(const struct origin *origin, FILE *out);

#endif
