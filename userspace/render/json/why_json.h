/* SPDX-License-Identifier: Apache-2.0 */
/* Why spans were slow, as JSON: docs/why.schema.json. */
#ifndef WAFFLE_RENDER_JSON_WHY_JSON_H
#define WAFFLE_RENDER_JSON_WHY_JSON_H

#include <stdio.h>

#include "analyze/why/why_types.h"
#include "render/text/why_view.h"

/* Uses only `names` and `evidence` of the view. Returns 0 or a negative errno of json_close(). */
int why_print_json(const struct why *why, const struct why_view *view, FILE *out);

#endif
