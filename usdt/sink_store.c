// SPDX-License-Identifier: Apache-2.0
/* The sink that writes a .waffle file. */
#include <errno.h>
#include <stdlib.h>

#include "usdt/sink.h"

struct sink_store {
	struct sink sink;
	struct store_writer *writer;
};

static struct store_writer *writer_of(struct sink *sink)
{
	return ((struct sink_store *)sink)->writer;
}

static int store_add_site(struct sink *sink, const struct site_info *site, struct error *err)
{
	return store_writer_add_site(writer_of(sink), site, err);
}

static int store_record(struct sink *sink, const struct waffle_rec *rec, struct error *err)
{
	return store_writer_append(writer_of(sink), rec, err);
}

static int store_flush(struct sink *sink, const struct store_counts *counts, struct error *err)
{
	return store_writer_flush(writer_of(sink), counts, err);
}

static int store_close(struct sink *sink, uint64_t end_ts, const struct store_counts *counts,
		       struct error *err)
{
	int result = store_writer_close(writer_of(sink), end_ts, counts, err);

	free(sink);
	return result;
}

static void store_discard(struct sink *sink)
{
	store_writer_discard(writer_of(sink));
	free(sink);
}

static const struct sink_type store_type = {
	.add_site = store_add_site,
	.record = store_record,
	.flush = store_flush,
	.close = store_close,
	.discard = store_discard,
};

int sink_store_open(struct sink **result, const char *path, const struct sink_origin *origin,
		    struct error *err)
{
	struct sink_store *sink = calloc(1, sizeof(*sink));
	int code;

	*result = NULL;
	if (!sink)
		return error_set(err, ENOMEM, "%s: out of memory", path);
	sink->sink.type = &store_type;
	code = store_writer_open(&sink->writer, path, &origin->meta, err);
	if (code) {
		free(sink);
		return code;
	}
	code = store_writer_add_process(sink->writer, &origin->process, err)
		       ?: store_writer_publish(sink->writer, err);
	if (code)
		store_discard(&sink->sink);
	else
		*result = &sink->sink;
	return code;
}
