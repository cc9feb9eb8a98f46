// SPDX-License-Identifier: Apache-2.0
#include "export/process/full_record.h"

#include <stdlib.h>
#include <string.h>

/* False: a link, or a value that processors don't know. */
static bool value_convert(const struct value *from, struct waffle_value *to)
{
	static const enum waffle_value_type types[128] = {
		[WAFFLE_KEY_I64] = WAFFLE_VALUE_I64,     [WAFFLE_KEY_U64] = WAFFLE_VALUE_U64,
		[WAFFLE_KEY_F64] = WAFFLE_VALUE_F64,     [WAFFLE_KEY_BOOL] = WAFFLE_VALUE_BOOL,
		[WAFFLE_KEY_PTR] = WAFFLE_VALUE_ADDRESS, [WAFFLE_KEY_CODE] = WAFFLE_VALUE_ADDRESS,
		[WAFFLE_KEY_STR] = WAFFLE_VALUE_TEXT,
	};
	enum waffle_value_type type = types[(unsigned char)from->type & 127];

	if (!type)
		return false;
	*to = (struct waffle_value){.key = from->key->name, .type = type, .text = ""};
	if (type != WAFFLE_VALUE_TEXT) {
		to->u64 = from->u64;
	} else if (from->null || from->lost) {
		to->type = WAFFLE_VALUE_NONE;
	} else {
		to->text = from->text;
		to->text_len = from->text_len;
		to->truncated = from->cut;
	}
	return true;
}

void full_record_decode(struct full_record *full, struct full_record_values *room)
{
	struct value_walk walk = value_walk_begin(full->site, full->frame, full->frame_bytes);
	size_t values = 0, links = 0;
	struct value value;

	while (value_walk_next(&walk, &value)) {
		if (value.type == WAFFLE_KEY_CAUSE_SPAN || value.type == WAFFLE_KEY_CAUSE_EVENT) {
			if (value.u64)
				room->links[links++] = (struct waffle_record_link){
					.is_event = value.type == WAFFLE_KEY_CAUSE_EVENT,
					.id = value.u64};
		} else if (value_convert(&value, &room->values[values])) {
			values++;
		}
	}
	full->record.values = room->values;
	full->record.value_count = values;
	full->record.links = room->links;
	full->record.link_count = links;
}

bool full_record_value(const struct full_record *full, const char *key, struct waffle_value *found)
{
	struct value_walk walk = value_walk_begin(full->site, full->frame, full->frame_bytes);
	struct value value;

	while (value_walk_next(&walk, &value))
		if (!strcmp(value.key->name, key) && value_convert(&value, found))
			return true;
	return false;
}

struct filter_subject full_record_subject(const struct full_record *full)
{
	const struct waffle_record *record = &full->record;

	return (struct filter_subject){
		.site = full->site,
		.frame = full->frame,
		.frame_bytes = full->frame_bytes,
		.pid = record->pid,
		.tid = record->tid,
		.cpu = record->cpu,
		.comm = record->comm,
		.ended = true,
		.dur_ns = record->end_ns - record->start_ns,
		.depth = full->depth,
		.parent_name = full->parent_name,
	};
}

size_t full_record_bytes(const struct full_record *full)
{
	size_t parent = full->parent_name ? strlen(full->parent_name) + 1 : 0;

	return sizeof(*full) + ((full->frame_bytes + 7u) & ~7u) + WAFFLE_COMM_BYTES + parent;
}

struct full_record *full_record_copy(const struct full_record *full)
{
	char *block = malloc(full_record_bytes(full)), *at = block + sizeof(*full);
	struct full_record *copy = (struct full_record *)block;

	if (!block)
		return NULL;
	*copy = *full;
	copy->record.values = NULL;
	copy->record.links = NULL;
	copy->record.value_count = copy->record.link_count = 0;
	if (full->frame_bytes)
		memcpy(at, full->frame, full->frame_bytes);
	copy->frame = at;
	at += (full->frame_bytes + 7u) & ~7u;
	memset(at, 0, WAFFLE_COMM_BYTES);
	memcpy(at, full->record.comm, strnlen(full->record.comm, WAFFLE_COMM_BYTES - 1));
	copy->record.comm = at;
	at += WAFFLE_COMM_BYTES;
	if (full->parent_name) {
		memcpy(at, full->parent_name, strlen(full->parent_name) + 1);
		copy->parent_name = at;
	}
	return copy;
}

size_t full_record_times(const struct full_record *full, struct waffle_value values[3])
{
	const struct waffle_record *record = &full->record;
	uint64_t whole = record->end_ns - record->start_ns,
		 ready = full->running_ns + full->runnable_ns;
	/* Records of a program that are out of order could make the sum larger. */
	const struct {
		const char *key;
		uint64_t ns;
	} times[] = {{"waffle.running_ns", full->running_ns},
		     {"waffle.runnable_ns", full->runnable_ns},
		     {"waffle.blocked_ns", whole > ready ? whole - ready : 0}};

	for (size_t i = 0; full->has_sched && i < 3; i++)
		values[i] = (struct waffle_value){.key = times[i].key,
						  .type = WAFFLE_VALUE_U64,
						  .u64 = times[i].ns,
						  .text = ""};
	return full->has_sched ? 3 : 0;
}
