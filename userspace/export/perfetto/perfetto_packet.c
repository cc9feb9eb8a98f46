// SPDX-License-Identifier: Apache-2.0
/* Packets: buffering, writing to the file, sequences, and interned names. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/perfetto/perfetto_internal.h"
#include "util/memory.h"

#define BUFFER_BYTES ((size_t)4 << 20)
/* Precedes a packet: the tag of Trace.packet and a length of up to five bytes. */
#define FRAMING_MAX 6
#define PACKET_TAG 0x0a

static int write_buffer(FILE *out, const uint8_t *data, size_t len)
{
	errno = 0;
	if (fwrite(data, 1, len, out) == len)
		return 0;
	return errno ? -errno : -EIO;
}

/* The thread: writes each full buffer until there are no more. */
static void *write_full(void *arg)
{
	struct packet_writer *writer = arg;

	pthread_mutex_lock(&writer->lock);
	for (;;) {
		int error;

		while (!writer->full_len && !writer->done)
			pthread_cond_wait(&writer->changed, &writer->lock);
		if (!writer->full_len)
			break;
		pthread_mutex_unlock(&writer->lock);
		error = writer->write_error
				?: write_buffer(writer->out, writer->full, writer->full_len);
		pthread_mutex_lock(&writer->lock);
		writer->write_error = error;
		writer->full_len = 0;
		pthread_cond_signal(&writer->changed);
	}
	pthread_mutex_unlock(&writer->lock);
	return NULL;
}

void packet_writer_begin(struct packet_writer *writer, FILE *out)
{
	*writer = (struct packet_writer){.out = out, .cap = BUFFER_BYTES, .full_cap = BUFFER_BYTES};
	writer->buf = memory_get(writer->cap);
	writer->full = memory_get(writer->full_cap);
	pthread_mutex_init(&writer->lock, NULL);
	pthread_cond_init(&writer->changed, NULL);
	writer->threaded = pthread_create(&writer->thread, NULL, write_full, writer) == 0;
}

/* Passes the buffer to the thread, after that has written the previous one, and continues with the
 * other buffer. Without a thread it writes the buffer itself. */
static void write_out(struct packet_writer *writer)
{
	uint8_t *buf = writer->buf;
	size_t cap = writer->cap;

	if (!writer->threaded) {
		writer->error = writer->error ?: write_buffer(writer->out, buf, writer->len);
		writer->len = 0;
		return;
	}
	pthread_mutex_lock(&writer->lock);
	while (writer->full_len)
		pthread_cond_wait(&writer->changed, &writer->lock);
	writer->error = writer->error ?: writer->write_error;
	writer->buf = writer->full;
	writer->cap = writer->full_cap;
	writer->full = buf;
	writer->full_cap = cap;
	writer->full_len = writer->len;
	writer->len = 0;
	pthread_cond_signal(&writer->changed);
	pthread_mutex_unlock(&writer->lock);
}

int packet_writer_end(struct packet_writer *writer)
{
	write_out(writer);
	if (writer->threaded) {
		pthread_mutex_lock(&writer->lock);
		writer->done = true;
		pthread_cond_signal(&writer->changed);
		pthread_mutex_unlock(&writer->lock);
		pthread_join(writer->thread, NULL);
	}
	free(writer->buf);
	free(writer->full);
	return writer->error ?: writer->write_error;
}

static void make_room(struct packet_writer *writer, size_t bytes)
{
	if (bytes <= writer->cap - writer->len)
		return;
	write_out(writer);
	if (bytes <= writer->cap)
		return;
	writer->buf = memory_resize(writer->buf, bytes, 1);
	writer->cap = bytes;
}

void packet_put(struct packet_writer *writer, const ProtobufCMessage *message, size_t bound)
{
	size_t size, framing = 2;
	uint8_t *at;

	if (bound == 0)
		bound = protobuf_c_message_get_packed_size(message);
	make_room(writer, bound + FRAMING_MAX);
	/* Most packets are short, so this assumes a length of one byte and moves longer packets. */
	at = writer->buf + writer->len;
	size = protobuf_c_message_pack(message, at + framing);
	for (size_t rest = size; rest >= 0x80; rest >>= 7)
		framing++;
	if (framing != 2)
		memmove(at + framing, at + 2, size);
	*at++ = PACKET_TAG;
	for (size_t rest = size;; rest >>= 7) {
		*at++ = (uint8_t)(rest >= 0x80 ? rest | 0x80 : rest);
		if (rest < 0x80)
			break;
	}
	writer->len += framing + size;
}

uint64_t perfetto_time(const struct perfetto *p, uint64_t ts)
{
	const struct store_meta *meta = p->model->meta;

	if (ts < p->start_ts)
		ts = p->start_ts;
	if (ts > p->end_ts)
		ts = p->end_ts;
	return ts - meta->start_ts + meta->boot_ns;
}

ProtobufCBinaryData perfetto_text(struct perfetto *p, const char *text, size_t len)
{
	struct event *e = &p->event;
	char *at = e->scratch + e->scratch_len;
	size_t room = SCRATCH_BYTES - e->scratch_len;

	if (utf8_valid(text, len) == len)
		return packet_bytes(text, len);
	if (UTF8_CLEAN_MAX(len) > room)
		len = room / 3;
	len = utf8_clean(text, len, at);
	e->scratch_len += len;
	return packet_bytes(at, len);
}

void packet_header(struct perfetto *p, Pf__Packet *packet, uint64_t ts)
{
	packet->has_timestamp = 1;
	packet->timestamp = perfetto_time(p, ts);
	packet->has_trusted_packet_sequence_id = 1;
	packet->trusted_packet_sequence_id = p->trace.id;
	packet->has_sequence_flags = 1;
	packet->sequence_flags = SEQUENCE_NEEDS_STATE;
}

struct sequence sequence_begin(struct perfetto *p, uint64_t track_uuid, bool delta)
{
	struct sequence sequence = {.id = ++p->sequences, .delta = delta};
	Pf__Packet packet = PF__PACKET__INIT;
	Pf__PacketDefaults defaults = PF__PACKET_DEFAULTS__INIT;
	Pf__TrackEventDefaults track = PF__TRACK_EVENT_DEFAULTS__INIT;
	Pf__ClockSnapshot snapshot = PF__CLOCK_SNAPSHOT__INIT;
	Pf__Clock boot = PF__CLOCK__INIT, own = PF__CLOCK__INIT;
	Pf__Clock *clocks[] = {&boot, &own};

	/* All sequences begin at the same time, since Perfetto rejects a snapshot that is earlier
	 * than one before it. */
	packet_header(p, &packet, p->start_ts);
	packet.trusted_packet_sequence_id = sequence.id;
	packet.sequence_flags = SEQUENCE_CLEARED | SEQUENCE_NEEDS_STATE;
	packet.trace_packet_defaults = &defaults;
	packet.has_timestamp_clock_id = 1;
	packet.timestamp_clock_id = CLOCK_ID_BOOTTIME;
	defaults.has_timestamp_clock_id = 1;
	defaults.timestamp_clock_id = delta ? CLOCK_ID_DELTA : CLOCK_ID_BOOTTIME;
	if (track_uuid) {
		defaults.track_event_defaults = &track;
		track.has_track_uuid = 1;
		track.track_uuid = track_uuid;
	}
	if (delta) {
		sequence.last = packet.timestamp;
		boot.clock_id = CLOCK_ID_BOOTTIME;
		boot.timestamp = packet.timestamp;
		own.clock_id = CLOCK_ID_DELTA;
		own.has_is_incremental = own.is_incremental = 1;
		snapshot.clocks = clocks;
		snapshot.n_clocks = 2;
		packet.clock_snapshot = &snapshot;
	}
	packet_put(&p->writer, &packet.base, 0);
	p->trace_count = 0;
	memset(p->trace_iids, 0, TRACE_CACHE * sizeof(*p->trace_iids));
	return sequence;
}

/* ---- names ---- */

static const char *const own_key_names[OWN_KEY_COUNT] = {
	[OWN_ID] = "id",
	[OWN_PARENT] = "parent",
	[OWN_TRACE] = "trace",
	[OWN_RUNNING] = "running_ns",
	[OWN_RUNNABLE] = "runnable_ns",
	[OWN_BLOCKED] = "blocked_ns",
	[OWN_BEGUN_BEFORE] = "begun_before",
	[OWN_UNFINISHED] = "unfinished",
	[OWN_LEFT] = "left",
	[OWN_END_TID] = "end_tid",
	[OWN_LOSS] = "loss",
	[OWN_SEVERITY] = "severity",
	[OWN_CAUSED_BY] = "caused_by",
	[OWN_STACK] = "stack",
};

static uint32_t name_add(struct perfetto *p, const char *text, const char *if_empty)
{
	ProtobufCBinaryData clean;
	uint32_t index;

	if (!*text)
		text = if_empty;
	p->event.scratch_len = 0;
	clean = perfetto_text(p, text, strlen(text));
	index = strtab_put(p->names.text, (const char *)clean.data, clean.len);
	for (int list = 0; list < NAME_LIST_COUNT; list++) {
		while (p->names.defined[list].len <= index)
			vec_add(&p->names.defined[list], 0);
	}
	return index;
}

uint32_t names_own(struct perfetto *p, const char *text)
{
	return name_add(p, text, "?");
}

static bool key_is_used(const struct site_names *names, unsigned count, uint32_t key)
{
	for (unsigned k = 0; k < count; k++)
		if (names->keys[k] == key)
			return true;
	return false;
}

/* The name of a site's key: "cause", and "cause_2" of a second one, since viewers show only one
 * annotation of a name. */
static uint32_t key_name_add(struct perfetto *p, const struct site_names *names,
			     const struct site_info *site, unsigned key)
{
	uint32_t added = name_add(p, site->keys[key].name, "key");
	char other[64];

	for (unsigned number = 2; key_is_used(names, key, added); number++) {
		snprintf(other, sizeof(other), "%.48s_%u", site->keys[key].name, number);
		added = name_add(p, other, "key");
	}
	return added;
}

static void site_names_set(struct perfetto *p, struct site_names *names,
			   const struct site_info *site)
{
	char other[32];

	names->name = name_add(p, site->name, "(unnamed)");
	names->category = name_add(p, site->category, "");
	for (unsigned k = 0; k < site->key_count && k < WAFFLE_KEYS_MAX; k++)
		names->keys[k] = key_name_add(p, names, site, k);
	for (int own = 0; own < OWN_KEY_COUNT; own++) {
		names->own[own] = name_add(p, own_key_names[own], "");
		for (unsigned k = 0; k < site->key_count && k < WAFFLE_KEYS_MAX; k++) {
			if (names->keys[k] != names->own[own])
				continue;
			snprintf(other, sizeof(other), "waffle_%s", own_key_names[own]);
			names->own[own] = name_add(p, other, "");
			break;
		}
	}
}

void names_begin(struct perfetto *p)
{
	uint32_t count = model_site_count(p->model);

	p->names.text = strtab_make();
	p->names.sites = memory_zeroed((size_t)count + 1, sizeof(*p->names.sites));
	for (uint32_t i = 0; i <= count; i++)
		site_names_set(p, &p->names.sites[i],
			       model_site(p->model, i < count ? i : MODEL_NONE));
}

void names_end(struct perfetto *p)
{
	strtab_free(p->names.text);
	free(p->names.sites);
	for (int list = 0; list < NAME_LIST_COUNT; list++)
		vec_free(&p->names.defined[list]);
}

const struct site_names *names_of_site(const struct perfetto *p, uint32_t site)
{
	uint32_t count = model_site_count(p->model);

	return &p->names.sites[site < count ? site : count];
}
