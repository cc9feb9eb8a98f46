/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WAFFLE_EXPORT_SUMMARY_JSON_H
#define WAFFLE_EXPORT_SUMMARY_JSON_H

#include "model/model.h"
#include "util/json.h"

/* The fields "records", "loss", "truncated" and "bad_records" of an open object, and "simulated" if
 * it is: what of the capture is there and what is not. */
void summary_json_records(struct json *json, const struct model *model);

/* The field "simulated": true, if model_simulated(). */
void summary_json_simulated(struct json *json, const struct model *model);

/* The fields "recorded_filter", the expression the capture was made with, and "filter", the one it
 * was read with and what that left out; each if there is one. */
void summary_json_filter(struct json *json, const struct model *model);

/* How long a span took, by its thread's states where they are known, and what is not known of it.
 */
void summary_json_span(struct json *json, const struct model_span *span);

#endif
