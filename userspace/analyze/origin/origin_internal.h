/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the walk from a symptom to its origins. Its terms:
 *
 *	arrival   data of another rank that a process received, by a collective or a message
 *	landing   a span or event that the walk has come to, and the step that led there
 *	climb     from a landing through the spans around it; each may lead on
 *	anchor    the span in a climb that the next step leaves
 *	place     where a step leads, for the memory of what was visited
 *	end       a landing that nothing leads on from: an origin
 *
 * A walk is two searches. The first follows all data and finds the declared ends. The second is
 * *directed*: it follows only data with one sender, and finds the ends that are not declared. Data
 * of an all-reduce comes from all ranks alike, so on its own it names none of them.
 */
#ifndef WAFFLE_ANALYZE_ORIGIN_ORIGIN_INTERNAL_H
#define WAFFLE_ANALYZE_ORIGIN_ORIGIN_INTERNAL_H

#include "analyze/origin/origin.h"
#include "model/gpu/gpu.h"

/* ---- arrivals ---- */

struct origin_arrival {
	uint64_t ts;      /* by which its list is sorted: data_ts, or the begin of the call */
	uint64_t data_ts; /* when the data had arrived */
	uint32_t owner;   /* who received it: a pid, or a thread's index, as its list has it */
	/* For model_collective_at(), and the index of the receiving call in it. MODEL_NONE: `call`
	 * is a span that stands for a collective (struct origin_common). */
	uint32_t collective, call;
	/* Of the owner's arrivals up to this one: the number of those with one sender, and the
	 * index in the list of the last one with many senders, or MODEL_NONE. */
	uint32_t directed, many;
	bool has_one_sender;
	bool exact; /* data_ts is known; else the data came then or later */
};

/* An owner has `count` arrivals in the list from `first` on. */
struct origin_owner {
	uint32_t owner;
	size_t first, count;
};

struct origin_arrivals {
	VEC(struct origin_arrival) list; /* by owner, then ts */
	VEC(struct origin_owner) owners; /* by owner */
};

/* Finds the arrivals of an owner from from_ts to to_ts, both included: [*first, *end) of the list.
 * Returns whether there are any. */
bool origin_arrivals_find(const struct origin_arrivals *arrivals, uint32_t owner, uint64_t from_ts,
			  uint64_t to_ts, size_t *first, size_t *end);

/* ---- spans of one name ---- */

/*
 * Without records of NCCL and MPI, two spans that have one name and overlap on two ranks of a job
 * stand for a collective. A *common* span is one whose name spans of another rank have, too.
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
	/* The same arrivals three times: sorted by data_ts for each process and for each thread,
	 * and by the begin of the receiving call for each process. */
	struct origin_arrivals by_process, by_thread, by_call;
	struct origin_common common;
};

/* Fills in the three lists of arrivals. */
void origin_arrivals_init(struct origin_index *index);
void origin_arrivals_free(struct origin_arrivals *arrivals);
/* Finds the common spans, and adds an arrival for the end of each. Does nothing if the capture has
 * calls of NCCL or MPI. */
void origin_common_init(struct origin_index *index);
void origin_common_free(struct origin_common *common);

bool origin_is_common(const struct origin_index *index, uint32_t span);
/* Appends the spans of other ranks that stand for the same collective as a common span. */
void origin_common_find(const struct origin_index *index, uint32_t span, origin_spans *found);

/* Whether the first moment is known to be after the second one: the clocks of two hosts differ by
 * an error, or can't be compared at all. */
bool origin_is_after(const struct model *model, uint32_t thread, uint64_t ts, uint32_t other,
		     uint64_t other_ts);

/* ---- the walk ---- */

/* What leads on from a landing. */
enum origin_mode {
	ORIGIN_MODE_ALL,   /* links and arrivals */
	ORIGIN_MODE_SELF,  /* links, and arrivals in the node itself */
	ORIGIN_MODE_LINKS, /* links */
};

struct origin_landing {
	/* Data that arrived after this moment does not count, since it came too late to matter for
	 * the step. The thread says whose clock it is. */
	uint64_t ts;
	uint32_t ts_thread;
	uint64_t id;
	uint32_t index; /* of the node; MODEL_NONE: not in the capture */
	uint32_t prev;  /* the landing before it; MODEL_NONE: this is the symptom */
	/* The span around prev's node that the step left; MODEL_NONE: it left the node itself. */
	uint32_t anchor;
	uint32_t collective, from_call, to_call; /* as in struct origin_step */
	uint32_t steps;                          /* from the symptom */
	/* The landing after the first ORIGIN_WAY_HALF steps of the way; of a shorter way, itself.
	 */
	uint32_t head;
	uint8_t kind; /* of the node */
	uint8_t mode; /* enum origin_mode */
	uint8_t via;
	uint8_t grade, step_grade; /* of the whole way, and of its last step */
	bool called; /* the node is a call of a collective, or a span that stands for one */
	bool flowed; /* a step of the way is a message, a context, or data of a root */
};

/* An end that a walk has reached. */
struct origin_reached {
	uint32_t landing;
	uint8_t basis;
};

/* Up to which time a place was visited, or its arrivals were followed, on ways of each grade. A
 * later visit follows only what is newer, so all visits together follow each arrival once. */
struct origin_mark {
	uint64_t ts[2]; /* certain, likely */
};

struct origin_walk {
	const struct origin_index *index;
	VEC(struct origin_landing) landings;
	VEC(struct origin_reached) ends;
	/* Landings to visit: certain ones first. */
	VEC(uint32_t) queue[2];
	size_t next[2];
	struct map seen;  /* keys of places that were entered */
	struct map marks; /* key of a place → index in mark_list */
	VEC(struct origin_mark) mark_list;
	/* By collective: 0, or 1 + the best grade at which all its senders were followed. */
	uint8_t *shared;
	uint32_t incomplete; /* as in struct origin */
	uint64_t symptom_ts;
	uint32_t symptom_thread;
	/* Follow only data that has one sender. The senders of other data are ends by
	 * ORIGIN_ANY_RANK. */
	bool directed;
};

/* ---- parts of the walk ---- */

/* What was visited: with the index of a node, the key of walk.seen or walk.marks. */
enum origin_place {
	/* A linked span that had received data, on a way of this grade. */
	ORIGIN_PLACE_RECEIVED_CERTAIN,
	ORIGIN_PLACE_RECEIVED_LIKELY,
	/* What a link, a sender's data, or the context of a child led to. */
	ORIGIN_PLACE_LINKED_SPAN,
	ORIGIN_PLACE_LINKED_EVENT,
	ORIGIN_PLACE_SENDER,
	ORIGIN_PLACE_RECEIVER,
	ORIGIN_PLACE_PARENT_OF_SPAN,
	ORIGIN_PLACE_PARENT_OF_EVENT,
	/* The same, of a landing from which only links lead on. */
	ORIGIN_PLACE_PARENT_LINKS_OF_SPAN,
	ORIGIN_PLACE_PARENT_LINKS_OF_EVENT,
	/* A sender that is an end by ORIGIN_ANY_RANK. */
	ORIGIN_PLACE_ANY_RANK,
	/* The links of a span, and what had arrived in it, in its calls, on a thread, in a
	 * process. */
	ORIGIN_PLACE_LINKS,
	ORIGIN_PLACE_ARRIVALS,
	ORIGIN_PLACE_ARRIVALS_SELF,
	ORIGIN_PLACE_THREAD,
	ORIGIN_PLACE_PROCESS,
};

struct origin_climb {
	struct origin_walk *walk;
	struct origin_landing from; /* a copy, since walk.landings may move */
	uint32_t at;                /* index of the landing */
	uint32_t index;             /* of the node that the climb has reached, */
	uint8_t kind;               /* and its kind */
	bool receives;              /* data that this node received counts */
	bool nearest;               /* no node below it has received data */
	bool continues;             /* something leads on, so the landing is no end */
};

uint64_t origin_place_key(enum origin_place place, uint32_t index);
/* Enters a place. Returns whether this was the first time. */
bool origin_place_enter(struct origin_walk *walk, enum origin_place place, uint32_t index);
/* Raises the time of a mark to `ts`. Returns up to which time this or a better grade had come
 * before; 0: never. */
uint64_t origin_mark_raise(struct origin_walk *walk, uint64_t key, uint8_t grade, uint64_t ts);

/* Begin, thread, parent and id of a span or event. */
uint64_t origin_node_ts(const struct model *model, uint8_t kind, uint32_t index);
uint32_t origin_node_thread(const struct model *model, uint8_t kind, uint32_t index);
uint32_t origin_node_parent(const struct model *model, uint8_t kind, uint32_t index);
uint64_t origin_node_id(const struct model *model, uint8_t kind, uint32_t index);

/* Makes a landing one step from where the climb is. The caller fills in the node. */
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
/* Whether an arrival's data was there in time for the landing. For the symptom it always was: if
 * that is a span, what its calls receive counts even if it came after the span. */
bool origin_arrived_before(const struct origin_landing *landing,
			   const struct origin_arrival *arrival);
/* Follows data that arrived in the span that the climb has reached, before the time of the landing.
 * Returns whether there is any. */
bool origin_span_follow(struct origin_climb *climb);
/* Follows data that the landing's own span received, or that a call within it received later. */
bool origin_self_follow(struct origin_climb *climb);
/* Follows data that had arrived on the thread before the landing. If there is none, follows what
 * had arrived in the process. Spans around the landing may have received some of it. */
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
