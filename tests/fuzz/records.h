/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inputs that are lists of records: each has a length byte (in words) and its bytes. They pass
 * through a .waffle file.
 */
#ifndef WAFFLE_FUZZ_RECORDS_H
#define WAFFLE_FUZZ_RECORDS_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../unit/store_fixture.h"
#include "require.h"

/* A call of each role, as a span or an event, with all keys that any of them has. */
static inline struct site_info role_site(unsigned role, bool span)
{
	struct site_info site = {
		.name = role % 3 ? "call" : "call {stream} {grid}",
		.category = "cuda",
		.file = "",
		.func = "",
		.object = "/lib/x.so",
		.kind = span ? WAFFLE_SITE_SPAN : WAFFLE_SITE_EVENT,
		.role = (uint16_t)role,
		.call = true,
		.key_count = 10,
		.keys = {{WAFFLE_KEY_PTR, "stream"},
			 {WAFFLE_KEY_PTR, "event"},
			 {WAFFLE_KEY_CODE, "kernel"},
			 {WAFFLE_KEY_PTR, "comm"},
			 {WAFFLE_KEY_I64, "rank"},
			 {WAFFLE_KEY_I64, "nranks"},
			 {WAFFLE_KEY_U64, "seq"},
			 {WAFFLE_KEY_U64, "count"},
			 {WAFFLE_KEY_DIM3, "grid"},
			 {WAFFLE_KEY_STR, "text"}},
	};

	if (role == SITE_ROLE_COPY && span)
		site.keys[0].name = "bytes";
	return site;
}
/* fuzz_comm.c has the roles of MPI. */
#define ROLE_SITES (2 * SITE_ROLE_MPI_INIT)

/* Small numbers here as well, so that calls refer to the same objects. */
static inline void tame_call(struct record_buffer *rec, unsigned sites)
{
	struct waffle_rec_hit *hit = &rec->hit;
	uint64_t *words = (uint64_t *)(void *)(hit + 1);

	if (rec->rec.kind == WAFFLE_REC_TRACK)
		rec->words[2] &= 0x300000003; /* process and number */
	if (rec->rec.kind == WAFFLE_REC_ON_TRACK) {
		rec->words[2] = (rec->words[2] & 0xff) + 1;
		rec->words[3] &= 0x300000003;
	}
	if (rec->rec.kind != WAFFLE_REC_HIT && rec->rec.kind != WAFFLE_REC_RETURN)
		return;
	if (rec->rec.kind == WAFFLE_REC_RETURN) {
		struct waffle_rec_return *end = (struct waffle_rec_return *)(void *)hit;

		end->site %= sites;
		end->span_id &= 0xff;
		end->tgid &= 3;
		return;
	}
	hit->site %= sites;
	if (hit->site < FIXTURE_SITES || hit->frame_bytes > 160)
		return;
	hit->tgid &= 3;
	words[0] = (words[0] & 0xff) + 1;
	words[1] = words[2] = words[3] = 0;
	for (unsigned i = 4; i < hit->frame_bytes / 8; i++)
		words[i] &= i == 10 ? 0xff : 3;
}

static inline void write_records(struct store_writer *writer, const uint8_t *data, size_t size,
				 unsigned sites)
{
	struct record_buffer rec;
	struct error err = ERROR_INIT;
	size_t at = 0;

	while (at < size) {
		size_t bytes = (size_t)data[at++] * 8;

		if (bytes > size - at)
			bytes = size - at;
		memset(&rec, 0, sizeof(rec));
		memcpy(&rec, data + at, bytes);
		at += bytes;
		/* Small numbers, so that records are related to each other. */
		rec.rec.kind %= WAFFLE_REC_KIND_COUNT + 1;
		rec.rec.tid %= 8;
		rec.rec.ts &= RECORD_TS_MAX;
		tame_call(&rec, sites);
		if (rec.rec.kind < WAFFLE_REC_KIND_COUNT && record_size(&rec, sizeof(rec)))
			store_writer_append(writer, &rec.rec, &err);
	}
}

static inline void write_alone(struct store_writer *writer, const uint8_t *data, size_t size)
{
	write_records(writer, data, size, FIXTURE_SITES);
}

static inline void write_with_calls(struct store_writer *writer, const uint8_t *data, size_t size)
{
	struct error err = ERROR_INIT;

	for (unsigned i = 0; i < ROLE_SITES; i++) {
		struct site_info site = role_site(i / 2, i % 2);

		store_writer_add_site(writer, &site, &err);
	}
	write_records(writer, data, size, FIXTURE_SITES + ROLE_SITES);
}

/* Returns the reader of a .waffle file that has the fixture's sites and what `write` writes of the
 * input. NULL: there is none. */
static inline struct store_reader *input_reader(const uint8_t *data, size_t size,
						void (*write)(struct store_writer *writer,
							      const uint8_t *data, size_t size))
{
	struct store_counts counts[WAFFLE_SOURCE_COUNT] = {0};
	struct store_writer *writer;
	struct store_reader *reader;
	struct error err = ERROR_INIT;
	char path[64];

	snprintf(path, sizeof(path), "/dev/shm/waffle-fuzz-%d", (int)getpid());
	if (store_writer_open(&writer, path, &fixture_meta, &err))
		return NULL;
	for (unsigned i = 0; i < FIXTURE_SITES; i++)
		store_writer_add_site(writer, &fixture_sites[i], &err);
	write(writer, data, size);
	store_writer_close(writer, fixture_meta.start_ts + 1000000, counts, &err);
	err = (struct error)ERROR_INIT;
	if (store_reader_open(&reader, path, &err))
		reader = NULL;
	unlink(path);
	return reader;
}

/* Returns the reader of an input's records, as input_reader(). `calls`: adds sites for all roles of
 * calls, which take most of the time of a short input. */
static inline struct store_reader *records_reader(const uint8_t *data, size_t size, bool calls)
{
	return input_reader(data, size, calls ? write_with_calls : write_alone);
}

#endif
