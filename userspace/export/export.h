/* SPDX-License-Identifier: Apache-2.0 */
/* The table of exporters. Each writes a model to a stream. The rows are in export/formats.h. */
#ifndef WAFFLE_EXPORT_EXPORT_H
#define WAFFLE_EXPORT_EXPORT_H

#include <stddef.h>
#include <stdio.h>

#include "model/model.h"
#include "util/error.h"

struct exporter {
	const char *name;      /* the argument of --format */
	const char *extension; /* with the dot; for the file name if there is no -o */
	const char *help;      /* one sentence, with the tool that opens the result */
	/* Writes everything, including losses. It may leave a write error of `out` to the caller
	 * (ferror()). */
	int (*write)(const struct model *model, FILE *out, struct error *err);
};

extern const struct exporter exporters[];
extern const size_t exporter_count;

/* Exports to a path through util/output.h, so that a failure leaves the old file. */
int export_to_path(const struct exporter *exporter, const struct model *model, const char *path,
		   struct error *err);

#endif
