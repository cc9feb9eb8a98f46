/* SPDX-License-Identifier: Apache-2.0 */
/* The output of `info`: what a file contains and where it comes from. */
#ifndef WAFFLE_RENDER_INFO_H
#define WAFFLE_RENDER_INFO_H

#include <stdio.h>

#include "model/model.h"

void info_print_text(const struct model *model, FILE *out);
/* Returns 0 or a negative errno of json_close(). */
int info_print_json(const struct model *model, FILE *out);

#endif
