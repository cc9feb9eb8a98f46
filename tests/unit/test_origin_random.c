// SPDX-License-Identifier: Apache-2.0
/*
 * Origins in random graphs of spans, links, collectives, messages and contexts, against brute
 * force. The generator keeps what it did, and the reference follows that, with no index and no
 * memory but the set of places that it has seen.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model_capture.h"

#include "calls_capture.h"

#include "analyze/origin/origin.h"
#include "store_fixture.h"

#define RANKS 3
#define PLACES (2 * RANKS) /* two threads for each rank */
#define NODES_MAX 96
#define COMMS_MAX 32
#define STACK_MAX 5
#define MEET 0xc0ffee /* communicators of collectives and of messages */
#define TALK 0xbeef
#define STREAM 0xa
#define NOT_YET 0xffffffff
#define GRAPHS 1500

/* Even nodes are spans, odd ones are events; the id follows from the number. */
struct node {
	unsigned place; /* rank * 2 + thread */
	int parent;     /* -1: none */
	uint64_t start, end;
	int links[2]; /* to a span and to an event; -1: none */
	bool made;
};

enum comm_kind { COMM_ALL, COMM_ROOT, COMM_MESSAGE };

struct end_of_call {
	bool takes_part;
	unsigned place;
	int inside, end_inside; /* innermost spans of the thread then; -1: none */
	uint64_t id, start, end;
};

struct comm {
	enum comm_kind kind;
	unsigned root; /* or the sender */
	struct end_of_call ends[RANKS];
};

struct graph {
	struct capture capture;
	uint64_t random, ts, next_call;
	struct node nodes[NODES_MAX];
	unsigned node_count;
	struct comm comms[COMMS_MAX];
	unsigned comm_count, meets, talks[RANKS];
	int open[PLACES][STACK_MAX];
	unsigned depth[PLACES];
};

static uint64_t node_id(int node)
{
	return 0x1000 + (uint64_t)node;
}

static bool is_span(int node)
{
	return node % 2 == 0;
}

static unsigned below(struct graph *graph, unsigned limit)
{
	return (unsigned)(fixture_random(&graph->random) % limit);
}

static uint64_t tick(struct graph *graph)
{
	return graph->ts += 10;
}

static uint32_t pid_of(unsigned place)
{
	return 100 + place / 2;
}

static uint32_t tid_of(unsigned place)
{
	return 200 + place;
}

static int innermost(const struct graph *graph, unsigned place)
{
	return graph->depth[place] ? graph->open[place][graph->depth[place] - 1] : -1;
}

/* ---- the generator ---- */

static void hit(struct graph *graph, unsigned place, uint32_t site, uint64_t id, uint64_t parent,
		unsigned count, const uint64_t *words)
{
	struct {
		struct waffle_rec_hit hit;
		uint64_t frame[4 + 16];
	} rec = {.hit = {.rec = {graph->ts, tid_of(place), WAFFLE_REC_HIT, 0},
			 .tgid = pid_of(place),
			 .site = site,
			 .frame_bytes = 32 + 8 * count},
		 .frame = {id, parent, 7, 8}};

	memcpy(&rec.frame[4], words, count * sizeof(*words));
	capture_add(&graph->capture, &rec);
}

static void returned(struct graph *graph, unsigned place, uint32_t site, uint64_t id)
{
	call_return_in(&graph->capture, pid_of(place), graph->ts, tid_of(place), site, id, 0, NULL);
}

/* An earlier node, or sometimes a later one or one that never comes. */
static int link_choose(struct graph *graph, bool span)
{
	unsigned limit = below(graph, 12) ? graph->node_count : NODES_MAX;
	int to;

	if (below(graph, 3) || !limit)
		return -1;
	to = (int)below(graph, limit);
	return is_span(to) == span ? to : -1;
}

static void node_make(struct graph *graph, unsigned place)
{
	int made = (int)graph->node_count++;
	struct node *node = &graph->nodes[made];
	unsigned other = below(graph, PLACES);

	*node = (struct node){.place = place,
			      .parent = innermost(graph, place),
			      .start = tick(graph),
			      .end = NOT_YET,
			      .links = {-1, link_choose(graph, false)},
			      .made = true};
	if (is_span(made))
		node->links[0] = link_choose(graph, true);
	/* A context from elsewhere. */
	if (!below(graph, 5) && innermost(graph, other) >= 0)
		node->parent = innermost(graph, other);
	hit(graph, place, is_span(made) ? SITE_LOAD : SITE_FOUND, node_id(made),
	    node->parent < 0 ? 0 : node_id(node->parent), is_span(made) ? 2 : 1,
	    is_span(made) ? (uint64_t[]){node->links[0] < 0 ? 0 : node_id(node->links[0]),
					 node->links[1] < 0 ? 0 : node_id(node->links[1])}
			  : (uint64_t[]){node->links[1] < 0 ? 0 : node_id(node->links[1])});
	if (is_span(made))
		graph->open[place][graph->depth[place]++] = made;
	else
		node->end = node->start;
}

static void span_close(struct graph *graph, unsigned place)
{
	int node = innermost(graph, place);
	struct waffle_rec_span_end rec = {
		.rec = {tick(graph), tid_of(place), WAFFLE_REC_SPAN_END, 0},
		.span_id = node_id(node),
		.tgid = pid_of(place),
		.site = SITE_LOAD,
	};

	graph->nodes[node].end = graph->ts;
	graph->depth[place]--;
	capture_add(&graph->capture, &rec);
}

static void call_make(struct graph *graph, struct comm *comm, unsigned rank, unsigned peer,
		      uint32_t site, uint64_t seq)
{
	struct end_of_call *end = &comm->ends[rank];
	uint64_t words[] = {64,
			    comm->kind == COMM_ALL    ? 7
			    : comm->kind == COMM_ROOT ? comm->root
						      : peer,
			    comm->kind == COMM_MESSAGE ? TALK : MEET,
			    rank,
			    RANKS,
			    seq,
			    STREAM};

	*end = (struct end_of_call){.takes_part = true,
				    .place = rank * 2 + below(graph, 2),
				    .id = graph->next_call++,
				    .start = tick(graph),
				    .end = NOT_YET};
	end->inside = innermost(graph, end->place);
	hit(graph, end->place, site, end->id, 0, 7, words);
	tick(graph);
	returned(graph, end->place, site, end->id);
}

static void comm_make(struct graph *graph)
{
	struct comm *comm = &graph->comms[graph->comm_count++];
	unsigned peer;

	comm->kind = below(graph, 3);
	comm->root = below(graph, RANKS);
	peer = (comm->root + 1 + below(graph, RANKS - 1)) % RANKS;
	if (comm->kind == COMM_MESSAGE) {
		call_make(graph, comm, comm->root, peer, CALL_SEND, graph->talks[comm->root]++);
		call_make(graph, comm, peer, comm->root, CALL_RECV, graph->talks[peer]++);
		return;
	}
	for (unsigned rank = 0; rank < RANKS; rank++)
		call_make(graph, comm, rank, 0,
			  comm->kind == COMM_ALL ? CALL_ALL_REDUCE : CALL_BROADCAST, graph->meets);
	graph->meets++;
}

/* A thread waits for its rank's stream: all calls of the rank so far are done then. */
static void sync_make(struct graph *graph, unsigned place)
{
	const uint64_t stream = STREAM, id = graph->next_call++;

	tick(graph);
	hit(graph, place, CALL_SYNC, id, 0, 1, &stream);
	tick(graph);
	returned(graph, place, CALL_SYNC, id);
	for (unsigned i = 0; i < graph->comm_count; i++) {
		struct end_of_call *end = &graph->comms[i].ends[place / 2];

		if (!end->takes_part || end->end != NOT_YET)
			continue;
		end->end = graph->ts;
		end->end_inside = innermost(graph, place);
		end->place |= place << 8; /* where it ended */
	}
}

static void comms_create(struct graph *graph)
{
	const uint64_t comms[] = {MEET, TALK};

	for (unsigned i = 0; i < 2; i++)
		for (unsigned rank = 0; rank < RANKS; rank++) {
			const uint64_t words[] = {rank, RANKS}, id = graph->next_call++;

			tick(graph);
			hit(graph, rank * 2, CALL_COMM_INIT, id, 0, 2, words);
			tick(graph);
			call_return_in(&graph->capture, pid_of(rank * 2), graph->ts,
				       tid_of(rank * 2), CALL_COMM_INIT, id, 1, &comms[i]);
		}
}

static void graph_make(struct graph *graph, uint64_t seed)
{
	unsigned steps;

	*graph = (struct graph){.random = seed, .ts = CAPTURE_START, .next_call = 0x100000};
	calls_begin(&graph->capture);
	comms_create(graph);
	steps = 10 + below(graph, 80);
	for (unsigned i = 0; i < steps; i++) {
		unsigned place = below(graph, PLACES), what = below(graph, 10);

		if (what < 4 && graph->node_count < NODES_MAX && graph->depth[place] < STACK_MAX)
			node_make(graph, place);
		else if (what < 6 && graph->depth[place])
			span_close(graph, place);
		else if (what < 8 && graph->comm_count < COMMS_MAX)
			comm_make(graph);
		else
			sync_make(graph, place);
	}
	for (unsigned rank = 0; rank < RANKS; rank++)
		sync_make(graph, rank * 2);
	for (unsigned place = 0; place < PLACES; place++)
		while (graph->depth[place])
			span_close(graph, place);
}

/* ---- the reference ---- */

enum { WHAT_NODE, WHAT_CALL };
enum { MODE_ALL, MODE_SELF, MODE_LINKS };

/* Where the walk is: a node, or a rank's call. */
struct spot {
	int what, at; /* at: the node, or comm * RANKS + rank */
	int mode;
	uint64_t ts;
	bool first, flowed;
};

#define SPOTS_MAX 40000

struct reference {
	const struct graph *graph;
	uint64_t symptom_ts;
	bool directed;
	struct spot seen[SPOTS_MAX];
	uint8_t grade_seen[SPOTS_MAX];
	unsigned count, next;
	/* The best grade of each end; 0: it is none. By id of nodes, then of missing ones. */
	uint8_t declared[NODES_MAX], flow[NODES_MAX];
	/* Bit G: the walk that is not directed came to the node at grade G, and it had received
	 * data by then. */
	uint8_t received[NODES_MAX];
	bool any[NODES_MAX];
	/* Ends that are calls outside of any span, by comm and rank. */
	uint8_t flow_calls[COMMS_MAX * RANKS];
	bool any_calls[COMMS_MAX * RANKS];
};

static const struct end_of_call *call_at(const struct reference *ref, int at)
{
	return &ref->graph->comms[at / RANKS].ends[at % RANKS];
}

static void spot_add(struct reference *ref, struct spot spot, uint8_t grade)
{
	for (unsigned i = 0; i < ref->count; i++) {
		const struct spot *seen = &ref->seen[i];

		if (seen->what != spot.what || seen->at != spot.at || seen->mode != spot.mode ||
		    seen->ts != spot.ts || seen->first != spot.first || seen->flowed != spot.flowed)
			continue;
		if (ref->grade_seen[i] >= grade)
			return;
	}
	if (ref->count == SPOTS_MAX)
		fail_msg("more than %d places", SPOTS_MAX);
	ref->seen[ref->count] = spot;
	ref->grade_seen[ref->count++] = grade;
}

static bool link_is_good(const struct reference *ref, int from, int to)
{
	return to >= 0 && to != from &&
	       (!ref->graph->nodes[to].made || ref->graph->nodes[to].start <= ref->symptom_ts);
}

static bool links_above(const struct reference *ref, int node)
{
	for (; node >= 0; node = ref->graph->nodes[node].parent)
		for (unsigned i = 0; i < 2; i++)
			if (link_is_good(ref, node, ref->graph->nodes[node].links[i]))
				return true;
	return false;
}

/* Whether a rank receives data in a collective of another call. */
static bool receives(const struct comm *comm, unsigned rank)
{
	return comm->ends[rank].takes_part && (comm->kind != COMM_MESSAGE || rank != comm->root);
}

static bool contains(const struct node *span, uint64_t ts)
{
	return span->start <= ts && ts <= span->end;
}

/* Tells whether a span, or a call that it began, had received data by a time. */
static bool self_has(const struct reference *ref, int node, uint64_t ts)
{
	const struct node *at = &ref->graph->nodes[node];
	unsigned rank = at->place / 2;

	for (unsigned i = 0; i < ref->graph->comm_count; i++)
		if (receives(&ref->graph->comms[i], rank) &&
		    ref->graph->comms[i].ends[rank].end <= ts &&
		    (contains(at, ref->graph->comms[i].ends[rank].start) ||
		     contains(at, ref->graph->comms[i].ends[rank].end)))
			return true;
	return false;
}

static void end_note(struct reference *ref, const struct spot *spot, uint8_t *nodes, uint8_t *calls,
		     uint8_t grade)
{
	uint8_t *at = &nodes[spot->at];

	if (spot->what == WHAT_CALL) {
		int inside = call_at(ref, spot->at)->inside;

		at = inside >= 0 ? &nodes[inside] : &calls[spot->at];
	}
	if (*at < grade)
		*at = grade;
}

static uint8_t least(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void links_walk(struct reference *ref, int node, const struct spot *spot, uint8_t grade,
		       bool *goes_on)
{
	for (unsigned i = 0; i < 2; i++) {
		int to = ref->graph->nodes[node].links[i];
		struct spot next = {.what = WHAT_NODE,
				    .at = to,
				    .mode = i ? MODE_LINKS : MODE_SELF,
				    .ts = spot->ts,
				    .flowed = spot->flowed};

		if (!link_is_good(ref, node, to))
			continue;
		*goes_on = true;
		if (i && ref->graph->nodes[to].made)
			next.ts = earlier(spot->ts, ref->graph->nodes[to].start);
		if (ref->graph->nodes[to].made && is_span(to) && self_has(ref, to, next.ts))
			ref->received[to] |= (uint8_t)(1 << grade);
		if (ref->graph->nodes[to].made &&
		    (links_above(ref, to) || (is_span(to) && self_has(ref, to, next.ts))))
			spot_add(ref, next, grade);
		else if (!ref->directed && ref->declared[to] < grade)
			ref->declared[to] = grade;
	}
}

/* The senders of one arrival. `grade`: of the step. */
static void senders_walk(struct reference *ref, unsigned comm, unsigned rank,
			 const struct spot *spot, uint8_t grade)
{
	const struct comm *at = &ref->graph->comms[comm];

	if (at->kind != COMM_ALL)
		spot_add(ref,
			 (struct spot){.what = WHAT_CALL,
				       .at = (int)(comm * RANKS + rank),
				       .mode = MODE_LINKS,
				       .ts = at->ends[rank].end,
				       .flowed = true},
			 grade);
	for (unsigned from = 0; from < RANKS; from++)
		if ((at->kind == COMM_ALL || from == at->root) &&
		    at->ends[from].start <= ref->symptom_ts)
			spot_add(ref,
				 (struct spot){.what = WHAT_CALL,
					       .at = (int)(comm * RANKS + from),
					       .mode = MODE_ALL,
					       .ts = at->ends[from].start,
					       .flowed = spot->flowed || at->kind != COMM_ALL},
				 grade);
}

/* Whether the arrival is right within a span of the same thread. */
static bool is_within(const struct reference *ref, int node, const struct end_of_call *end)
{
	unsigned place = ref->graph->nodes[node].place;

	return (end->inside == node && (end->place & 0xff) == place) ||
	       (end->end_inside == node && end->place >> 8 == place);
}

/* The arrivals of a rank that `matches` picks: follows them, or notes the last one as any rank's.
 * `node`: the span that received them, or -1. */
struct wanted {
	unsigned rank;
	int node, thread; /* thread -1: any */
	uint64_t from, to;
	bool calls;     /* those whose call is in between count, and not their end */
	bool nearest;   /* no span further inside received data */
	uint64_t limit; /* data after it does not count; 0: there is none */
};

static bool is_wanted(const struct reference *ref, const struct wanted *wanted, unsigned comm)
{
	const struct end_of_call *end = &ref->graph->comms[comm].ends[wanted->rank];
	uint64_t ts = wanted->calls ? end->start : end->end;

	return receives(&ref->graph->comms[comm], wanted->rank) && ts >= wanted->from &&
	       ts <= wanted->to && (!wanted->limit || end->end <= wanted->limit) &&
	       (wanted->thread < 0 || (unsigned)wanted->thread == end->place >> 8);
}

static void any_note(struct reference *ref, unsigned comm)
{
	for (unsigned rank = 0; rank < RANKS; rank++) {
		int inside = ref->graph->comms[comm].ends[rank].inside;

		if (ref->graph->comms[comm].ends[rank].start > ref->symptom_ts)
			continue;
		if (inside >= 0)
			ref->any[inside] = true;
		else
			ref->any_calls[comm * RANKS + rank] = true;
	}
}

static bool arrivals_walk(struct reference *ref, const struct wanted *wanted,
			  const struct spot *spot, uint8_t grade, bool *goes_on)
{
	bool found = false;
	int last = -1;

	for (unsigned i = 0; i < ref->graph->comm_count; i++) {
		const struct comm *comm = &ref->graph->comms[i];
		const struct end_of_call *end = &comm->ends[wanted->rank];
		uint8_t step =
			wanted->nearest && wanted->node >= 0 && is_within(ref, wanted->node, end)
				? WHY_GRADE_CERTAIN
				: WHY_GRADE_LIKELY;

		if (!is_wanted(ref, wanted, i))
			continue;
		found = true;
		if (ref->directed && comm->kind == COMM_ALL) {
			/* The last one by the same order: its time, and then its number. */
			const struct end_of_call *before =
				last < 0 ? NULL : &ref->graph->comms[last].ends[wanted->rank];
			uint64_t ts = wanted->calls ? end->start : end->end;

			if (!before || ts >= (wanted->calls ? before->start : before->end))
				last = (int)i;
			continue;
		}
		*goes_on = true;
		senders_walk(ref, i, wanted->rank, spot, least(grade, step));
	}
	if (last >= 0 && wanted->nearest)
		any_note(ref, (unsigned)last);
	return found;
}

static bool node_arrivals(struct reference *ref, int node, const struct spot *spot, uint8_t grade,
			  bool nearest, bool *goes_on)
{
	const struct node *at = &ref->graph->nodes[node];
	bool self = spot->what == WHAT_NODE && spot->at == node &&
		    (spot->first || spot->mode == MODE_SELF);
	struct wanted wanted = {.rank = at->place / 2,
				.node = node,
				.thread = -1,
				.nearest = nearest,
				.from = at->start,
				.to = self ? earlier(at->end, spot->ts) : spot->ts};
	bool found = arrivals_walk(ref, &wanted, spot, grade, goes_on);

	if (!self)
		return found;
	wanted.calls = true;
	wanted.limit = spot->first ? 0 : spot->ts;
	return arrivals_walk(ref, &wanted, spot, grade, goes_on) || found;
}

static void thread_arrivals(struct reference *ref, unsigned place, const struct spot *spot,
			    uint8_t grade, bool nearest, bool *goes_on)
{
	struct wanted wanted = {.rank = place / 2,
				.node = -1,
				.thread = (int)place,
				.nearest = nearest,
				.to = spot->ts};

	if (arrivals_walk(ref, &wanted, spot, grade, goes_on))
		return;
	wanted.thread = -1;
	arrivals_walk(ref, &wanted, spot, grade, goes_on);
}

static void spot_walk(struct reference *ref, struct spot spot, uint8_t grade)
{
	const struct graph *graph = ref->graph;
	bool call = spot.what == WHAT_CALL, goes_on = false, moved = false, same_rank = false;
	int node = call ? call_at(ref, spot.at)->inside : spot.at;
	unsigned place = call ? call_at(ref, spot.at)->place & 0xff : graph->nodes[node].place;
	bool receives = spot.mode != MODE_LINKS, nearest = true;

	for (bool own = !call; node >= 0 && !moved; own = false) {
		int parent = graph->nodes[node].parent;

		links_walk(ref, node, &spot, grade, &goes_on);
		if (receives && is_span(node) && (spot.mode == MODE_ALL || own))
			nearest &= !node_arrivals(ref, node, &spot, grade, nearest, &goes_on);
		moved = parent >= 0 && graph->nodes[parent].place != place;
		same_rank = moved && graph->nodes[parent].place / 2 == place / 2;
		if (moved) {
			goes_on = true;
			spot_add(
				ref,
				(struct spot){.what = WHAT_NODE,
					      .at = parent,
					      .mode = spot.mode == MODE_ALL ? MODE_ALL : MODE_LINKS,
					      .ts = earlier(spot.ts, graph->nodes[node].start),
					      .flowed = true},
				grade);
		}
		node = parent;
	}
	if (!same_rank && spot.mode == MODE_ALL)
		thread_arrivals(ref, place, &spot, grade, nearest, &goes_on);
	if (ref->directed && !goes_on && spot.flowed && spot.mode == MODE_ALL)
		end_note(ref, &spot, ref->flow, ref->flow_calls, WHY_GRADE_LIKELY);
}

static void reference_run(struct reference *ref, const struct graph *graph, int symptom,
			  bool directed)
{
	struct spot start = {
		.what = WHAT_NODE, .at = symptom, .ts = graph->nodes[symptom].end, .first = true};

	ref->graph = graph;
	ref->symptom_ts = start.ts;
	ref->directed = directed;
	ref->count = ref->next = 0;
	spot_add(ref, start, WHY_GRADE_CERTAIN);
	for (; ref->next < ref->count; ref->next++)
		spot_walk(ref, ref->seen[ref->next], ref->grade_seen[ref->next]);
	for (unsigned i = 0; i < NODES_MAX; i++)
		if (!directed && ref->declared[i] && ref->received[i] >> ref->declared[i])
			ref->declared[i] = 0;
}

/* ---- the comparison ---- */

static unsigned expected_count(const struct reference *ref, bool *nothing_else)
{
	unsigned count = 0;

	for (unsigned i = 0; i < NODES_MAX; i++)
		count += ref->declared[i] || ref->flow[i];
	for (unsigned i = 0; i < COMMS_MAX * RANKS; i++)
		count += ref->flow_calls[i] != 0;
	*nothing_else = !count;
	if (count)
		return count;
	for (unsigned i = 0; i < NODES_MAX; i++)
		count += ref->any[i];
	for (unsigned i = 0; i < COMMS_MAX * RANKS; i++)
		count += ref->any_calls[i];
	return count;
}

/* The number of the call of an id, as comm * RANKS + rank. */
static int call_of(const struct graph *graph, uint64_t id)
{
	for (unsigned i = 0; i < graph->comm_count * RANKS; i++) {
		const struct end_of_call *end = &graph->comms[i / RANKS].ends[i % RANKS];

		if (end->takes_part && end->id == id)
			return (int)i;
	}
	fail_msg("%llx is no call", (unsigned long long)id);
	return -1;
}

static bool is_node(uint64_t id)
{
	return id >= 0x1000 && id < 0x1000 + NODES_MAX;
}

static void end_check(const struct reference *ref, const struct origin_end *end, bool nothing_else)
{
	bool node = is_node(end->node.id);
	int at = node ? (int)(end->node.id - 0x1000) : call_of(ref->graph, end->node.id);

	switch (end->basis) {
	case ORIGIN_DECLARED:
		assert_true(node);
		assert_true(ref->declared[at]);
		break;
	case ORIGIN_FLOW:
		assert_int_equal(end->grade, WHY_GRADE_LIKELY);
		assert_true(node ? ref->flow[at] && !ref->declared[at] : ref->flow_calls[at]);
		break;
	default:
		assert_true(nothing_else);
		assert_int_equal(end->grade, WHY_GRADE_UNKNOWN);
		assert_true(node ? ref->any[at] : ref->any_calls[at]);
		break;
	}
}

static bool is_around(const struct graph *graph, uint64_t from, uint64_t to)
{
	int node = is_node(from)
			   ? (int)(from - 0x1000)
			   : call_at(&(struct reference){.graph = graph}, call_of(graph, from))
				     ->inside;

	for (; node >= 0; node = graph->nodes[node].parent)
		if (node_id(node) == to)
			return true;
	return false;
}

static void step_check(const struct graph *graph, const struct origin_step *step)
{
	const struct node *from =
		is_node(step->from.id) ? &graph->nodes[step->from.id - 0x1000] : NULL;

	switch (step->via) {
	case ORIGIN_VIA_LINK:
		assert_non_null(from);
		assert_true(node_id(from->links[0]) == step->to.id ||
			    node_id(from->links[1]) == step->to.id);
		break;
	case ORIGIN_VIA_INSIDE:
		assert_true(is_around(graph, step->from.id, step->to.id));
		break;
	case ORIGIN_VIA_CONTEXT:
		assert_non_null(from);
		assert_int_equal(node_id(from->parent), step->to.id);
		assert_int_not_equal(from->place, graph->nodes[from->parent].place);
		break;
	default:
		assert_int_not_equal(step->collective, MODEL_NONE);
		break;
	}
}

static void way_check(const struct reference *ref, const struct origin *origin,
		      const struct origin_end *end)
{
	const struct graph *graph = ref->graph;
	uint64_t at = origin->symptom.id;
	uint8_t grade = WHY_GRADE_CERTAIN;
	struct origin_way way;

	origin_way_find(&way, origin, end);
	assert_int_equal(way.left_out, 0);
	for (size_t i = 0; i < way.steps.len; i++) {
		const struct origin_step *step = &way.steps.data[i];

		assert_int_equal(step->from.id, at);
		step_check(graph, step);
		at = step->to.id;
		grade = least(grade, step->grade);
	}
	origin_way_free(&way);
	assert_int_equal(at, end->node.id);
	if (end->basis != ORIGIN_DECLARED)
		return;
	assert_int_equal(grade, ref->declared[end->node.id - 0x1000]);
	assert_int_equal(grade, end->grade);
}

static void symptom_check(const struct graph *graph, const struct origin_index *index,
			  const struct model *model, int symptom, unsigned *seen)
{
	static struct reference ref;
	enum model_node_kind kind = is_span(symptom) ? MODEL_NODE_SPAN : MODEL_NODE_EVENT;
	struct origin *origin;
	uint32_t at = 0;
	bool nothing_else;

	if (kind == MODEL_NODE_SPAN)
		at = model_span_find(model, node_id(symptom));
	else
		while (model->events.data[at].id != node_id(symptom))
			at++;
	memset(&ref, 0, sizeof(ref));
	reference_run(&ref, graph, symptom, false);
	reference_run(&ref, graph, symptom, true);
	origin = origin_new(index, kind, at);
	assert_int_equal(origin->ends.len, expected_count(&ref, &nothing_else));
	for (size_t i = 0; i < origin->ends.len; i++) {
		end_check(&ref, &origin->ends.data[i], nothing_else);
		way_check(&ref, origin, &origin->ends.data[i]);
		seen[origin->ends.data[i].basis * 3 + origin->ends.data[i].grade]++;
	}
	origin_free(origin);
}

static void test_origins_are_those_of_brute_force(void **state)
{
	static struct graph graph;
	unsigned seen[ORIGIN_BASIS_COUNT * 3] = {0};

	(void)state;
	for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
		const struct model *model;
		struct origin_index *index;

		graph_make(&graph, seed);
		model = capture_load(&graph.capture, graph.ts + 10);
		assert_int_equal(model->bad_records, 0);
		index = origin_index_new(model);
		for (unsigned node = 0; node < graph.node_count; node++)
			symptom_check(&graph, index, model, (int)node, seen);
		origin_index_free(index);
		capture_free(&graph.capture);
	}
	/* Each kind of end was there often enough to mean something. */
	assert_true(seen[ORIGIN_DECLARED * 3 + WHY_GRADE_CERTAIN] > GRAPHS);
	assert_true(seen[ORIGIN_DECLARED * 3 + WHY_GRADE_LIKELY] > GRAPHS);
	assert_true(seen[ORIGIN_FLOW * 3 + WHY_GRADE_LIKELY] > GRAPHS);
	assert_true(seen[ORIGIN_ANY_RANK * 3 + WHY_GRADE_UNKNOWN] > GRAPHS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_origins_are_those_of_brute_force),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
