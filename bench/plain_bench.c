// SPDX-License-Identifier: Apache-2.0
/*
 * What predictive encoding saves: the size of a capture's records in the file, against simpler
 * encodings of the same records, each in chunks of 1 MiB that zstd compresses at the same level.
 *
 *	words    the records as they are in memory (bpf/record.h)
 *	deltas   each word as a varint of its difference to the same word of the previous record of
 *	         this kind, and of a hit of this site
 *
 *	plain_bench FILE…
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zstd.h>

#include "store/record.h"
#include "store/store.h"

#define CHUNK (1u << 20)
#define LEVEL 1 /* as in store/writer.c */
#define SLOTS 4096

struct stream {
	unsigned char bytes[CHUNK + RECORD_BYTES_MAX * 2];
	size_t len;
	uint64_t stored;
};

static struct stream words, deltas;
static uint64_t last[SLOTS][RECORD_BYTES_MAX / 8];

static void flush(struct stream *stream)
{
	static char out[ZSTD_COMPRESSBOUND(sizeof(words.bytes))];
	size_t size = ZSTD_compress(out, sizeof(out), stream->bytes, stream->len, LEVEL);

	stream->stored += ZSTD_isError(size) || size > stream->len ? stream->len : size;
	stream->len = 0;
}

static void add_varint(struct stream *stream, uint64_t value)
{
	for (; value > 127; value >>= 7)
		stream->bytes[stream->len++] = (unsigned char)(value | 128);
	stream->bytes[stream->len++] = (unsigned char)value;
}

static unsigned slot_of(const struct waffle_rec *rec)
{
	if (rec->kind != WAFFLE_REC_HIT)
		return rec->kind % 64;
	return 64 + ((const struct waffle_rec_hit *)rec)->site % (SLOTS - 64);
}

static void add(const struct waffle_rec *rec)
{
	size_t size = record_size(rec, RECORD_BYTES_MAX), count = (size + 7) / 8;
	uint64_t *before = last[slot_of(rec)], now[RECORD_BYTES_MAX / 8] = {0};

	memcpy(words.bytes + words.len, rec, size);
	words.len += size;
	memcpy(now, rec, size);
	add_varint(&deltas, slot_of(rec));
	for (size_t i = 0; i < count; i++) {
		uint64_t difference = now[i] - before[i];

		add_varint(&deltas, difference << 1 ^ (uint64_t)((int64_t)difference >> 63));
	}
	memcpy(before, now, count * 8);
	if (words.len >= CHUNK)
		flush(&words);
	if (deltas.len >= CHUNK)
		flush(&deltas);
}

static void measure(const char *path)
{
	struct error err = ERROR_INIT;
	struct store_reader *reader;
	const struct waffle_rec *rec;
	uint64_t count = 0;
	struct stat file;
	int result = store_reader_open(&reader, path, &err);

	words.stored = deltas.stored = 0;
	memset(last, 0, sizeof(last));
	if (!result)
		while ((result = store_reader_next(reader, &rec, &err)) > 0) {
			add(rec);
			count++;
		}
	if (result < 0 || stat(path, &file)) {
		fprintf(stderr, "plain_bench: %s: %s\n", path, err.message);
		exit(1);
	}
	store_reader_close(reader);
	flush(&words);
	flush(&deltas);
	printf("%s records %" PRIu64 " file %lld words %" PRIu64 " deltas %" PRIu64 "\n", path,
	       count, (long long)file.st_size, words.stored, deltas.stored);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: plain_bench FILE…\n");
		return 2;
	}
	for (int i = 1; i < argc; i++)
		measure(argv[i]);
	return 0;
}
