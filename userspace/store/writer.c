// SPDX-License-Identifier: Apache-2.0
#include "store/writer_internal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- records ---- */

int writer_records(struct store_writer *writer, enum chunk_type type, struct encoder *encoder)
{
	struct encoded chunk = encoder_chunk(encoder);
	int ret;

	if (!chunk.records)
		return 0;
	ret = writer_chunk(writer,
			   (struct chunk_header){.type = (uint16_t)type,
						 .codec = CODEC_ZSTD,
						 .records = chunk.records,
						 .min_ts = chunk.min_ts,
						 .max_ts = chunk.max_ts},
			   chunk.data, chunk.bytes);
	encoder_reset(encoder);
	if (!ret && type == CHUNK_DATA)
		writer->persisted += chunk.records;
	return ret;
}

/* In memory, tables become chunks only when they are large: a chunk each second would be too many
 * after some days. */
int writer_data(struct store_writer *writer)
{
	int ret = writer->keep ? 0 : writer_tables(writer);

	if (!ret)
		ret = writer_records(writer, CHUNK_TASKS, writer->tasks);
	if (!ret)
		ret = writer_records(writer, CHUNK_DATA, writer->encoder);
	return ret;
}

int store_writer_append(struct store_writer *writer, const struct waffle_rec *rec,
			struct error *err)
{
	if (writer->code)
		return writer_result(writer, err);
	if (rec->kind >= WAFFLE_REC_KIND_COUNT || !record_size(rec, RECORD_BYTES_MAX) ||
	    rec->ts > RECORD_TS_MAX)
		return error_set(err, EINVAL, "%s: a record of kind %u is not valid", writer->path,
				 rec->kind);
	if (!encoder_append(writer->encoder, rec) ||
	    (record_names(rec->kind) && !encoder_append(writer->tasks, rec)))
		writer_fail(writer, ENOMEM, "out of memory");
	else if (writer->keep)
		keep_record(writer->keep, rec);
	if (!writer->code && (encoder_full(writer->encoder) || encoder_full(writer->tasks)))
		writer_data(writer);
	return writer_result(writer, err);
}

static int write_counts(struct store_writer *writer)
{
	unsigned char payload[COUNTS_BYTES];

	counts_put(payload, 0, 0, writer->counts);
	return writer_chunk(writer,
			    (struct chunk_header){.type = CHUNK_COUNTS, .codec = CODEC_NONE},
			    payload, sizeof(payload));
}

int store_writer_flush(struct store_writer *writer, const struct store_counts *counts,
		       struct error *err)
{
	if (writer->code)
		return writer_result(writer, err);
	if (!writer_data(writer) && !writer->keep &&
	    memcmp(counts, writer->counts, sizeof(writer->counts))) {
		memcpy(writer->counts, counts, sizeof(writer->counts));
		write_counts(writer);
	}
	return writer_result(writer, err);
}

uint64_t store_writer_persisted(const struct store_writer *writer)
{
	return writer->persisted;
}

uint64_t store_writer_bytes(const struct store_writer *writer)
{
	return writer->keep ? writer->keep->bytes + writer->keep->table_bytes : writer->bytes;
}

/* ---- opening and closing ---- */

void writer_free(struct store_writer *writer)
{
	file_process_close(writer->process);
	keep_free(writer->keep);
	output_abort(&writer->output);
	encoder_free(writer->encoder);
	encoder_free(writer->tasks);
	strtab_free(writer->state.strings);
	ZSTD_freeCCtx(writer->zstd);
	vec_free(&writer->index);
	for (enum writer_table table = 0; table < TABLE_COUNT; table++)
		vec_free(&writer->state.tables[table].bytes);
	vec_free(&writer->out);
	free(writer->path);
	free(writer);
}

struct store_writer *writer_new(const char *path)
{
	struct store_writer *writer = calloc(1, sizeof(*writer));

	if (!writer)
		return NULL;
	writer->path = strdup(path);
	writer->encoder = encoder_new();
	writer->tasks = encoder_new();
	writer->state.strings = strtab_new();
	writer->state.strings_written = 1; /* all readers know the empty string */
	writer->zstd = ZSTD_createCCtx();
	if (!writer->path || !writer->encoder || !writer->tasks || !writer->state.strings ||
	    !writer->zstd) {
		writer_free(writer);
		return NULL;
	}
	return writer;
}

/* Writes header and meta before the file gets its name, so that a file of that name is always
 * readable. */
static int write_begin(struct store_writer *writer, const struct store_meta *meta)
{
	byte_vec bytes = {0};
	int ret;

	if (!vec_reserve(&writer->out, FILE_HEADER_BYTES))
		return writer_fail(writer, ENOMEM, "out of memory");
	file_header_pack(writer->out.data);
	writer->out.len = FILE_HEADER_BYTES;
	ret = writer_write(writer);
	if (!ret && !meta_put(&bytes, meta))
		ret = writer_fail(writer, ENOMEM, "out of memory");
	if (!ret)
		ret = writer_chunk(writer,
				   (struct chunk_header){.type = CHUNK_META, .codec = CODEC_ZSTD},
				   bytes.data, bytes.len);
	vec_free(&bytes);
	return ret;
}

/* Called after the output was opened, with the result of that. */
static int writer_begin(struct store_writer **result, struct store_writer *writer, int ret,
			const struct store_meta *meta, struct error *err)
{
	if (!ret) {
		if (writer->output.file)
			writer->fd = fileno(writer->output.file);
		write_begin(writer, meta);
		ret = writer_result(writer, err);
	}
	if (ret)
		writer_free(writer);
	else
		*result = writer;
	return ret;
}

static int open_here(struct store_writer **result, const char *path, bool only_new,
		     const struct store_meta *meta, struct error *err)
{
	struct store_writer *writer = writer_new(path);
	int ret;

	if (!writer)
		return error_set(err, ENOMEM, "%s: out of memory", path);
	ret = only_new ? output_open_new(&writer->output, path, err)
		       : output_open(&writer->output, path, err);
	return writer_begin(result, writer, ret, meta, err);
}

int store_writer_open(struct store_writer **result, const char *path, const struct store_meta *meta,
		      struct error *err)
{
	return open_here(result, path, false, meta, err);
}

int store_writer_open_new(struct store_writer **result, const char *path,
			  const struct store_meta *meta, struct error *err)
{
	return open_here(result, path, true, meta, err);
}

int store_writer_open_outlet(struct store_writer **result, const char *path,
			     const struct store_outlet *outlet, const struct store_meta *meta,
			     struct error *err)
{
	struct store_writer *writer = writer_new(path);

	if (!writer)
		return error_set(err, ENOMEM, "%s: out of memory", path);
	writer->outlet = *outlet;
	return writer_begin(result, writer, 0, meta, err);
}

int store_writer_open_apart(struct store_writer **result, const char *path, bool only_new, int stop,
			    const struct store_meta *meta, struct error *err)
{
	struct store_writer *writer;
	int ret;

	if (!file_process_can(path))
		return open_here(result, path, only_new, meta, err);
	writer = writer_new(path);
	if (!writer)
		return error_set(err, ENOMEM, "%s: out of memory", path);
	ret = writer_begin(result, writer,
			   file_process_open(&writer->process, path, only_new, stop, err), meta,
			   err);
	if (!ret)
		ret = file_process_settle(writer->process, path, stop, err);
	if (!ret) {
		writer_process_look(writer);
		ret = writer_result(writer, err);
	}
	return ret;
}

struct store_progress store_writer_progress(struct store_writer *writer)
{
	const struct file_state *state;

	if (!writer->process)
		return (struct store_progress){.kept = writer->bytes};
	state = writer_process_look(writer);
	return (struct store_progress){.queued = state->queued,
				       .kept = state->kept,
				       .moved_ns = state->moved_ns,
				       .busy = state->unanswered};
}

bool store_writer_is_published(struct store_writer *writer)
{
	return writer->process ? writer_process_look(writer)->published
			       : writer->output.file && !writer->output.temporary;
}

void store_writer_wait(struct store_writer *writer, int stop, int ms)
{
	if (writer->process)
		file_process_wait(writer->process, stop, ms);
}

int store_writer_publish(struct store_writer *writer, struct error *err)
{
	struct error problem = ERROR_INIT;
	int ret;

	if (writer->code || writer->keep)
		return writer_result(writer, err);
	if (writer->process) {
		writer_process_send(writer, FILE_PUBLISH, NULL, 0);
		return writer_result(writer, err);
	}
	ret = output_publish(&writer->output, &problem);
	return ret ? error_set(err, -ret, "%s", problem.message) : 0;
}

void store_writer_discard(struct store_writer *writer)
{
	writer_free(writer);
}

/* A file without an index is complete, but slower to open. */
static int write_index(struct store_writer *writer)
{
	byte_vec bytes = {0};
	int ret = 0;

	if (!index_put(&bytes, &writer->index))
		ret = writer_fail(writer, ENOMEM, "out of memory");
	else if (bytes.len <= INDEX_RAW_MAX)
		ret = writer_chunk(writer,
				   (struct chunk_header){.type = CHUNK_INDEX, .codec = CODEC_ZSTD},
				   bytes.data, bytes.len);
	vec_free(&bytes);
	return ret;
}

static int write_end(struct store_writer *writer, uint64_t end_ts)
{
	unsigned char payload[COUNTS_BYTES];
	uint64_t index_offset = writer->bytes;
	int ret = write_index(writer);

	if (ret)
		return ret;
	counts_put(payload, index_offset, end_ts, writer->counts);
	return writer_chunk(writer, (struct chunk_header){.type = CHUNK_END, .codec = CODEC_NONE},
			    payload, sizeof(payload));
}

void store_writer_finish(struct store_writer *writer, uint64_t end_ts,
			 const struct store_counts *counts)
{
	writer->finished = true;
	if (!writer->code && !writer_data(writer)) {
		memcpy(writer->counts, counts, sizeof(writer->counts));
		write_end(writer, end_ts);
	}
	/* Keep what was written before a failure. */
	if (writer->process)
		writer_process_send(writer, writer->code ? FILE_PUBLISH : FILE_COMMIT, NULL, 0);
}

/* Requests that are unanswered by now are lost. */
static int process_close(struct store_writer *writer, struct error *err)
{
	const struct file_state *state = writer_process_look(writer);
	int ret;

	if (state->unanswered && !writer->code) {
		writer->persisted = writer_records_kept(writer, state->kept);
		writer_fail(writer, ETIMEDOUT, "its file system does not answer");
	}
	ret = writer_result(writer, err);
	writer_free(writer);
	return ret;
}

int store_writer_close(struct store_writer *writer, uint64_t end_ts,
		       const struct store_counts *counts, struct error *err)
{
	int ret;

	if (!writer->finished)
		store_writer_finish(writer, end_ts, counts);
	if (writer->process)
		return process_close(writer, err);
	ret = writer_result(writer, err);
	if (writer->outlet.write) {
		writer_free(writer);
		return ret;
	}
	/* Keep what was written before a failure. */
	if (ret)
		output_publish(&writer->output, &(struct error)ERROR_INIT);
	else
		ret = output_commit(&writer->output, err);
	writer_free(writer);
	return ret;
}
