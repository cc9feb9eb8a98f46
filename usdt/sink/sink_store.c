// SPDX-License-Identifier: Apache-2.0
/* The sink that writes a .waffle file. */
#include <errno.h>
#include <stdlib.h>

#include "target/process/container_id.h"
#include "target/process/rank.h"
#include "usdt/sink/sink.h"
#include "usdt/sink/sink_file.h"

struct sink_store {
	struct sink sink;
	struct store_writer *writer;
	struct sink_file *file;
};

static struct store_writer *writer_of(struct sink *sink)
{
	return ((struct sink_store *)sink)->writer;
}

static struct sink_file *file_of(struct sink *sink)
{
	return ((struct sink_store *)sink)->file;
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

static int store_settle(struct sink *sink, struct error *err)
{
	return sink_file_settle(file_of(sink), err);
}

static int store_close(struct sink *sink, uint64_t end_ts, const struct store_counts *counts,
		       struct error *err)
{
	struct error problem = ERROR_INIT;
	int result = store_writer_close(writer_of(sink), end_ts, counts, err);
	int closed = sink_file_close(file_of(sink), result ? &problem : err);

	free(sink);
	return result ?: closed;
}

static void store_discard(struct sink *sink)
{
	if (writer_of(sink))
		store_writer_discard(writer_of(sink));
	sink_file_discard(file_of(sink));
	free(sink);
}

static const struct sink_type store_type = {
	.add_site = store_add_site,
	.record = store_record,
	.flush = store_flush,
	.settle = store_settle,
	.close = store_close,
	.discard = store_discard,
};

static int bytes_write(void *arg, const void *data, size_t bytes, struct error *err)
{
	return sink_file_write(arg, data, bytes, err);
}

/* What the process is: its rank in a job, and its container. */
static int process_describe(struct store_writer *writer, const struct store_process *process,
			    struct error *err)
{
	struct process_rank found;
	char container[CONTAINER_ID_BYTES];
	int code = store_writer_add_process(writer, process, err);

	if (!code && process_rank_read(&found, (pid_t)process->pid))
		code = store_writer_add_rank(writer,
					     &(struct store_rank){.ts = process->ts,
								  .pid = process->pid,
								  .rank = found.rank,
								  .world_size = found.world_size,
								  .job = found.job},
					     err);
	if (!code && container_id_read(container, (pid_t)process->pid))
		code = store_writer_add_attribute(writer,
						  &(struct store_attribute){
							  .ts = process->ts,
							  .pid = process->pid,
							  .key = STORE_CONTAINER_ID,
							  .value = container,
						  },
						  err);
	return code;
}

static int begin(struct sink_store *sink, const char *path, const struct sink_origin *origin,
		 struct error *err)
{
	struct store_outlet outlet = {.write = bytes_write};
	int code = sink_file_open(&sink->file, path, err);

	outlet.arg = sink->file;
	return code ?: store_writer_open_outlet(&sink->writer, path, &outlet, &origin->meta, err)
			       ?: process_describe(sink->writer, &origin->process, err)
			       ?: sink_file_publish(sink->file, err);
}

int sink_store_open(struct sink **result, const char *path, const struct sink_origin *origin,
		    struct error *err)
{
	struct sink_store *sink = calloc(1, sizeof(*sink));
	int code;

	*result = NULL;
	if (!sink)
		return error_set(err, ENOMEM, "%s: out of memory", path);
	sink->sink.type = &store_type;
	code = begin(sink, path, origin, err);
	if (code)
		store_discard(&sink->sink);
	else
		*result = &sink->sink;
	return code;
}
