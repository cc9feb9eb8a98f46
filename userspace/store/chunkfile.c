// SPDX-License-Identifier: Apache-2.0
#include "store/chunkfile_internal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/input.h"

/* Bytes read at once when searching for a chunk after damaged ones. */
#define SEARCH_BYTES 65536

/* Reads exactly `bytes`; -ENODATA if the file has been truncated. */
static int read_at(const struct chunk_file *file, uint64_t offset, void *to, size_t bytes)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t n =
			pread(file->fd, (char *)to + done, bytes - done, (off_t)(offset + done));

		if (n > 0)
			done += (size_t)n;
		else if (n == 0)
			return -ENODATA;
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

bool chunk_scratch_init(struct chunk_scratch *scratch)
{
	*scratch = (struct chunk_scratch){.zstd = ZSTD_createDCtx()};
	return scratch->zstd != NULL;
}

void chunk_scratch_free(struct chunk_scratch *scratch)
{
	ZSTD_freeDCtx(scratch->zstd);
	vec_free(&scratch->stored);
	scratch->zstd = NULL;
}

static int read_failed(const struct chunk_file *file, int code, struct error *err)
{
	return error_set(err, -code, "%s: can't be read: %s", file->path,
			 code == -ENODATA ? "it is being cut off" : strerror(-code));
}

int chunk_file_damaged(const struct chunk_file *file, uint64_t offset, struct error *err)
{
	return error_set(err, EBADMSG,
			 "%s: damaged at byte %llu (checksum or content); take a good copy of it",
			 file->path, (unsigned long long)offset);
}

/* Reads the header at an offset. -EBADMSG: it is invalid; -ENODATA: the file ends within the
 * chunk. */
static int header_at(const struct chunk_file *file, uint64_t offset, struct chunk_header *header)
{
	unsigned char bytes[CHUNK_HEADER_BYTES];
	int ret;

	if (file->size - offset < CHUNK_HEADER_BYTES)
		return -ENODATA;
	ret = read_at(file, offset, bytes, sizeof(bytes));
	if (ret)
		return ret;
	if (!chunk_header_unpack(header, bytes))
		return -EBADMSG;
	if (file->size - offset - CHUNK_HEADER_BYTES < header->stored_bytes)
		return -ENODATA;
	return 0;
}

/* Reads the payload after a header and decompresses it into file->raw; -EBADMSG if it is
 * damaged. */
static int load_payload(struct chunk_file *file, uint64_t offset, const struct chunk_header *header)
{
	byte_vec *stored = &file->scratch->stored;
	size_t bytes;
	int ret;

	stored->len = file->raw.len = 0;
	/* One byte more, so that the data of an empty chunk is not NULL. */
	if (!vec_reserve(stored, header->stored_bytes + 1u) ||
	    !vec_reserve(&file->raw, header->raw_bytes + 1u))
		return -ENOMEM;
	ret = read_at(file, offset + CHUNK_HEADER_BYTES, stored->data, header->stored_bytes);
	if (ret)
		return ret;
	if (chunk_checksum(stored->data, header->stored_bytes) != header->checksum)
		return -EBADMSG;
	if (header->codec == CODEC_NONE) {
		bytes = header->stored_bytes;
		if (bytes == header->raw_bytes)
			memcpy(file->raw.data, stored->data, bytes);
	} else {
		bytes = ZSTD_decompressDCtx(file->scratch->zstd, file->raw.data, header->raw_bytes,
					    stored->data, header->stored_bytes);
	}
	if (ZSTD_isError(bytes) || bytes != header->raw_bytes)
		return -EBADMSG;
	file->raw.len = bytes;
	return 0;
}

static struct cursor raw_cursor(const struct chunk_file *file)
{
	return (struct cursor){.at = file->raw.data, .end = file->raw.data + file->raw.len};
}

static int open_descriptor(struct chunk_file *file, struct error *err)
{
	struct stat st;

	file->fd = input_open(file->path);
	if (file->fd == -EISDIR)
		return error_set(err, EISDIR, "%s: is a directory, not a .waffle file", file->path);
	if (file->fd == -EINVAL)
		return error_set(err, EINVAL, "%s: is not a regular file; copy it into one first",
				 file->path);
	if (file->fd < 0)
		return error_set(err, -file->fd, "%s: can't be opened: %s", file->path,
				 strerror(-file->fd));
	if (fstat(file->fd, &st))
		return error_set(err, errno, "%s: %s", file->path, strerror(errno));
	if (file->size && (file->device != st.st_dev || file->inode != st.st_ino ||
			   file->size > (uint64_t)st.st_size))
		return error_set(err, ESTALE,
				 "%s: was replaced while it was read; run the command again",
				 file->path);
	if (!file->size)
		file->size = (uint64_t)st.st_size;
	file->device = st.st_dev;
	file->inode = st.st_ino;
	return 0;
}

int chunk_file_load(struct chunk_file *file, const struct chunk_entry *entry, struct cursor *cursor,
		    struct error *err)
{
	struct chunk_header header;
	int ret = file->fd < 0 ? open_descriptor(file, err) : 0;

	*cursor = (struct cursor){0};
	if (ret)
		return ret;
	ret = header_at(file, entry->offset, &header);
	/* An index entry that differs from the chunk's header is treated like a damaged chunk. */
	if (!ret && (header.type != entry->type || header.records != entry->records ||
		     header.stored_bytes != entry->stored_bytes || header.min_ts != entry->min_ts ||
		     header.max_ts != entry->max_ts))
		ret = -EBADMSG;
	if (!ret)
		ret = load_payload(file, entry->offset, &header);
	if (!ret)
		*cursor = raw_cursor(file);
	if (ret == -EBADMSG)
		return chunk_file_damaged(file, entry->offset, err);
	if (ret)
		return read_failed(file, ret, err);
	return 0;
}

/* ---- finding the chunks ---- */

static int check_file_header(struct chunk_file *file, struct error *err)
{
	unsigned char header[FILE_HEADER_BYTES];
	size_t bytes = file->size < sizeof(header) ? file->size : sizeof(header);
	int ret = read_at(file, 0, header, bytes);

	if (ret)
		return read_failed(file, ret, err);
	if (!bytes)
		return error_set(err, EINVAL, "%s: is empty, not a .waffle file", file->path);
	if (memcmp(header, FILE_MAGIC, bytes < FILE_MAGIC_BYTES ? bytes : FILE_MAGIC_BYTES))
		return error_set(err, EINVAL,
				 "%s: is not a .waffle file; give one that attach or run wrote",
				 file->path);
	if (bytes < sizeof(header))
		return error_set(err, EINVAL, "%s: is cut off in its header, nothing can be read",
				 file->path);
	if (load_le(header + 12, 4) != chunk_checksum(header, 12))
		return chunk_file_damaged(file, 0, err);
	file->version = (unsigned)load_le(header + 8, 2);
	if (file->version > FILE_VERSION)
		return error_set(
			err, EPROTONOSUPPORT,
			"%s: has version %u, and this program reads versions up to %u; use a newer "
			"waffle-bpf",
			file->path, file->version, FILE_VERSION);
	if (file->version == 0)
		return error_set(err, EPROTONOSUPPORT, "%s: has version 0, which does not exist",
				 file->path);
	return 0;
}

static int take_counts(struct chunk_file *file, uint64_t *index_offset, uint64_t *end_ts)
{
	struct cursor cursor = raw_cursor(file);

	return counts_get(&cursor, index_offset, end_ts, file->counts);
}

/* Takes the chunks from the index at the end of a finished file. False: walk instead. */
static bool open_by_index(struct chunk_file *file)
{
	struct chunk_header header;
	uint64_t end_offset, index_offset, end_ts;
	struct cursor cursor;

	if (file->size < FILE_HEADER_BYTES + END_CHUNK_BYTES)
		return false;
	end_offset = file->size - END_CHUNK_BYTES;
	if (header_at(file, end_offset, &header) || header.type != CHUNK_END ||
	    load_payload(file, end_offset, &header) || take_counts(file, &index_offset, &end_ts) ||
	    index_offset < FILE_HEADER_BYTES || index_offset >= end_offset)
		return false;
	if (header_at(file, index_offset, &header) || header.type != CHUNK_INDEX ||
	    index_offset + CHUNK_HEADER_BYTES + header.stored_bytes != end_offset ||
	    load_payload(file, index_offset, &header))
		return false;
	cursor = raw_cursor(file);
	if (index_get(&file->entries, &cursor, FILE_HEADER_BYTES, index_offset)) {
		file->entries.len = 0;
		return false;
	}
	file->finished = true;
	file->end_ts = end_ts;
	file->end = file->size;
	return true;
}

/* Whether any whole chunk begins in [from, size). */
static bool chunk_follows(struct chunk_file *file, uint64_t from)
{
	static const unsigned char magic[4] = {'C', 'H', 'N', 'K'};
	struct chunk_header header;

	if (!vec_reserve(&file->raw, SEARCH_BYTES))
		return false;
	while (from < file->size && file->size - from >= CHUNK_HEADER_BYTES) {
		uint64_t left = file->size - from;
		size_t bytes = left < SEARCH_BYTES ? (size_t)left : SEARCH_BYTES;
		unsigned char *at = file->raw.data, *end = at + bytes;

		if (read_at(file, from, at, bytes))
			return false;
		while ((at = memmem(at, (size_t)(end - at), magic, sizeof(magic)))) {
			if (!header_at(file, from + (uint64_t)(at - file->raw.data), &header))
				return true;
			at++;
		}
		from += bytes - (bytes == left ? 0 : sizeof(magic) - 1);
	}
	return false;
}

/* Lists the chunks from the first one to the last whole one. */
static int walk_chunks(struct chunk_file *file, struct error *err)
{
	struct chunk_header header;
	uint64_t offset = FILE_HEADER_BYTES;
	int ret = 0;

	while (!file->finished && !(ret = header_at(file, offset, &header))) {
		struct chunk_entry entry = {.offset = offset,
					    .min_ts = header.min_ts,
					    .max_ts = header.max_ts,
					    .stored_bytes = header.stored_bytes,
					    .records = header.records,
					    .type = header.type};

		if (!vec_push(&file->entries, entry))
			return read_failed(file, -ENOMEM, err);
		offset += CHUNK_HEADER_BYTES + header.stored_bytes;
		file->finished = header.type == CHUNK_END;
	}
	file->end = offset;
	if (ret == -EBADMSG && chunk_follows(file, offset + 1))
		return chunk_file_damaged(file, offset, err);
	return ret == -EBADMSG || ret == -ENODATA || !ret ? 0 : read_failed(file, ret, err);
}

/* After a power loss the last chunks may be incomplete. Everything after the last valid payload is
 * dropped. */
static int drop_torn_chunks(struct chunk_file *file, struct error *err)
{
	while (file->entries.len) {
		const struct chunk_entry *last = &file->entries.data[file->entries.len - 1];
		struct chunk_header header;
		int ret = header_at(file, last->offset, &header);

		if (!ret)
			ret = load_payload(file, last->offset, &header);
		if (ret != -EBADMSG)
			return ret ? read_failed(file, ret, err) : 0;
		file->end = last->offset;
		file->finished = false;
		file->entries.len--;
	}
	return 0;
}

/* Takes the newest counts among the chunks of a walk. */
static int find_counts(struct chunk_file *file, struct error *err)
{
	for (size_t i = file->entries.len; i-- > 0;) {
		const struct chunk_entry *entry = &file->entries.data[i];
		uint64_t index_offset, end_ts;
		struct cursor cursor;
		int ret;

		if (entry->type != CHUNK_END && entry->type != CHUNK_COUNTS)
			continue;
		ret = chunk_file_load(file, entry, &cursor, err);
		if (ret)
			return ret;
		if (take_counts(file, &index_offset, &end_ts))
			return chunk_file_damaged(file, entry->offset, err);
		if (entry->type == CHUNK_END)
			file->end_ts = end_ts;
		return 0;
	}
	return 0;
}

static int open_by_walk(struct chunk_file *file, struct error *err)
{
	int ret = walk_chunks(file, err);

	if (!ret)
		ret = drop_torn_chunks(file, err);
	if (!ret)
		ret = find_counts(file, err);
	return ret;
}

int chunk_file_open(struct chunk_file *file, const char *path, struct chunk_scratch *scratch,
		    struct error *err)
{
	int ret;

	*file = (struct chunk_file){.fd = -1, .path = strdup(path), .scratch = scratch};
	if (!file->path)
		return error_set(err, ENOMEM, "%s: out of memory", path);
	ret = open_descriptor(file, err);
	if (!ret)
		ret = check_file_header(file, err);
	if (!ret && !open_by_index(file))
		ret = open_by_walk(file, err);
	if (!ret && (!file->entries.len || file->entries.data[0].type != CHUNK_META))
		ret = error_set(err, EINVAL, "%s: is cut off in its header, nothing can be read",
				path);
	if (ret)
		chunk_file_close(file);
	return ret;
}

void chunk_file_put_down(struct chunk_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}

void chunk_file_rest(struct chunk_file *file)
{
	chunk_file_put_down(file);
	vec_free(&file->raw);
}

void chunk_file_close(struct chunk_file *file)
{
	chunk_file_rest(file);
	vec_free(&file->entries);
	free(file->path);
	*file = (struct chunk_file){.fd = -1};
}
