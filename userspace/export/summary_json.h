/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WAFFLE_EXPORT_SUMMARY_JSON_H
#define WAFFLE_EXPORT_SUMMARY_JSON_H

#include "model/model.h"
#include "util/json.h"

/* The fields "records", "loss", "truncated" and "bad_records" of an open object: what of the
 * capture is there and what is not. */
void summary_json_records(struct json *json, const struct model *model);

#endif
