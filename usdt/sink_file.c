// SPDX-License-Identifier: Apache-2.0
#include "usdt/sink_file.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/output.h"

struct sink_file {
	struct output output;
	int fd; /* of the output, written to without a buffer */
	uint64_t bytes;
};

int sink_file_open(struct sink_file **result, const char *path, struct error *err)
{
	struct sink_file *file = calloc(1, sizeof(*file));
	int code;

	*result = NULL;
	if (!file)
		return error_set(err, ENOMEM, "%s: out of memory", path);
	code = output_open(&file->output, path, err);
	if (code) {
		free(file);
		return code;
	}
	file->fd = fileno(file->output.file);
	*result = file;
	return 0;
}

const char *sink_file_path(const struct sink_file *file)
{
	return file->output.path;
}

int sink_file_write(struct sink_file *file, const void *data, size_t bytes, struct error *err)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t n = write(file->fd, (const char *)data + done, bytes - done);

		if (n > 0) {
			done += (size_t)n;
		} else if (n == 0 || errno != EINTR) {
			int code = n ? errno : ENOSPC;

			if (ftruncate(file->fd, (off_t)file->bytes))
				errno = 0;
			return error_set(err, code, "%s: %s; what was written before is kept",
					 file->output.path, strerror(code));
		}
	}
	file->bytes += bytes;
	return 0;
}

int sink_file_publish(struct sink_file *file, struct error *err)
{
	return output_publish(&file->output, err);
}

int sink_file_close(struct sink_file *file, struct error *err)
{
	int result = output_commit(&file->output, err);

	free(file);
	return result;
}

void sink_file_discard(struct sink_file *file)
{
	if (!file)
		return;
	output_abort(&file->output);
	free(file);
}
