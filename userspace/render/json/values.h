/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the JSON exporters: values as members of an object, late causes, states. */
#ifndef WAFFLE_RENDER_JSON_VALUES_H
#define WAFFLE_RENDER_JSON_VALUES_H

#include "model/model.h"
#include "util/json.h"

/* Writes the values of a span or event as members of the open object (render/json/value_json.h). */
void values_write(struct json *json, const struct model *model, uint32_t site, uint32_t frame);

/*
 * The link of a span or event to a cause that begins after it, so that no arrow can show it; for
 * example a rank that waits for a later one. NULL: there is none, or the program set the link
 * itself and it is among the values.
 */
const struct model_link *values_late_cause(const struct model *model, uint8_t kind, uint32_t index);

/* "running", "runnable", "blocked" */
const char *values_thread_state(enum waffle_thread_state state);

/* Writes further members of an interval: cpu, state, syscall, and who woke or preempted the
 * thread. */
void values_interval(struct json *json, const struct model *model,
		     const struct model_interval *interval);

#endif
