// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "store/dictionary_internal.h"
#include "store/encode_internal.h"
#include "store/file_process_internal.h"
#include "store/format_internal.h"
#include "store/keep_internal.h"
#include "store/store.h"
#include "util/output.h"

/* The highest level that keeps up with a capture, measured by bench/store_bench.c. */
#define COMPRESSION_LEVEL 1
/* A table is written when it has reached this size, so that one more string still fits in the
 * chunk. */
#define DICTIONARY_BYTES (CHUNK_RAW_MAX / 2)

/* Tables that records refer to by number. Each is written as chunks of its own, before the
 * records. */
enum writer_table {
	TABLE_SITES,
	TABLE_PROCESSES,
	TABLE_STACKS,
	TABLE_OBJECTS,
	TABLE_MAPPINGS,
	TABLE_SYMBOLS,
	TABLE_NAMES,
	TABLE_TIMED_NAMES,
	TABLE_RANKS,
	TABLE_HOSTS,
	TABLE_CAPTURES,
	TABLE_TRANSPORTS,
	TABLE_COUNT
};
static const uint16_t table_chunks[TABLE_COUNT] = {
	[TABLE_SITES] = CHUNK_SITES,       [TABLE_PROCESSES] = CHUNK_PROCESSES,
	[TABLE_STACKS] = CHUNK_STACKS,     [TABLE_OBJECTS] = CHUNK_OBJECTS,
	[TABLE_MAPPINGS] = CHUNK_MAPPINGS, [TABLE_SYMBOLS] = CHUNK_SYMBOLS,
	[TABLE_NAMES] = CHUNK_NAMES,       [TABLE_TIMED_NAMES] = CHUNK_TIMED_NAMES,
	[TABLE_RANKS] = CHUNK_RANKS,       [TABLE_HOSTS] = CHUNK_HOSTS,
	[TABLE_CAPTURES] = CHUNK_CAPTURES, [TABLE_TRANSPORTS] = CHUNK_TRANSPORTS,
};

/* Entries of a table that are not written yet. */
struct writer_waiting {
	byte_vec bytes;
	uint32_t count;
};

struct store_writer {
	char *path;
	struct file_process *process; /* writes the file; NULL: this process does, with `output` */
	struct keep *keep;            /* keeps the chunks in memory; NULL: there is a file */
	struct store_outlet outlet;   /* without `write`: none */
	struct output output;
	int fd;             /* of the output, written to without a buffer */
	uint64_t bytes;     /* of whole chunks, including the file's header */
	uint64_t persisted; /* records in those chunks */
	chunk_entries index;
	struct encoder *encoder; /* the current data chunk */
	struct encoder *tasks;   /* a copy of the records in it that name threads and tracks */
	struct strtab *strings;
	uint32_t strings_written;
	struct writer_waiting tables[TABLE_COUNT];
	uint32_t counts_of[TABLE_COUNT]; /* entries added to each table */
	uint32_t strings_counted;
	/* Memory they take in a reader: processes and mappings, all others. */
	size_t tables_bytes[2];
	uint64_t left_out; /* entries dropped because there was no room */
	struct store_counts counts[WAFFLE_SOURCE_COUNT];
	ZSTD_CCtx *zstd;
	byte_vec out; /* a chunk in the form written to the file */
	bool finished;
	struct error failed; /* the first error, if code */
	int code;
};

/* Stores an error, which every further call returns. */
static int writer_fail(struct store_writer *writer, int code, const char *what)
{
	writer->code = code;
	error_set(&writer->failed, code, "%s: %s; the %llu records before it are kept",
		  writer->path, what, (unsigned long long)writer->persisted);
	return -code;
}

static int writer_fail_to_publish(struct store_writer *writer, int code)
{
	writer->code = code;
	return error_set(&writer->failed, code, "%s: %s; nothing was written", writer->path,
			 strerror(code));
}

static int writer_result(const struct store_writer *writer, struct error *err)
{
	return writer->code ? error_set(err, writer->code, "%s", writer->failed.message) : 0;
}

/* Number of records in the chunks that the process has written. */
static uint64_t records_kept(const struct store_writer *writer, uint64_t bytes)
{
	uint64_t records = 0;

	for (size_t i = 0; i < writer->index.len; i++) {
		const struct chunk_entry *entry = &writer->index.data[i];

		if (entry->type == CHUNK_DATA &&
		    entry->offset + CHUNK_HEADER_BYTES + entry->stored_bytes <= bytes)
			records += entry->records;
	}
	return records;
}

/* Takes over an error of the process. */
static const struct file_state *process_look(struct store_writer *writer)
{
	const struct file_state *state = file_process_look(writer->process);

	if (state->code && !writer->code && state->unnamed) {
		writer_fail_to_publish(writer, state->code);
	} else if (state->code && !writer->code) {
		writer->persisted = records_kept(writer, state->kept);
		writer_fail(writer, state->code,
			    *state->message ? state->message : strerror(state->code));
	}
	return state;
}

static int process_send(struct store_writer *writer, enum file_request request, const void *data,
			size_t bytes)
{
	if (!file_process_send(writer->process, request, data, bytes))
		return writer_fail(writer, ENOMEM, "out of memory");
	process_look(writer);
	return -writer->code;
}

/* Writes all of `out`. On an error the file is truncated to its last whole chunk. */
static int writer_write(struct store_writer *writer)
{
	size_t done = 0;

	if (writer->process) {
		writer->bytes += writer->out.len;
		return process_send(writer, FILE_WRITE, writer->out.data, writer->out.len);
	}
	if (writer->outlet.write) {
		int ret = writer->outlet.write(writer->outlet.arg, writer->out.data,
					       writer->out.len, &writer->failed);

		writer->code = -ret;
		writer->bytes += ret ? 0 : writer->out.len;
		return ret;
	}
	while (done < writer->out.len) {
		ssize_t n = write(writer->fd, writer->out.data + done, writer->out.len - done);

		if (n > 0) {
			done += (size_t)n;
		} else if (n == 0 || errno != EINTR) {
			int code = n ? errno : ENOSPC;

			/* If this fails, readers find the end of the last whole chunk
			 * themselves. */
			if (ftruncate(writer->fd, (off_t)writer->bytes))
				errno = 0;
			return writer_fail(writer, code, strerror(code));
		}
	}
	writer->bytes += writer->out.len;
	return 0;
}

/* Puts a payload after the room for its header, compressed if that makes it smaller. */
static bool pack_payload(struct store_writer *writer, const void *payload,
			 struct chunk_header *header)
{
	size_t bound = ZSTD_compressBound(header->raw_bytes);
	unsigned char *to;
	size_t packed = 0;

	writer->out.len = 0;
	if (!vec_reserve(&writer->out, CHUNK_HEADER_BYTES + bound))
		return false;
	to = writer->out.data + CHUNK_HEADER_BYTES;
	if (header->codec == CODEC_ZSTD)
		packed = ZSTD_compressCCtx(writer->zstd, to, bound, payload, header->raw_bytes,
					   COMPRESSION_LEVEL);
	if (header->codec == CODEC_NONE || ZSTD_isError(packed) || packed >= header->raw_bytes) {
		header->codec = CODEC_NONE;
		packed = header->raw_bytes;
		if (packed)
			memcpy(to, payload, packed);
	}
	header->stored_bytes = (uint32_t)packed;
	writer->out.len = CHUNK_HEADER_BYTES + packed;
	return true;
}

/* Writes a chunk that is packed in `out`. */
static int write_packed(struct store_writer *writer, struct chunk_entry entry)
{
	int ret;

	if (!vec_reserve(&writer->index, 1))
		return writer_fail(writer, ENOMEM, "out of memory");
	entry.offset = writer->bytes;
	ret = writer_write(writer);
	if (!ret && !vec_push(&writer->index, entry))
		ret = writer_fail(writer, ENOMEM, "out of memory");
	return ret;
}

/* Drops what is oldest rather than to end the capture. */
static int keep_packed(struct store_writer *writer, struct chunk_entry entry)
{
	while (!keep_chunk(writer->keep, &entry, writer->out.data, writer->out.len))
		if (!keep_drop(writer->keep))
			return writer_fail(writer, ENOMEM, "out of memory");
	return 0;
}

static int write_chunk(struct store_writer *writer, struct chunk_header header, const void *payload,
		       size_t bytes)
{
	struct chunk_entry entry;

	header.raw_bytes = (uint32_t)bytes;
	if (!pack_payload(writer, payload, &header))
		return writer_fail(writer, ENOMEM, "out of memory");
	header.checksum =
		chunk_checksum(writer->out.data + CHUNK_HEADER_BYTES, header.stored_bytes);
	chunk_header_pack(writer->out.data, &header);
	entry = (struct chunk_entry){.min_ts = header.min_ts,
				     .max_ts = header.max_ts,
				     .stored_bytes = header.stored_bytes,
				     .records = header.records,
				     .type = header.type};
	return writer->keep ? keep_packed(writer, entry) : write_packed(writer, entry);
}

/* ---- dictionaries ---- */

static int write_strings(struct store_writer *writer)
{
	byte_vec bytes = {0};
	int ret = 0;

	while (!ret && writer->strings_written < strtab_count(writer->strings)) {
		uint32_t first = writer->strings_written;

		bytes.len = 0;
		while (writer->strings_written < strtab_count(writer->strings) &&
		       bytes.len < DICTIONARY_BYTES && !ret) {
			uint32_t i = writer->strings_written++;

			if (!string_put(&bytes, strtab_get(writer->strings, i),
					strtab_length(writer->strings, i)))
				ret = writer_fail(writer, ENOMEM, "out of memory");
		}
		if (!ret)
			ret = write_chunk(
				writer,
				(struct chunk_header){.type = CHUNK_STRINGS,
						      .codec = CODEC_ZSTD,
						      .records = writer->strings_written - first},
				bytes.data, bytes.len);
	}
	vec_free(&bytes);
	return ret;
}

static int write_waiting(struct store_writer *writer, enum writer_table table)
{
	struct writer_waiting *waiting = &writer->tables[table];
	int ret;

	if (!waiting->count)
		return 0;
	ret = write_chunk(writer,
			  (struct chunk_header){.type = table_chunks[table],
						.codec = CODEC_ZSTD,
						.records = waiting->count},
			  waiting->bytes.data, waiting->bytes.len);
	waiting->bytes.len = 0;
	waiting->count = 0;
	return ret;
}

/* Strings are first, because the other tables refer to them. */
static int write_dictionaries(struct store_writer *writer)
{
	int ret = write_strings(writer);

	for (enum writer_table table = 0; !ret && table < TABLE_COUNT; table++)
		ret = write_waiting(writer, table);
	return ret;
}

/* Each group has half of the memory, so that many short-lived processes can't use up the room for
 * stacks. */
static bool is_of_processes(enum writer_table table)
{
	return table == TABLE_PROCESSES || table == TABLE_MAPPINGS || table == TABLE_RANKS ||
	       table == TABLE_TRANSPORTS;
}

/* Whether a table has room for one more entry. */
static bool has_room(const struct store_writer *writer, enum writer_table table)
{
	uint32_t max = table == TABLE_PROCESSES || table == TABLE_RANKS ? STORE_PROCESSES_MAX
									: STORE_TABLE_MAX;

	return writer->counts_of[table] < max &&
	       writer->tables_bytes[!is_of_processes(table)] < STORE_TABLES_BYTES_MAX / 2;
}

bool store_writer_has_room(struct store_writer *writer)
{
	if (has_room(writer, TABLE_STACKS) && has_room(writer, TABLE_OBJECTS) &&
	    has_room(writer, TABLE_NAMES))
		return true;
	writer->left_out++;
	return false;
}

uint64_t store_writer_left_out(const struct store_writer *writer)
{
	return writer->left_out;
}

/* Whether an optional entry may be added. False: the caller returns *result. */
static bool may_add(struct store_writer *writer, enum writer_table table, int *result,
		    struct error *err)
{
	*result = writer_result(writer, err);
	if (*result || has_room(writer, table))
		return !*result;
	writer->left_out++;
	return false;
}

/* Completes the addition of an entry. `put`: there was memory to encode it. `count`: its addresses
 * or segments. */
static int added(struct store_writer *writer, enum writer_table table, uint32_t count, bool put,
		 struct error *err)
{
	if (!put) {
		writer_fail(writer, ENOMEM, "out of memory");
		return writer_result(writer, err);
	}
	writer->tables[table].count++;
	writer->counts_of[table]++;
	writer->tables_bytes[!is_of_processes(table)] +=
		table_bytes((enum chunk_type)table_chunks[table], count);
	for (; writer->strings_counted < strtab_count(writer->strings); writer->strings_counted++)
		writer->tables_bytes[!is_of_processes(table)] +=
			string_bytes(strtab_length(writer->strings, writer->strings_counted));
	if (writer->tables[table].bytes.len >= DICTIONARY_BYTES)
		write_dictionaries(writer);
	return writer_result(writer, err);
}

int store_writer_add_site(struct store_writer *writer, const struct site_info *site,
			  struct error *err)
{
	if (writer->code)
		return writer_result(writer, err);
	if (writer->counts_of[TABLE_SITES] == STORE_SITES_MAX || site->key_count > WAFFLE_KEYS_MAX)
		return error_set(err, E2BIG, "%s: no room for site '%s': too many %s", writer->path,
				 site->name, site->key_count > WAFFLE_KEYS_MAX ? "keys" : "sites");
	return added(writer, TABLE_SITES, 0,
		     site_put(&writer->tables[TABLE_SITES].bytes, writer->strings, site) &&
			     encoder_add_site(writer->encoder, site) &&
			     (!writer->keep || keep_site(writer->keep, site)),
		     err);
}

int store_writer_add_process(struct store_writer *writer, const struct store_process *process,
			     struct error *err)
{
	int result;

	if (!may_add(writer, TABLE_PROCESSES, &result, err))
		return result;
	return added(writer, TABLE_PROCESSES, 0,
		     process_put(&writer->tables[TABLE_PROCESSES].bytes, writer->strings, process),
		     err);
}

int store_writer_add_host(struct store_writer *writer, const struct store_host *host,
			  struct error *err)
{
	if (writer->code)
		return writer_result(writer, err);
	if (writer->counts_of[TABLE_HOSTS] == STORE_HOSTS_MAX)
		return error_set(err, E2BIG, "%s: no room for host '%s': a file has at most %u",
				 writer->path, host->name, STORE_HOSTS_MAX);
	return added(writer, TABLE_HOSTS, 0,
		     host_put(&writer->tables[TABLE_HOSTS].bytes, writer->strings, host), err);
}

int store_writer_add_capture(struct store_writer *writer, const struct store_capture *capture,
			     struct error *err)
{
	if (writer->code)
		return writer_result(writer, err);
	if (writer->counts_of[TABLE_CAPTURES] == STORE_CAPTURES_MAX)
		return error_set(err, E2BIG, "%s: no room for '%s': a file is of at most %u others",
				 writer->path, capture->file, STORE_CAPTURES_MAX);
	return added(writer, TABLE_CAPTURES, 0,
		     capture_put(&writer->tables[TABLE_CAPTURES].bytes, writer->strings, capture),
		     err);
}

int store_writer_add_rank(struct store_writer *writer, const struct store_rank *rank,
			  struct error *err)
{
	int result;

	if (!may_add(writer, TABLE_RANKS, &result, err))
		return result;
	return added(writer, TABLE_RANKS, 0,
		     rank_put(&writer->tables[TABLE_RANKS].bytes, writer->strings, rank), err);
}

int store_writer_add_transport(struct store_writer *writer, const struct store_transport *transport,
			       struct error *err)
{
	int result;

	if (!may_add(writer, TABLE_TRANSPORTS, &result, err))
		return result;
	return added(
		writer, TABLE_TRANSPORTS, 0,
		transport_put(&writer->tables[TABLE_TRANSPORTS].bytes, writer->strings, transport),
		err);
}

int store_writer_add_stack(struct store_writer *writer, const struct store_stack *stack,
			   struct error *err)
{
	int result;

	if (!may_add(writer, TABLE_STACKS, &result, err))
		return result;
	return added(writer, TABLE_STACKS, stack->count,
		     stack_put(&writer->tables[TABLE_STACKS].bytes, stack), err);
}

int store_writer_add_object(struct store_writer *writer, const struct store_object *object,
			    struct error *err)
{
	int result;

	if (!may_add(writer, TABLE_OBJECTS, &result, err))
		return result;
	return added(writer, TABLE_OBJECTS, 0,
		     object_put(&writer->tables[TABLE_OBJECTS].bytes, writer->strings, object),
		     err);
}

int store_writer_add_mapping(struct store_writer *writer, const struct store_mapping *mapping,
			     struct error *err)
{
	int result;

	if (!may_add(writer, TABLE_MAPPINGS, &result, err))
		return result;
	return added(writer, TABLE_MAPPINGS, mapping->segment_count,
		     mapping_put(&writer->tables[TABLE_MAPPINGS].bytes, writer->strings, mapping),
		     err);
}

int store_writer_add_symbol(struct store_writer *writer, const struct store_symbol *symbol,
			    struct error *err)
{
	int result;

	if (!may_add(writer, TABLE_SYMBOLS, &result, err))
		return result;
	return added(writer, TABLE_SYMBOLS, 0,
		     symbol_put(&writer->tables[TABLE_SYMBOLS].bytes, writer->strings, symbol),
		     err);
}

int store_writer_add_name(struct store_writer *writer, const struct store_name *name,
			  struct error *err)
{
	enum writer_table table = name->since ? TABLE_TIMED_NAMES : TABLE_NAMES;
	int result;

	if (!may_add(writer, table, &result, err))
		return result;
	return added(writer, table, 0,
		     name_put(&writer->tables[table].bytes, writer->strings, name), err);
}

/* ---- records ---- */

static int write_records(struct store_writer *writer, enum chunk_type type, struct encoder *encoder)
{
	struct encoded chunk = encoder_chunk(encoder);
	int ret;

	if (!chunk.records)
		return 0;
	ret = write_chunk(writer,
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
static int write_data(struct store_writer *writer)
{
	int ret = writer->keep ? 0 : write_dictionaries(writer);

	if (!ret)
		ret = write_records(writer, CHUNK_TASKS, writer->tasks);
	if (!ret)
		ret = write_records(writer, CHUNK_DATA, writer->encoder);
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
		write_data(writer);
	return writer_result(writer, err);
}

static int write_counts(struct store_writer *writer)
{
	unsigned char payload[COUNTS_BYTES];

	counts_put(payload, 0, 0, writer->counts);
	return write_chunk(writer, (struct chunk_header){.type = CHUNK_COUNTS, .codec = CODEC_NONE},
			   payload, sizeof(payload));
}

int store_writer_flush(struct store_writer *writer, const struct store_counts *counts,
		       struct error *err)
{
	if (writer->code)
		return writer_result(writer, err);
	if (!write_data(writer) && !writer->keep &&
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

static void writer_free(struct store_writer *writer)
{
	file_process_close(writer->process);
	keep_free(writer->keep);
	output_abort(&writer->output);
	encoder_free(writer->encoder);
	encoder_free(writer->tasks);
	strtab_free(writer->strings);
	ZSTD_freeCCtx(writer->zstd);
	vec_free(&writer->index);
	for (enum writer_table table = 0; table < TABLE_COUNT; table++)
		vec_free(&writer->tables[table].bytes);
	vec_free(&writer->out);
	free(writer->path);
	free(writer);
}

static struct store_writer *writer_new(const char *path)
{
	struct store_writer *writer = calloc(1, sizeof(*writer));

	if (!writer)
		return NULL;
	writer->path = strdup(path);
	writer->encoder = encoder_new();
	writer->tasks = encoder_new();
	writer->strings = strtab_new();
	writer->strings_written = 1; /* all readers know the empty string */
	writer->zstd = ZSTD_createCCtx();
	if (!writer->path || !writer->encoder || !writer->tasks || !writer->strings ||
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
		ret = write_chunk(writer,
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
		process_look(writer);
		ret = writer_result(writer, err);
	}
	return ret;
}

struct store_progress store_writer_progress(struct store_writer *writer)
{
	const struct file_state *state;

	if (!writer->process)
		return (struct store_progress){.kept = writer->bytes};
	state = process_look(writer);
	return (struct store_progress){.queued = state->queued,
				       .kept = state->kept,
				       .moved_ns = state->moved_ns,
				       .busy = state->unanswered};
}

bool store_writer_is_published(struct store_writer *writer)
{
	return writer->process ? process_look(writer)->published
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
		process_send(writer, FILE_PUBLISH, NULL, 0);
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
		ret = write_chunk(writer,
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
	return write_chunk(writer, (struct chunk_header){.type = CHUNK_END, .codec = CODEC_NONE},
			   payload, sizeof(payload));
}

void store_writer_finish(struct store_writer *writer, uint64_t end_ts,
			 const struct store_counts *counts)
{
	writer->finished = true;
	if (!writer->code && !write_data(writer)) {
		memcpy(writer->counts, counts, sizeof(writer->counts));
		write_end(writer, end_ts);
	}
	/* Keep what was written before a failure. */
	if (writer->process)
		process_send(writer, writer->code ? FILE_PUBLISH : FILE_COMMIT, NULL, 0);
}

/* Requests that are unanswered by now are lost. */
static int process_close(struct store_writer *writer, struct error *err)
{
	const struct file_state *state = process_look(writer);
	int ret;

	if (state->unanswered && !writer->code) {
		writer->persisted = records_kept(writer, state->kept);
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

/* ---- a writer without a file ---- */

int store_writer_open_memory(struct store_writer **result, struct error *err)
{
	struct store_writer *writer = writer_new("the flight recorder");

	if (writer)
		writer->keep = keep_new();
	if (!writer || !writer->keep) {
		if (writer)
			writer_free(writer);
		return error_set(err, ENOMEM, "out of memory");
	}
	*result = writer;
	return 0;
}

int store_writer_begin_segment(struct store_writer *writer, uint64_t from_ts, struct error *err)
{
	if (!writer->code && !write_data(writer) && !keep_segment(writer->keep, from_ts))
		writer_fail(writer, ENOMEM, "out of memory");
	return writer_result(writer, err);
}

void store_writer_set_now(struct store_writer *writer, uint64_t now)
{
	writer->keep->now = now;
}

int store_writer_append_head(struct store_writer *writer, const struct waffle_rec *rec,
			     struct error *err)
{
	if (!writer->code && !keep_head(writer->keep, rec))
		writer_fail(writer, ENOMEM, "out of memory");
	return writer_result(writer, err);
}

void store_writer_drop(struct store_writer *writer, uint64_t from_ts, uint64_t max_bytes)
{
	struct keep *keep = writer->keep;

	while (keep->segments.len > 1 && keep->segments.data[1].from_ts <= from_ts)
		keep_drop(keep);
	while (keep->bytes + keep->begin_bytes > max_bytes && keep_drop(keep))
		;
}

struct store_kept store_writer_kept(const struct store_writer *writer)
{
	const struct keep *keep = writer->keep;
	struct store_kept kept = {.bytes = keep->bytes + keep->begin_bytes};

	if (keep->segments.len) {
		kept.from_ts = keep->segments.data[0].from_ts;
		kept.segment_bytes = keep->segments.data[keep->segments.len - 1].bytes;
	}
	return kept;
}

/* A file that is made of what another writer keeps. */
struct dump {
	struct store_writer *from, *to;
	struct store_counts *counts;
};

/* The encoder that knows the sites makes the chunks of the head. */
static int dump_encoded(struct dump *dump)
{
	return write_records(dump->to, CHUNK_TASKS, dump->from->tasks)
		       ?: write_records(dump->to, CHUNK_DATA, dump->from->encoder);
}

static int dump_head(const struct waffle_rec *rec, void *arg)
{
	struct dump *dump = arg;
	struct store_writer *from = dump->from;
	unsigned source = record_source(rec->kind);

	if (source < WAFFLE_SOURCE_COUNT)
		dump->counts[source].delivered++;
	if (!encoder_append(from->encoder, rec) ||
	    (record_names(rec->kind) && !encoder_append(from->tasks, rec)))
		return writer_fail(dump->to, ENOMEM, "out of memory");
	return encoder_full(from->encoder) || encoder_full(from->tasks) ? dump_encoded(dump) : 0;
}

static int dump_chunk(struct dump *dump, const struct kept_chunk *chunk)
{
	struct store_writer *to = dump->to;

	for (unsigned i = 0; i < WAFFLE_SOURCE_COUNT; i++) {
		dump->counts[i].delivered += chunk->tally.delivered[i];
		dump->counts[i].lost += chunk->tally.lost[i];
	}
	to->out.len = 0;
	if (!vec_reserve(&to->out, chunk->bytes))
		return writer_fail(to, ENOMEM, "out of memory");
	memcpy(to->out.data, chunk->packed, chunk->bytes);
	to->out.len = chunk->bytes;
	if (chunk->entry.type == CHUNK_DATA)
		to->persisted += chunk->entry.records;
	return write_packed(to, chunk->entry);
}

static int dump_all(struct dump *dump)
{
	const struct keep *keep = dump->from->keep;
	int ret = 0;

	for (size_t i = 0; !ret && i < keep->tables.len; i++)
		ret = dump_chunk(dump, &keep->tables.data[i]);
	ret = ret ?: keep_each_head(keep, dump_head, dump) ?: dump_encoded(dump);
	for (size_t i = 0; !ret && i < keep->segments.len; i++) {
		const struct kept_segment *segment = &keep->segments.data[i];

		for (size_t c = 0; !ret && c < segment->chunks.len; c++)
			ret = dump_chunk(dump, &segment->chunks.data[c]);
	}
	return ret;
}

int store_writer_dump(struct store_writer *from, struct store_writer *to,
		      struct store_counts *counts, struct error *err)
{
	struct dump dump = {from, to, counts};

	memset(counts, 0, WAFFLE_SOURCE_COUNT * sizeof(*counts));
	if (from->code || write_dictionaries(from) || write_data(from))
		return writer_result(from, err);
	if (dump_all(&dump))
		return writer_result(to, err);
	for (unsigned i = 0; i < WAFFLE_SOURCE_COUNT; i++)
		counts[i].produced = counts[i].delivered + counts[i].lost;
	return 0;
}
