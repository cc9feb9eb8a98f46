// SPDX-License-Identifier: Apache-2.0
#include "usdt/sink/sink.h"

#include <errno.h>
#include <string.h>

#include "usdt/sink/timeline_sink.h"

/* The formats, by the extension of the file's name. */
static const struct {
	const char *extension;
	const struct timeline_stream *stream; /* NULL: the store's own format */
} formats[] = {
	{".waffle", NULL},
	{".json", &timeline_chrome},
	{".pftrace", &timeline_perfetto},
};

int sink_open(struct sink **sink, const char *path, const struct sink_origin *origin,
	      struct error *err)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot && i < sizeof(formats) / sizeof(formats[0]); i++) {
		if (strcmp(dot, formats[i].extension) != 0)
			continue;
		return formats[i].stream
			       ? timeline_sink_open(sink, formats[i].stream, path, origin, err)
			       : sink_store_open(sink, path, origin, err);
	}
	return error_set(
		err, EINVAL,
		"%s: the format is chosen by the extension, which has to be .waffle, .json "
		"or .pftrace",
		path);
}
