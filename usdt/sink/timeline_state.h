/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a timeline: timeline.c takes records into it, and timeline_window.c writes them. */
#ifndef WAFFLE_USDT_SINK_TIMELINE_STATE_H
#define WAFFLE_USDT_SINK_TIMELINE_STATE_H

#include "usdt/sink/timeline.h"
#include "util/map.h"
#include "util/vec.h"

#define NONE UINT32_MAX
/* A window is written early if it has so many records or bytes of values. */
#define ENTRIES_MAX (32u << 10)
#define BYTES_MAX ((size_t)16 << 20)
/* The latest slices of a thread that have ended. A span that a filter has kept back until its end
 * comes after those in it, and is compared with them. */
#define SLICES_MAX 256u
#define EXPECTED_MAX (64u << 10) /* hits on tracks that are expected */
/* Spans and events that can be the cause of an arrow: the latest ones. */
#define CAUSES_MAX (256u << 10)
/* Spans that are open. When there are more, the older half of them is given up: it is written as
 * unfinished, and its ends are ignored. Programs leave spans open by longjmp(). */
#define OPEN_MAX (256u << 10)
/* Threads. When there are more, those that have had nothing for a while are forgotten. */
#define LINES_MAX (8u << 10)
#define LINE_IDLE_NS 10000000000ull

enum timeline_state {
	ENTRY_WAITING, /* not written yet */
	ENTRY_ON_THREAD,
	ENTRY_ASIDE,
	ENTRY_DONE,
};

/* A span, event or value of a counter. */
struct timeline_entry {
	uint64_t ts, end_ts;
	uint64_t slice_end; /* where its slice on the thread ends, at the latest at end_ts */
	struct waffle_frame head;
	uint64_t track;
	size_t frame; /* in timeline.bytes; only in the window of its begin */
	uint32_t frame_bytes;
	uint32_t site, thread, end_thread;
	uint32_t flow; /* its first one */
	uint8_t state;
	bool whole; /* its end was known when its slice began */
	bool begun_before, continued, unfinished;
};

struct timeline_slice {
	uint64_t ts, end_ts;
};

/* A thread or a track. */
struct timeline_thread {
	uint32_t tid;
	bool is_track;
	char track[WAFFLE_TRACK_NAME + 1], group[WAFFLE_TRACK_NAME + 1];
	uint64_t written_end_ts; /* of a track: the latest end in earlier windows */
	char comm[WAFFLE_COMM_BYTES + 1];
	bool described, listed;
	bool kept;           /* a span of it is open, also on another line */
	VEC(uint32_t) items; /* entries that begin in the window */
	VEC(uint32_t) open;  /* entries with a slice that has not ended, the innermost last */
	uint64_t written_ts; /* of the last begin or end that was written */
	VEC(struct timeline_slice) slices; /* at most SLICES_MAX … */
	size_t next_slice;                 /* … of which this one is overwritten next */
};

/* A flow of an entry. */
struct timeline_link {
	struct timeline_flow flow;
	uint32_t next; /* of the same entry */
};

struct timeline_cause {
	uint64_t id, ts;
	uint32_t thread, tid;
	uint32_t entry; /* in its window */
	uint64_t window;
};

struct timeline_order {
	uint64_t ts;
	uint32_t item;
};

struct timeline {
	const struct timeline_format *format;
	void *arg;
	uint32_t pid;
	uint64_t start_ts;
	VEC(const struct site_info *) sites;
	VEC(struct timeline_entry) entries;
	VEC(unsigned char) bytes;
	VEC(struct timeline_thread) lines;
	VEC(uint32_t) busy;   /* lines with something in the window */
	VEC(uint32_t) late;   /* entries aside that ended in the window */
	VEC(uint32_t) linked; /* entries with links in the window */
	VEC(struct timeline_link) flows;
	VEC(struct timeline_flow) node_flows; /* of the entry that is being written */
	VEC(struct timeline_order) order;     /* of the thread that is being written */
	VEC(struct waffle_rec_loss) losses;
	VEC(uint32_t) unused; /* lines of threads that are forgotten */
	uint64_t last_ts;     /* of all records */
	uint64_t given_up;    /* number of spans */
	struct map left_ids;  /* the latest ones of these */
	struct map tids;      /* → line */
	struct map on_track;  /* ids of hits that are expected on a track → line */
	struct map open_ids;  /* of spans that have not ended → entry */
	bool has_links;       /* a site has links, so causes are kept */
	VEC(struct timeline_cause) causes;
	size_t next_cause; /* which one is overwritten next */
	struct map cause_ids;
	uint64_t window, next_flow;
};

/* A line has something in the window. */
void timeline_list(struct timeline *timeline, uint32_t line);
bool timeline_is_span(const struct timeline *timeline, const struct timeline_entry *entry);
/* The values of an entry whose begin is in the window. */
struct value_walk timeline_values(const struct timeline *timeline,
				  const struct timeline_entry *entry);
/* Ends all spans, since the recording does. */
void timeline_spans_end(struct timeline *timeline, uint64_t end_ts);
/* Gives up the older half of the open spans. */
void timeline_give_up(struct timeline *timeline);
/* Adds an arrow for each link of the entries in the window to a cause that is known and did not
 * begin later. */
void timeline_links_take(struct timeline *timeline);

#endif
