// SPDX-License-Identifier: Apache-2.0
#include "store/writer_internal.h"

#include <stdlib.h>
#include <string.h>

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
	if (!writer->code && !writer_data(writer) && !keep_segment(writer->keep, from_ts))
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

void store_writer_forget(struct store_writer *writer, uint32_t pid, uint64_t now)
{
	struct keep *keep = writer->keep;
	struct kept_end end = {.ts = now, .pid = pid};

	if (!keep)
		return;
	end.segment = keep->dropped + keep->segments.len;
	/* Without memory its rows are kept. */
	(void)vec_push(&keep->ended, end);
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
	return writer_records(dump->to, CHUNK_TASKS, dump->from->tasks)
		       ?: writer_records(dump->to, CHUNK_DATA, dump->from->encoder);
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
	return writer_packed(to, chunk->entry);
}

/* Adds the texts of objects to the strings, which precede all other tables in a file. */
static int dump_intern(struct dump *dump)
{
	const struct keep_rows *rows = &dump->from->keep->rows[STORE_OBJECTS];
	byte_vec unused = {0};
	bool put = true;

	for (uint32_t number = 1; put && number <= rows->list.len; number++) {
		unused.len = 0;
		put = keep_rows_put(rows, STORE_OBJECTS, number, &unused,
				    dump->from->state.strings);
	}
	vec_free(&unused);
	return put ? 0 : writer_fail(dump->from, ENOMEM, "out of memory");
}

/* Writes the stacks or objects. */
static int dump_rows(struct dump *dump, enum store_numbered what, enum chunk_type type)
{
	const struct keep_rows *rows = &dump->from->keep->rows[what];
	struct chunk_header header = {.type = (uint16_t)type, .codec = CODEC_ZSTD};
	byte_vec bytes = {0};
	int ret = 0;

	for (uint32_t number = 1; !ret && number <= rows->list.len; number++) {
		if (!keep_rows_put(rows, what, number, &bytes, dump->from->state.strings))
			ret = writer_fail(dump->to, ENOMEM, "out of memory");
		header.records++;
		if (ret || (bytes.len < WRITER_TABLE_BYTES && number < rows->list.len))
			continue;
		ret = writer_chunk(dump->to, header, bytes.data, bytes.len);
		bytes.len = 0;
		header.records = 0;
	}
	vec_free(&bytes);
	return ret;
}

static int dump_all(struct dump *dump)
{
	const struct keep *keep = dump->from->keep;
	int ret = 0;

	for (size_t i = 0; !ret && i < keep->tables.len; i++)
		ret = dump_chunk(dump, &keep->tables.data[i]);
	ret = ret ?: dump_rows(dump, STORE_STACKS, CHUNK_STACKS);
	ret = ret ?: dump_rows(dump, STORE_OBJECTS, CHUNK_OBJECTS);
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
	if (from->code || dump_intern(&dump) || writer_tables(from) || writer_data(from))
		return writer_result(from, err);
	if (dump_all(&dump))
		return writer_result(to, err);
	for (unsigned i = 0; i < WAFFLE_SOURCE_COUNT; i++)
		counts[i].produced = counts[i].delivered + counts[i].lost;
	return 0;
}
