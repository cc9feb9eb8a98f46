/* SPDX-License-Identifier: Apache-2.0 */
/* Replays and comparisons of GPU work, for people. */
#ifndef WAFFLE_RENDER_TEXT_REPLAY_TEXT_H
#define WAFFLE_RENDER_TEXT_REPLAY_TEXT_H

#include <stdio.h>

#include "analyze/gpu/replay_compare.h"
#include "analyze/gpu/replay_report.h"

void replay_print_text(const struct replay_report *report, bool colour, FILE *out);
void replay_print_comparison_text(const struct replay_comparison *comparison, bool colour,
				  FILE *out);

#endif
