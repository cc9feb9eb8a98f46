// SPDX-License-Identifier: Apache-2.0
#include "store/writer_internal.h"
#include "util/strtab.h"

static const uint16_t table_chunks[TABLE_COUNT] = {
	[TABLE_SITES] = CHUNK_SITES,           [TABLE_PROCESSES] = CHUNK_PROCESSES,
	[TABLE_STACKS] = CHUNK_STACKS,         [TABLE_OBJECTS] = CHUNK_OBJECTS,
	[TABLE_MAPPINGS] = CHUNK_MAPPINGS,     [TABLE_SYMBOLS] = CHUNK_SYMBOLS,
	[TABLE_NAMES] = CHUNK_NAMES,           [TABLE_TIMED_NAMES] = CHUNK_TIMED_NAMES,
	[TABLE_RANKS] = CHUNK_RANKS,           [TABLE_HOSTS] = CHUNK_HOSTS,
	[TABLE_CAPTURES] = CHUNK_CAPTURES,     [TABLE_TRANSPORTS] = CHUNK_TRANSPORTS,
	[TABLE_ATTRIBUTES] = CHUNK_ATTRIBUTES,
};

static int write_strings(struct store_writer *writer)
{
	byte_vec bytes = {0};
	int ret = 0;

	while (!ret && writer->state.strings_written < strtab_count(writer->state.strings)) {
		uint32_t first = writer->state.strings_written;

		bytes.len = 0;
		while (writer->state.strings_written < strtab_count(writer->state.strings) &&
		       bytes.len < WRITER_TABLE_BYTES && !ret) {
			uint32_t i = writer->state.strings_written++;

			if (!string_put(&bytes, strtab_get(writer->state.strings, i),
					strtab_length(writer->state.strings, i)))
				ret = writer_fail(writer, ENOMEM, "out of memory");
		}
		if (!ret)
			ret = writer_chunk(
				writer,
				(struct chunk_header){.type = CHUNK_STRINGS,
						      .codec = CODEC_ZSTD,
						      .records = writer->state.strings_written -
								 first},
				bytes.data, bytes.len);
	}
	vec_free(&bytes);
	return ret;
}

static int write_waiting(struct store_writer *writer, enum writer_table table)
{
	struct writer_waiting *waiting = &writer->state.tables[table];
	int ret;

	if (!waiting->count)
		return 0;
	ret = writer_chunk(writer,
			   (struct chunk_header){.type = table_chunks[table],
						 .codec = CODEC_ZSTD,
						 .records = waiting->count},
			   waiting->bytes.data, waiting->bytes.len);
	waiting->bytes.len = 0;
	waiting->count = 0;
	return ret;
}

/* Strings are first, because the other tables refer to them. */
int writer_tables(struct store_writer *writer)
{
	int ret = write_strings(writer);

	for (enum writer_table table = 0; !ret && table < TABLE_COUNT; table++)
		ret = write_waiting(writer, table);
	return ret;
}

/* Each group has half of the memory, so that many short-lived processes can't use up the room for
 * stacks. */
static bool is_of_processes(enum writer_table table)
{
	return table == TABLE_PROCESSES || table == TABLE_MAPPINGS || table == TABLE_RANKS ||
	       table == TABLE_ATTRIBUTES || table == TABLE_TRANSPORTS;
}

/* Whether a table has room for one more entry. */
static bool has_room(const struct store_writer *writer, enum writer_table table)
{
	bool is_small =
		table == TABLE_PROCESSES || table == TABLE_RANKS || table == TABLE_ATTRIBUTES;
	uint32_t max = is_small ? STORE_PROCESSES_MAX : STORE_TABLE_MAX;

	return writer->state.counts_of[table] < max &&
	       writer->state.tables_bytes[!is_of_processes(table)] < STORE_TABLES_BYTES_MAX / 2;
}

bool store_writer_has_room(struct store_writer *writer)
{
	if (has_room(writer, TABLE_STACKS) && has_room(writer, TABLE_OBJECTS) &&
	    has_room(writer, TABLE_NAMES))
		return true;
	writer->left_out++;
	return false;
}

uint64_t store_writer_left_out(const struct store_writer *writer)
{
	return writer->left_out;
}

/* Whether an optional entry may be added. False: the caller returns *result. */
static bool may_add(struct store_writer *writer, enum writer_table table, int *result,
		    struct error *err)
{
	*result = writer_result(writer, err);
	if (*result || has_room(writer, table))
		return !*result;
	writer->left_out++;
	return false;
}

/* Completes the addition of an entry. `put`: there was memory to encode it. `count`: its addresses
 * or segments. */
static int added(struct store_writer *writer, enum writer_table table, uint32_t count, bool put,
		 struct error *err)
{
	if (!put) {
		writer_fail(writer, ENOMEM, "out of memory");
		return writer_result(writer, err);
	}
	writer->state.tables[table].count++;
	writer->state.counts_of[table]++;
	writer->state.tables_bytes[!is_of_processes(table)] +=
		table_bytes((enum chunk_type)table_chunks[table], count);
	for (; writer->state.strings_counted < strtab_count(writer->state.strings);
	     writer->state.strings_counted++)
		writer->state.tables_bytes[!is_of_processes(table)] += string_bytes(
			strtab_length(writer->state.strings, writer->state.strings_counted));
	if (writer->state.tables[table].bytes.len >= WRITER_TABLE_BYTES)
		writer_tables(writer);
	return writer_result(writer, err);
}

int store_writer_add_site(struct store_writer *writer, const struct site_info *site,
			  struct error *err)
{
	if (writer->code)
		return writer_result(writer, err);
	if (writer->state.counts_of[TABLE_SITES] == STORE_SITES_MAX ||
	    site->key_count > WAFFLE_KEYS_MAX)
		return error_set(err, E2BIG, "%s: no room for site '%s': too many %s", writer->path,
				 site->name, site->key_count > WAFFLE_KEYS_MAX ? "keys" : "sites");
	return added(
		writer, TABLE_SITES, 0,
		site_put(&writer->state.tables[TABLE_SITES].bytes, writer->state.strings, site) &&
			encoder_add_site(writer->encoder, site) &&
			(!writer->keep || keep_site(writer->keep, site)),
		err);
}

int store_writer_add_process(struct store_writer *writer, const struct store_process *process,
			     struct error *err)
{
	int result;

	if (!may_add(writer, TABLE_PROCESSES, &result, err))
		return result;
	return added(writer, TABLE_PROCESSES, 0,
		     process_put(&writer->state.tables[TABLE_PROCESSES].bytes,
				 writer->state.strings, process),
		     err);
}

int store_writer_add_host(struct store_writer *writer, const struct store_host *host,
			  struct error *err)
{
	if (writer->code)
		return writer_result(writer, err);
	if (writer->state.counts_of[TABLE_HOSTS] == STORE_HOSTS_MAX)
		return error_set(err, E2BIG, "%s: no room for host '%s': a file has at most %u",
				 writer->path, host->name, STORE_HOSTS_MAX);
	return added(
		writer, TABLE_HOSTS, 0,
		host_put(&writer->state.tables[TABLE_HOSTS].bytes, writer->state.strings, host),
		err);
}

int store_writer_add_capture(struct store_writer *writer, const struct store_capture *capture,
			     struct error *err)
{
	if (writer->code)
		return writer_result(writer, err);
	if (writer->state.counts_of[TABLE_CAPTURES] == STORE_CAPTURES_MAX)
		return error_set(err, E2BIG, "%s: no room for '%s': a file is of at most %u others",
				 writer->path, capture->file, STORE_CAPTURES_MAX);
	return added(writer, TABLE_CAPTURES, 0,
		     capture_put(&writer->state.tables[TABLE_CAPTURES].bytes, writer->state.strings,
				 capture),
		     err);
}

int store_writer_add_rank(struct store_writer *writer, const struct store_rank *rank,
			  struct error *err)
{
	int result;

	if (!may_add(writer, TABLE_RANKS, &result, err))
		return result;
	return added(
		writer, TABLE_RANKS, 0,
		rank_put(&writer->state.tables[TABLE_RANKS].bytes, writer->state.strings, rank),
		err);
}

int store_writer_add_attribute(struct store_writer *writer, const struct store_attribute *attribute,
			       struct error *err)
{
	int result;

	if (!may_add(writer, TABLE_ATTRIBUTES, &result, err))
		return result;
	return added(writer, TABLE_ATTRIBUTES, 0,
		     attribute_put(&writer->state.tables[TABLE_ATTRIBUTES].bytes,
				   writer->state.strings, attribute),
		     err);
}

int store_writer_add_transport(struct store_writer *writer, const struct store_transport *transport,
			       struct error *err)
{
	int result;

	if (!may_add(writer, TABLE_TRANSPORTS, &result, err))
		return result;
	return added(writer, TABLE_TRANSPORTS, 0,
		     transport_put(&writer->state.tables[TABLE_TRANSPORTS].bytes,
				   writer->state.strings, transport),
		     err);
}

static enum writer_table table_of(enum store_numbered what)
{
	return what == STORE_STACKS ? TABLE_STACKS : TABLE_OBJECTS;
}

uint32_t store_writer_next(const struct store_writer *writer, enum store_numbered what)
{
	return writer->keep ? keep_rows_next(&writer->keep->rows[what])
			    : writer->state.counts_of[table_of(what)] + 1;
}

/* Completes the addition of a row that is kept. `put`: there was memory for it. */
static int row_added(struct store_writer *writer, enum store_numbered what, size_t more, bool put,
		     struct error *err)
{
	enum writer_table table = table_of(what);

	if (!put) {
		writer_fail(writer, ENOMEM, "out of memory");
		return writer_result(writer, err);
	}
	writer->state.counts_of[table] = (uint32_t)writer->keep->rows[what].list.len;
	writer->state.tables_bytes[!is_of_processes(table)] += more;
	return 0;
}

bool store_writer_should_sweep(const struct store_writer *writer, enum store_numbered what)
{
	bool full = writer->state.tables_bytes[!is_of_processes(table_of(what))] >=
		    STORE_TABLES_BYTES_MAX / 4;

	return writer->keep &&
	       keep_rows_are_many(&writer->keep->rows[what], keep_first(writer->keep), full);
}

void writer_rows_counted(struct store_writer *writer, enum store_numbered what)
{
	const struct keep_rows *rows = &writer->keep->rows[what];

	writer->state.counts_of[table_of(what)] = (uint32_t)rows->list.len;
	writer->state.tables_bytes[!is_of_processes(table_of(what))] += rows->cost;
}

size_t writer_table_bytes(const struct store_writer *writer)
{
	return writer->state.tables_bytes[0] + writer->state.tables_bytes[1] -
	       (writer->keep ? writer->keep->rows[STORE_STACKS].cost +
				       writer->keep->rows[STORE_OBJECTS].cost
			     : 0);
}

void store_writer_sweep(struct store_writer *writer, enum store_numbered what,
			bool (*may_drop)(uint32_t number, void *arg), void *arg)
{
	if (writer->keep)
		writer->state.tables_bytes[!is_of_processes(table_of(what))] -= keep_rows_drop(
			&writer->keep->rows[what], what, keep_first(writer->keep), may_drop, arg);
}

int store_writer_add_stack(struct store_writer *writer, const struct store_stack *stack,
			   struct error *err)
{
	int result;

	if (!may_add(writer, TABLE_STACKS, &result, err))
		return result;
	if (writer->keep) {
		size_t more = 0;
		bool put = keep_add_stack(writer->keep, stack, &more);

		return row_added(writer, STORE_STACKS, more, put, err);
	}
	return added(writer, TABLE_STACKS, stack->count,
		     stack_put(&writer->state.tables[TABLE_STACKS].bytes, stack), err);
}

int store_writer_add_object(struct store_writer *writer, const struct store_object *object,
			    struct error *err)
{
	int result;

	if (!may_add(writer, TABLE_OBJECTS, &result, err))
		return result;
	if (writer->keep) {
		size_t more = 0;
		bool put = keep_add_object(writer->keep, object, &more);

		return row_added(writer, STORE_OBJECTS, more, put, err);
	}
	return added(writer, TABLE_OBJECTS, 0,
		     object_put(&writer->state.tables[TABLE_OBJECTS].bytes, writer->state.strings,
				object),
		     err);
}

int store_writer_add_mapping(struct store_writer *writer, const struct store_mapping *mapping,
			     struct error *err)
{
	int result;

	if (!may_add(writer, TABLE_MAPPINGS, &result, err))
		return result;
	return added(writer, TABLE_MAPPINGS, mapping->segment_count,
		     mapping_put(&writer->state.tables[TABLE_MAPPINGS].bytes, writer->state.strings,
				 mapping),
		     err);
}

int store_writer_add_symbol(struct store_writer *writer, const struct store_symbol *symbol,
			    struct error *err)
{
	int result;

	if (!may_add(writer, TABLE_SYMBOLS, &result, err))
		return result;
	return added(writer, TABLE_SYMBOLS, 0,
		     symbol_put(&writer->state.tables[TABLE_SYMBOLS].bytes, writer->state.strings,
				symbol),
		     err);
}

int store_writer_add_name(struct store_writer *writer, const struct store_name *name,
			  struct error *err)
{
	enum writer_table table = name->since ? TABLE_TIMED_NAMES : TABLE_NAMES;
	int result;

	if (!may_add(writer, table, &result, err))
		return result;
	return added(writer, table, 0,
		     name_put(&writer->state.tables[table].bytes, writer->state.strings, name),
		     err);
}
