/* SPDX-License-Identifier: Apache-2.0 */
/* The sinks that write files for viewers: a timeline, the format of its packets, and the file. */
#ifndef WAFFLE_USDT_SINK_TIMELINE_SINK_H
#define WAFFLE_USDT_SINK_TIMELINE_SINK_H

#include "usdt/sink/sink.h"
#include "usdt/sink/timeline.h"

/* A format that is written as a stream. All functions may call memory_failed(). */
struct timeline_stream {
	const struct timeline_format *format;
	/* Begins the stream. Returns the argument of `format` and of all others. */
	void *(*open)(const struct sink_origin *origin);
	/* Writes what follows the last window. */
	void (*end)(void *arg, uint64_t end_ts, const struct store_counts *counts);
	/* The bytes since the last call, valid until the stream is used again. They may be cut off
	 * at their end, and the file is valid. */
	const void *(*take)(void *arg, size_t *bytes);
	void (*close)(void *arg);
};

extern const struct timeline_stream timeline_chrome, timeline_perfetto;

int timeline_sink_open(struct sink **sink, const struct timeline_stream *stream, const char *path,
		       const struct sink_origin *origin, struct error *err);

#endif
