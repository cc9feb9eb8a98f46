/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the Perfetto exporter. A trace consists of packets. Each packet belongs to a
 * sequence with its own state: interned names and the last timestamp. There are sequences for the
 * trace as a whole, for counters, and for slices that fit on no thread. Each thread has one for its
 * slices and instants, and each CPU one for its scheduler data. Times in the file are
 * CLOCK_BOOTTIME, which scheduler data requires. In a thread's sequence they are differences to the
 * previous packet.
 */
#ifndef WAFFLE_EXPORT_PERFETTO_PERFETTO_INTERNAL_H
#define WAFFLE_EXPORT_PERFETTO_PERFETTO_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "model/model.h"
#include "perfetto.pb-c.h"
#include "util/utf8.h"

/* The format's built-in clock ids, and ours: 64 is used by ftrace's "local" clock. */
enum { CLOCK_ID_REALTIME = 1, CLOCK_ID_MONOTONIC = 3, CLOCK_ID_BOOTTIME = 6, CLOCK_ID_DELTA = 65 };

enum { SEQUENCE_CLEARED = 1, SEQUENCE_NEEDS_STATE = 2 };

/* ---- packets ---- */

/* Collects packets in one buffer while a thread writes the other buffer to the file. */
struct packet_writer {
	FILE *out;
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
	struct site_names *sites;               /* by site; the last entry is for unknown sites */
};

/* ---- the exporter ---- */

/* One life of a process. A reused pid is a different process. */
struct track_process {
	uint32_t pid;
	uint32_t main_thread; /* index of the thread, or MODEL_NONE */
	uint32_t next;        /* next life of the same pid, or MODEL_NONE */
	uint64_t start_ts, uuid;
};

struct track_thread {
	uint32_t process; /* index in perfetto.processes; MODEL_NONE: unknown */
	uint64_t uuid;
};

#define ANNOTATIONS_MAX (WAFFLE_KEYS_MAX + OWN_KEY_COUNT)
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
	Pf__InternedName texts[2]; /* a trace and a stack */
	Pf__InternedName *text_list[2];
	char trace_text[32];
	VEC(uint64_t) flows;
	VEC(uint64_t) flow_ends;
	char *scratch; /* texts converted to UTF-8 */
	size_t scratch_len;
	size_t bound; /* maximum size of the packet in bytes */
};

/* An arrow between two nodes: a span's index, or flows_event_node() of an event. */
struct flow_edge {
	uint32_t effect, cause; /* MODEL_NONE: a link that can be no arrow */
};

/* Edges of a span or event. The edges of node n are list[begin[n]] … list[begin[n + 1] - 1]. */
struct flow_index {
	VEC(struct flow_edge) edges; /* those of the model's links come first, in their order */
	uint32_t *begin;
	uint32_t *list; /* index of the edge * 2, plus 1 for the caused end */
};

struct perfetto {
	const struct model *model;
	struct packet_writer writer;
	struct names names;
	struct event event;
	uint32_t sequences; /* number of sequence ids used */
	uint64_t next_uuid;
	struct sequence trace; /* for descriptors, marks and other packets about the trace */
	uint64_t start_ts, end_ts;
	VEC(struct track_process) processes;
	struct track_thread *threads;
	struct map pids; /* pid → index of its first life */
	struct flow_index flows;
	VEC(uint32_t) strays; /* spans that fit on no thread's track */
	/* Interned ids of trace_ids in the current sequence, TRACE_CACHE entries. */
	uint32_t *trace_iids;
	uint64_t (*trace_ids)[2];
	uint32_t trace_count;
	struct node_stacks *stacks;
	/* By the number of a stack's text: last sequence that defined it. */
	VEC(uint32_t) stack_sequences;
	unsigned char *has_child; /* a bit for each span */
};

/* Converts a time to the file's clock, clamped to the bounds of the capture. */
uint64_t perfetto_time(const struct perfetto *p, uint64_t ts);

/* Room for all values of a frame as UTF-8, the mark of a truncated value, and a name. */
#define SCRATCH_BYTES (WAFFLE_KEYS_MAX * (UTF8_CLEAN_MAX(WAFFLE_STR_MAX) + 8))
/* Text as UTF-8: either `text` itself or a copy in the event's scratch space. */
ProtobufCBinaryData perfetto_text(struct perfetto *p, const char *text, size_t len);

/* Starts a sequence with its first packet. Its events are on the given track; 0: each event names
 * its track. */
struct sequence sequence_begin(struct perfetto *p, uint64_t track_uuid, bool delta);
void packet_header(struct perfetto *p, Pf__Packet *packet, uint64_t ts);

void names_begin(struct perfetto *p);
void names_end(struct perfetto *p);

void event_init(struct event *event);
void event_free(struct event *event);
/* Begins an event on a sequence. uuid 0: the track of the sequence. */
void event_begin(struct perfetto *p, struct sequence *sequence, Pf__EventType type, uint64_t uuid,
		 uint64_t ts);
void event_site(struct perfetto *p, struct sequence *sequence, const struct site_names *names);
Pf__Annotation *event_annotate(struct perfetto *p, struct sequence *sequence, uint32_t key);
void event_pointer(struct perfetto *p, struct sequence *sequence, uint32_t key, uint64_t value);
void event_uint(struct perfetto *p, struct sequence *sequence, uint32_t key, uint64_t value);
void event_text(struct perfetto *p, struct sequence *sequence, uint32_t key, const char *text,
		size_t len);
void event_values(struct perfetto *p, struct sequence *sequence, uint32_t site, uint32_t frame);
void event_trace(struct perfetto *p, struct sequence *sequence, uint32_t key, uint64_t hi,
		 uint64_t lo, bool alone);
/* Adds the stack of a span or event, and a cause that no arrow can show. */
void event_node(struct perfetto *p, struct sequence *sequence, const struct site_names *names,
		uint8_t kind, uint32_t index, uint64_t id);
/* Adds the flows of a node to an event. */
void event_flows(struct perfetto *p, uint32_t node, uint64_t ts);
void event_put(struct perfetto *p);
/* The number of a name or key of ours. */
uint32_t names_own(struct perfetto *p, const char *text);

const struct site_names *names_of_site(const struct perfetto *p, uint32_t site);

void flows_begin(struct perfetto *p);
void flows_end(struct perfetto *p);
static inline uint32_t flows_event_node(const struct perfetto *p, uint32_t event)
{
	return (uint32_t)p->model->spans.len + event;
}

void tracks_begin(struct perfetto *p);
void tracks_end(struct perfetto *p);
/* Describes a track that is neither a process nor a thread. */
void track_describe(struct perfetto *p, uint64_t uuid, uint64_t parent, const char *name,
		    bool counter, uint64_t ts);
/* The track of a thread's process; 0: unknown. */
uint64_t tracks_process_uuid(const struct perfetto *p, uint32_t thread);

void span_begin_put(struct perfetto *p, struct sequence *sequence, uint32_t index, uint64_t uuid);
void span_end_put(struct perfetto *p, struct sequence *sequence, uint64_t end_ts, uint64_t uuid);

void perfetto_head(struct perfetto *p);
void perfetto_spans(struct perfetto *p);
void perfetto_strays(struct perfetto *p);
void perfetto_counters(struct perfetto *p);
void perfetto_sched(struct perfetto *p);
void perfetto_tail(struct perfetto *p);

#endif
