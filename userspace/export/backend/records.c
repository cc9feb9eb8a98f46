// SPDX-License-Identifier: Apache-2.0
#include "export/backend/records_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/backend/causes.h"
#include "export/backend/processes_internal.h"
#include "util/memory.h"

#define ATTRIBUTES_MAX 18
#define DIMS_MAX 4 /* values of three numbers, such as a kernel's grid */
/* A batch with so many bytes of values gets no further record. The events inside of spans count,
 * too, which may be many: servers limit the size of a request. */
#define BATCH_BYTES (256u << 10)
/* About what a record takes besides its values, such as its name, times and attributes. */
#define RECORD_BYTES 256u

/* A record with all that it points to. */
struct record_slot {
	struct full_record full;
	struct record_facts facts;
	struct waffle_value attributes[ATTRIBUTES_MAX];
	VEC(struct record_fact_link) links;
	VEC(unsigned char) frame;
	char dims[DIMS_MAX][48], missing[20];
};

struct model_records {
	const struct model *model;
	int64_t unix_offset_ns;
	struct span_causes causes;
	struct process_facts *processes;
	/* Indexes of events by the span around them: those of span s are
	 * events[first_event[s]] up to first_event[s + 1]. Events outside of spans are the last. */
	uint32_t *events, *first_event;
	size_t next_span, next_alone, next_counter;
	VEC(uint32_t) alone; /* events that become records of their own */
	struct record_slot *slots;
	size_t batch_bytes; /* of the batch that is being made, about */
	struct full_record *list[MODEL_RECORDS_BATCH];
};

/* ---- events by span ---- */

static bool is_counter(const struct model *model, const struct model_event *event)
{
	return model_site(model, event->site)->kind == WAFFLE_SITE_COUNTER;
}

static size_t place_of(const struct model *model, const struct model_event *event)
{
	return event->parent < model->spans.len ? event->parent : model->spans.len;
}

static void events_sort(struct model_records *records)
{
	const struct model *model = records->model;
	size_t spans = model->spans.len;
	uint32_t *next;

	records->events = memory_get(model->events.len * sizeof(*records->events) + 1);
	records->first_event = memory_zeroed(spans + 2, sizeof(*records->first_event));
	for (size_t i = 0; i < model->events.len; i++)
		if (!is_counter(model, &model->events.data[i]))
			records->first_event[place_of(model, &model->events.data[i]) + 1]++;
	for (size_t i = 0; i <= spans; i++)
		records->first_event[i + 1] += records->first_event[i];
	next = memory_get((spans + 1) * sizeof(*next));
	memcpy(next, records->first_event, (spans + 1) * sizeof(*next));
	for (size_t i = 0; i < model->events.len; i++)
		if (!is_counter(model, &model->events.data[i]))
			records->events[next[place_of(model, &model->events.data[i])]++] =
				(uint32_t)i;
	free(next);
}

/* Whether an event is shown inside of its span. */
static bool is_inside(const struct model_records *records, size_t span, size_t at)
{
	return span < records->model->spans.len &&
	       at - records->first_event[span] < MODEL_RECORDS_EVENTS_MAX;
}

static void alone_find(struct model_records *records)
{
	for (size_t span = 0; span <= records->model->spans.len; span++)
		for (size_t at = records->first_event[span]; at < records->first_event[span + 1];
		     at++)
			if (!is_inside(records, span, at))
				vec_add(&records->alone, records->events[at]);
}

/* ---- attributes ---- */

/* Values that a record of a chain can't have. */
static void dims_add(struct record_slot *slot, struct attribute_list *list, struct value_walk walk)
{
	struct value value;
	unsigned count = 0;

	while (count < DIMS_MAX && value_walk_next(&walk, &value)) {
		if (value.type != WAFFLE_KEY_DIM3)
			continue;
		snprintf(slot->dims[count], sizeof(slot->dims[count]), "%u,%u,%u", value.dim[0],
			 value.dim[1], value.dim[2]);
		attribute_text(list, value.key->name, slot->dims[count++]);
	}
}

static void cause_add(const struct model_records *records, struct attribute_list *list,
		      const struct model_span *span)
{
	const struct model *model = records->model;
	const struct span_cause *cause =
		span_causes_of(&records->causes, (uint32_t)(span - model->spans.data));
	const struct model_process *own = model_process_of(model, span->thread), *culprit;

	if (!cause)
		return;
	attribute_text(list, "waffle.cause", why_causes[cause->cause].name);
	attribute_number(list, "waffle.cause.duration_ns", cause->ns);
	attribute_text(list, "waffle.cause.grade", why_grade_names[cause->grade]);
	attribute_text(list, "waffle.cause.object",
		       strtab_get(records->causes.why->texts, cause->object));
	if (cause->thread == MODEL_NONE || cause->thread == span->thread)
		return;
	attribute_text(list, "waffle.cause.thread", model_thread_name(model, cause->thread));
	culprit = model_process_of(model, cause->thread);
	if (culprit && culprit != own && culprit->rank != MODEL_NONE)
		attribute_number(list, "waffle.cause.rank", culprit->rank);
}

static void span_attributes(const struct model_records *records, struct attribute_list *list,
			    const struct model_span *span)
{
	uint64_t ns = span->end_ts - span->start_ts;

	if (span->flags & MODEL_SPAN_HAS_SCHED) {
		attribute_number(list, "waffle.running_ns", span->running_ns);
		attribute_number(list, "waffle.runnable_ns", span->runnable_ns);
		attribute_number(list, "waffle.blocked_ns",
				 ns - span->running_ns - span->runnable_ns);
	}
	attribute_flag(list, "waffle.begun_before", span->flags & MODEL_SPAN_BEGUN_BEFORE);
	attribute_flag(list, "waffle.loss", span->flags & MODEL_SPAN_LOSS);
	cause_add(records, list, span);
}

/* ---- links ---- */

/* A trace that is not known is that of the record alone, as the encoders have it. */
static struct record_fact_link link_of(uint64_t hi, uint64_t lo, uint64_t id)
{
	return (struct record_fact_link){.trace_hi = hi, .trace_lo = hi | lo ? lo : id, .id = id};
}

static bool link_resolve(const struct model *model, const struct model_link *link,
			 struct record_fact_link *made)
{
	const struct model_span *span = NULL;
	const struct model_event *event = NULL;

	if (link->to_kind == MODEL_NODE_EVENT && link->to < model->events.len)
		event = &model->events.data[link->to];
	else if (link->to_kind == MODEL_NODE_SPAN && link->to < model->spans.len)
		span = &model->spans.data[link->to];
	if (event && event->parent < model->spans.len)
		span = &model->spans.data[event->parent];
	if (span)
		*made = link_of(model_context_of(model, span)->trace_hi,
				model_context_of(model, span)->trace_lo, span->id);
	else if (event)
		*made = link_of(event->trace_hi, event->trace_lo, event->id);
	else
		return false;
	if (event)
		made->to_event = model_site(model, event->site)->name;
	return true;
}

static void links_add(const struct model_records *records, struct record_slot *slot,
		      struct attribute_list *list, uint8_t kind, uint32_t index,
		      const char *from_event)
{
	const struct model *model = records->model;
	size_t first, count;

	if (!model->links.len)
		return;
	count = model_links_from(model, kind, index, &first);
	for (size_t i = 0; i < count; i++) {
		const struct model_link *link = &model->links.data[first + i];
		struct record_fact_link made;

		if (link_resolve(model, link, &made)) {
			made.from_event = from_event;
			/* An event that caused another one in the same span. */
			if (made.id != slot->full.record.id)
				vec_add(&slot->links, made);
		} else if (!*slot->missing) {
			/* Without its trace it can't be a link. */
			snprintf(slot->missing, sizeof(slot->missing), "%016" PRIx64, link->to_id);
			attribute_text(list, "waffle.cause_not_recorded", slot->missing);
		}
	}
}

/* ---- records ---- */

static void frame_fill(struct record_slot *slot, struct value_walk walk)
{
	size_t bytes = walk.at ? (size_t)(walk.end - walk.at) : 0;

	slot->frame.len = 0;
	vec_need(&slot->frame, sizeof(struct waffle_frame) + bytes);
	memset(slot->frame.data, 0, sizeof(struct waffle_frame));
	if (bytes)
		memcpy(slot->frame.data + sizeof(struct waffle_frame), walk.at, bytes);
	slot->full.frame = slot->frame.data;
	slot->full.frame_bytes = (uint32_t)(sizeof(struct waffle_frame) + bytes);
}

/* What spans and events have in common. */
static void slot_fill(struct model_records *records, struct record_slot *slot, uint32_t site,
		      uint32_t thread, struct value_walk walk)
{
	const struct model *model = records->model;
	const struct site_info *info = model_site(model, site);
	const struct model_thread *of =
		thread < model->threads.len ? &model->threads.data[thread] : NULL;
	bool track = model_is_track(model, thread);

	slot->links.len = 0;
	*slot->missing = '\0';
	slot->facts = (struct record_facts){.attributes = slot->attributes};
	slot->facts.resource =
		process_facts_of(records->processes, thread, &slot->facts.resource_count);
	slot->full = (struct full_record){
		.record = {.size = sizeof(slot->full.record),
			   .name = info->name,
			   .category = info->category,
			   .severity = site_severity(info->kind) ?: "",
			   .file = info->file,
			   .func = info->func,
			   .line = info->line,
			   .unix_offset_ns = records->unix_offset_ns,
			   /* Unlike its real one, it is no other host's. */
			   .pid = of ? of->pid : 0,
			   .tid = of ? model_pid_real(model, of->tid) : 0,
			   .comm = of ? model_thread_name(model, thread) : "",
			   .track = track ? strtab_get(model->strings, of->track_name) : "",
			   .track_group = track ? strtab_get(model->strings, of->group) : ""},
		.site = info,
		.depth = -1,
		.facts = &slot->facts,
	};
	frame_fill(slot, walk);
	records->batch_bytes += RECORD_BYTES + slot->full.frame_bytes;
}

static void event_fill(struct model_records *records, struct record_slot *slot, uint32_t index)
{
	const struct model_event *event = &records->model->events.data[index];
	struct value_walk walk = model_values(records->model, event->site, event->frame);
	struct attribute_list list = {slot->attributes, 0, ATTRIBUTES_MAX};
	struct waffle_record *record = &slot->full.record;

	slot_fill(records, slot, event->site, event->thread, walk);
	record->kind = is_counter(records->model, event)         ? WAFFLE_RECORD_COUNTER
		       : site_kind_is_log(slot->full.site->kind) ? WAFFLE_RECORD_LOG
								 : WAFFLE_RECORD_EVENT;
	record->id = event->id;
	record->parent = event->parent_id;
	record->trace_hi = event->trace_hi;
	record->trace_lo = event->trace_lo;
	record->start_ns = record->end_ns = event->ts;
	record->end_tid = record->tid;
	dims_add(slot, &list, walk);
	links_add(records, slot, &list, MODEL_NODE_EVENT, index, NULL);
	slot->facts.attribute_count = list.count;
	slot->facts.links = slot->links.data;
	slot->facts.link_count = slot->links.len;
}

/* The events of a span wait for it, as they do in a chain. */
static void events_add(struct model_records *records, struct record_slot *slot,
		       struct attribute_list *list, struct pending_events *pending, uint32_t index)
{
	const struct model *model = records->model;
	struct record_slot *spare = &records->slots[MODEL_RECORDS_BATCH];

	for (size_t at = records->first_event[index];
	     at < records->first_event[index + 1] && is_inside(records, index, at); at++) {
		const char *name;

		event_fill(records, spare, records->events[at]);
		spare->full.record.parent = model->spans.data[index].id;
		/* Its facts do not live as long as its copy, and its span has its links. */
		spare->full.facts = NULL;
		memory_require(pending_events_add(pending, &spare->full, 0));
		name = spare->full.record.name;
		links_add(records, slot, list, MODEL_NODE_EVENT, records->events[at], name);
	}
}

static void span_fill(struct model_records *records, struct record_slot *slot, uint32_t index,
		      struct pending_events *pending)
{
	const struct model *model = records->model;
	const struct model_span *span = &model->spans.data[index];
	const struct model_context *context = model_context_of(model, span);
	struct value_walk walk = model_values(model, span->site, span->frame);
	struct attribute_list list = {slot->attributes, 0, ATTRIBUTES_MAX};
	struct waffle_record *record = &slot->full.record;

	slot_fill(records, slot, span->site, span->thread, walk);
	record->kind = WAFFLE_RECORD_SPAN;
	record->flags = (span->flags & MODEL_SPAN_UNFINISHED ? WAFFLE_RECORD_UNFINISHED : 0) |
			(span->flags & MODEL_SPAN_MOVED ? WAFFLE_RECORD_MOVED : 0) |
			(span->flags & MODEL_SPAN_LEFT ? WAFFLE_RECORD_LEFT : 0);
	record->cpu = span->cpu;
	record->id = span->id;
	record->parent = context->parent_id;
	record->trace_hi = context->trace_hi;
	record->trace_lo = context->trace_lo;
	record->start_ns = span->start_ts;
	record->end_ns = span->end_ts;
	record->end_tid = span->end_thread < model->threads.len
				  ? model_pid_real(model, model->threads.data[span->end_thread].tid)
				  : record->tid;
	span_attributes(records, &list, span);
	dims_add(slot, &list, walk);
	links_add(records, slot, &list, MODEL_NODE_SPAN, index, NULL);
	events_add(records, slot, &list, pending, index);
	slot->facts.attribute_count = list.count;
	slot->facts.links = slot->links.data;
	slot->facts.link_count = slot->links.len;
}

struct model_records *model_records_open(const struct model *model)
{
	struct model_records *records = memory_zeroed(1, sizeof(*records));

	records->model = model;
	records->unix_offset_ns = (int64_t)(model->meta->real_ns - model->meta->start_ts);
	records->processes = process_facts_open(model);
	/* One more for the events of a span. */
	records->slots = memory_zeroed(MODEL_RECORDS_BATCH + 1, sizeof(*records->slots));
	events_sort(records);
	alone_find(records);
	return records;
}

void model_records_close(struct model_records *records)
{
	for (size_t i = 0; i <= MODEL_RECORDS_BATCH; i++) {
		vec_free(&records->slots[i].links);
		vec_free(&records->slots[i].frame);
	}
	free(records->slots);
	free(records->events);
	free(records->first_event);
	vec_free(&records->alone);
	process_facts_close(records->processes);
	span_causes_free(&records->causes);
	free(records);
}

/* ---- batches ---- */

struct passing {
	struct model_records *records;
	struct pending_events *pending;
	model_records_fn take;
	void *arg;
	bool ended; /* there are no more, or take() wants no more */
};

static bool has_room(const struct model_records *records, size_t count)
{
	return count < MODEL_RECORDS_BATCH && records->batch_bytes < BATCH_BYTES;
}

/* Returns their number. */
static size_t batch_make(struct model_records *records, struct pending_events *pending)
{
	const struct model *model = records->model;
	size_t count = 0;

	records->batch_bytes = 0;
	while (has_room(records, count) && records->next_span < model->spans.len)
		span_fill(records, &records->slots[count++], (uint32_t)records->next_span++,
			  pending);
	while (has_room(records, count) && records->next_alone < records->alone.len)
		event_fill(records, &records->slots[count++],
			   records->alone.data[records->next_alone++]);
	for (size_t i = 0; i < count; i++)
		records->list[i] = &records->slots[i].full;
	return count;
}

static void batch_pass(struct passing *passing)
{
	size_t count = batch_make(passing->records, passing->pending);

	passing->ended = !count || passing->take(passing->records->list, count, passing->arg);
}

/* Passes on the batches of which all spans are explained. */
static int explained_pass(uint32_t span, void *arg)
{
	struct passing *passing = arg;

	while (passing->records->next_span + MODEL_RECORDS_BATCH <= (size_t)span + 1 &&
	       !passing->ended)
		batch_pass(passing);
	return passing->ended;
}

int model_records_each(struct model_records *records, bool causes, struct pending_events *pending,
		       model_records_fn take, void *arg, struct error *err)
{
	struct passing passing = {records, pending, take, arg, false};
	int result = 0;

	if (causes)
		result = span_causes_load(&records->causes, records->model, explained_pass,
					  &passing, err);
	while (!result && !passing.ended)
		batch_pass(&passing);
	return result;
}

size_t model_records_next_counters(struct model_records *records, struct full_record *const **list)
{
	const struct model *model = records->model;
	size_t count = 0;

	for (; count < MODEL_RECORDS_BATCH && records->next_counter < model->events.len;
	     records->next_counter++)
		if (is_counter(model, &model->events.data[records->next_counter]))
			event_fill(records, &records->slots[count++],
				   (uint32_t)records->next_counter);
	for (size_t i = 0; i < count; i++)
		records->list[i] = &records->slots[i].full;
	*list = records->list;
	return count;
}

const struct full_record *model_records_event(struct model_records *records, uint32_t event)
{
	event_fill(records, &records->slots[MODEL_RECORDS_BATCH], event);
	return &records->slots[MODEL_RECORDS_BATCH].full;
}

uint64_t model_records_count(const struct model_records *records)
{
	size_t spans = records->model->spans.len;

	return spans + records->first_event[spans + 1];
}
