/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the Perfetto exporter: what it takes from the model of a capture. */
#ifndef WAFFLE_EXPORT_PERFETTO_PERFETTO_INTERNAL_H
#define WAFFLE_EXPORT_PERFETTO_PERFETTO_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "export/perfetto/encoder.h"
#include "model/model.h"

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
	uint64_t parent; /* of a track: that of its group or process; 0: neither is known */
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

/* Tables of texts: of `stacks` and of `causes`. */
enum text_table { TEXT_STACKS, TEXT_CAUSES, TEXT_TABLE_COUNT };

struct perfetto {
	const struct model *model;
	struct pf_encoder encoder;
	VEC(struct track_process) processes;
	struct track_thread *threads;
	struct map pids; /* pid → index of its first life */
	struct flow_index flows;
	VEC(uint32_t) strays; /* spans that fit on no thread's track */
	struct stack_names *names;
	struct gpu_timeline *timeline; /* freed once the flows are made */
	struct node_stacks *stacks;
	struct slice_causes *causes;
	/* By the number of a text: the last sequence that defined it. */
	struct text_sequences {
		VEC(uint32_t) list;
	} text_sequences[TEXT_TABLE_COUNT];
	unsigned char *has_child; /* a bit for each span */
};

/* The numbers of a site's names; MODEL_NONE is a site, too. */
const struct site_names *perfetto_names(const struct perfetto *p, uint32_t site);
/* Writes the begin of a span. uuid 0: the track of the sequence. */
void span_begin_put(struct perfetto *p, struct sequence *sequence, uint32_t index, uint64_t uuid);
/* Adds an argument with a text to the event that is being built. Number 0: nothing. */
void event_refer(struct perfetto *p, struct sequence *sequence, uint32_t key, enum text_table table,
		 uint32_t number);
/* Adds the flows of a node to the event that is being built. */
void event_flows(struct perfetto *p, uint32_t node, uint64_t ts);

void flows_begin(struct perfetto *p);
void flows_end(struct perfetto *p);
static inline uint32_t flows_event_node(const struct perfetto *p, uint32_t event)
{
	return (uint32_t)p->model->spans.len + event;
}

void tracks_begin(struct perfetto *p);
void tracks_end(struct perfetto *p);
/* Describes one more lane of a track of the model, which has spans that do not nest. */
uint64_t tracks_lane(struct perfetto *p, uint32_t thread);
/* The track of a thread's process; 0: unknown. */
uint64_t tracks_process_uuid(const struct perfetto *p, uint32_t thread);

void perfetto_head(struct perfetto *p);
void perfetto_spans(struct perfetto *p);
void perfetto_strays(struct perfetto *p);
void perfetto_waits(struct perfetto *p);
void perfetto_counters(struct perfetto *p);
void perfetto_sched(struct perfetto *p);
void perfetto_tail(struct perfetto *p);

#endif
