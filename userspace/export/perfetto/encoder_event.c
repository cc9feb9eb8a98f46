// SPDX-License-Identifier: Apache-2.0
/* Packets with track events: slices, instants and counter values, with their annotations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/perfetto/encoder.h"
#include "util/hash.h"
#include "util/memory.h"

/* Maximum encoded sizes, without text: of the part that every event has, of an annotation, a
 * name and one end of a flow. */
#define EVENT_BOUND 192
#define ANNOTATION_BOUND 40
#define NAME_BOUND 24
#define FLOW_BOUND 10

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
	for (size_t i = 0; i < sizeof(e->texts) / sizeof(e->texts[0]); i++) {
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

/* The time of the next packet of a sequence. */
static uint64_t sequence_time(const struct pf_encoder *p, struct sequence *sequence, uint64_t ts)
{
	uint64_t time = perfetto_time(p, ts), last = sequence->last;

	sequence->last = time;
	return sequence->delta ? time - last : time;
}

void event_begin(struct pf_encoder *p, struct sequence *sequence, Pf__EventType type, uint64_t uuid,
		 uint64_t ts)
{
	struct event *e = &p->event;
	uint64_t time = sequence_time(p, sequence, ts);

	e->packet.trusted_packet_sequence_id = sequence->id;
	e->packet.timestamp = time;
	e->packet.interned_data = NULL;
	e->event.type = type;
	e->event.has_track_uuid = uuid != 0;
	e->event.track_uuid = uuid;
	e->event.has_category_iid = e->event.has_name_iid = 0;
	e->event.has_counter_value = e->event.has_double_counter_value = 0;
	e->event.n_debug_annotations = 0;
	e->flows.len = e->flow_ends.len = 0;
	e->event.has_name = 0;
	e->interned.n_debug_annotation_string_values = 0;
	memset(e->name_count, 0, sizeof(e->name_count));
	e->scratch_len = 0;
	e->bound = EVENT_BOUND;
}

/* Defines a name's number in this sequence unless that was done before. */
static uint64_t name_use(struct pf_encoder *p, struct sequence *sequence, enum name_list list,
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

void event_site(struct pf_encoder *p, struct sequence *sequence, const struct site_names *names)
{
	struct event *e = &p->event;

	e->event.has_name_iid = 1;
	e->event.name_iid = name_use(p, sequence, NAME_EVENT, names->name);
	if (!names->category)
		return;
	e->event.has_category_iid = 1;
	e->event.category_iid = name_use(p, sequence, NAME_CATEGORY, names->category);
}

Pf__Annotation *event_annotate(struct pf_encoder *p, struct sequence *sequence, uint32_t key)
{
	struct event *e = &p->event;
	Pf__Annotation *annotation = &e->annotations[e->event.n_debug_annotations++];

	annotation->name_iid = name_use(p, sequence, NAME_KEY, key);
	e->bound += ANNOTATION_BOUND;
	return annotation;
}

void event_pointer(struct pf_encoder *p, struct sequence *sequence, uint32_t key, uint64_t value)
{
	Pf__Annotation *annotation = event_annotate(p, sequence, key);

	annotation->value_case = PF__ANNOTATION__VALUE_POINTER_VALUE;
	annotation->pointer_value = value;
}

void event_uint(struct pf_encoder *p, struct sequence *sequence, uint32_t key, uint64_t value)
{
	Pf__Annotation *annotation = event_annotate(p, sequence, key);

	annotation->value_case = PF__ANNOTATION__VALUE_UINT_VALUE;
	annotation->uint_value = value;
}

static void annotate_bytes(struct pf_encoder *p, Pf__Annotation *annotation,
			   ProtobufCBinaryData text)
{
	annotation->value_case = PF__ANNOTATION__VALUE_STRING_VALUE;
	annotation->string_value = text;
	p->event.bound += text.len;
}

void event_text(struct pf_encoder *p, struct sequence *sequence, uint32_t key, const char *text,
		size_t len)
{
	annotate_bytes(p, event_annotate(p, sequence, key), perfetto_text(p, text, len));
}

/* A truncated string ends with an ellipsis, and not within a character. */
static ProtobufCBinaryData value_text(struct pf_encoder *p, const struct value *value)
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
static ProtobufCBinaryData value_dimensions(struct pf_encoder *p, const struct value *value)
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

static void event_values(struct pf_encoder *p, struct sequence *sequence,
			 const struct site_names *names, const struct export_node *node)
{
	struct value_walk walk = node->values;
	struct value value;

	if (node->site->key_count == 0)
		return;
	while (value_walk_next(&walk, &value)) {
		Pf__Annotation *annotation =
			event_annotate(p, sequence, names->keys[value.key - node->site->keys]);

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

void event_define_text(struct pf_encoder *p, uint64_t iid, ProtobufCBinaryData text)
{
	struct event *e = &p->event;
	Pf__InternedName *entry = &e->texts[e->interned.n_debug_annotation_string_values++];

	entry->iid = iid;
	entry->name = text;
	e->packet.interned_data = &e->interned;
	e->bound += NAME_BOUND + text.len;
}

/*
 * Adds the trace id, 32 digits. It is interned at its first span, unless that is the trace's only
 * span. There are too many traces to remember all, so a small cache has the recent ones, and the
 * others are interned again.
 */
static void event_trace(struct pf_encoder *p, struct sequence *sequence, uint32_t key, uint64_t hi,
			uint64_t lo, bool alone)
{
	struct event *e = &p->event;
	Pf__Annotation *annotation = event_annotate(p, sequence, key);
	struct trace_number *known = &p->traces[hash_number(hi ^ lo) >> 56];

	if (known->sequence != sequence->id || known->hi != hi || known->lo != lo) {
		trace_print(e->trace_text, hi, lo);
		if (alone) {
			annotate_bytes(p, annotation, packet_bytes(e->trace_text, 32));
			return;
		}
		*known = (struct trace_number){hi, lo, sequence->id, ++p->trace_count};
		event_define_text(p, known->iid, packet_bytes(e->trace_text, 32));
	}
	annotation->value_case = PF__ANNOTATION__VALUE_STRING_VALUE_IID;
	annotation->string_value_iid = known->iid;
}

void event_add_flow(struct pf_encoder *p, uint64_t id, bool ends)
{
	if (ends)
		vec_add(&p->event.flow_ends, id);
	else
		vec_add(&p->event.flows, id);
	p->event.bound += FLOW_BOUND;
}

void event_put(struct pf_encoder *p)
{
	struct event *e = &p->event;

	e->event.n_flow_ids = e->flows.len;
	e->event.flow_ids = e->flows.data;
	e->event.n_terminating_flow_ids = e->flow_ends.len;
	e->event.terminating_flow_ids = e->flow_ends.data;
	if (e->packet.interned_data) {
		e->interned.n_event_categories = e->name_count[NAME_CATEGORY];
		e->interned.n_event_names = e->name_count[NAME_EVENT];
		e->interned.n_debug_annotation_names = e->name_count[NAME_KEY];
	}
	packet_put(&p->writer, &e->packet.base, e->bound);
}

/* ---- slices, instants and counters ---- */

static void event_flag(struct pf_encoder *p, struct sequence *sequence, uint32_t key)
{
	Pf__Annotation *annotation = event_annotate(p, sequence, key);

	annotation->value_case = PF__ANNOTATION__VALUE_BOOL_VALUE;
	annotation->bool_value = 1;
}

/* What spans and events have in common at their begin. */
static void node_begin(struct pf_encoder *p, struct sequence *sequence, Pf__EventType type,
		       uint64_t uuid, const struct site_names *names,
		       const struct export_node *node, bool alone)
{
	event_begin(p, sequence, type, uuid, node->ts);
	event_site(p, sequence, names);
	event_pointer(p, sequence, names->own[OWN_ID], node->id);
	if (node->parent_id)
		event_pointer(p, sequence, names->own[OWN_PARENT], node->parent_id);
	if (node->trace_hi | node->trace_lo)
		event_trace(p, sequence, names->own[OWN_TRACE], node->trace_hi, node->trace_lo,
			    alone);
}

static void node_values(struct pf_encoder *p, struct sequence *sequence,
			const struct site_names *names, const struct export_node *node)
{
	event_values(p, sequence, names, node);
	if (node->caused_by)
		event_pointer(p, sequence, names->own[OWN_CAUSED_BY], node->caused_by);
}

void slice_begin(struct pf_encoder *p, struct sequence *sequence, uint64_t uuid,
		 const struct site_names *names, const struct export_node *node, bool alone)
{
	node_begin(p, sequence, PF__EVENT_TYPE__SLICE_BEGIN, uuid, names, node, alone);
	if (node->has_sched) {
		event_uint(p, sequence, names->own[OWN_RUNNING], node->running_ns);
		event_uint(p, sequence, names->own[OWN_RUNNABLE], node->runnable_ns);
		event_uint(p, sequence, names->own[OWN_BLOCKED], node->blocked_ns);
	}
	if (node->begun_before)
		event_flag(p, sequence, names->own[OWN_BEGUN_BEFORE]);
	if (node->unfinished)
		event_flag(p, sequence, names->own[OWN_UNFINISHED]);
	if (node->left)
		event_flag(p, sequence, names->own[OWN_LEFT]);
	if (node->continued)
		event_flag(p, sequence, names_own(p, "continued")); /* it has no values */
	if (node->loss)
		event_flag(p, sequence, names->own[OWN_LOSS]);
	if (node->end_tid)
		event_uint(p, sequence, names->own[OWN_END_TID], node->end_tid);
	node_values(p, sequence, names, node);
}

void instant_begin(struct pf_encoder *p, struct sequence *sequence, uint64_t uuid,
		   const struct site_names *names, const struct export_node *node)
{
	node_begin(p, sequence, PF__EVENT_TYPE__INSTANT, uuid, names, node, false);
	if (node->severity)
		event_text(p, sequence, names->own[OWN_SEVERITY], node->severity,
			   strlen(node->severity));
	node_values(p, sequence, names, node);
}

void slice_end_put(struct pf_encoder *p, struct sequence *sequence, uint64_t end_ts, uint64_t uuid)
{
	Pf__EndPacket packet = PF__END_PACKET__INIT;
	Pf__EndEvent event = PF__END_EVENT__INIT;

	packet.timestamp = sequence_time(p, sequence, end_ts);
	packet.trusted_packet_sequence_id = sequence->id;
	packet.sequence_flags = SEQUENCE_NEEDS_STATE;
	packet.track_event = &event;
	event.type = PF__EVENT_TYPE__SLICE_END;
	event.has_track_uuid = uuid != 0;
	event.track_uuid = uuid;
	packet_put(&p->writer, &packet.base, 64);
}

void slice_leave_put(struct pf_encoder *p, struct sequence *sequence, uint64_t end_ts,
		     uint64_t uuid)
{
	event_begin(p, sequence, PF__EVENT_TYPE__SLICE_END, uuid, end_ts);
	event_flag(p, sequence, names_own(p, "unfinished"));
	event_put(p);
}

/* The value of a counter's hit: its first number. */
static bool counter_value(const struct export_node *node, struct value *value)
{
	struct value_walk walk = node->values;

	while (value_walk_next(&walk, value)) {
		if (value->type == WAFFLE_KEY_I64 || value->type == WAFFLE_KEY_U64 ||
		    value->type == WAFFLE_KEY_F64)
			return true;
	}
	return false;
}

void counter_put(struct pf_encoder *p, struct sequence *sequence, uint64_t uuid,
		 const struct export_node *node)
{
	Pf__TrackEvent *e = &p->event.event;
	struct value value;

	if (!counter_value(node, &value))
		return;
	event_begin(p, sequence, PF__EVENT_TYPE__COUNTER, uuid, node->ts);
	if (value.type == WAFFLE_KEY_F64) {
		e->has_double_counter_value = 1;
		e->double_counter_value = value.f64;
	} else if (value.type == WAFFLE_KEY_U64 && value.u64 > INT64_MAX) {
		e->has_double_counter_value = 1;
		e->double_counter_value = (double)value.u64;
	} else {
		e->has_counter_value = 1;
		e->counter_value = value.i64;
	}
	event_put(p);
}
