/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows a symptom backwards to its origins: from an event or span to what the program declared
 * as its cause, and through collectives, messages and contexts to other ranks and processes.
 *
 *	struct origin_index *index;
 *	struct origin *origin;
 *
 *	if (origin_index_new(&index, model, &err) < 0 ||
 *	    origin_new(&origin, index, MODEL_NODE_EVENT, event, &err) < 0) …
 *	for (size_t i = 0; i < origin->ends.len; i++) … origin->ends.data[i] …
 *	origin_free(origin);
 *	origin_index_free(index);
 *
 * Each step of the way has a kind and a grade:
 *
 *	link        the program declared it (KV_CAUSE_EVENT, KV_CAUSE_SPAN)
 *	inside      from an event or span to a span around it, on one thread
 *	collective  data came from the ranks that gave theirs to a collective
 *	message     data came from the sender
 *	context     the parent lies on another thread or in another process
 *
 * At each place only data counts that had arrived there in time: in the spans around it, or earlier
 * on the thread. A step by data is `likely` at most if the span that received the data had closed
 * by then, or if a span further inside received later data. Of several origins, none that data
 * leads to is certain, since each may have given the data that matters.
 *
 * Printed by render/text/origin_text.h, render/json/origin_json.h (docs/origin.schema.json) and
 * render/html/html_origin.c, as cmd/why.c and the page choose.
 */
#ifndef WAFFLE_ANALYZE_ORIGIN_ORIGIN_H
#define WAFFLE_ANALYZE_ORIGIN_ORIGIN_H

#include "analyze/why/why.h"
#include "model/comm/comm.h"
#include "model/model.h"

/* Number of enclosing spans, one around the other, that a walk looks at. */
#define ORIGIN_DEPTH_MAX 256

enum origin_via {
	ORIGIN_VIA_LINK,
	ORIGIN_VIA_INSIDE,
	ORIGIN_VIA_COLLECTIVE,
	ORIGIN_VIA_MESSAGE,
	ORIGIN_VIA_CONTEXT,
	ORIGIN_VIA_COUNT
};
extern const char *const origin_via_names[];

/* Why something is an origin; the order is that of the result. */
enum origin_basis {
	/* The program declared it as a cause, and no further cause of it. */
	ORIGIN_DECLARED,
	/* Messages, contexts and broadcasts lead to it, and nothing leads further: `likely` at
	 * most. */
	ORIGIN_FLOW,
	/* Any rank of a collective may have given the data. Only if there is nothing else, and
	 * always `unknown`. */
	ORIGIN_ANY_RANK,
	ORIGIN_BASIS_COUNT
};
extern const char *const origin_basis_names[];

/* A span or event. */
struct origin_node {
	uint64_t id;
	/* Record number in the file, after origin_find_records(); 0: none. */
	uint64_t record;
	uint32_t index; /* in model.spans or model.events; MODEL_NONE: not in the capture */
	uint8_t kind;   /* enum model_node_kind */
};

struct origin_step {
	struct origin_node from, to;
	/* By collective or message: its index for model_collective_at(). MODEL_NONE: another kind
	 * of step, or two spans of one name stand for it. */
	uint32_t collective;
	/* The calls at both ends, or those two spans. MODEL_NONE: another kind of step. `from_call`
	 * may be earlier than `from`, since its data stayed in memory. */
	uint32_t from_call, to_call;
	uint8_t via;   /* enum origin_via */
	uint8_t grade; /* enum why_grade */
};

struct origin_end {
	struct origin_node node;
	size_t step, step_count; /* in origin.steps: the way from the symptom to it */
	uint8_t basis;           /* enum origin_basis */
	uint8_t grade;           /* enum why_grade: that of its weakest step, or less */
};

struct origin {
	const struct model *model;
	const struct model_comm *comm; /* owned by the index; NULL: no collectives */
	struct origin_node symptom;
	/* By basis, then falling grade of the way; the shortest way first, then the latest. */
	VEC(struct origin_end) ends;
	VEC(struct origin_step) steps;
	/* A collective that was followed and of which not all ranks are in the capture, so that
	 * origins may be missing; for model_collective_at(). MODEL_NONE: there is none. */
	uint32_t incomplete;
	/* Its communicator's ranks called different operations at or before its number; for
	 * model_disorder_at(). MODEL_NONE: they did not, or it is unknown. */
	uint32_t disorder;
	/* Number of calls in the capture that could not be matched with those of other ranks, so
	 * that origins may be missing, too. */
	uint64_t unmatched;
	size_t visited; /* number of places that the search looked at: how much work it was */
};

/* What all walks of a model share. */
struct origin_index;

/* The caller frees the index with origin_index_free(); the model must outlive it. Returns 0 or
 * -ENOMEM with a message. */
int origin_index_new(struct origin_index **index, const struct model *model, struct error *err);
void origin_index_free(struct origin_index *index);

/* The caller frees the result with origin_free(); the index must outlive it. Returns 0 or -ENOMEM
 * with a message. */
int origin_new(struct origin **origin, const struct origin_index *index, enum model_node_kind kind,
	       uint32_t node, struct error *err);
/* Finds the record numbers of the symptom and of all nodes of the ways, by reading the capture
 * again. Returns 0 or a negative errno with a message. */
int origin_find_records(struct origin *origin, struct error *err);
void origin_free(struct origin *origin);

#endif
