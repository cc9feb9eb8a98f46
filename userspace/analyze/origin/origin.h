/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows a symptom backwards to its origins: from an event or span to what the program declared
 * as its cause, and through collectives, messages and contexts to other ranks and processes.
 *
 *	struct origin_index *index = origin_index_new(model);
 *	struct origin *origin = origin_new(index, MODEL_NODE_EVENT, event);
 *
 *	for (size_t i = 0; i < origin->ends.len; i++) {
 *		struct origin_way way;
 *
 *		origin_way_find(&way, origin, &origin->ends.data[i]);
 *		… way.steps.data[0] …
 *		origin_way_free(&way);
 *	}
 *	origin_free(origin);
 *	origin_index_free(index);
 *
 * When memory runs out, the process ends with one line (util/memory.h).
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
 * by then, or if a span further inside received later data.
 *
 * The grade of an origin says how sure its way is, and does not depend on other origins: the cause
 * was declared, and the records prove each step. Whether another origin has a part in the symptom
 * as well is another question, which the list of origins answers.
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
	uint32_t landing; /* private to analyze/origin: where its way ends */
	uint32_t steps;   /* of its way, without those to enclosing spans */
	uint8_t basis;    /* enum origin_basis */
	/* enum why_grade: that of its weakest step. By ORIGIN_FLOW `likely` at most, by
	 * ORIGIN_ANY_RANK `unknown`. */
	uint8_t grade;
};

/* A way has all its steps unless it has more than twice this many. Then it has as many at each end,
 * since a chain of causes may be as long as the capture, and each of its links may lead to an
 * origin. Steps to enclosing spans are not counted. */
#define ORIGIN_WAY_HALF 500

/* The steps from the symptom to an end. Each begins where the one before it ends, except that steps
 * may be left out between steps.data[head - 1] and steps.data[head]. */
struct origin_way {
	VEC(struct origin_step) steps;
	size_t head;
	size_t left_out; /* number of steps, without those to enclosing spans */
};

struct origin_landing; /* private to analyze/origin */

struct origin {
	const struct model *model;
	const struct model_comm *comm; /* owned by the index; NULL: no collectives */
	struct origin_node symptom;
	/* By basis, then falling grade; the shortest way first, then the latest. */
	VEC(struct origin_end) ends;
	/* Private to analyze/origin: the tree of all ways, and the record numbers of nodes, by kind
	 * and id. */
	VEC(struct origin_landing) landings;
	VEC(uint64_t) records;
	struct map known[2];
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

/* The caller frees the index with origin_index_free(); the model must outlive it. */
struct origin_index *origin_index_new(const struct model *model);
void origin_index_free(struct origin_index *index);

/* Finds the origins of a span or event. The caller frees the result with origin_free(); the index
 * must outlive it. */
struct origin *origin_new(const struct origin_index *index, enum model_node_kind kind,
			  uint32_t node);
/* The way to one of the ends. The caller frees it with origin_way_free(). */
void origin_way_find(struct origin_way *way, const struct origin *origin,
		     const struct origin_end *end);
void origin_way_free(struct origin_way *way);
/* Finds the record numbers of the symptom and of all nodes of the ways, by reading the capture
 * again. Returns 0 or a negative errno with a message. */
int origin_find_records(struct origin *origin, struct error *err);
void origin_free(struct origin *origin);

#endif
