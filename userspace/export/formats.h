/* SPDX-License-Identifier: Apache-2.0 */
/* The write functions for the rows in export.c, one for each format. */
#ifndef WAFFLE_EXPORT_FORMATS_H
#define WAFFLE_EXPORT_FORMATS_H

#include <stdio.h>

#include "model/model.h"
#include "util/error.h"

int perfetto_write(const struct model *model, FILE *out, struct error *err);
int chrome_write(const struct model *model, FILE *out, struct error *err);
int ndjson_write(const struct model *model, FILE *out, struct error *err);
int records_write(const struct model *model, FILE *out, struct error *err);

#endif
