// SPDX-License-Identifier: Apache-2.0
/* Packets with track events: slices, instants and counter values, with their annotations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/perfetto/node_stacks_internal.h"
#include "export/perfetto/perfetto_internal.h"
#include "render/json/values.h"
#include "util/hash.h"
#include "util/memory.h"

/* Maximum encoded sizes, without text: of the part that every event has, of an annotation and of a
 * name. */
#define EVENT_BOUND 192
#define ANNOTATION_BOUND 40
#define NAME_BOUND 24

void event_init(struct event *e)
{
	pf__event_packet__init(&e->packet);
	pf__track_event__init(&e->event);
	pf__interned_data__init(&e->interned);
	for (int i = 0; i < ANNOTATIONS_MAX; i++) {
		pf__annotation__init(&e->annotations[i]);
		e->annotations[i].has_name_iid = 1;
		e->annotation_list[i] = &e->annotations[i];
		for (int list = 0; list < NAME_LIST_COUNT; list++) {
			pf__interned_name__init(&e->names[list][i]);
			e->name_list[list][i] = &e->names[list][i];
		}
	}
	for (int i = 0; i < 2; i++) {
		pf__interned_name__init(&e->texts[i]);
		e->text_list[i] = &e->texts[i];
	}
	e->packet.track_event = &e->event;
	e->packet.sequence_flags = SEQUENCE_NEEDS_STATE;
	e->packet.has_timestamp = 1;
	e->event.debug_annotations = e->annotation_list;
	e->interned.event_categories = e->name_list[NAME_CATEGORY];
	e->interned.event_names = e->name_list[NAME_EVENT];
	e->interned.debug_annotation_names = e->name_list[NAME_KEY];
	e->interned.debug_annotation_string_values = e->text_list;
	e->scratch = memory_get(SCRATCH_BYTES);
}

void event_free(struct event *e)
{
	vec_free(&e->flows);
	vec_free(&e->flow_ends);
	free(e->scratch);
}

void event_begin(struct perfetto *p, struct sequence *sequence, Pf__EventType type, uint64_t uuid,
		 uint64_t ts)
{
	struct event *e = &p->event;
	uint64_t time = perfetto_time(p, ts);

	e->packet.trusted_packet_sequence_id = sequence->id;
	e->packet.timestamp = sequence->delta ? time - sequence->last : time;
	sequence->last = time;
	e->packet.interned_data = NULL;
	e->event.type = type;
	e->event.has_track_uuid = uuid != 0;
	e->event.track_uuid = uuid;
	e->event.has_category_iid = e->event.has_name_iid = 0;
	e->event.has_counter_value = e->event.has_double_counter_value = 0;
	e->event.n_debug_annotations = 0;
	e->event.n_flow_ids = e->event.n_terminating_flow_ids = 0;
	e->event.has_name = 0;
	e->interned.n_debug_annotation_string_values = 0;
	memset(e->name_count, 0, sizeof(e->name_count));
	e->scratch_len = 0;
	e->bound = EVENT_BOUND;
}

/* Defines a name's number in this sequence unless that was done before. */
static uint64_t name_use(struct perfetto *p, struct sequence *sequence, enum name_list list,
			 uint32_t name)
{
	struct event *e = &p->event;
	Pf__InternedName *entry;

	if (p->names.defined[list].data[name] == sequence->id)
		return name;
	p->names.defined[list].data[name] = sequence->id;
	entry = &e->names[list][e->name_count[list]++];
	entry->iid = name;
	entry->name =
		packet_bytes(strtab_get(p->names.text, name), strtab_length(p->names.text, name));
	e->packet.interned_data = &e->interned;
	e->bound += NAME_BOUND + entry->name.len;
	return name;
}

void event_site(struct perfetto *p, struct sequence *sequence, const struct site_names *names)
{
	struct event *e = &p->event;

	e->event.has_name_iid = 1;
	e->event.name_iid = name_use(p, sequence, NAME_EVENT, names->name);
	if (!names->category)
		return;
	e->event.has_category_iid = 1;
	e->event.category_iid = name_use(p, sequence, NAME_CATEGORY, names->category);
}

Pf__Annotation *event_annotate(struct perfetto *p, struct sequence *sequence, uint32_t key)
{
	struct event *e = &p->event;
	Pf__Annotation *annotation = &e->annotations[e->event.n_debug_annotations++];

	annotation->name_iid = name_use(p, sequence, NAME_KEY, key);
	e->bound += ANNOTATION_BOUND;
	return annotation;
}

void event_pointer(struct perfetto *p, struct sequence *sequence, uint32_t key, uint64_t value)
{
	Pf__Annotation *annotation = event_annotate(p, sequence, key);

	annotation->value_case = PF__ANNOTATION__VALUE_POINTER_VALUE;
	annotation->pointer_value = value;
}

void event_uint(struct perfetto *p, struct sequence *sequence, uint32_t key, uint64_t value)
{
	Pf__Annotation *annotation = event_annotate(p, sequence, key);

	annotation->value_case = PF__ANNOTATION__VALUE_UINT_VALUE;
	annotation->uint_value = value;
}

static void annotate_bytes(struct perfetto *p, Pf__Annotation *annotation, ProtobufCBinaryData text)
{
	annotation->value_case = PF__ANNOTATION__VALUE_STRING_VALUE;
	annotation->string_value = text;
	p->event.bound += text.len;
}

void event_text(struct perfetto *p, struct sequence *sequence, uint32_t key, const char *text,
		size_t len)
{
	annotate_bytes(p, event_annotate(p, sequence, key), perfetto_text(p, text, len));
}

/* A truncated string ends with an ellipsis, and not within a character. */
static ProtobufCBinaryData value_text(struct perfetto *p, const struct value *value)
{
	struct event *e = &p->event;
	ProtobufCBinaryData text;
	char *at;
	size_t len = value->text_len, valid;

	if (value->null)
		return value->lost ? packet_bytes("(unread)", 8) : packet_bytes("(null)", 6);
	if (!value->cut)
		return perfetto_text(p, value->text, len);
	valid = utf8_valid(value->text, len);
	if (len - valid < 4)
		len = valid;
	text = perfetto_text(p, value->text, len);
	at = e->scratch + e->scratch_len;
	if (text.len + 3 > SCRATCH_BYTES - e->scratch_len)
		return text;
	memcpy(at, text.data, text.len);
	memcpy(at + text.len, "…", 3);
	e->scratch_len += text.len + 3;
	return packet_bytes(at, text.len + 3);
}

/* Formats three dimensions as "[2,3,4]". */
static ProtobufCBinaryData value_dimensions(struct perfetto *p, const struct value *value)
{
	struct event *e = &p->event;
	size_t room = SCRATCH_BYTES - e->scratch_len;
	char *at = e->scratch + e->scratch_len;
	int len = snprintf(at, room, "[%u,%u,%u]", value->dim[0], value->dim[1], value->dim[2]);

	if (len < 0 || (size_t)len >= room)
		return packet_bytes("", 0);
	e->scratch_len += (size_t)len;
	return packet_bytes(at, (size_t)len);
}

void event_values(struct perfetto *p, struct sequence *sequence, uint32_t site, uint32_t frame)
{
	const struct site_info *info = model_site(p->model, site);
	const struct site_names *names = names_of_site(p, site);
	struct value_walk walk = model_values(p->model, site, frame);
	struct value value;

	if (info->key_count == 0)
		return;
	while (value_walk_next(&walk, &value)) {
		Pf__Annotation *annotation =
			event_annotate(p, sequence, names->keys[value.key - info->keys]);

		switch (value.type) {
		case WAFFLE_KEY_I64:
			annotation->value_case = PF__ANNOTATION__VALUE_INT_VALUE;
			annotation->int_value = value.i64;
			break;
		case WAFFLE_KEY_U64:
			annotation->value_case = PF__ANNOTATION__VALUE_UINT_VALUE;
			annotation->uint_value = value.u64;
			break;
		case WAFFLE_KEY_F64:
			annotation->value_case = PF__ANNOTATION__VALUE_DOUBLE_VALUE;
			annotation->double_value = value.f64;
			break;
		case WAFFLE_KEY_BOOL:
			annotation->value_case = PF__ANNOTATION__VALUE_BOOL_VALUE;
			annotation->bool_value = value.u64 != 0;
			break;
		case WAFFLE_KEY_STR:
			annotate_bytes(p, annotation, value_text(p, &value));
			break;
		case WAFFLE_KEY_DIM3:
			annotate_bytes(p, annotation, value_dimensions(p, &value));
			break;
		default: /* pointers, and ids of causes */
			annotation->value_case = PF__ANNOTATION__VALUE_POINTER_VALUE;
			annotation->pointer_value = value.u64;
			break;
		}
	}
}

static void trace_print(char text[32], uint64_t hi, uint64_t lo)
{
	for (int i = 15; i >= 0; i--, hi >>= 4, lo >>= 4) {
		text[i] = "0123456789abcdef"[hi & 15];
		text[16 + i] = "0123456789abcdef"[lo & 15];
	}
}

/* Defines the number of a text in the sequence. */
static void text_define(struct event *e, uint64_t iid, ProtobufCBinaryData text)
{
	Pf__InternedName *entry = &e->texts[e->interned.n_debug_annotation_string_values++];

	entry->iid = iid;
	entry->name = text;
	e->packet.interned_data = &e->interned;
	e->bound += NAME_BOUND + text.len;
}

/* Numbers of stacks begin after those of traces. */
#define STACK_IID (1ull << 40)

static void event_stack(struct perfetto *p, struct sequence *sequence, uint32_t key, uint64_t id)
{
	uint32_t number = node_stacks_number(p->stacks, id);
	Pf__Annotation *annotation;
	const char *text;
	size_t len;

	if (!number)
		return;
	while (p->stack_sequences.len <= number)
		vec_add(&p->stack_sequences, 0);
	annotation = event_annotate(p, sequence, key);
	annotation->value_case = PF__ANNOTATION__VALUE_STRING_VALUE_IID;
	annotation->string_value_iid = STACK_IID + number;
	if (p->stack_sequences.data[number] == sequence->id)
		return;
	p->stack_sequences.data[number] = sequence->id;
	text = node_stacks_text(p->stacks, number, &len);
	text_define(&p->event, STACK_IID + number, perfetto_text(p, text, len));
}

void event_node(struct perfetto *p, struct sequence *sequence, const struct site_names *names,
		uint8_t kind, uint32_t index, uint64_t id)
{
	const struct model_link *late = values_late_cause(p->model, kind, index);

	if (late)
		event_pointer(p, sequence, names->own[OWN_CAUSED_BY], late->to_id);
	event_stack(p, sequence, names->own[OWN_STACK], id);
}

/*
 * Adds the trace id, 32 digits. It is interned at its first span, unless that is the trace's only
 * span. There are too many traces to remember all, so a small cache has the recent ones, and the
 * others are interned again.
 */
void event_trace(struct perfetto *p, struct sequence *sequence, uint32_t key, uint64_t hi,
		 uint64_t lo, bool alone)
{
	struct event *e = &p->event;
	Pf__Annotation *annotation = event_annotate(p, sequence, key);
	size_t slot = hash_number(hi ^ lo) >> 56;

	if (p->trace_iids[slot] && p->trace_ids[slot][0] == hi && p->trace_ids[slot][1] == lo) {
		annotation->value_case = PF__ANNOTATION__VALUE_STRING_VALUE_IID;
		annotation->string_value_iid = p->trace_iids[slot];
		return;
	}
	trace_print(e->trace_text, hi, lo);
	if (alone) {
		annotate_bytes(p, annotation, packet_bytes(e->trace_text, 32));
		return;
	}
	p->trace_iids[slot] = ++p->trace_count;
	p->trace_ids[slot][0] = hi;
	p->trace_ids[slot][1] = lo;
	text_define(e, p->trace_count, packet_bytes(e->trace_text, 32));
	annotation->value_case = PF__ANNOTATION__VALUE_STRING_VALUE_IID;
	annotation->string_value_iid = p->trace_count;
}

void event_put(struct perfetto *p)
{
	struct event *e = &p->event;

	if (e->packet.interned_data) {
		e->interned.n_event_categories = e->name_count[NAME_CATEGORY];
		e->interned.n_event_names = e->name_count[NAME_EVENT];
		e->interned.n_debug_annotation_names = e->name_count[NAME_KEY];
	}
	packet_put(&p->writer, &e->packet.base, e->bound);
}
