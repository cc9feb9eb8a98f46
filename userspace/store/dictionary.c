// SPDX-License-Identifier: Apache-2.0
#include "store/dictionary_internal.h"

#include <stdlib.h>
#include <string.h>

static bool varint_put(byte_vec *to, uint64_t value)
{
	if (!vec_reserve(to, VARINT_BYTES_MAX))
		return false;
	to->len = (size_t)(put_varint(to->data + to->len, value) - to->data);
	return true;
}

bool string_put(byte_vec *to, const char *text, size_t len)
{
	if (len > STORE_STRING_MAX)
		len = STORE_STRING_MAX;
	if (!varint_put(to, len) || !vec_reserve(to, len))
		return false;
	if (len)
		memcpy(to->data + to->len, text, len);
	to->len += len;
	return true;
}

static bool text_put(byte_vec *to, const char *text)
{
	return string_put(to, text ? text : "", text ? strlen(text) : 0);
}

/* Writes the number of a string. */
static bool reference_put(byte_vec *to, struct strtab *strings, const char *text)
{
	uint32_t index = text ? strtab_add(strings, text, strlen(text)) : 0;

	return index != STRTAB_NONE && varint_put(to, index);
}

static bool lengths_put(byte_vec *to)
{
	if (!vec_reserve(to, RECORD_LENGTHS_BYTES_MAX))
		return false;
	to->len = (size_t)(record_lengths_put(to->data + to->len) - to->data);
	return true;
}

bool meta_put(byte_vec *to, const struct store_meta *meta)
{
	return varint_put(to, meta->start_ts) && varint_put(to, meta->boot_ns) &&
	       varint_put(to, meta->real_ns) && varint_put(to, meta->cpu_count) &&
	       varint_put(to, meta->sched) && text_put(to, meta->hostname) &&
	       text_put(to, meta->kernel) && text_put(to, meta->machine) &&
	       text_put(to, meta->version) && text_put(to, meta->command) &&
	       text_put(to, meta->filter) && text_put(to, meta->sources) && lengths_put(to) &&
	       text_put(to, meta->boot_id) &&
	       (!meta->trigger || !*meta->trigger ||
		(text_put(to, meta->trigger) && varint_put(to, meta->trigger_ts)));
}

/* First number of a site: its kind in the low byte, flags and role of a call above. */
#define SITE_CALL 0x100u
#define SITE_ROLE_SHIFT 9
#define SITE_ROLE_MAX 0x7fu
#define SITE_SIMULATED 0x10000u
#define SITE_KEYED 0x20000u
#define SITE_LAPS 0x40000u

static uint64_t site_word(const struct site_info *site)
{
	return (site->kind & 0xffu) | (site->call ? SITE_CALL : 0u) |
	       (site->simulated ? SITE_SIMULATED : 0u) | (site->keyed ? SITE_KEYED : 0u) |
	       (site->laps ? SITE_LAPS : 0u) | (uint64_t)site->role << SITE_ROLE_SHIFT;
}

/* A role that a later version added is read as none. */
static void site_word_get(struct cursor *cursor, struct site_info *site)
{
	uint32_t word = (uint32_t)get_varint_max(cursor, UINT32_MAX);

	site->kind = word & 0xffu;
	site->call = word & SITE_CALL;
	site->simulated = word & SITE_SIMULATED;
	site->keyed = word & SITE_KEYED;
	site->laps = word & SITE_LAPS;
	site->role = SITE_ROLE_NONE;
	word = word >> SITE_ROLE_SHIFT & SITE_ROLE_MAX;
	if (word < SITE_ROLE_COUNT)
		site->role = (uint16_t)word;
}

bool site_put(byte_vec *to, struct strtab *strings, const struct site_info *site)
{
	bool done = varint_put(to, site_word(site)) && varint_put(to, site->line) &&
		    reference_put(to, strings, site->name) &&
		    reference_put(to, strings, site->category) &&
		    reference_put(to, strings, site->file) &&
		    reference_put(to, strings, site->func) &&
		    reference_put(to, strings, site->object) && varint_put(to, site->key_count);

	for (unsigned i = 0; done && i < site->key_count; i++)
		done = varint_put(to, (unsigned char)site->keys[i].type) &&
		       reference_put(to, strings, site->keys[i].name);
	return done;
}

bool process_put(byte_vec *to, struct strtab *strings, const struct store_process *process)
{
	return varint_put(to, process->pid) && varint_put(to, process->ppid) &&
	       varint_put(to, process->ts) && reference_put(to, strings, process->cmdline);
}

/* Return addresses are close to each other, so each is stored as its difference to the one before.
 * A truncated stack ends with an address of 0. */
bool stack_put(byte_vec *to, const struct store_stack *stack)
{
	bool cut = stack->count && (stack->cut || stack->count > STORE_STACK_MAX);
	uint32_t room = STORE_STACK_MAX - cut, count = stack->count < room ? stack->count : room;
	bool done = varint_put(to, stack->pid) && varint_put(to, count + cut);
	uint64_t previous = 0;

	for (uint32_t i = 0; done && i < count; i++) {
		done = varint_put(to, zigzag_encode(stack->addresses[i] - previous));
		previous = stack->addresses[i];
	}
	return done && (!cut || varint_put(to, zigzag_encode(0 - previous)));
}

bool object_put(byte_vec *to, struct strtab *strings, const struct store_object *object)
{
	return varint_put(to, object->ino) && varint_put(to, object->dev) &&
	       varint_put(to, object->pid) && reference_put(to, strings, object->name) &&
	       reference_put(to, strings, object->detail);
}

static bool segment_can_be(const struct store_segment *segment)
{
	return segment->offset + segment->size >= segment->offset;
}

/* Skips impossible segments. Any program can map a file that contains them, and a reader would take
 * them for damage of the capture. */
static bool segments_put(byte_vec *to, const struct store_mapping *mapping)
{
	const struct store_segment *list[STORE_SEGMENTS_MAX];
	uint32_t count = 0;
	bool done;

	for (uint32_t i = 0; i < mapping->segment_count && i < STORE_SEGMENTS_MAX; i++)
		if (segment_can_be(&mapping->segments[i]))
			list[count++] = &mapping->segments[i];
	done = varint_put(to, count);
	for (uint32_t i = 0; done && i < count; i++)
		done = varint_put(to, list[i]->offset) && varint_put(to, list[i]->address) &&
		       varint_put(to, list[i]->size);
	return done;
}

bool mapping_put(byte_vec *to, struct strtab *strings, const struct store_mapping *mapping)
{
	uint32_t bytes =
		mapping->build_id_bytes <= sizeof(mapping->build_id) ? mapping->build_id_bytes : 0;
	uint64_t size = mapping->end > mapping->start ? mapping->end - mapping->start : 0;

	if (!varint_put(to, mapping->pid) || !varint_put(to, mapping->ts) ||
	    !varint_put(to, mapping->start) || !varint_put(to, size) ||
	    !varint_put(to, mapping->offset) || !varint_put(to, mapping->ino) ||
	    !varint_put(to, mapping->dev) || !reference_put(to, strings, mapping->path))
		return false;
	return string_put(to, (const char *)mapping->build_id, bytes) && segments_put(to, mapping);
}

bool symbol_put(byte_vec *to, struct strtab *strings, const struct store_symbol *symbol)
{
	return varint_put(to, symbol->address) && varint_put(to, symbol->offset) &&
	       reference_put(to, strings, symbol->name);
}

bool name_put(byte_vec *to, struct strtab *strings, const struct store_name *name)
{
	return varint_put(to, name->pid) && varint_put(to, name->value) &&
	       reference_put(to, strings, name->name) &&
	       (!name->since || varint_put(to, name->since));
}

bool rank_put(byte_vec *to, struct strtab *strings, const struct store_rank *rank)
{
	return varint_put(to, rank->pid) && varint_put(to, rank->ts) &&
	       varint_put(to, (uint32_t)(rank->rank + 1)) && varint_put(to, rank->world_size) &&
	       reference_put(to, strings, rank->job);
}

bool attribute_put(byte_vec *to, struct strtab *strings, const struct store_attribute *attribute)
{
	return varint_put(to, attribute->pid) && varint_put(to, attribute->ts) &&
	       reference_put(to, strings, attribute->key) &&
	       reference_put(to, strings, attribute->value);
}

bool transport_put(byte_vec *to, struct strtab *strings, const struct store_transport *transport)
{
	return varint_put(to, transport->pid) && varint_put(to, transport->ts) &&
	       varint_put(to, transport->ring) && varint_put(to, transport->records) &&
	       reference_put(to, strings, transport->why);
}

static bool errors_put(byte_vec *to, const struct store_clock *clock)
{
	bool done = varint_put(to, clock->error_count);

	for (uint32_t i = 0; done && i < clock->error_count; i++)
		done = varint_put(to, clock->errors[i].ts) && varint_put(to, clock->errors[i].ns);
	return done;
}

static bool clock_put(byte_vec *to, const struct store_clock *clock)
{
	uint64_t drift;

	memcpy(&drift, &clock->drift, sizeof(drift));
	return varint_put(to, clock->kind) &&
	       varint_put(to, zigzag_encode((uint64_t)clock->offset_ns)) && varint_put(to, drift) &&
	       varint_put(to, clock->at_ts) && varint_put(to, clock->error_ns) &&
	       varint_put(to, clock->collectives) && errors_put(to, clock);
}

static bool host_members_put(byte_vec *to, struct strtab *strings, const struct store_host *host)
{
	return reference_put(to, strings, host->name) &&
	       reference_put(to, strings, host->boot_id) &&
	       reference_put(to, strings, host->kernel) &&
	       reference_put(to, strings, host->machine) && varint_put(to, host->cpu_base) &&
	       varint_put(to, host->cpu_count) && varint_put(to, host->mono_ns) &&
	       varint_put(to, host->boot_ns) && varint_put(to, host->real_ns) &&
	       clock_put(to, &host->clock);
}

/* The length of the members comes first, so that a reader skips those that it does not know. */
static bool members_put(byte_vec *to, byte_vec *members, bool done)
{
	done = done && string_put(to, (const char *)members->data, members->len);
	vec_free(members);
	return done;
}

bool host_put(byte_vec *to, struct strtab *strings, const struct store_host *host)
{
	byte_vec members = {0};

	return members_put(to, &members, host_members_put(&members, strings, host));
}

#define CAPTURE_SCHED 1u
#define CAPTURE_TRUNCATED 2u

bool capture_put(byte_vec *to, struct strtab *strings, const struct store_capture *capture)
{
	unsigned flags =
		(capture->sched ? CAPTURE_SCHED : 0) | (capture->truncated ? CAPTURE_TRUNCATED : 0);
	byte_vec members = {0};
	bool done = reference_put(&members, strings, capture->file) &&
		    reference_put(&members, strings, capture->command) &&
		    varint_put(&members, capture->host) && varint_put(&members, flags) &&
		    varint_put(&members, capture->start_ts) &&
		    varint_put(&members, capture->end_ts) &&
		    varint_put(&members, capture->last_ts) &&
		    varint_put(&members, capture->process_count);

	return members_put(to, &members, done);
}

bool index_put(byte_vec *to, const chunk_entries *entries)
{
	uint64_t previous = 0;

	for (size_t i = 0; i < entries->len; i++) {
		const struct chunk_entry *entry = &entries->data[i];

		if (!varint_put(to, entry->type) || !varint_put(to, entry->stored_bytes) ||
		    !varint_put(to, entry->records) ||
		    !varint_put(to, zigzag_encode(entry->min_ts - previous)) ||
		    !varint_put(to, entry->max_ts - entry->min_ts))
			return false;
		previous = entry->min_ts;
	}
	return true;
}

void counts_put(unsigned char *to, uint64_t index_offset, uint64_t end_ts,
		const struct store_counts *counts)
{
	unsigned char *at = to;

	memset(to, 0, COUNTS_BYTES);
	at = put_le(at, index_offset, 8);
	at = put_le(at, end_ts, 8);
	at = put_le(at, WAFFLE_SOURCE_COUNT, 8);
	for (unsigned i = 0; i < WAFFLE_SOURCE_COUNT; i++) {
		at = put_le(at, counts[i].produced, 8);
		at = put_le(at, counts[i].delivered, 8);
		at = put_le(at, counts[i].lost, 8);
	}
}

/* ---- reading ---- */

bool dictionary_init(struct dictionary *dictionary)
{
	*dictionary = (struct dictionary){.bytes_max = STORE_TABLES_BYTES_MAX};
	return vec_push(&dictionary->strings, ""); /* number 0 */
}

void dictionary_free(struct dictionary *dictionary)
{
	for (size_t i = 0; i < dictionary->blocks.len; i++)
		free(dictionary->blocks.data[i]);
	vec_free(&dictionary->blocks);
	vec_free(&dictionary->strings);
	vec_free(&dictionary->sites);
	vec_free(&dictionary->processes);
	vec_free(&dictionary->stacks);
	vec_free(&dictionary->objects);
	vec_free(&dictionary->mappings);
	vec_free(&dictionary->symbols);
	vec_free(&dictionary->names);
	vec_free(&dictionary->ranks);
	vec_free(&dictionary->attributes);
	vec_free(&dictionary->transports);
	vec_free(&dictionary->hosts);
	vec_free(&dictionary->captures);
}

/* Accounts for memory that the file makes us allocate. False: there is no room for these entries or
 * any later ones. The limit may be exceeded by one entry, as in the writer. */
static bool memory_take(struct dictionary *dictionary, size_t bytes, uint32_t entries)
{
	if (dictionary->full || dictionary->bytes >= dictionary->bytes_max) {
		dictionary->full = true;
		dictionary->skipped += entries;
		return false;
	}
	dictionary->bytes += bytes;
	return true;
}

/* Allocates memory that dictionary_free() frees; NULL: out of memory. */
static char *block_new(struct dictionary *dictionary, size_t bytes)
{
	char *block = malloc(bytes);

	if (block && !vec_push(&dictionary->blocks, block)) {
		free(block);
		return NULL;
	}
	return block;
}

/* Copies a string from the cursor to *to and advances *to beyond its NUL; NULL if the string is
 * invalid. */
static const char *text_get(struct cursor *cursor, char **to)
{
	size_t len = get_varint_max(cursor, STORE_STRING_MAX);
	const unsigned char *from = get_bytes(cursor, len);
	char *text = *to;

	if (!from || cursor->bad)
		return NULL;
	memcpy(text, from, len);
	text[len] = '\0';
	*to = text + len + 1;
	return text;
}

int dictionary_get_strings(struct dictionary *dictionary, struct cursor *cursor, uint32_t count)
{
	/* A string's length takes at least one byte, so the buffer has room for the NULs. */
	size_t bytes = (size_t)(cursor->end - cursor->at);
	char *at;

	if (count > bytes)
		return -EBADMSG;
	if (!memory_take(dictionary, bytes + count * sizeof(char *), count)) {
		dictionary->strings_skipped += count;
		return 0;
	}
	at = block_new(dictionary, bytes + 1);
	if (!at || !vec_reserve(&dictionary->strings, count))
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		const char *text = text_get(cursor, &at);

		if (!text || !vec_push(&dictionary->strings, text))
			return -EBADMSG;
	}
	return cursor->at == cursor->end ? 0 : -EBADMSG;
}

static const char *reference_get(const struct dictionary *dictionary, struct cursor *cursor)
{
	uint64_t number =
		get_varint_max(cursor, dictionary->strings.len - 1 + dictionary->strings_skipped);

	return number < dictionary->strings.len ? dictionary->strings.data[number] : "";
}

static void site_get(const struct dictionary *dictionary, struct cursor *cursor,
		     struct site_info *site)
{
	site_word_get(cursor, site);
	site->line = (uint32_t)get_varint_max(cursor, UINT32_MAX);
	site->name = reference_get(dictionary, cursor);
	site->category = reference_get(dictionary, cursor);
	site->file = reference_get(dictionary, cursor);
	site->func = reference_get(dictionary, cursor);
	site->object = reference_get(dictionary, cursor);
	site->key_count = (uint16_t)get_varint_max(cursor, WAFFLE_KEYS_MAX);
	for (unsigned i = 0; i < site->key_count; i++) {
		site->keys[i].type = (char)get_varint_max(cursor, UINT8_MAX);
		site->keys[i].name = reference_get(dictionary, cursor);
		if (!site_key_from_file(site->keys[i].type))
			cursor->bad = true;
	}
}

int dictionary_get_sites(struct dictionary *dictionary, struct cursor *cursor, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct site_info site = {0};

		site_get(dictionary, cursor, &site);
		if (cursor->bad || dictionary->sites.len == STORE_SITES_MAX)
			return -EBADMSG;
		dictionary->bytes +=
			table_bytes(CHUNK_SITES, 0); /* sites have a limit of their own */
		if (!vec_push(&dictionary->sites, site))
			return -ENOMEM;
	}
	return cursor->at == cursor->end ? 0 : -EBADMSG;
}

int dictionary_get_processes(struct dictionary *dictionary, struct cursor *cursor, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct store_process process;

		process.pid = (uint32_t)get_varint_max(cursor, UINT32_MAX);
		process.ppid = (uint32_t)get_varint_max(cursor, UINT32_MAX);
		process.ts = get_varint(cursor);
		process.cmdline = reference_get(dictionary, cursor);
		if (cursor->bad || dictionary->processes.len == STORE_PROCESSES_MAX)
			return -EBADMSG;
		if (!memory_take(dictionary, table_bytes(CHUNK_PROCESSES, 0), count - i))
			return 0;
		if (!vec_push(&dictionary->processes, process))
			return -ENOMEM;
	}
	return cursor->at == cursor->end ? 0 : -EBADMSG;
}

static uint32_t get_u32(struct cursor *cursor)
{
	return (uint32_t)get_varint_max(cursor, UINT32_MAX);
}

int dictionary_get_stacks(struct dictionary *dictionary, struct cursor *cursor, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct store_stack stack = {.pid = get_u32(cursor)};
		uint64_t *addresses, previous = 0;

		stack.count = (uint32_t)get_varint_max(cursor, STORE_STACK_MAX);
		if (cursor->bad || dictionary->stacks.len == STORE_TABLE_MAX)
			return -EBADMSG;
		if (!memory_take(dictionary, table_bytes(CHUNK_STACKS, stack.count), count - i))
			return 0;
		addresses = (uint64_t *)(void *)block_new(dictionary,
							  (stack.count + 1) * sizeof(*addresses));
		if (!addresses)
			return -ENOMEM;
		for (uint32_t frame = 0; frame < stack.count; frame++)
			previous = addresses[frame] = get_difference(cursor, previous);
		stack.cut = stack.count > 1 && !previous;
		stack.count -= stack.cut;
		stack.addresses = addresses;
		if (cursor->bad)
			return -EBADMSG;
		if (!vec_push(&dictionary->stacks, stack))
			return -ENOMEM;
	}
	return cursor->at == cursor->end ? 0 : -EBADMSG;
}

static bool object_fits(const struct store_object *object)
{
	return strnlen(object->name, STORE_OBJECT_NAME_MAX + 1) <= STORE_OBJECT_NAME_MAX &&
	       strnlen(object->detail, STORE_OBJECT_DETAIL_MAX + 1) <= STORE_OBJECT_DETAIL_MAX;
}

int dictionary_get_objects(struct dictionary *dictionary, struct cursor *cursor, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct store_object object = {.ino = get_varint(cursor)};

		object.dev = get_u32(cursor);
		object.pid = get_u32(cursor);
		object.name = reference_get(dictionary, cursor);
		object.detail = reference_get(dictionary, cursor);
		if (cursor->bad || !object_fits(&object) ||
		    dictionary->objects.len == STORE_TABLE_MAX)
			return -EBADMSG;
		if (!memory_take(dictionary, table_bytes(CHUNK_OBJECTS, 0), count - i))
			return 0;
		if (!vec_push(&dictionary->objects, object))
			return -ENOMEM;
	}
	return cursor->at == cursor->end ? 0 : -EBADMSG;
}

static int segments_get(struct dictionary *dictionary, struct cursor *cursor,
			struct store_mapping *mapping)
{
	struct store_segment list[STORE_SEGMENTS_MAX], *kept;

	mapping->segment_count = (uint32_t)get_varint_max(cursor, STORE_SEGMENTS_MAX);
	for (uint32_t i = 0; i < mapping->segment_count; i++) {
		list[i].offset = get_varint(cursor);
		list[i].address = get_varint(cursor);
		list[i].size = get_varint(cursor);
		if (!segment_can_be(&list[i]))
			cursor->bad = true;
	}
	if (cursor->bad)
		return -EBADMSG;
	if (!mapping->segment_count)
		return 0;
	kept = (struct store_segment *)(void *)block_new(dictionary,
							 mapping->segment_count * sizeof(*kept));
	if (!kept)
		return -ENOMEM;
	memcpy(kept, list, mapping->segment_count * sizeof(*kept));
	mapping->segments = kept;
	return 0;
}

static void mapping_get(const struct dictionary *dictionary, struct cursor *cursor,
			struct store_mapping *mapping)
{
	const unsigned char *build_id;

	mapping->pid = get_u32(cursor);
	mapping->ts = get_varint(cursor);
	mapping->start = get_varint(cursor);
	mapping->end = mapping->start + get_varint(cursor);
	mapping->offset = get_varint(cursor);
	mapping->ino = get_varint(cursor);
	mapping->dev = get_u32(cursor);
	mapping->path = reference_get(dictionary, cursor);
	mapping->build_id_bytes = (uint32_t)get_varint_max(cursor, sizeof(mapping->build_id));
	build_id = get_bytes(cursor, mapping->build_id_bytes);
	if (build_id)
		memcpy(mapping->build_id, build_id, mapping->build_id_bytes);
	if (mapping->end < mapping->start)
		cursor->bad = true;
}

int dictionary_get_mappings(struct dictionary *dictionary, struct cursor *cursor, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct store_mapping mapping = {0};
		int result;

		mapping_get(dictionary, cursor, &mapping);
		if (cursor->bad || dictionary->mappings.len == STORE_TABLE_MAX)
			return -EBADMSG;
		result = segments_get(dictionary, cursor, &mapping);
		if (result)
			return result;
		if (!memory_take(dictionary, table_bytes(CHUNK_MAPPINGS, mapping.segment_count),
				 count - i))
			return 0;
		if (!vec_push(&dictionary->mappings, mapping))
			return -ENOMEM;
	}
	return cursor->at == cursor->end ? 0 : -EBADMSG;
}

int dictionary_get_symbols(struct dictionary *dictionary, struct cursor *cursor, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct store_symbol symbol = {.address = get_varint(cursor)};

		symbol.offset = get_u32(cursor);
		symbol.name = reference_get(dictionary, cursor);
		if (cursor->bad || dictionary->symbols.len == STORE_TABLE_MAX)
			return -EBADMSG;
		if (!memory_take(dictionary, table_bytes(CHUNK_SYMBOLS, 0), count - i))
			return 0;
		if (!vec_push(&dictionary->symbols, symbol))
			return -ENOMEM;
	}
	return cursor->at == cursor->end ? 0 : -EBADMSG;
}

static int names_get(struct dictionary *dictionary, struct cursor *cursor, uint32_t count,
		     bool timed)
{
	for (uint32_t i = 0; i < count; i++) {
		struct store_name name = {.pid = get_u32(cursor)};

		name.value = get_varint(cursor);
		name.name = reference_get(dictionary, cursor);
		if (timed)
			name.since = get_varint(cursor);
		if (cursor->bad || dictionary->names.len == STORE_TABLE_MAX)
			return -EBADMSG;
		if (!memory_take(dictionary, table_bytes(CHUNK_NAMES, 0), count - i))
			return 0;
		if (!vec_push(&dictionary->names, name))
			return -ENOMEM;
	}
	return cursor->at == cursor->end ? 0 : -EBADMSG;
}

int dictionary_get_names(struct dictionary *dictionary, struct cursor *cursor, uint32_t count)
{
	return names_get(dictionary, cursor, count, false);
}

int dictionary_get_timed_names(struct dictionary *dictionary, struct cursor *cursor, uint32_t count)
{
	return names_get(dictionary, cursor, count, true);
}

int dictionary_get_ranks(struct dictionary *dictionary, struct cursor *cursor, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct store_rank rank = {.pid = get_u32(cursor)};

		rank.ts = get_varint(cursor);
		rank.rank = get_u32(cursor) - 1;
		rank.world_size = get_u32(cursor);
		rank.job = reference_get(dictionary, cursor);
		if (cursor->bad || dictionary->ranks.len == STORE_PROCESSES_MAX)
			return -EBADMSG;
		if (!memory_take(dictionary, table_bytes(CHUNK_RANKS, 0), count - i))
			return 0;
		if (!vec_push(&dictionary->ranks, rank))
			return -ENOMEM;
	}
	return cursor->at == cursor->end ? 0 : -EBADMSG;
}

int dictionary_get_attributes(struct dictionary *dictionary, struct cursor *cursor, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct store_attribute attribute = {.pid = get_u32(cursor)};

		attribute.ts = get_varint(cursor);
		attribute.key = reference_get(dictionary, cursor);
		attribute.value = reference_get(dictionary, cursor);
		if (cursor->bad || dictionary->attributes.len == STORE_PROCESSES_MAX)
			return -EBADMSG;
		if (!memory_take(dictionary, table_bytes(CHUNK_ATTRIBUTES, 0), count - i))
			return 0;
		if (!vec_push(&dictionary->attributes, attribute))
			return -ENOMEM;
	}
	return cursor->at == cursor->end ? 0 : -EBADMSG;
}

int dictionary_get_transports(struct dictionary *dictionary, struct cursor *cursor, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct store_transport transport = {.pid = get_u32(cursor)};

		transport.ts = get_varint(cursor);
		transport.ring = get_varint(cursor);
		transport.records = get_varint(cursor);
		transport.why = reference_get(dictionary, cursor);
		if (cursor->bad || dictionary->transports.len == STORE_PROCESSES_MAX)
			return -EBADMSG;
		if (!memory_take(dictionary, table_bytes(CHUNK_TRANSPORTS, 0), count - i))
			return 0;
		if (!vec_push(&dictionary->transports, transport))
			return -ENOMEM;
	}
	return cursor->at == cursor->end ? 0 : -EBADMSG;
}

/* Errors whose times do not rise are invalid. */
static void errors_get(struct cursor *cursor, struct store_clock *clock)
{
	uint64_t count = get_varint_max(cursor, STORE_CLOCK_ERRORS), previous = 0;

	for (uint64_t i = 0; i < count && !cursor->bad; i++) {
		struct store_clock_error *error = &clock->errors[i];

		error->ts = get_varint(cursor);
		error->ns = get_varint_max(cursor, UINT64_MAX / 4);
		if (i && error->ts <= previous)
			cursor->bad = true;
		previous = error->ts;
	}
	clock->error_count = cursor->bad ? 0 : (uint32_t)count;
}

static void clock_get(struct cursor *cursor, struct store_clock *clock)
{
	uint64_t drift;

	clock->kind = (enum store_clock_kind)get_varint_max(cursor, STORE_CLOCK_NONE);
	clock->offset_ns = (int64_t)zigzag_decode(get_varint(cursor));
	drift = get_varint(cursor);
	memcpy(&clock->drift, &drift, sizeof(drift));
	clock->at_ts = get_varint(cursor);
	clock->error_ns = get_varint(cursor);
	clock->collectives = get_varint(cursor);
	errors_get(cursor, clock);
	if (!(clock->drift >= -STORE_DRIFT_MAX && clock->drift <= STORE_DRIFT_MAX))
		cursor->bad = true;
}

static void host_get(const struct dictionary *dictionary, struct cursor *cursor,
		     struct store_host *host)
{
	host->name = reference_get(dictionary, cursor);
	host->boot_id = reference_get(dictionary, cursor);
	host->kernel = reference_get(dictionary, cursor);
	host->machine = reference_get(dictionary, cursor);
	host->cpu_base = (uint32_t)get_varint_max(cursor, UINT16_MAX);
	host->cpu_count = (uint32_t)get_varint_max(cursor, UINT16_MAX);
	host->mono_ns = get_varint(cursor);
	host->boot_ns = get_varint(cursor);
	host->real_ns = get_varint(cursor);
	clock_get(cursor, &host->clock);
}

/* A cursor over the members of an entry that begins with their length. */
static struct cursor members_get(struct cursor *cursor)
{
	size_t bytes = get_varint_max(cursor, STORE_STRING_MAX);
	const unsigned char *at = get_bytes(cursor, bytes);

	return at ? (struct cursor){.at = at, .end = at + bytes} : (struct cursor){.bad = true};
}

int dictionary_get_hosts(struct dictionary *dictionary, struct cursor *cursor, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct cursor members = members_get(cursor);
		struct store_host host = {0};

		host_get(dictionary, &members, &host);
		if (members.bad || dictionary->hosts.len == STORE_HOSTS_MAX)
			return -EBADMSG;
		if (!vec_push(&dictionary->hosts, host))
			return -ENOMEM;
	}
	return cursor->at == cursor->end ? 0 : -EBADMSG;
}

int dictionary_get_captures(struct dictionary *dictionary, struct cursor *cursor, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct cursor members = members_get(cursor);
		struct store_capture capture = {.file = reference_get(dictionary, &members)};
		uint64_t flags;

		capture.command = reference_get(dictionary, &members);
		capture.host = get_u32(&members);
		flags = get_varint(&members);
		capture.sched = flags & CAPTURE_SCHED;
		capture.truncated = flags & CAPTURE_TRUNCATED;
		capture.start_ts = get_varint(&members);
		capture.end_ts = get_varint(&members);
		capture.last_ts = get_varint(&members);
		capture.process_count = get_u32(&members);
		if (members.bad || dictionary->captures.len == STORE_CAPTURES_MAX)
			return -EBADMSG;
		if (!vec_push(&dictionary->captures, capture))
			return -ENOMEM;
	}
	return cursor->at == cursor->end ? 0 : -EBADMSG;
}

int meta_get(struct store_meta *meta, struct dictionary *dictionary, unsigned version,
	     struct cursor *cursor)
{
	const char **const texts[] = {&meta->hostname, &meta->kernel, &meta->machine,
				      &meta->version, &meta->command};
	char *at = block_new(dictionary, (size_t)(cursor->end - cursor->at) + 1);

	if (!at)
		return -ENOMEM;
	meta->start_ts = get_varint(cursor);
	meta->boot_ns = get_varint(cursor);
	meta->real_ns = get_varint(cursor);
	meta->cpu_count = (uint32_t)get_varint_max(cursor, UINT32_MAX);
	meta->sched = get_varint_max(cursor, 1) != 0;
	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		*texts[i] = text_get(cursor, &at);
		if (!*texts[i])
			return -EBADMSG;
	}
	/* Version 1: these members were added later, and older files end here. */
	meta->filter = cursor->at < cursor->end ? text_get(cursor, &at) : "";
	meta->sources = meta->filter && cursor->at < cursor->end ? text_get(cursor, &at) : "";
	if (cursor->bad || !meta->filter || !meta->sources)
		return -EBADMSG;
	if (version == 1)
		dictionary->lengths = record_lengths_version_1();
	else
		record_lengths_get(&dictionary->lengths, cursor);
	/* Also of version 2, but added later. */
	meta->boot_id = !cursor->bad && version > 1 && cursor->at < cursor->end
				? text_get(cursor, &at)
				: "";
	meta->trigger = !cursor->bad && version > 1 && cursor->at < cursor->end
				? text_get(cursor, &at)
				: "";
	meta->trigger_ts = meta->trigger && *meta->trigger ? get_varint(cursor) : 0;
	return cursor->bad || !meta->boot_id || !meta->trigger ? -EBADMSG : 0;
}

int index_get(chunk_entries *entries, struct cursor *cursor, uint64_t offset, uint64_t end)
{
	uint64_t previous = 0;

	while (cursor->at < cursor->end) {
		struct chunk_entry entry = {.offset = offset};

		entry.type = (uint16_t)get_varint_max(cursor, UINT16_MAX);
		entry.stored_bytes = (uint32_t)get_varint_max(cursor, CHUNK_RAW_MAX);
		entry.records = (uint32_t)get_varint_max(cursor, UINT32_MAX);
		entry.min_ts = get_difference(cursor, previous);
		entry.max_ts = entry.min_ts + get_varint(cursor);
		previous = entry.min_ts;
		offset += CHUNK_HEADER_BYTES + entry.stored_bytes;
		/* Needs no limit: an entry takes more bytes in the file than in memory. */
		if (cursor->bad || entry.max_ts < entry.min_ts || offset > end)
			return -EBADMSG;
		if (!vec_push(entries, entry))
			return -ENOMEM;
	}
	return offset == end ? 0 : -EBADMSG;
}

int counts_get(struct cursor *cursor, uint64_t *index_offset, uint64_t *end_ts,
	       struct store_counts *counts)
{
	uint64_t sources;

	*index_offset = get_le(cursor, 8);
	*end_ts = get_le(cursor, 8);
	sources = get_le(cursor, 8);
	if (sources > COUNTS_SOURCES)
		return -EBADMSG;
	for (unsigned i = 0; i < WAFFLE_SOURCE_COUNT && i < sources; i++) {
		counts[i].produced = get_le(cursor, 8);
		counts[i].delivered = get_le(cursor, 8);
		counts[i].lost = get_le(cursor, 8);
	}
	return cursor->bad ? -EBADMSG : 0;
}
