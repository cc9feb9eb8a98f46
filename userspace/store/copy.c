// SPDX-License-Identifier: Apache-2.0
/* Writes what a reader presents, one file or a job, to a new file. */
#include <stdlib.h>

#include "store/store.h"

static int copy_hosts(const struct store_reader *reader, struct store_writer *writer,
		      struct error *err)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < store_reader_host_count(reader); i++)
		ret = store_writer_add_host(writer, store_reader_host(reader, i), err);
	for (uint32_t i = 0; !ret && i < store_reader_capture_count(reader); i++)
		ret = store_writer_add_capture(writer, store_reader_capture(reader, i), err);
	return ret;
}

/* Numbers of sites, stacks and objects stay, because all of them are written in order. */
static int copy_tables(const struct store_reader *reader, struct store_writer *writer,
		       struct error *err)
{
	const struct store_object *object;
	const struct store_stack *stack;
	int ret = 0;

	for (uint32_t i = 0; !ret && i < store_reader_site_count(reader); i++)
		ret = store_writer_add_site(writer, store_reader_site(reader, i), err);
	for (uint32_t i = 0; !ret && i < store_reader_process_count(reader); i++)
		ret = store_writer_add_process(writer, store_reader_process(reader, i), err);
	for (uint32_t i = 0; !ret && i < store_reader_rank_count(reader); i++)
		ret = store_writer_add_rank(writer, store_reader_rank(reader, i), err);
	for (uint32_t i = 0; !ret && i < store_reader_attribute_count(reader); i++)
		ret = store_writer_add_attribute(writer, store_reader_attribute(reader, i), err);
	for (uint32_t i = 0; !ret && i < store_reader_transport_count(reader); i++)
		ret = store_writer_add_transport(writer, store_reader_transport(reader, i), err);
	for (uint32_t i = 1; !ret && (stack = store_reader_stack(reader, i)); i++)
		ret = store_writer_add_stack(writer, stack, err);
	for (uint32_t i = 1; !ret && (object = store_reader_object(reader, i)); i++)
		ret = store_writer_add_object(writer, object, err);
	for (uint32_t i = 0; !ret && i < store_reader_mapping_count(reader); i++)
		ret = store_writer_add_mapping(writer, store_reader_mapping(reader, i), err);
	for (uint32_t i = 0; !ret && i < store_reader_symbol_count(reader); i++)
		ret = store_writer_add_symbol(writer, store_reader_symbol(reader, i), err);
	for (uint32_t i = 0; !ret && i < store_reader_name_count(reader); i++)
		ret = store_writer_add_name(writer, store_reader_name(reader, i), err);
	return ret;
}

/* A file that was cut off does not say how many records it has. */
static int copy_records(struct store_reader *reader, struct store_writer *writer, uint64_t *read,
			struct error *err)
{
	const struct waffle_rec *rec;
	int ret = store_reader_seek(reader, STORE_ALL, err);

	while (!ret && (ret = store_reader_next(reader, &rec, err)) > 0) {
		read[record_source(rec->kind)]++;
		ret = store_writer_append(writer, rec, err);
	}
	return ret;
}

/* A capture that was not finished ends with its last record. */
static uint64_t end_of(const struct store_reader *reader)
{
	uint64_t end = store_reader_meta(reader)->end_ts;

	for (uint32_t i = 0; i < store_reader_capture_count(reader); i++)
		if (store_reader_capture(reader, i)->last_ts > end)
			end = store_reader_capture(reader, i)->last_ts;
	return end;
}

int store_reader_write(struct store_reader *reader, const char *path, struct store_written *written,
		       struct error *err)
{
	const struct store_meta *meta = store_reader_meta(reader);
	uint64_t read[WAFFLE_SOURCE_COUNT + 1] = {0};
	struct store_counts counts[WAFFLE_SOURCE_COUNT];
	struct store_writer *writer = NULL;
	int ret = store_writer_open(&writer, path, meta, err);

	if (ret)
		return ret;
	ret = copy_hosts(reader, writer, err)
		      ?: copy_tables(reader, writer, err)
		      ?: copy_records(reader, writer, read, err);
	if (ret) {
		store_writer_discard(writer);
		return ret;
	}
	*written = (struct store_written){.left_out = store_writer_left_out(writer)};
	for (unsigned i = 0; i < WAFFLE_SOURCE_COUNT; i++) {
		counts[i] = meta->counts[i];
		if (store_reader_truncated(reader, NULL) && read[i] > counts[i].delivered) {
			counts[i].delivered = read[i];
			counts[i].produced = read[i] + counts[i].lost;
		}
		written->records += counts[i].delivered;
	}
	store_writer_finish(writer, end_of(reader), counts);
	written->bytes = store_writer_bytes(writer);
	return store_writer_close(writer, end_of(reader), counts, err);
}
