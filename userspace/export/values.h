/* SPDX-License-Identifier: Apache-2.0 */
/* What the JSON exporters share: a site's values as members of an object, states, severities. */
#ifndef WAFFLE_EXPORT_VALUES_H
#define WAFFLE_EXPORT_VALUES_H

#include "model/model.h"
#include "util/json.h"

/*
 * Writes the values of a frame as members of the object that is open, without the ids of causes.
 * Pointers are strings "0x…", null strings are null, a string that was cut ends with "…", three
 * dimensions are an array.
 */
void values_write(struct json *json, const struct model *model, uint32_t site, uint32_t frame);

/*
 * The link of a span or event to a cause that is in the model but begins after it, so that no arrow
 * can show it: of a rank that waits for a later one. NULL: none, or the program itself has set it
 * and it is among its values.
 */
const struct model_link *values_late_cause(const struct model *model, uint8_t kind, uint32_t index);

/* "info", "warn", "error"; NULL: not a log message. */
const char *values_severity(const struct model *model, uint32_t site);

/* "running", "runnable", "blocked" */
const char *values_thread_state(enum waffle_thread_state state);

/* Members that say more of an interval: cpu, state, syscall, who woke or preempted. */
void values_interval(struct json *json, const struct model *model,
		     const struct model_interval *interval);

#endif
