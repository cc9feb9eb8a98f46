/* SPDX-License-Identifier: Apache-2.0 */
/* What made spans slow, for machines: docs/why.schema.json. */
#ifndef WAFFLE_EXPORT_WHY_JSON_H
#define WAFFLE_EXPORT_WHY_JSON_H

#include "export/why_text.h"

/* Of the view only names and evidence count. Returns 0 or a negative errno of json_close(). */
int why_print_json(const struct why *why, const struct why_view *view, FILE *out);

#endif
