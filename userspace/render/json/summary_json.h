/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WAFFLE_RENDER_JSON_SUMMARY_JSON_H
#define WAFFLE_RENDER_JSON_SUMMARY_JSON_H

#include "model/model.h"
#include "util/json.h"

/* Writes "produced", "delivered" and "lost". */
void summary_json_counts(struct json *json, const struct store_counts *counts);

/* Writes the fields "records", "loss", "truncated" and "bad_records" of an open object, and
 * "simulated" if it applies. They tell which parts of the capture are missing. */
void summary_json_records(struct json *json, const struct model *model);

/* Writes "simulated": true if model_simulated(). */
void summary_json_simulated(struct json *json, const struct model *model);

/* Writes "recorded_filter", the expression of the capture, and "filter", the expression of the
 * reader and how much it removed. Either is left out if there is no such filter. */
void summary_json_filter(struct json *json, const struct model *model);

/* Writes how long a span took, the time in each thread state if known, and what is unknown about
 * it. */
void summary_json_span(struct json *json, const struct model_span *span);

#endif
