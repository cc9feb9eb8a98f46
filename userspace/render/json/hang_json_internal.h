/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlocks and open waits as JSON (as text: render/text/hang_text.h). */
#ifndef WAFFLE_RENDER_JSON_HANG_JSON_INTERNAL_H
#define WAFFLE_RENDER_JSON_HANG_JSON_INTERNAL_H

#include "render/text/hang_text.h"
#include "util/json.h"

/* Writes the members "deadlocks" and "open_waits" of an open object, unless there are no open
 * waits. */
void hang_json(struct json *json, const struct why_hangs *hangs, const struct hang_view *view);

#endif
