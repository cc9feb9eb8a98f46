// SPDX-License-Identifier: Apache-2.0
#include "store/writer_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The highest level that keeps up with a capture, measured by bench/store_bench.c. */
#define COMPRESSION_LEVEL 1

/* Stores an error, which every further call returns. */
int writer_fail(struct store_writer *writer, int code, const char *what)
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

int writer_result(const struct store_writer *writer, struct error *err)
{
	return writer->code ? error_set(err, writer->code, "%s", writer->failed.message) : 0;
}

/* Number of records in the chunks that the process has written. */
uint64_t writer_records_kept(const struct store_writer *writer, uint64_t bytes)
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
const struct file_state *writer_process_look(struct store_writer *writer)
{
	const struct file_state *state = file_process_look(writer->process);

	if (state->code && !writer->code && state->unnamed) {
		writer_fail_to_publish(writer, state->code);
	} else if (state->code && !writer->code) {
		writer->persisted = writer_records_kept(writer, state->kept);
		writer_fail(writer, state->code,
			    *state->message ? state->message : strerror(state->code));
	}
	return state;
}

int writer_process_send(struct store_writer *writer, enum file_request request, const void *data,
			size_t bytes)
{
	if (!file_process_send(writer->process, request, data, bytes))
		return writer_fail(writer, ENOMEM, "out of memory");
	writer_process_look(writer);
	return -writer->code;
}

/* Writes all of `out`. On an error the file is truncated to its last whole chunk. */
int writer_write(struct store_writer *writer)
{
	size_t done = 0;

	if (writer->process) {
		writer->bytes += writer->out.len;
		return writer_process_send(writer, FILE_WRITE, writer->out.data, writer->out.len);
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
int writer_packed(struct store_writer *writer, struct chunk_entry entry)
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

int writer_chunk(struct store_writer *writer, struct chunk_header header, const void *payload,
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
	return writer->keep ? keep_packed(writer, entry) : writer_packed(writer, entry);
}
