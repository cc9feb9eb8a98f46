/* SPDX-License-Identifier: Apache-2.0 */
/* The causes for a report's names, as text and as JSON. */
#ifndef WAFFLE_RENDER_TEXT_REPORT_CAUSES_H
#define WAFFLE_RENDER_TEXT_REPORT_CAUSES_H

#include <stdio.h>

#include "analyze/report.h"
#include "render/text/report_view.h"
#include "util/json.h"

/* Prints a few lines for each of the first names. Prints nothing if the scheduler was not
 * recorded. */
void report_print_causes(const struct report *report, const struct report_view *view, FILE *out);

/* Writes members of a name's open object: "explained", "slow", "median" and "causes". */
void report_causes_json(struct json *json, const struct report *report,
			const struct report_span *row);

/* "/data/shard-7 (ext4)" or "8 connections to 10.0.0.2:80 (tcp)"; empty: no object. The caller
 * frees it. */
char *report_object_text(const struct why_aggregate *of, const struct why_group_cause *cause);

/* The culprit of a cause of a group, to follow `prefix`, in at most `room` columns: "loader-2 in
 * load, /data/shard-7 (ext4)", or if `process` is not NULL, "loader-2 (4711) in load, …". The
 * caller frees it. */
char *report_culprit_text(const struct why_aggregate *of, const struct why_group *group,
			  const struct why_group_cause *cause, const struct model_process *process,
			  const char *prefix, unsigned room);
/* Writes the member "culprit" of a cause's open object. */
void report_culprit_json(struct json *json, const struct why_aggregate *causes,
			 const struct why_group_cause *cause);

#endif
