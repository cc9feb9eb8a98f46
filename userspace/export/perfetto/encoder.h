/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes tracks and their events as packets of Perfetto's format. The exporter of captures and
 * programs that record themselves use it; it knows neither the model nor where packets go.
 *
 * A trace consists of packets. Each packet belongs to a sequence with its own state: interned names
 * and the last timestamp. There are sequences for the trace as a whole, for counters, and for
 * slices that fit on no thread. Each thread has one for its slices and instants, and each CPU one
 * for its scheduler data. Times in the file are CLOCK_BOOTTIME, which scheduler data requires. In a
 * thread's sequence they are differences to the previous packet.
 *
 * If memory runs out, it calls memory_failed() (util/memory.h).
 */
#ifndef WAFFLE_EXPORT_PERFETTO_ENCODER_H
#define WAFFLE_EXPORT_PERFETTO_ENCODER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "export/node.h"
#include "perfetto.pb-c.h"
#include "store/store.h"
#include "util/strtab.h"
#include "util/utf8.h"
#include "util/vec.h"

/* The format's built-in clock ids, and ours: 64 is used by ftrace's "local" clock. */
enum { CLOCK_ID_REALTIME = 1, CLOCK_ID_MONOTONIC = 3, CLOCK_ID_BOOTTIME = 6, CLOCK_ID_DELTA = 65 };

enum { SEQUENCE_CLEARED = 1, SEQUENCE_NEEDS_STATE = 2 };

/* ---- packets ---- */

/* Collects packets in one buffer while a thread writes the other buffer to the file. */
struct packet_writer {
	FILE *out; /* NULL: they stay in the buffer, which grows */
	uint8_t *buf;
	size_t len, cap;
	int error; /* the first error, a negative errno */
	bool threaded;
	pthread_t thread;
	pthread_mutex_t lock; /* protects the members below */
	pthread_cond_t changed;
	uint8_t *full; /* buffer that the thread is writing */
	size_t full_len, full_cap;
	int write_error;
	bool done;
};

struct sequence {
	uint32_t id;
	uint64_t last; /* time of the last packet, if times are differences */
	bool delta;
};

void packet_writer_begin(struct packet_writer *writer, FILE *out);
/* Writes the remaining packets and frees the buffers. Returns the first error. */
int packet_writer_end(struct packet_writer *writer);
/* Appends a message as a packet. `bound` is a maximum of its size in bytes; 0: unknown. */
void packet_put(struct packet_writer *writer, const ProtobufCMessage *message, size_t bound);

static inline ProtobufCBinaryData packet_bytes(const char *text, size_t len)
{
	return (ProtobufCBinaryData){.len = len, .data = (uint8_t *)(uintptr_t)text};
}

/* ---- names ---- */

enum name_list { NAME_CATEGORY, NAME_EVENT, NAME_KEY, NAME_LIST_COUNT };

/* Annotations that waffle adds to the site's own keys. If the site has a key of the same name, ours
 * gets a different name. */
enum own_key {
	OWN_ID,
	OWN_PARENT,
	OWN_TRACE,
	OWN_RUNNING,
	OWN_RUNNABLE,
	OWN_BLOCKED,
	OWN_BEGUN_BEFORE,
	OWN_UNFINISHED,
	OWN_LEFT,
	OWN_END_TID,
	OWN_LOSS,
	OWN_SEVERITY,
	OWN_CAUSED_BY,
	OWN_STACK,
	OWN_CAUSES,
	OWN_KEY_COUNT
};

struct site_names {
	uint32_t name, category;
	uint32_t keys[WAFFLE_KEYS_MAX];
	uint32_t own[OWN_KEY_COUNT];
};

/* The number of a name is its index in `text`, and is the same in all sequences that define it. */
struct names {
	struct strtab *text;
	VEC(uint32_t) defined[NAME_LIST_COUNT]; /* by number: last sequence that defined the name */
	VEC(struct site_names) sites;           /* by site */
};

/* ---- events ---- */

#define ANNOTATIONS_MAX (WAFFLE_KEYS_MAX + OWN_KEY_COUNT)

/* Texts that an event can define: a wait has the most. */
#define TEXTS_MAX 8

/* A trace id whose number is defined in a sequence. */
struct trace_number {
	uint64_t hi, lo;
	uint32_t sequence, iid;
};
#define TRACE_CACHE 256

/* A packet with a track event, built in place: the structs are initialised once and reused. */
struct event {
	Pf__EventPacket packet;
	Pf__TrackEvent event;
	Pf__InternedData interned;
	Pf__Annotation annotations[ANNOTATIONS_MAX];
	Pf__Annotation *annotation_list[ANNOTATIONS_MAX];
	Pf__InternedName names[NAME_LIST_COUNT][ANNOTATIONS_MAX];
	Pf__InternedName *name_list[NAME_LIST_COUNT][ANNOTATIONS_MAX];
	size_t name_count[NAME_LIST_COUNT];
	Pf__InternedName texts[TEXTS_MAX];
	Pf__InternedName *text_list[TEXTS_MAX];
	char trace_text[32];
	VEC(uint64_t) flows;
	VEC(uint64_t) flow_ends;
	char *scratch; /* texts converted to UTF-8 */
	size_t scratch_len;
	size_t bound; /* maximum size of the packet in bytes */
};

/* ---- the encoder ---- */

struct pf_encoder {
	struct packet_writer writer;
	struct names names;
	struct event event;
	uint32_t sequences; /* number of sequence ids used */
	uint64_t next_uuid;
	struct sequence trace; /* for descriptors, marks and other packets about the trace */
	/* Bounds of the capture, CLOCK_MONOTONIC; times are clamped to them. */
	uint64_t start_ts, end_ts;
	uint64_t to_boot; /* what to add to a time for the file's clock, modulo 2^64 */
	/* The caller returns to a sequence after it has begun another one. */
	bool interleaved;
	/* Trace ids that are defined, by their hash. */
	struct trace_number traces[TRACE_CACHE];
	uint32_t trace_count;
};

/* Begins a trace. `out` NULL: the caller takes the packets from writer.buf and sets writer.len to
 * 0. The bounds are the capture's start, and no end. */
void pf_encoder_begin(struct pf_encoder *p, FILE *out, const struct store_meta *meta);
/* Writes what remains and frees. Returns 0 or the first error of writing, a negative errno. */
int pf_encoder_end(struct pf_encoder *p);

/* Converts a time to the file's clock, clamped to the bounds of the capture. */
uint64_t perfetto_time(const struct pf_encoder *p, uint64_t ts);

/* Room for all values of a frame as UTF-8, the mark of a truncated value, and a name. */
#define SCRATCH_BYTES (WAFFLE_KEYS_MAX * (UTF8_CLEAN_MAX(WAFFLE_STR_MAX) + 8))
/* Text as UTF-8: either `text` itself or a copy in the event's scratch space. */
ProtobufCBinaryData perfetto_text(struct pf_encoder *p, const char *text, size_t len);

/* Starts a sequence with its first packet. Its events are on the given track; 0: each event names
 * its track. */
struct sequence sequence_begin(struct pf_encoder *p, uint64_t track_uuid, bool delta);
void packet_header(struct pf_encoder *p, Pf__Packet *packet, uint64_t ts);

/* Adds a site, whose names get their numbers. Sites are numbered 0, 1, … in the order of adding. */
void names_add_site(struct pf_encoder *p, const struct site_info *site);

void event_init(struct event *event);
void event_free(struct event *event);
/* Begins an event on a sequence. uuid 0: the track of the sequence. */
void event_begin(struct pf_encoder *p, struct sequence *sequence, Pf__EventType type, uint64_t uuid,
		 uint64_t ts);
void event_site(struct pf_encoder *p, struct sequence *sequence, const struct site_names *names);
Pf__Annotation *event_annotate(struct pf_encoder *p, struct sequence *sequence, uint32_t key);
void event_pointer(struct pf_encoder *p, struct sequence *sequence, uint32_t key, uint64_t value);
void event_uint(struct pf_encoder *p, struct sequence *sequence, uint32_t key, uint64_t value);
void event_text(struct pf_encoder *p, struct sequence *sequence, uint32_t key, const char *text,
		size_t len);
/* Defines the number of a text in the sequence, for annotations of this event and later ones. An
 * event has room for TEXTS_MAX. */
void event_define_text(struct pf_encoder *p, uint64_t iid, ProtobufCBinaryData text);
/* Adds one end of an arrow: where it begins, or where it ends. Both have the same id. */
void event_add_flow(struct pf_encoder *p, uint64_t id, bool ends);
void event_put(struct pf_encoder *p);
/* The number of a name or key of ours. */
uint32_t names_own(struct pf_encoder *p, const char *text);

const struct site_names *names_of_site(const struct pf_encoder *p, uint32_t site);

/* ---- slices ---- */

/* Begin an event, to which the caller may add before event_put(). uuid 0: the track of the
 * sequence. `alone`: no other span has the trace's id, so it gets no number. */
void slice_begin(struct pf_encoder *p, struct sequence *sequence, uint64_t uuid,
		 const struct site_names *names, const struct export_node *node, bool alone);
void instant_begin(struct pf_encoder *p, struct sequence *sequence, uint64_t uuid,
		   const struct site_names *names, const struct export_node *node);
/* Ends the innermost slice of a track. */
void slice_end_put(struct pf_encoder *p, struct sequence *sequence, uint64_t end_ts, uint64_t uuid);
/* The same for a slice that the program has not ended, whose begin does not say so. */
void slice_leave_put(struct pf_encoder *p, struct sequence *sequence, uint64_t end_ts,
		     uint64_t uuid);
/* The value of a counter: the first number of its hit; nothing if it has none. */
void counter_put(struct pf_encoder *p, struct sequence *sequence, uint64_t uuid,
		 const struct export_node *node);

/* ---- tracks ---- */

/* Describes a track that is neither a process nor a thread. */
void track_describe(struct pf_encoder *p, uint64_t uuid, uint64_t parent, const char *name,
		    bool counter, uint64_t ts);
struct track_names {
	uint64_t uuid, ts;
	uint32_t pid, tid;
	const char *cmdline; /* of a process; may be empty */
	const char *name;    /* may be empty; of a process also NULL */
};
void track_describe_process(struct pf_encoder *p, const struct track_names *process);
void track_describe_thread(struct pf_encoder *p, const struct track_names *thread,
			   uint64_t process_uuid);

/* ---- about the trace ---- */

/* The first packets: clocks, system and attributes. `filter`: of the export; may be NULL. */
void about_begin(struct pf_encoder *p, const struct store_meta *meta, const char *filter);
void about_attribute(struct pf_encoder *p, const char *key, const char *value);
/* Where the capture begins, at start_ts, or ends, at end_ts. Perfetto initially shows the time
 * between the two. */
void about_bound(struct pf_encoder *p, bool end);
/* The track "capture" with its two bounds. `note`: a further mark at its begin; NULL: none. */
void about_bounds(struct pf_encoder *p, const struct store_counts *counts, const char *note);

/* Where records were lost: after from_ts, up to to_ts. */
struct lost_window {
	uint64_t from_ts, to_ts;
	uint16_t cpu;
};
/* The track of lost records. */
struct sequence about_losses_begin(struct pf_encoder *p);
/* `window` NULL: it is not known when. */
void about_loss(struct pf_encoder *p, struct sequence *sequence, unsigned source, uint64_t count,
		const struct lost_window *window);
/* The losses of each source. */
void about_stats(struct pf_encoder *p, const uint64_t lost[WAFFLE_SOURCE_COUNT]);

#endif
