// SPDX-License-Identifier: Apache-2.0
/*
 * libFuzzer target for communicators, requests, collectives and messages of MPI. An input is a list
 * of calls. Each has a byte for its site, one for its rank and how it ends, and half a byte for
 * each value, so that calls refer to the same objects.
 */
#include "check_comm.h"
#include "records.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define KEYS 16
#define CALL_BYTES (2 + KEYS / 2)
#define CALLS_MAX 512
/* Each role with two lists of keys, and with both kinds of handles. */
#define ROLES (SITE_ROLE_MPI_TO_ROOT_PARTS + 1 - SITE_ROLE_MPI_INIT)
#define SITES (4 * ROLES)

static struct site_info mpi_site(unsigned number)
{
	static const char *const keys[2][KEYS] = {
		{"comm", "rank", "index", "count", "dest", "tag", "source", "request", "handle",
		 "status", "requests", "handle0", "new", "matched", "done", "result"},
		{"comm", "color", "key", "root", "receive_tag", "statuses", "requests", "count",
		 "handle0", "message_handle", "new", "new_rank", "size", "finished", "index0",
		 "matched0"},
	};
	bool pointers = number & 1;
	struct site_info site = {
		.name = number / 4 % 2 ? "MPI_A" : "MPI_B",
		.category = "mpi",
		.file = "",
		.func = "",
		.object = "/lib/libmpi.so",
		.kind = WAFFLE_SITE_SPAN,
		.role = (uint16_t)(SITE_ROLE_MPI_INIT + number / 4),
		.call = true,
		.key_count = KEYS,
	};

	for (unsigned i = 0; i < KEYS; i++)
		site.keys[i] = (struct site_key){pointers ? WAFFLE_KEY_PTR : WAFFLE_KEY_I64,
						 keys[number >> 1 & 1][i]};
	return site;
}

/* A small number, an address, a wildcard, or a handle of MPICH. */
static uint64_t value_of(unsigned half)
{
	static const uint64_t others[] = {0x44000000, 0x44000001,   0x04000000,   4096,
					  4104,       (uint64_t)-2, (uint64_t)-1, (uint64_t)-32766};

	return half < 8 ? half : others[half - 8];
}

static void write_call(struct store_writer *writer, const uint8_t *call, uint32_t site, uint64_t id)
{
	unsigned rank = call[1] & 3, begin = 12;
	uint64_t ts = fixture_meta.start_ts + 10 * id;
	struct {
		struct waffle_rec_hit hit;
		uint64_t frame[4 + KEYS];
	} hit = {.hit = {.rec = {ts, 100 + rank, WAFFLE_REC_HIT, 0},
			 .tgid = 100 + rank,
			 .site = site,
			 .frame_bytes = (uint32_t)(32 + 8 * begin)},
		 .frame = {id}};
	struct {
		struct waffle_rec_return end;
		uint64_t words[KEYS];
	} end = {.end = {.rec = {ts + 1 + (call[1] >> 4), 100 + rank, WAFFLE_REC_RETURN, 0},
			 .span_id = id,
			 .tgid = 100 + rank,
			 .site = site,
			 .frame_bytes = (uint32_t)(8 * (KEYS - begin))}};
	struct error err = ERROR_INIT;

	for (unsigned i = 0; i < KEYS; i++) {
		uint64_t value = value_of(call[2 + i / 2] >> (i % 2 ? 4 : 0) & 15);

		if (i < begin)
			hit.frame[4 + i] = value;
		else
			end.words[i - begin] = value;
	}
	store_writer_append(writer, &hit.hit.rec, &err);
	if (call[1] & 4)
		store_writer_append(writer, &end.end.rec, &err);
}

/* Adds the sites that an input has, which would otherwise take most of the time, and its calls. */
static void write_calls(struct store_writer *writer, const uint8_t *data, size_t size)
{
	uint32_t numbers[SITES] = {0}, sites = FIXTURE_SITES;
	size_t count = size / CALL_BYTES < CALLS_MAX ? size / CALL_BYTES : CALLS_MAX;
	struct error err = ERROR_INIT;

	for (size_t i = 0; i < count; i++) {
		unsigned number = data[i * CALL_BYTES] % SITES;
		struct site_info site = mpi_site(number);

		if (numbers[number])
			continue;
		numbers[number] = sites++;
		store_writer_add_site(writer, &site, &err);
	}
	for (size_t i = 0; i < count; i++)
		write_call(writer, data + i * CALL_BYTES, numbers[data[i * CALL_BYTES] % SITES],
			   i + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct store_reader *reader = input_reader(data, size, write_calls);
	struct error err = ERROR_INIT;
	struct model *model;

	if (!reader)
		return 0;
	if (!model_load(&model, reader, STORE_ALL, NULL, &err)) {
		check_comm(model, NULL);
		model_free(model);
	}
	store_reader_close(reader);
	return 0;
}
