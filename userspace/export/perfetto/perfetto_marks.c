// SPDX-License-Identifier: Apache-2.0
/* Packets about the trace itself (clocks, system, bounds, losses), and the counters. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "export/perfetto/perfetto_internal.h"
#include "render/clock_text.h"
#include "render/text/notices.h"
#include "util/memory.h"

static ProtobufCBinaryData text_of(struct perfetto *p, const char *text)
{
	return perfetto_text(p, text, strlen(text));
}

static void put_clocks(struct perfetto *p)
{
	const struct store_meta *meta = p->model->meta;
	const struct {
		uint32_t id;
		uint64_t at_start;
	} rows[] = {
		{CLOCK_ID_BOOTTIME, meta->boot_ns},
		{CLOCK_ID_MONOTONIC, meta->start_ts},
		{CLOCK_ID_REALTIME, meta->real_ns},
	};
	enum { ROWS = sizeof(rows) / sizeof(rows[0]) };
	Pf__Clock clocks[ROWS], *list[ROWS];
	Pf__ClockSnapshot snapshot = PF__CLOCK_SNAPSHOT__INIT;
	Pf__Packet packet = PF__PACKET__INIT;

	for (int i = 0; i < ROWS; i++) {
		pf__clock__init(&clocks[i]);
		clocks[i].clock_id = rows[i].id;
		clocks[i].timestamp = rows[i].at_start;
		list[i] = &clocks[i];
	}
	snapshot.n_clocks = ROWS;
	snapshot.clocks = list;
	snapshot.has_primary_trace_clock = 1;
	snapshot.primary_trace_clock = CLOCK_ID_BOOTTIME;
	packet_header(p, &packet, meta->start_ts);
	packet.sequence_flags = SEQUENCE_CLEARED | SEQUENCE_NEEDS_STATE;
	packet.clock_snapshot = &snapshot;
	packet_put(&p->writer, &packet.base, 0);
}

/*
 * A kernel release that Perfetto can parse: "X.Y." and more, at least 4.14. Perfetto chooses the
 * meaning of the bits of prev_state by it, and ours always have the current meaning.
 */
static const char *readable_release(const char *release)
{
	unsigned major, minor;
	int end = 0;

	if (sscanf(release, "%3u.%3u.%n", &major, &minor, &end) == 2 && end > 0 &&
	    (major > 4 || (major == 4 && minor >= 14)))
		return release;
	return "6.0.0-unknown";
}

static void put_system(struct perfetto *p)
{
	const struct store_meta *meta = p->model->meta;
	Pf__Packet packet = PF__PACKET__INIT;
	Pf__SystemInfo info = PF__SYSTEM_INFO__INIT;
	Pf__Utsname name = PF__UTSNAME__INIT;

	packet_header(p, &packet, meta->start_ts);
	packet.system_info = &info;
	info.utsname = &name;
	name.has_sysname = name.has_release = 1;
	name.sysname = packet_bytes("Linux", 5);
	name.release = text_of(p, readable_release(meta->kernel));
	name.has_machine = *meta->machine != 0;
	name.machine = text_of(p, meta->machine);
	info.has_num_cpus = meta->cpu_count != 0;
	info.num_cpus = meta->cpu_count;
	packet_put(&p->writer, &packet.base, 0);
}

/* One attribute a host, since their number is not bounded. */
static void put_hosts(struct perfetto *p)
{
	for (uint32_t i = 0; p->model->host_count > 1 && i < p->model->host_count; i++) {
		const struct store_host *host = p->model->hosts[i];
		Pf__Attribute attribute = PF__ATTRIBUTE__INIT, *list = &attribute;
		Pf__TraceAttributes message = PF__TRACE_ATTRIBUTES__INIT;
		Pf__Packet packet = PF__PACKET__INIT;
		char key[32], clock[CLOCK_TEXT], value[CLOCK_TEXT + 256];

		p->event.scratch_len = 0;
		snprintf(key, sizeof(key), "waffle.host.%" PRIu32, i);
		snprintf(value, sizeof(value), "%.200s: %s", host->name,
			 clock_text(clock, &host->clock));
		attribute.has_key = attribute.has_string_value = 1;
		attribute.key = packet_bytes(key, strlen(key));
		attribute.string_value = text_of(p, value);
		message.n_attribute = 1;
		message.attribute = &list;
		packet_header(p, &packet, p->model->meta->start_ts);
		packet.trace_attributes = &message;
		packet_put(&p->writer, &packet.base, 0);
	}
}

static void put_attributes(struct perfetto *p)
{
	const struct store_meta *meta = p->model->meta;
	const struct {
		const char *key, *value;
	} rows[] = {
		{"waffle.version", meta->version},
		{"waffle.command", meta->command},
		{"waffle.host", meta->hostname},
		{"waffle.recorded_filter", meta->filter},
		{"waffle.filter", p->model->filtered.expression},
	};
	enum { ROWS = sizeof(rows) / sizeof(rows[0]) };
	Pf__Attribute attributes[ROWS], *list[ROWS];
	Pf__TraceAttributes message = PF__TRACE_ATTRIBUTES__INIT;
	Pf__Packet packet = PF__PACKET__INIT;
	unsigned count = 0;

	p->event.scratch_len = 0;
	for (int i = 0; i < ROWS; i++) {
		Pf__Attribute *attribute = &attributes[count];

		if (!rows[i].value || !*rows[i].value)
			continue;
		pf__attribute__init(attribute);
		attribute->has_key = attribute->has_string_value = 1;
		attribute->key = packet_bytes(rows[i].key, strlen(rows[i].key));
		attribute->string_value = text_of(p, rows[i].value);
		list[count++] = attribute;
	}
	message.n_attribute = count;
	message.attribute = list;
	packet_header(p, &packet, meta->start_ts);
	packet.trace_attributes = &message;
	packet_put(&p->writer, &packet.base, 0);
}

/* Writes the start or the end of the capture. Perfetto initially shows the time between the two. */
static void put_bound(struct perfetto *p, bool end)
{
	Pf__Packet packet = PF__PACKET__INIT;
	Pf__ServiceEvent event = PF__SERVICE_EVENT__INIT;

	packet_header(p, &packet, end ? p->end_ts : p->start_ts);
	packet.service_event = &event;
	event.has_tracing_started = event.tracing_started = !end;
	event.has_tracing_disabled = event.tracing_disabled = end;
	packet_put(&p->writer, &packet.base, 0);
}

void perfetto_head(struct perfetto *p)
{
	p->trace.id = ++p->sequences;
	put_clocks(p);
	put_system(p);
	put_attributes(p);
	put_hosts(p);
	put_bound(p, false);
}

/* ---- the end: bounds and losses ---- */

static void mark_begin(struct perfetto *p, struct sequence *sequence, const char *name, uint64_t ts)
{
	struct site_names names = {
		.name = names_own(p, name),
		.category = names_own(p, "waffle"),
	};

	event_begin(p, sequence, PF__EVENT_TYPE__INSTANT, 0, ts);
	event_site(p, sequence, &names);
}

static void mark_uint(struct perfetto *p, struct sequence *sequence, const char *key,
		      uint64_t value)
{
	event_uint(p, sequence, names_own(p, key), value);
}

/* Two instants define the bounds of the trace, even if nothing happened near them. */
static void put_capture_track(struct perfetto *p)
{
	const struct store_counts *counts = &p->model->counts;
	uint64_t uuid = ++p->next_uuid;
	struct sequence sequence;

	track_describe(p, uuid, 0, "capture", false, p->start_ts);
	sequence = sequence_begin(p, uuid, true);
	mark_begin(p, &sequence, "capture begins", p->start_ts);
	event_put(p);
	mark_begin(p, &sequence, "capture ends", p->end_ts);
	mark_uint(p, &sequence, "produced", counts->produced);
	mark_uint(p, &sequence, "delivered", counts->delivered);
	mark_uint(p, &sequence, "lost", counts->lost);
	event_put(p);
	if (notice_simulated(p->model)) {
		mark_begin(p, &sequence, notice_simulated(p->model), p->start_ts);
		event_put(p);
	}
}

/* Counts the lost records of a source: all, and those with a known time. */
static void count_losses(const struct model *m, unsigned source, uint64_t *all, uint64_t *marked)
{
	*marked = 0;
	for (size_t i = 0; i < m->losses.len; i++) {
		if (m->losses.data[i].source == source)
			*marked += m->losses.data[i].count;
	}
	*all = m->sources[source].lost;
	if (*all < *marked)
		*all = *marked;
}

static void loss_put(struct perfetto *p, struct sequence *sequence, uint64_t ts, unsigned source,
		     uint64_t count, const struct model_loss *loss)
{
	const char *name = record_source_name(source);

	mark_begin(p, sequence, "records lost", ts);
	mark_uint(p, sequence, "count", count);
	event_text(p, sequence, names_own(p, "source"), name, strlen(name));
	if (loss) {
		mark_uint(p, sequence, "cpu", loss->cpu);
		mark_uint(p, sequence, "since_ns",
			  loss->to_ts > loss->from_ts ? loss->to_ts - loss->from_ts : 0);
	} else {
		event_text(p, sequence, names_own(p, "when"), "at another time", 15);
	}
	event_put(p);
}

static void put_losses(struct perfetto *p)
{
	const struct model *m = p->model;
	uint64_t all[WAFFLE_SOURCE_COUNT], marked[WAFFLE_SOURCE_COUNT], lost = 0, uuid;
	struct sequence sequence;

	for (unsigned source = 0; source < WAFFLE_SOURCE_COUNT; source++) {
		count_losses(m, source, &all[source], &marked[source]);
		lost += all[source];
	}
	if (!lost)
		return;
	uuid = ++p->next_uuid;
	track_describe(p, uuid, 0, "data loss", false, p->start_ts);
	sequence = sequence_begin(p, uuid, true);
	for (size_t i = 0; i < m->losses.len; i++) {
		const struct model_loss *loss = &m->losses.data[i];

		loss_put(p, &sequence, loss->to_ts, loss->source, loss->count, loss);
	}
	/* Losses outside the exported window, or at the end of a truncated file. */
	for (unsigned source = 0; source < WAFFLE_SOURCE_COUNT; source++) {
		if (all[source] > marked[source])
			loss_put(p, &sequence, p->end_ts, source, all[source] - marked[source],
				 NULL);
	}
}

/* Reports the losses in Perfetto's own form, one "buffer" for each source, so that it shows its
 * warning. */
static void put_stats(struct perfetto *p)
{
	const struct model *m = p->model;
	Pf__BufferStats buffers[WAFFLE_SOURCE_COUNT], *list[WAFFLE_SOURCE_COUNT];
	Pf__TraceStats stats = PF__TRACE_STATS__INIT;
	Pf__Packet packet = PF__PACKET__INIT;

	for (unsigned source = 0; source < WAFFLE_SOURCE_COUNT; source++) {
		uint64_t all, marked;

		count_losses(m, source, &all, &marked);
		pf__buffer_stats__init(&buffers[source]);
		buffers[source].has_trace_writer_packet_loss = 1;
		buffers[source].trace_writer_packet_loss = all;
		list[source] = &buffers[source];
	}
	stats.n_buffer_stats = WAFFLE_SOURCE_COUNT;
	stats.buffer_stats = list;
	packet_header(p, &packet, p->end_ts);
	packet.trace_stats = &stats;
	packet_put(&p->writer, &packet.base, 0);
}

void perfetto_tail(struct perfetto *p)
{
	put_capture_track(p);
	put_losses(p);
	put_bound(p, true);
	put_stats(p);
}

/* ---- counters ---- */

/* The value of a counter's hit: its first number. */
static bool counter_value(const struct perfetto *p, const struct model_event *event,
			  struct value *value)
{
	struct value_walk walk = model_values(p->model, event->site, event->frame);

	while (value_walk_next(&walk, value)) {
		if (value->type == WAFFLE_KEY_I64 || value->type == WAFFLE_KEY_U64 ||
		    value->type == WAFFLE_KEY_F64)
			return true;
	}
	return false;
}

static void counter_put(struct perfetto *p, struct sequence *sequence,
			const struct model_event *event, uint64_t uuid)
{
	Pf__TrackEvent *e = &p->event.event;
	struct value value;

	if (!counter_value(p, event, &value))
		return;
	event_begin(p, sequence, PF__EVENT_TYPE__COUNTER, uuid, event->ts);
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

/* The track of a process's counter. It is described at the counter's first value. */
static uint64_t counter_track(struct perfetto *p, struct map *tracks,
			      const struct model_event *event)
{
	uint64_t process = tracks_process_uuid(p, event->thread);
	uint32_t name = names_of_site(p, event->site)->name;
	uint32_t uuid = map_get(tracks, process << 32 | name);

	if (uuid != MAP_NONE)
		return uuid;
	uuid = (uint32_t)++p->next_uuid;
	map_put(tracks, process << 32 | name, uuid);
	track_describe(p, uuid, process, strtab_get(p->names.text, name), true, p->start_ts);
	return uuid;
}

void perfetto_counters(struct perfetto *p)
{
	const struct model *m = p->model;
	struct sequence sequence = {0};
	struct map tracks = {0};

	for (size_t i = 0; i < m->events.len; i++) {
		const struct model_event *event = &m->events.data[i];
		uint64_t uuid;

		if (model_site(m, event->site)->kind != WAFFLE_SITE_COUNTER)
			continue;
		uuid = counter_track(p, &tracks, event);
		if (!sequence.id)
			sequence = sequence_begin(p, 0, true);
		counter_put(p, &sequence, event, uuid);
	}
	map_free(&tracks);
}
