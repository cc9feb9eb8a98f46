// SPDX-License-Identifier: Apache-2.0
/* Packets about the trace itself: clocks, system, bounds, losses, and its tracks. */
#include <stdio.h>
#include <string.h>

#include "export/perfetto/encoder.h"
#include "store/record.h"

static ProtobufCBinaryData text_of(struct pf_encoder *p, const char *text)
{
	return perfetto_text(p, text, strlen(text));
}

static void put_clocks(struct pf_encoder *p, const struct store_meta *meta)
{
	/* What is on a track may be before the capture. All snapshots are at the first time. */
	uint64_t before = meta->start_ts > p->start_ts ? meta->start_ts - p->start_ts : 0;
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
		clocks[i].timestamp = rows[i].at_start > before ? rows[i].at_start - before : 0;
		list[i] = &clocks[i];
	}
	snapshot.n_clocks = ROWS;
	snapshot.clocks = list;
	snapshot.has_primary_trace_clock = 1;
	snapshot.primary_trace_clock = CLOCK_ID_BOOTTIME;
	packet_header(p, &packet, meta->start_ts - before);
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

static void put_system(struct pf_encoder *p, const struct store_meta *meta)
{
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

static void put_attributes(struct pf_encoder *p, const struct store_meta *meta, const char *filter)
{
	const struct {
		const char *key, *value;
	} rows[] = {
		{"waffle.version", meta->version}, {"waffle.command", meta->command},
		{"waffle.host", meta->hostname},   {"waffle.recorded_filter", meta->filter},
		{"waffle.filter", filter},
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
void about_bound(struct pf_encoder *p, bool end)
{
	Pf__Packet packet = PF__PACKET__INIT;
	Pf__ServiceEvent event = PF__SERVICE_EVENT__INIT;

	packet_header(p, &packet, end ? p->end_ts : p->start_ts);
	packet.service_event = &event;
	event.has_tracing_started = event.tracing_started = !end;
	event.has_tracing_disabled = event.tracing_disabled = end;
	packet_put(&p->writer, &packet.base, 0);
}

void about_begin(struct pf_encoder *p, const struct store_meta *meta, const char *filter)
{
	put_clocks(p, meta);
	put_system(p, meta);
	put_attributes(p, meta, filter);
}

void about_attribute(struct pf_encoder *p, const char *key, const char *value)
{
	Pf__Attribute attribute = PF__ATTRIBUTE__INIT, *list = &attribute;
	Pf__TraceAttributes message = PF__TRACE_ATTRIBUTES__INIT;
	Pf__Packet packet = PF__PACKET__INIT;

	p->event.scratch_len = 0;
	attribute.has_key = attribute.has_string_value = 1;
	attribute.key = packet_bytes(key, strlen(key));
	attribute.string_value = text_of(p, value);
	message.n_attribute = 1;
	message.attribute = &list;
	packet_header(p, &packet, p->start_ts);
	packet.trace_attributes = &message;
	packet_put(&p->writer, &packet.base, 0);
}

/* ---- bounds and losses ---- */

static void mark_begin(struct pf_encoder *p, struct sequence *sequence, const char *name,
		       uint64_t ts)
{
	struct site_names names = {
		.name = names_own(p, name),
		.category = names_own(p, "waffle"),
	};

	event_begin(p, sequence, PF__EVENT_TYPE__INSTANT, 0, ts);
	event_site(p, sequence, &names);
}

static void mark_uint(struct pf_encoder *p, struct sequence *sequence, const char *key,
		      uint64_t value)
{
	event_uint(p, sequence, names_own(p, key), value);
}

/* Two instants define the bounds of the trace, even if nothing happened near them. */
void about_bounds(struct pf_encoder *p, const struct store_counts *counts, const char *note)
{
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
	if (note) {
		mark_begin(p, &sequence, note, p->start_ts);
		event_put(p);
	}
}

struct sequence about_losses_begin(struct pf_encoder *p)
{
	uint64_t uuid = ++p->next_uuid;

	track_describe(p, uuid, 0, "data loss", false, p->start_ts);
	return sequence_begin(p, uuid, true);
}

void about_loss(struct pf_encoder *p, struct sequence *sequence, unsigned source, uint64_t count,
		const struct lost_window *window)
{
	const char *name = record_source_name(source);

	mark_begin(p, sequence, "records lost", window ? window->to_ts : p->end_ts);
	mark_uint(p, sequence, "count", count);
	event_text(p, sequence, names_own(p, "source"), name, strlen(name));
	if (window) {
		mark_uint(p, sequence, "cpu", window->cpu);
		mark_uint(p, sequence, "since_ns",
			  window->to_ts > window->from_ts ? window->to_ts - window->from_ts : 0);
	} else {
		event_text(p, sequence, names_own(p, "when"), "at another time", 15);
	}
	event_put(p);
}

/* In Perfetto's own form, one "buffer" for each source, so that it shows its warning. */
void about_stats(struct pf_encoder *p, const uint64_t lost[WAFFLE_SOURCE_COUNT])
{
	Pf__BufferStats buffers[WAFFLE_SOURCE_COUNT], *list[WAFFLE_SOURCE_COUNT];
	Pf__TraceStats stats = PF__TRACE_STATS__INIT;
	Pf__Packet packet = PF__PACKET__INIT;

	for (unsigned source = 0; source < WAFFLE_SOURCE_COUNT; source++) {
		pf__buffer_stats__init(&buffers[source]);
		buffers[source].has_trace_writer_packet_loss = 1;
		buffers[source].trace_writer_packet_loss = lost[source];
		list[source] = &buffers[source];
	}
	stats.n_buffer_stats = WAFFLE_SOURCE_COUNT;
	stats.buffer_stats = list;
	packet_header(p, &packet, p->end_ts);
	packet.trace_stats = &stats;
	packet_put(&p->writer, &packet.base, 0);
}

/* ---- tracks ---- */

void track_describe(struct pf_encoder *p, uint64_t uuid, uint64_t parent, const char *name,
		    bool counter, uint64_t ts)
{
	Pf__Packet packet = PF__PACKET__INIT;
	Pf__TrackDescriptor track = PF__TRACK_DESCRIPTOR__INIT;
	Pf__CounterDescriptor counter_track = PF__COUNTER_DESCRIPTOR__INIT;

	p->event.scratch_len = 0;
	packet_header(p, &packet, ts);
	packet.track_descriptor = &track;
	track.has_uuid = 1;
	track.uuid = uuid;
	track.has_parent_uuid = parent != 0;
	track.parent_uuid = parent;
	track.has_name = 1;
	track.name = perfetto_text(p, name, strlen(name));
	if (counter)
		track.counter = &counter_track;
	packet_put(&p->writer, &packet.base, 0);
}

void track_describe_process(struct pf_encoder *p, const struct track_names *process)
{
	Pf__Packet packet = PF__PACKET__INIT;
	Pf__TrackDescriptor track = PF__TRACK_DESCRIPTOR__INIT;
	Pf__ProcessDescriptor descriptor = PF__PROCESS_DESCRIPTOR__INIT;
	ProtobufCBinaryData line;

	p->event.scratch_len = 0;
	packet_header(p, &packet, process->ts);
	packet.track_descriptor = &track;
	track.has_uuid = 1;
	track.uuid = process->uuid;
	track.process = &descriptor;
	descriptor.has_pid = 1;
	descriptor.pid = (int32_t)process->pid;
	if (*process->cmdline) {
		line = text_of(p, process->cmdline);
		descriptor.n_cmdline = 1;
		descriptor.cmdline = &line;
	}
	if (process->name) {
		descriptor.has_process_name = 1;
		descriptor.process_name = text_of(p, process->name);
	}
	packet_put(&p->writer, &packet.base, 0);
}

void track_describe_thread(struct pf_encoder *p, const struct track_names *thread,
			   uint64_t process_uuid)
{
	Pf__Packet packet = PF__PACKET__INIT;
	Pf__TrackDescriptor track = PF__TRACK_DESCRIPTOR__INIT;
	Pf__ThreadDescriptor descriptor = PF__THREAD_DESCRIPTOR__INIT;

	p->event.scratch_len = 0;
	packet_header(p, &packet, thread->ts);
	packet.track_descriptor = &track;
	track.has_uuid = 1;
	track.uuid = thread->uuid;
	track.has_parent_uuid = 1;
	track.parent_uuid = process_uuid;
	track.thread = &descriptor;
	descriptor.has_pid = descriptor.has_tid = 1;
	descriptor.pid = (int32_t)thread->pid;
	descriptor.tid = thread->tid;
	if (*thread->name) {
		descriptor.has_thread_name = 1;
		descriptor.thread_name = text_of(p, thread->name);
	}
	packet_put(&p->writer, &packet.base, 0);
}
