// SPDX-License-Identifier: Apache-2.0
#include "export/export.h"

#include <string.h>

#include "export/formats.h"
#include "util/memory.h"
#include "util/output.h"

#define EXPORTER_ROW(name, extension, help) {#name, extension, help, name##_write},

const struct exporter exporters[] = {EXPORTER_ROWS(EXPORTER_ROW)};

const size_t exporter_count = sizeof(exporters) / sizeof(exporters[0]);

int export_to_path(const struct exporter *exporter, const struct model *model, const char *path,
		   struct error *err)
{
	struct output output = {0};
	struct memory_guard guard = {.call = output_abandon, .arg = &output};
	int code = output_open(&output, path, err);

	if (code < 0)
		return code;
	memory_guard_set(&guard);
	code = exporter->write(model, output.file, err);
	memory_guard_remove(&guard);
	if (code < 0) {
		output_abort(&output);
		error_prefix(err, "%s", path);
		return code;
	}
	return output_commit(&output, err);
}
