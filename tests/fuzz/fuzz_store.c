// SPDX-License-Identifier: Apache-2.0
/*
 * libFuzzer target for the reader of .waffle files. The first byte of the input selects one of
 * these ways:
 *   even  the rest is a file, whose checksums are corrected, so that damage gets past them
 *   odd   the rest is a data chunk for the decoder; without bit 1 of the byte, a table of lengths
 *         precedes it
 * tests/fuzz/make_store_corpus.c writes the seeds.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit/store_fixture.h"
#include "checksums.h"
#include "store/decode_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* All records returned must be valid, for any input. */
static void walk(struct store_reader *reader, struct store_window window)
{
	const struct waffle_rec *rec;
	struct error err = ERROR_INIT;

	if (store_reader_seek(reader, window, &err))
		return;
	while (store_reader_next(reader, &rec, &err) > 0)
		if (!record_size(rec, RECORD_BYTES_MAX))
			abort();
}

/* All fields of a mapping can be read and are within bounds. */
static void check_mappings(const struct store_reader *reader)
{
	for (uint32_t i = 0; i < store_reader_mapping_count(reader); i++) {
		const struct store_mapping *mapping = store_reader_mapping(reader, i);

		if (mapping->end < mapping->start || mapping->build_id_bytes > 20 ||
		    mapping->segment_count > STORE_SEGMENTS_MAX)
			abort();
		for (uint32_t k = 0; k < mapping->segment_count; k++)
			if (mapping->segments[k].offset + mapping->segments[k].size <
			    mapping->segments[k].offset)
				abort();
	}
}

static void try_file(const uint8_t *data, size_t size)
{
	struct error err = ERROR_INIT;
	struct store_reader *reader;
	char path[64];
	int fd = damaged_file(data, size, path);

	if (store_reader_open(&reader, path, &err)) {
		if (!err.message[0] || strchr(err.message, '\n'))
			abort();
	} else {
		check_mappings(reader);
		walk(reader, STORE_ALL);
		walk(reader, (struct store_window){5000100000, 5000200000});
		store_reader_close(reader);
	}
	close(fd);
}

static void try_decoder(const uint8_t *data, size_t size, bool with_lengths)
{
	struct decoder *decoder = decoder_new();
	struct cursor cursor = {.at = data, .end = data + size};
	const struct waffle_rec *rec;
	struct record_lengths lengths;

	if (!decoder)
		abort();
	for (unsigned i = 0; i < FIXTURE_SITES; i++)
		if (!decoder_add_site(decoder, &fixture_sites[i]))
			abort();
	if (with_lengths) {
		record_lengths_get(&lengths, &cursor);
		decoder_set_lengths(decoder, &lengths);
	}
	decoder_begin(decoder, cursor.at, (size_t)(cursor.end - cursor.at),
		      cursor.bad ? 0 : UINT32_MAX);
	while (decoder_next(decoder, &rec) > 0)
		if (!record_size(rec, RECORD_BYTES_MAX))
			abort();
	decoder_free(decoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	if (data[0] % 2)
		try_decoder(data + 1, size - 1, !(data[0] & 2));
	else
		try_file(data + 1, size - 1);
	return 0;
}
