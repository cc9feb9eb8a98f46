// SPDX-License-Identifier: Apache-2.0
#include "export/repair/repair.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/repair/pieces_internal.h"
#include "util/memory.h"
#include "util/output.h"

static int copy(const struct repair_plan *plan, struct pieces *pieces, const char *path,
		const char *name, FILE *out, struct error *err)
{
	int result = pieces_seek(pieces, 0, path, err);

	while (!result && pieces->len && pieces->from < plan->kept) {
		uint64_t left = plan->kept - pieces->from;
		size_t bytes = left < pieces->len ? (size_t)left : pieces->len;

		if (fwrite(pieces->bytes, 1, bytes, out) != bytes)
			return error_set(err, errno, "%s: %s", name, strerror(errno));
		result = pieces_next(pieces, path, err);
	}
	if (!result && pieces->from < plan->kept && !pieces->len)
		result = error_set(err, EIO, "%s: was changed while it was read", path);
	if (!result)
		fputs(plan->tail, out);
	return result;
}

int repair_write(const struct repair_plan *plan, int fd, const char *path, const char *out,
		 struct error *err)
{
	struct pieces *pieces = memory_get(sizeof(*pieces));
	struct output output = {0};
	int result = pieces_begin(pieces, fd, path, err) ?: output_open(&output, out, err);

	if (!result) {
		result = copy(plan, pieces, path, out, output.file, err);
		if (result)
			output_abort(&output);
		else
			result = output_commit(&output, err);
	}
	free(pieces);
	return result;
}
