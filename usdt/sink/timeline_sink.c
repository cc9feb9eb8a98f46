// SPDX-License-Identifier: Apache-2.0
#include "usdt/sink/timeline_sink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "usdt/record/attempt.h"
#include "usdt/sink/sink_file.h"

struct timeline_sink {
	struct sink sink;
	const struct timeline_stream *stream;
	void *arg; /* of the stream */
	struct timeline *timeline;
	struct sink_file *file;
};

static int no_memory(const struct timeline_sink *sink, struct error *err)
{
	return error_set(err, ENOMEM, "%s: out of memory", sink_file_path(sink->file));
}

/* Writes the window into the file. Within an attempt. */
static int window_write(struct timeline_sink *sink, struct error *err)
{
	const void *data;
	size_t bytes;

	timeline_write(sink->timeline, TIMELINE_OPEN);
	data = sink->stream->take(sink->arg, &bytes);
	return sink_file_write(sink->file, data, bytes, err);
}

static int timeline_sink_add_site(struct sink *base, const struct site_info *site,
				  struct error *err)
{
	struct timeline_sink *sink = (struct timeline_sink *)base;
	struct memory_attempt attempt;

	if (attempt_fails(&attempt))
		return no_memory(sink, err);
	timeline_add_site(sink->timeline, site);
	attempt_end(&attempt);
	return 0;
}

static int timeline_sink_record(struct sink *base, const struct waffle_rec *rec, struct error *err)
{
	struct timeline_sink *sink = (struct timeline_sink *)base;
	struct memory_attempt attempt;
	int result;

	if (attempt_fails(&attempt))
		return no_memory(sink, err);
	result = timeline_record(sink->timeline, rec) ? 0 : -EINVAL;
	if (!result && timeline_is_full(sink->timeline))
		result = window_write(sink, err);
	attempt_end(&attempt);
	return result;
}

static int timeline_sink_flush(struct sink *base, const struct store_counts *counts,
			       struct error *err)
{
	struct timeline_sink *sink = (struct timeline_sink *)base;
	struct memory_attempt attempt;
	int result;

	(void)counts;
	if (attempt_fails(&attempt))
		return no_memory(sink, err);
	result = window_write(sink, err);
	attempt_end(&attempt);
	return result;
}

static int timeline_sink_settle(struct sink *base, struct error *err)
{
	return sink_file_settle(((struct timeline_sink *)base)->file, err);
}

static void timeline_sink_discard(struct sink *base)
{
	struct timeline_sink *sink = (struct timeline_sink *)base;

	timeline_free(sink->timeline);
	if (sink->arg)
		sink->stream->close(sink->arg);
	sink_file_discard(sink->file);
	free(sink);
}

static int end_write(struct timeline_sink *sink, uint64_t end_ts, const struct store_counts *counts,
		     struct error *err)
{
	struct store_counts all[WAFFLE_SOURCE_COUNT];
	struct memory_attempt attempt;
	const void *data;
	size_t bytes;
	int result;

	if (attempt_fails(&attempt))
		return no_memory(sink, err);
	timeline_write(sink->timeline, end_ts);
	memcpy(all, counts, sizeof(all));
	all[WAFFLE_SOURCE_SPANS].produced += timeline_given_up(sink->timeline);
	all[WAFFLE_SOURCE_SPANS].lost += timeline_given_up(sink->timeline);
	sink->stream->end(sink->arg, end_ts, all);
	data = sink->stream->take(sink->arg, &bytes);
	result = sink_file_write(sink->file, data, bytes, err);
	attempt_end(&attempt);
	return result;
}

static int timeline_sink_close(struct sink *base, uint64_t end_ts,
			       const struct store_counts *counts, struct error *err)
{
	struct timeline_sink *sink = (struct timeline_sink *)base;
	int result = end_write(sink, end_ts, counts, err);

	if (!result) {
		result = sink_file_close(sink->file, err);
		sink->file = NULL;
	}
	timeline_sink_discard(base);
	return result;
}

static const struct sink_type timeline_sink_type = {
	.add_site = timeline_sink_add_site,
	.record = timeline_sink_record,
	.flush = timeline_sink_flush,
	.settle = timeline_sink_settle,
	.close = timeline_sink_close,
	.discard = timeline_sink_discard,
};

static int head_write(struct timeline_sink *sink, const struct sink_origin *origin,
		      struct error *err)
{
	struct memory_attempt attempt;
	const void *data;
	size_t bytes;
	int result;

	if (attempt_fails(&attempt))
		return no_memory(sink, err);
	sink->arg = sink->stream->open(origin);
	sink->timeline = timeline_new(sink->stream->format, sink->arg, origin->process.pid,
				      origin->meta.start_ts);
	data = sink->stream->take(sink->arg, &bytes);
	result = sink_file_write(sink->file, data, bytes, err);
	attempt_end(&attempt);
	return result;
}

int timeline_sink_open(struct sink **result, const struct timeline_stream *stream, const char *path,
		       const struct sink_origin *origin, struct error *err)
{
	struct timeline_sink *sink = calloc(1, sizeof(*sink));
	int code;

	*result = NULL;
	if (!sink)
		return error_set(err, ENOMEM, "%s: out of memory", path);
	sink->sink.type = &timeline_sink_type;
	sink->stream = stream;
	code = sink_file_open(&sink->file, path, err);
	if (code) {
		free(sink);
		return code;
	}
	code = head_write(sink, origin, err) ?: sink_file_publish(sink->file, err);
	if (code)
		timeline_sink_discard(&sink->sink);
	else
		*result = &sink->sink;
	return code;
}
