// SPDX-License-Identifier: Apache-2.0
/*
 * Drops rows of the tables of a writer without a file: those of processes that ended before all
 * that is kept, and those that later rows replaced before. The tables are packed and compressed, so
 * this decodes them and makes new ones. It takes about a tenth of a second for 16 MiB, and happens
 * when they have become twice as large.
 */
#include "store/writer_internal.h"

#include <stdlib.h>
#include <string.h>

/* Bytes in a reader. Beyond the second, it is tried with each segment that is dropped. */
#define COMPACT_MIN (16u << 20)
#define COMPACT_MAX (STORE_TABLES_BYTES_MAX / 3)

struct compaction {
	const struct keep *keep;
	struct dictionary old;
	struct store_writer *fresh;
	struct map ended;  /* pid → index in keep->ended */
	struct map latest; /* of what may be replaced: index of the latest row */
	struct map named;  /* STORE_NAMED addresses on stacks: frames of Python and Java */
	uint64_t from_ts;  /* of the oldest segment */
	struct error *err;
};

static int chunk_decode(struct compaction *work, const struct kept_chunk *chunk)
{
	struct chunk_header header;
	const unsigned char *stored = chunk->packed + CHUNK_HEADER_BYTES;
	unsigned char *raw;
	size_t bytes;
	int result;

	if (!chunk_header_unpack(&header, chunk->packed))
		return -EBADMSG;
	raw = malloc(header.raw_bytes + 1);
	if (!raw)
		return -ENOMEM;
	if (header.codec == CODEC_NONE)
		memcpy(raw, stored, bytes = header.raw_bytes);
	else
		bytes = ZSTD_decompress(raw, header.raw_bytes, stored, header.stored_bytes);
	result = ZSTD_isError(bytes) || bytes != header.raw_bytes
			 ? -EBADMSG
			 : dictionary_get(&work->old, header.type,
					  &(struct cursor){.at = raw, .end = raw + bytes},
					  header.records);
	free(raw);
	return result;
}

/* ---- what is not needed any more ---- */

static bool is_gone(const struct compaction *work, uint32_t pid, uint64_t ts)
{
	uint32_t index = pid ? map_get(&work->ended, pid) : MAP_NONE;

	return index != MAP_NONE && ts <= work->keep->ended.data[index].ts;
}

static uint64_t mapping_key(const struct store_mapping *mapping)
{
	return (uint64_t)mapping->pid << 42 ^ mapping->start >> 12;
}

static uint64_t name_key(const struct store_name *name)
{
	return name->pid * 0x9e3779b97f4a7c15ull ^ name->value;
}

/* Whether another mapping was there when the oldest segment began. */
static bool mapping_is_replaced(struct compaction *work, uint32_t index)
{
	const struct store_mapping *row = &work->old.mappings.data[index], *later;
	uint32_t known = map_get(&work->latest, mapping_key(row));

	if (known == MAP_NONE) {
		map_set(&work->latest, mapping_key(row), index);
		return false;
	}
	later = &work->old.mappings.data[known];
	if (later->pid == row->pid && later->start == row->start && later->end >= row->end &&
	    later->ts >= row->ts && later->ts <= work->from_ts)
		return true;
	map_set(&work->latest, mapping_key(row), index);
	return false;
}

static bool name_is_replaced(struct compaction *work, uint32_t index)
{
	const struct store_name *row = &work->old.names.data[index], *later;
	uint32_t known = map_get(&work->latest, name_key(row));

	if (known == MAP_NONE) {
		map_set(&work->latest, name_key(row), index);
		return false;
	}
	later = &work->old.names.data[known];
	if (later->pid == row->pid && later->value == row->value && later->since >= row->since &&
	    later->since <= work->from_ts)
		return true;
	map_set(&work->latest, name_key(row), index);
	return false;
}

/* A name of Python or Java is of a process that has ended, or of one with the same pid, which its
 * stacks tell. */
static bool name_is_needed(const struct compaction *work, uint32_t index)
{
	const struct store_name *row = &work->old.names.data[index];

	return row->value & STORE_NAMED ? map_get(&work->named, row->value) != MAP_NONE
					: !is_gone(work, row->pid, row->since);
}

/* ---- the new tables ---- */

/* The rows of a list of the dictionary that are needed. */
#define ROWS_ADD(list, add, is_dropped)                                                            \
	for (size_t i = 0; !result && i < old->list.len; i++)                                      \
		if (!(is_dropped))                                                                 \
			result = add(work->fresh, &old->list.data[i], work->err);

static int process_rows_add(struct compaction *work)
{
	const struct dictionary *old = &work->old;
	int result = 0;

	ROWS_ADD(processes, store_writer_add_process,
		 is_gone(work, old->processes.data[i].pid, old->processes.data[i].ts));
	ROWS_ADD(ranks, store_writer_add_rank,
		 is_gone(work, old->ranks.data[i].pid, old->ranks.data[i].ts));
	ROWS_ADD(attributes, store_writer_add_attribute,
		 is_gone(work, old->attributes.data[i].pid, old->attributes.data[i].ts));
	ROWS_ADD(transports, store_writer_add_transport,
		 is_gone(work, old->transports.data[i].pid, old->transports.data[i].ts));
	return result;
}

static int rows_add(struct compaction *work)
{
	const struct dictionary *old = &work->old;
	VEC(bool) dropped = {0};
	size_t most = old->mappings.len > old->names.len ? old->mappings.len : old->names.len;
	int result = vec_reserve(&dropped, most + 1) ? 0 : -ENOMEM;

	ROWS_ADD(sites, store_writer_add_site, false);
	ROWS_ADD(symbols, store_writer_add_symbol, false);
	result = result ?: process_rows_add(work);
	for (size_t i = old->mappings.len; !result && i > 0; i--)
		dropped.data[i - 1] = mapping_is_replaced(work, (uint32_t)i - 1);
	ROWS_ADD(mappings, store_writer_add_mapping,
		 dropped.data[i] ||
			 is_gone(work, old->mappings.data[i].pid, old->mappings.data[i].ts));
	map_free(&work->latest);
	for (size_t i = old->names.len; !result && i > 0; i--)
		dropped.data[i - 1] = name_is_replaced(work, (uint32_t)i - 1);
	ROWS_ADD(names, store_writer_add_name,
		 dropped.data[i] || !name_is_needed(work, (uint32_t)i));
	vec_free(&dropped);
	return result;
}
#undef ROWS_ADD

/* Exchanges the tables of two writers, but for stacks and objects. */
static void tables_swap(struct store_writer *writer, struct store_writer *fresh)
{
	struct table_state state = writer->state;
	struct keep *keep = writer->keep, kept = *keep;

	writer->state = fresh->state;
	fresh->state = state;
	memcpy(&keep->tables, &fresh->keep->tables, sizeof(keep->tables));
	memcpy(&fresh->keep->tables, &kept.tables, sizeof(kept.tables));
	keep->table_bytes = fresh->keep->table_bytes;
	for (enum store_numbered what = STORE_STACKS; what <= STORE_OBJECTS; what++)
		writer_rows_counted(writer, what);
}

/* Forgets the ends of processes whose rows are dropped. */
static void ended_forget(struct keep *keep)
{
	size_t left = 0;

	for (size_t i = 0; i < keep->ended.len; i++)
		if (keep->ended.data[i].segment >= keep_first(keep))
			keep->ended.data[left++] = keep->ended.data[i];
	keep->ended.len = left;
}

static int compact(struct store_writer *writer, struct error *err)
{
	struct keep *keep = writer->keep;
	struct compaction work = {.keep = keep, .err = err};
	int result = store_writer_open_memory(&work.fresh, err);

	if (result)
		return result;
	work.from_ts = keep->segments.len ? keep->segments.data[0].from_ts : 0;
	result = dictionary_init(&work.old) ? writer_tables(writer) : -ENOMEM;
	work.old.bytes_max = 2 * (size_t)STORE_TABLES_BYTES_MAX;
	for (size_t i = 0; !result && i < keep->ended.len; i++)
		if (keep->ended.data[i].segment < keep_first(keep) &&
		    !map_set(&work.ended, keep->ended.data[i].pid, (uint32_t)i))
			result = -ENOMEM;
	for (size_t i = 0; !result && i < keep->tables.len; i++)
		result = chunk_decode(&work, &keep->tables.data[i]);
	if (!result && !keep_rows_named(&keep->rows[STORE_STACKS], &work.named))
		result = -ENOMEM;
	result = result ?: rows_add(&work);
	if (!result) {
		keep->compactions++;
		tables_swap(writer, work.fresh);
		ended_forget(keep);
	}
	store_writer_discard(work.fresh);
	dictionary_free(&work.old);
	map_free(&work.ended);
	map_free(&work.latest);
	map_free(&work.named);
	return result;
}

uint64_t store_writer_names_dropped(const struct store_writer *writer)
{
	return writer->keep ? writer->keep->compactions : 0;
}

void store_writer_compact(struct store_writer *writer)
{
	struct keep *keep = writer->keep;
	struct error ignored = ERROR_INIT;
	size_t bytes = writer_table_bytes(writer);

	if (!keep || writer->code || bytes < COMPACT_MIN || bytes < keep->compact_at ||
	    keep_first(keep) == keep->compacted_first)
		return;
	keep->compacted_first = keep_first(keep);
	/* Without memory the tables stay as they are. */
	compact(writer, &ignored);
	bytes = 2 * writer_table_bytes(writer);
	keep->compact_at = bytes < COMPACT_MAX ? bytes : COMPACT_MAX;
}
