// SPDX-License-Identifier: Apache-2.0
/*
 * Rewrites a capture as if another host with a clock of its own had recorded it:
 *
 *	skew_capture IN OUT HOST OFFSET_NS DRIFT WALL_NS
 *
 * A time t becomes t + OFFSET_NS + DRIFT * (t - start). HOST becomes the name and the boot id. The
 * wall clock of that host is WALL_NS ahead.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/record_schema.h"
#include "store/store.h"

static struct store_reader *reader;
static struct store_writer *writer;
static struct error err;
static int64_t offset_ns;
static double drift;
static uint64_t start_ts;

static void check(int code)
{
	if (code >= 0)
		return;
	fprintf(stderr, "skew_capture: %s\n", err.message);
	exit(1);
}

static uint64_t skewed(uint64_t ts)
{
	int64_t late = (int64_t)llround(drift * (double)(int64_t)(ts - start_ts));

	return ts ? (uint64_t)((int64_t)ts + offset_ns + late) : 0;
}

static void copy_tables(void)
{
	for (uint32_t i = 0; i < store_reader_site_count(reader); i++)
		check(store_writer_add_site(writer, store_reader_site(reader, i), &err));
	for (uint32_t i = 0; i < store_reader_process_count(reader); i++) {
		struct store_process process = *store_reader_process(reader, i);

		process.ts = skewed(process.ts);
		check(store_writer_add_process(writer, &process, &err));
	}
	for (uint32_t i = 0; i < store_reader_rank_count(reader); i++) {
		struct store_rank rank = *store_reader_rank(reader, i);

		rank.ts = skewed(rank.ts);
		check(store_writer_add_rank(writer, &rank, &err));
	}
	for (uint32_t i = 1; store_reader_stack(reader, i); i++)
		check(store_writer_add_stack(writer, store_reader_stack(reader, i), &err));
	for (uint32_t i = 1; store_reader_object(reader, i); i++)
		check(store_writer_add_object(writer, store_reader_object(reader, i), &err));
	for (uint32_t i = 0; i < store_reader_mapping_count(reader); i++) {
		struct store_mapping mapping = *store_reader_mapping(reader, i);

		mapping.ts = skewed(mapping.ts);
		check(store_writer_add_mapping(writer, &mapping, &err));
	}
	for (uint32_t i = 0; i < store_reader_symbol_count(reader); i++)
		check(store_writer_add_symbol(writer, store_reader_symbol(reader, i), &err));
	for (uint32_t i = 0; i < store_reader_name_count(reader); i++) {
		struct store_name name = *store_reader_name(reader, i);

		name.since = skewed(name.since);
		check(store_writer_add_name(writer, &name, &err));
	}
}

static void copy_record(const struct waffle_rec *rec)
{
	const struct record_kind *kind = &record_kinds[rec->kind];
	static uint64_t buffer[1 << 16];
	size_t size = record_size(rec, sizeof(buffer));

	memcpy(buffer, rec, size);
	((struct waffle_rec *)buffer)->ts = skewed(rec->ts);
	for (unsigned i = 0; i < kind->field_count; i++) {
		uint64_t *ts = (uint64_t *)((char *)buffer + kind->fields[i].offset);

		if (kind->fields[i].form == RECORD_TIME)
			*ts = skewed(*ts);
	}
	check(store_writer_append(writer, (struct waffle_rec *)buffer, &err));
}

int main(int argc, char **argv)
{
	const struct waffle_rec *rec;
	struct store_meta meta;
	int result;

	if (argc != 7) {
		fprintf(stderr, "skew_capture IN OUT HOST OFFSET_NS DRIFT WALL_NS\n");
		return 2;
	}
	offset_ns = strtoll(argv[4], NULL, 10);
	drift = strtod(argv[5], NULL);
	check(store_reader_open(&reader, argv[1], &err));
	meta = *store_reader_meta(reader);
	start_ts = meta.start_ts;
	meta.hostname = meta.boot_id = argv[3];
	meta.start_ts = skewed(meta.start_ts);
	meta.boot_ns = (uint64_t)((int64_t)meta.boot_ns + offset_ns);
	meta.real_ns = (uint64_t)((int64_t)meta.real_ns + strtoll(argv[6], NULL, 10));
	check(store_writer_open(&writer, argv[2], &meta, &err));
	copy_tables();
	while ((result = store_reader_next(reader, &rec, &err)) > 0)
		copy_record(rec);
	check(result);
	check(store_writer_close(writer, skewed(meta.end_ts), meta.counts, &err));
	store_reader_close(reader);
	return 0;
}
