/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that a signal ended, as text (as JSON: render/json/killed_json_internal.h). */
#ifndef WAFFLE_RENDER_TEXT_KILLED_TEXT_INTERNAL_H
#define WAFFLE_RENDER_TEXT_KILLED_TEXT_INTERNAL_H

#include <stdbool.h>
#include <stdio.h>

#include "model/model.h"

/* Prints a line for each group, such as "17 processes named worker, children of server (4711), were
 * ended by SIGSEGV; the longest of them lived for 34.0 ms". Returns whether there is one. */
bool killed_print(const struct model *model, bool colour, FILE *out);

#endif
