/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the JSON exporters: a site's values as members of an object, states, severities. */
#ifndef WAFFLE_RENDER_JSON_VALUES_H
#define WAFFLE_RENDER_JSON_VALUES_H

#include "model/model.h"
#include "util/json.h"

/*
 * Writes the values of a frame as members of the open object, without the ids of causes. Pointers
 * are strings "0x…" and null strings are null. A truncated string ends with "…", and three
 * dimensions are an array.
 */
void values_write(struct json *json, const struct model *model, uint32_t site, uint32_t frame);

/*
 * The link of a span or event to a cause that begins after it, so that no arrow can show it; for
 * example a rank that waits for a later one. NULL: there is none, or the program set the link
 * itself and it is among the values.
 */
const struct model_link *values_late_cause(const struct model *model, uint8_t kind, uint32_t index);

/* "info", "warn", "error"; NULL: not a log message. */
const char *values_severity(const struct model *model, uint32_t site);

/* "running", "runnable", "blocked" */
const char *values_thread_state(enum waffle_thread_state state);

/* Writes further members of an interval: cpu, state, syscall, and who woke or preempted the
 * thread. */
void values_interval(struct json *json, const struct model *model,
		     const struct model_interval *interval);

#endif
