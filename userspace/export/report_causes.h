/* SPDX-License-Identifier: Apache-2.0 */
/* The causes of a report's names, for the terminal and as JSON. */
#ifndef WAFFLE_EXPORT_REPORT_CAUSES_H
#define WAFFLE_EXPORT_REPORT_CAUSES_H

#include "export/report_text.h"
#include "util/json.h"

/* Of the first names, a few lines each; nothing if the scheduler was not recorded. */
void report_print_causes(const struct report *report, const struct report_view *view, FILE *out);

/* Members of the open object of a name: "explained", "slow", "median" and "causes". */
void report_causes_json(struct json *json, const struct report *report,
			const struct report_span *row);

#endif
