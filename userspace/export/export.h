/* SPDX-License-Identifier: Apache-2.0 */
/* Exporters: rows of one table, each writes a whole model to a stream. */
#ifndef WAFFLE_EXPORT_EXPORT_H
#define WAFFLE_EXPORT_EXPORT_H

#include <stddef.h>
#include <stdio.h>

#include "model/model.h"
#include "util/error.h"

struct exporter {
	const char *name;      /* as given to --format */
	const char *extension; /* of a file named without -o, with the dot */
	const char *help;      /* one sentence, with how to open the result */
	/* Writes everything, the losses too. A write error of `out` may be left to the caller
	 * (ferror). */
	int (*write)(const struct model *model, FILE *out, struct error *err);
};

extern const struct exporter exporters[];
extern const size_t exporter_count;

const struct exporter *exporter_find(const char *name); /* NULL: none of that name */

/* Exports to a path through util/output.h: on a failure the old file is left. */
int export_to_path(const struct exporter *exporter, const struct model *model, const char *path,
		   struct error *err);

#endif
