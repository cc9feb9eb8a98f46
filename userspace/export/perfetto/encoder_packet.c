// SPDX-License-Identifier: Apache-2.0
/* Packets: buffering, writing to the file, and sequences. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/perfetto/encoder.h"
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
	if (!out)
		return;
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
	if (writer->out)
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
	if (writer->out)
		write_out(writer);
	else
		bytes += 2 * writer->len;
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

uint64_t perfetto_time(const struct pf_encoder *p, uint64_t ts)
{
	if (ts < p->start_ts)
		ts = p->start_ts;
	if (ts > p->end_ts)
		ts = p->end_ts;
	return ts + p->to_boot;
}

ProtobufCBinaryData perfetto_text(struct pf_encoder *p, const char *text, size_t len)
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

void packet_header(struct pf_encoder *p, Pf__Packet *packet, uint64_t ts)
{
	packet->has_timestamp = 1;
	packet->timestamp = perfetto_time(p, ts);
	packet->has_trusted_packet_sequence_id = 1;
	packet->trusted_packet_sequence_id = p->trace.id;
	packet->has_sequence_flags = 1;
	packet->sequence_flags = SEQUENCE_NEEDS_STATE;
}

struct sequence sequence_begin(struct pf_encoder *p, uint64_t track_uuid, bool delta)
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
	if (!p->interleaved) {
		p->trace_count = 0;
		memset(p->traces, 0, sizeof(p->traces));
	}
	return sequence;
}
