/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the walk from a symptom to its origins. */
#ifndef WAFFLE_ANALYZE_ORIGIN_ORIGIN_INTERNAL_H
#define WAFFLE_ANALYZE_ORIGIN_ORIGIN_INTERNAL_H

#include "analyze/origin/origin.h"
#include "model/gpu/gpu.h"

/* ---- arrivals ---- */

/* Data of other ranks that reached a process, by a collective or a message. */
struct origin_arrival {
	uint64_t ts;         /* the list's order; see struct origin_arrivals */
	uint64_t data_ts;    /* when the data had arrived, in each of the lists */
	uint32_t owner;      /* the process (pid) or the thread (index), as the list has it */
	uint32_t collective; /* for model_collective_at(); MODEL_NONE: a span of a common name */
	uint32_t call;       /* index of the receiving call in it; or that span */
	/* How many of the owner's arrivals up to this one have one sender. */
	uint32_t directed;
	/* Place in the list of the last one of them that has many senders; MODEL_NONE: none. */
	uint32_t many;
	bool has_one_sender;
	bool exact; /* the time at which the data had arrived is known */
};

/* The arrivals of an owner: `count` of the list from `first` on. */
struct origin_owner {
	uint32_t owner;
	size_t first, count;
};

/* By owner, then ts. */
struct origin_arrivals {
	VEC(struct origin_arrival) list;
	VEC(struct origin_owner) owners;
};

/* The arrivals of an owner from from_ts to to_ts, both included: [*first, *end) of the list. False:
 * there are none. */
bool origin_arrivals_find(const struct origin_arrivals *arrivals, uint32_t owner, uint64_t from_ts,
			  uint64_t to_ts, size_t *first, size_t *end);

/* ---- spans of one name ---- */

/*
 * Without records of NCCL and MPI, spans of one name that overlap on two ranks of a job stand for a
 * collective.
 */
struct origin_common_span {
	uint32_t name, pid, span;
};

struct origin_common {
	VEC(struct origin_common_span) list; /* by name, then pid, then begin */
	uint32_t *place;                     /* by span: its place in the list, or MODEL_NONE */
};

typedef VEC(uint32_t) origin_spans;

/* ---- the index ---- */

struct origin_index {
	const struct model *model;
	struct model_gpu *gpu;
	struct model_comm *comm;
	/* By the time at which the data had arrived. */
	struct origin_arrivals by_process, by_thread;
	/* By process, and the time at which the receiving call began. */
	struct origin_arrivals by_call;
	struct origin_common common;
};

/* Fills in the three lists of arrivals. */
void origin_arrivals_init(struct origin_index *index);
void origin_arrivals_free(struct origin_arrivals *arrivals);
/* Finds the common spans, and adds an arrival for the end of each. Does nothing if the capture has
 * calls of NCCL or MPI. */
void origin_common_init(struct origin_index *index);
void origin_common_free(struct origin_common *common);

/* Whether a span has a name that spans of other ranks have, too. */
bool origin_is_common(const struct origin_index *index, uint32_t span);
/* Appends the spans of other ranks that stand for the same collective as a common span. */
void origin_common_find(const struct origin_index *index, uint32_t span, origin_spans *found);

/* Whether the first moment is known to be after the second one. Clocks of different hosts may not
 * be comparable. */
bool origin_is_after(const struct model *model, uint32_t thread, uint64_t ts, uint32_t other,
		     uint64_t other_ts);

/* ---- the walk ---- */

/* What leads on from a landing. */
enum origin_mode {
	ORIGIN_MODE_ALL,   /* links and arrivals */
	ORIGIN_MODE_SELF,  /* links, and arrivals in the node itself */
	ORIGIN_MODE_LINKS, /* links */
};

/* A node that the walk has reached, and the step that led to it. */
struct origin_landing {
	uint64_t ts;        /* arrivals after it do not count */
	uint32_t ts_thread; /* whose clock it is of */
	uint64_t id;
	uint32_t index; /* of the node; MODEL_NONE: not in the capture */
	uint32_t prev;  /* landing that the step left; MODEL_NONE: this is the symptom */
	/* The span around prev's node that the step left; MODEL_NONE: the node itself. */
	uint32_t anchor;
	uint32_t collective, from_call, to_call; /* as in struct origin_step */
	uint32_t steps;                          /* from the symptom */
	uint32_t head; /* the landing of the way after ORIGIN_WAY_HALF steps; before: itself */
	uint8_t kind, mode, via;
	uint8_t grade, step_grade;
	bool called; /* the node is a call of a collective, or a span that stands for one */
	bool flowed; /* a step of the way is a message, a context or from a root */
};

struct origin_reached {
	uint32_t landing;
	uint8_t basis;
};

struct origin_walk {
	const struct origin_index *index;
	VEC(struct origin_landing) landings;
	VEC(struct origin_reached) ends;
	/* Landings to visit: certain ones first. */
	VEC(uint32_t) queue[2];
	size_t next[2];
	struct map seen; /* places that were entered */
	/* Up to which time a place was visited or its arrivals were followed, by grade. */
	struct map marks;
	VEC(struct origin_mark) mark_list;
	uint8_t *shared; /* by collective: the grade at which all its senders were followed, + 1 */
	uint32_t incomplete; /* as in struct origin */
	uint64_t symptom_ts;
	uint32_t symptom_thread;
	/* Follow only data that has one sender. The senders of other data are ends by
	 * ORIGIN_ANY_RANK. */
	bool directed;
};

struct origin_mark {
	uint64_t ts[2]; /* certain, likely */
};

/* ---- parts of the walk ---- */

/* Kinds of places, for the keys of walk.seen and walk.marks. */
enum origin_place {
	ORIGIN_PLACE_RECEIVED_CERTAIN,
	ORIGIN_PLACE_RECEIVED_LIKELY,
	ORIGIN_PLACE_LINKED_SPAN,
	ORIGIN_PLACE_LINKED_EVENT,
	ORIGIN_PLACE_SENDER,
	ORIGIN_PLACE_RECEIVER,
	ORIGIN_PLACE_PARENT_OF_SPAN,
	ORIGIN_PLACE_PARENT_OF_EVENT,
	ORIGIN_PLACE_PARENT_LINKS_OF_SPAN,
	ORIGIN_PLACE_PARENT_LINKS_OF_EVENT,
	ORIGIN_PLACE_ANY_RANK,
	ORIGIN_PLACE_LINKS,
	ORIGIN_PLACE_ARRIVALS,
	ORIGIN_PLACE_ARRIVALS_SELF,
	ORIGIN_PLACE_THREAD,
	ORIGIN_PLACE_PROCESS,
};

/* A landing, and the span around it that the climb has reached. */
struct origin_climb {
	struct origin_walk *walk;
	struct origin_landing from; /* a copy: the landings may move */
	uint32_t at;                /* its index */
	uint32_t index;             /* of the node that was reached */
	uint8_t kind;
	bool receives;  /* data that the node received counts */
	bool nearest;   /* no span so far has received data */
	bool continues; /* something leads on */
};

uint64_t origin_place_key(enum origin_place place, uint32_t index);
/* Whether it is the first visit of a place. */
bool origin_place_enter(struct origin_walk *walk, enum origin_place place, uint32_t index);
/* Raises the time up to which a place was visited, or its arrivals were followed, at a grade or a
 * better one. Returns the previous time. */
uint64_t origin_mark_raise(struct origin_walk *walk, uint64_t key, uint8_t grade, uint64_t ts);

/* Begin, thread, parent and id of a span or event. */
uint64_t origin_node_ts(const struct model *model, uint8_t kind, uint32_t index);
uint32_t origin_node_thread(const struct model *model, uint8_t kind, uint32_t index);
uint32_t origin_node_parent(const struct model *model, uint8_t kind, uint32_t index);
uint64_t origin_node_id(const struct model *model, uint8_t kind, uint32_t index);

/* A landing one step from where the climb is. The caller fills in the node. */
struct origin_landing origin_landing_from(const struct origin_climb *climb, enum origin_via via,
					  uint8_t step_grade);
/* Adds a landing that is not to be visited. Returns its index. */
uint32_t origin_landing_add(struct origin_walk *walk, struct origin_landing landing);
/* Adds a landing that is to be visited. */
void origin_landing_push(struct origin_walk *walk, struct origin_landing landing);
void origin_end_add(struct origin_walk *walk, uint32_t landing, enum origin_basis basis);

/* The end of a span, but not after the time of the landing. */
uint64_t origin_end_before(const struct model *model, const struct origin_landing *landing,
			   const struct model_span *span);
/* Whether an arrival's data was there before the landing, or the landing is the symptom: what its
 * calls receive after it counts, too. */
bool origin_arrived_before(const struct origin_landing *landing,
			   const struct origin_arrival *arrival);
/* Follows data that arrived in the span that the climb has reached, before the time of the landing.
 * Returns whether there is any. */
bool origin_span_follow(struct origin_climb *climb);
/* Follows data that the landing's own span received, or that a call within it received later. */
bool origin_self_follow(struct origin_climb *climb);
/* Follows data that had arrived on the thread before the landing, or else in the process. A
 * nearer span may have received some of it. */
void origin_thread_follow(struct origin_climb *climb);

/* ---- entries ---- */

/* Fills walk->ends. Call it twice: not directed, for what was declared; directed, for ends by data
 * flow. The caller frees the walk with origin_walk_free(). */
void origin_walk_run(struct origin_walk *walk, const struct origin_index *index, bool directed,
		     uint8_t kind, uint32_t node);
void origin_walk_free(struct origin_walk *walk);

/* The node that people see for an end's landing: of a call, the span around it. */
struct origin_node origin_end_node(const struct model *model, const struct origin_landing *landing);

#endif
