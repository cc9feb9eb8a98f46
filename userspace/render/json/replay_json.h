/* SPDX-License-Identifier: Apache-2.0 */
/* Replays and comparisons of GPU work, as JSON (docs/replay.md). */
#ifndef WAFFLE_RENDER_JSON_REPLAY_JSON_H
#define WAFFLE_RENDER_JSON_REPLAY_JSON_H

#include <stdio.h>

#include "analyze/gpu/replay_compare.h"
#include "analyze/gpu/replay_report.h"

/* Both return 0 or a negative errno of json_close(). */
int replay_print_json(const struct replay_report *report, FILE *out);
int replay_print_comparison_json(const struct replay_comparison *comparison, FILE *out);

#endif
