// SPDX-License-Identifier: Apache-2.0
/*
 * Finds out which calls of different ranks are one collective. The calls of a communicator are
 * numbered on each rank. If the capture saw its creation, the numbers of all ranks start there.
 * Sequence numbers that the calls carry may wrap at 32 or 64 bits.
 *
 * Otherwise we try to shift one rank's numbers against another's. Two facts limit the shift: no
 * rank finishes a collective before the last rank has arrived, and all ranks call the same
 * operation. If more than one shift is possible, the calls stay unmatched.
 *
 * A short message may be sent before its receiver arrives, and a root may be far ahead of the ranks
 * that get its data. So the times limit the shift from one side only. Then we take the shift that
 * leaves the fewest calls under way, if it explains how long the receivers waited:
 *
 *	send      |  |        |         |
 *	receive  --- ---------- ----------     each ends when a message comes: nothing was under way
 *	receive   - - -   - -  -               messages were there before: the shift is not known
 *
 * A long message is sent only after its receiver has arrived, and nobody knows which messages are
 * long. If the receivers did not wait, we try the same shift with the senders as those that wait. A
 * short message among them, sent far ahead, makes the bound too large: then nothing is matched.
 */
#include <stdlib.h>
#include <string.h>

#include "model/comm/comm_internal.h"
#include "util/memory.h"
#include "util/search.h"

#define SHIFTS_MAX 256 /* number of possible shifts that we examine */
#define MEMBERS_MAX 4096
/* The largest step of a counter between two calls of a rank. It keeps sums within 63 bits. */
#define SEQ_STEP_MAX (1u << 24)

/* One rank of a communicator in one process: calls [first, first + count) of the sorted calls. */
struct member {
	size_t first, count;
	uint32_t pid, rank, host;
	uint32_t place, places; /* see struct comm_call */
	bool created;           /* the capture saw it create the communicator */
	bool assumed;           /* it is only assumed that the capture did */
	bool counted;           /* its calls carry sequence numbers */
	bool aligned;
	uint64_t base;
	int64_t shift;    /* the call at position p has number p - base + shift */
	uint64_t *coming; /* per call: earliest arrival of it and all later calls */
};

struct work {
	struct model_comm *comm;
	comm_calls *calls;
	VEC(struct member) members; /* of one communicator */
	VEC(struct numbered) numbered;
	bool lossless; /* no calls were dropped */
	bool filtered; /* a filter may have removed calls */
	bool idle_known;
	const struct comm_init *idle; /* see find_idle() */
};

struct numbered {
	int64_t number;
	size_t call;
	uint32_t member;
};

static int call_compare(const void *left, const void *right)
{
	const struct comm_call *a = left, *b = right;

	if (a->mpi != b->mpi)
		return a->mpi ? 1 : -1;
	if (a->comm != b->comm)
		return a->comm < b->comm ? -1 : 1;
	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	if (a->to != b->to)
		return a->to < b->to ? -1 : 1;
	if (a->tag != b->tag)
		return a->tag < b->tag ? -1 : 1;
	if (a->from != MODEL_NONE && a->place != b->place)
		return a->place < b->place ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

/* Whether two calls can belong to one collective. */
static bool same_sequence(const struct comm_call *a, const struct comm_call *b)
{
	return a->mpi == b->mpi && a->comm == b->comm && a->from == b->from && a->to == b->to &&
	       a->tag == b->tag;
}

static const struct comm_call *call_at(const struct work *work, const struct member *member,
				       size_t index)
{
	return &work->calls->data[member->first + index];
}

static int64_t position(const struct work *work, const struct member *member, size_t index)
{
	return (int64_t)(call_at(work, member, index)->seq - member->base);
}

/* ---- members ---- */

/* The step from one sequence number to the next. A counter of 32 or 64 bits may have wrapped. */
static uint64_t seq_step(uint64_t from, uint64_t to)
{
	return to < from && from <= UINT32_MAX ? to + (UINT64_C(1) << 32) - from : to - from;
}

/* Uses the calls' own sequence numbers if these are ascending; otherwise counts the calls. */
static void number_calls(struct work *work, struct member *member)
{
	struct comm_call *calls = &work->calls->data[member->first];
	uint64_t step;

	member->counted = true;
	for (size_t i = 0; member->counted && i < member->count; i++) {
		step = i ? seq_step(calls[i - 1].seq, calls[i].seq) : 1;
		member->counted = calls[i].has_seq && step && step <= SEQ_STEP_MAX;
	}
	for (size_t i = 1, last = calls->seq; member->counted && i < member->count; i++) {
		step = seq_step(last, calls[i].seq);
		last = calls[i].seq;
		calls[i].seq = calls[i - 1].seq + step;
	}
	for (size_t i = 0; !member->counted && i < member->count; i++)
		calls[i].seq = i;
}

static bool gapless(const struct work *work, const struct member *member)
{
	return position(work, member, member->count - 1) - position(work, member, 0) + 1 ==
	       (int64_t)member->count;
}

/* Inits are in the order of communicator, rank, pid and time. */
static int init_compare(const void *left, const void *right)
{
	const struct comm_init *a = left, *b = right;

	if (a->mpi != b->mpi)
		return a->mpi ? 1 : -1;
	if (a->comm != b->comm)
		return a->comm < b->comm ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a->ts < b->ts ? -1 : a->ts > b->ts;
}

/* The first creation of a communicator from `key` on, in the order above. NULL: there is none. */
static const struct comm_init *init_from(const struct model_comm *comm, const struct comm_init *key)
{
	const struct comm_init *inits = comm->inits.data;
	size_t at = lower_bound(comm->inits.len, i, init_compare(&inits[i], key) < 0);

	return at < comm->inits.len && inits[at].mpi == key->mpi && inits[at].comm == key->comm
		       ? &inits[at]
		       : NULL;
}

/* The creation of a member's communicator before its first call; NULL: the capture did not see it.
 * One of the whole process has no rank. */
static const struct comm_init *find_init(const struct work *work, const struct member *member)
{
	const struct comm_call *first = call_at(work, member, 0);
	const uint32_t ranks[] = {member->rank, MODEL_NONE};
	const struct comm_init *found = NULL;

	for (unsigned i = 0; i < 2; i++) {
		const struct comm_init key = {.comm = first->comm,
					      .pid = member->pid,
					      .rank = ranks[i],
					      .mpi = first->mpi};
		const struct comm_init *init = init_from(work->comm, &key);

		if (init && init->rank == key.rank && init->pid == key.pid &&
		    init->ts < first->arrival_ts && (!found || init->ts < found->ts))
			found = init;
	}
	return found;
}

static void add_member(struct work *work, size_t first, size_t count)
{
	const struct comm_call *call = &work->calls->data[first];
	struct member member = {.first = first,
				.count = count,
				.pid = call->pid,
				.rank = call->rank,
				.host = comm_host(work->comm->model, call->pid),
				.place = call->place,
				.places = call->places};
	uint32_t inits = map_get(&work->comm->inits_of, call->pid);
	const struct comm_init *init;

	number_calls(work, &member);
	init = find_init(work, &member);
	member.created = init;
	member.assumed = init && init->assumed;
	/* The sequence counter belongs to the handle. It continues if a new communicator reuses the
	 * handle of an old one, so we count from the first call. */
	if (member.created && work->lossless && !work->filtered)
		member.base = call->seq;
	else if ((inits != MAP_NONE && inits > 1) || !member.counted)
		member.created = false;
	vec_add(&work->members, member);
}

/* Whether the ranks are consistent: no rank twice, all with the same number of ranks. A rank of MPI
 * may be unknown, since it is known only from what the program asks for. */
static bool members_fit(const struct work *work)
{
	const struct member *members = work->members.data;
	bool mpi = work->calls->data[members->first].mpi;

	if (work->members.len > MEMBERS_MAX)
		return false;
	for (size_t i = 0; i < work->members.len; i++) {
		if (members[i].places != members->places || (!members[i].places && !mpi) ||
		    (members[i].places && work->members.len > members[i].places) ||
		    (members[i].place == MODEL_NONE
			     ? !mpi
			     : members[i].places && members[i].place >= members[i].places))
			return false;
	}
	/* Members are in the order of their places. */
	for (size_t i = 1; i < work->members.len; i++)
		if (members[i].place == members[i - 1].place && members[i].place != MODEL_NONE)
			return false;
	return true;
}

/* ---- shifts ---- */

static void coming_set(const struct work *work, struct member *member)
{
	uint64_t first = UINT64_MAX;

	if (member->coming)
		return;
	member->coming = memory_get(member->count * sizeof(*member->coming));
	for (size_t i = member->count; i--;) {
		uint64_t ts = call_at(work, member, i)->arrival_ts;

		first = ts < first ? ts : first;
		member->coming[i] = first;
	}
}

/* The last position that a member can have entered by a time. The member must be gapless. */
static int64_t reached(const struct work *work, const struct member *member, uint64_t ts)
{
	size_t count = lower_bound(member->count, i, member->coming[i] <= ts);

	return position(work, member, 0) + (int64_t)count - 1;
}

/* Whether a call that is over shows that another rank has entered it: all must, or one of the two
 * is the root that has or gets the data. */
static bool proves_arrival(const struct comm_call *call, const struct member *other)
{
	if (!call->rooted)
		return true;
	if (call->root == MODEL_NONE || call->data != MODEL_DATA_SOME || call->rank == MODEL_NONE)
		return false;
	return (call->flow == FLOW_FROM_ROOT && call->root == other->rank) ||
	       (call->flow == FLOW_TO_ROOT && call->root == call->rank);
}

/* A rank leaves a collective only after the other rank has entered it; with `all_prove`, that is
 * assumed of all calls. *bound becomes the smallest offset from positions of `other` to those of
 * `done` with which that holds. False: no call of `done` proves anything. */
static bool shift_bound(const struct work *work, const struct member *done,
			const struct member *other, bool all_prove, int64_t *bound)
{
	bool known = false;

	for (size_t i = 0; i < done->count; i++) {
		const struct comm_call *call = call_at(work, done, i);
		int64_t ahead;

		if (!(all_prove || proves_arrival(call, other)) || call->end_ts == UINT64_MAX)
			continue;
		ahead = position(work, done, i) - reached(work, other, call->end_ts);
		if (!known || ahead > *bound)
			*bound = ahead;
		known = true;
	}
	return known;
}

/* Whether all calls that are paired by a shift have the same signature. */
static bool shift_fits(const struct work *work, const struct member *base,
		       const struct member *member, int64_t shift)
{
	int64_t base_from = position(work, base, 0), from = position(work, member, 0);
	int64_t first = from + shift > base_from ? from + shift : base_from;
	int64_t base_end = base_from + (int64_t)base->count, end = from + (int64_t)member->count;

	end = end + shift < base_end ? end + shift : base_end;
	for (int64_t at = first; at < end; at++)
		if (call_at(work, base, (size_t)(at - base_from))->signature !=
		    call_at(work, member, (size_t)(at - shift - from))->signature)
			return false;
	return true;
}

/* When a call began to wait; of a nonblocking one, its completion. */
static uint64_t wait_begin(const struct work *work, const struct comm_call *call)
{
	uint32_t span = call->end_span != MODEL_NONE ? call->end_span : call->span;

	return work->comm->model->spans.data[span].start_ts;
}

/* How long calls of `done` waited until the calls of `other` began that are `ahead` positions
 * before theirs. *total: how long they took. `all_prove`: see shift_bound(). */
static uint64_t waited_ns(const struct work *work, const struct member *done,
			  const struct member *other, int64_t ahead, bool all_prove,
			  uint64_t *total)
{
	int64_t first = position(work, other, 0);
	uint64_t sum = 0;

	*total = 0;
	for (size_t i = 0; i < done->count; i++) {
		const struct comm_call *call = call_at(work, done, i);
		int64_t at = position(work, done, i) - ahead - first;
		uint64_t from = wait_begin(work, call), ts;

		if (!(all_prove || proves_arrival(call, other)) || call->end_ts == UINT64_MAX ||
		    at < 0 || at >= (int64_t)other->count || from >= call->end_ts)
			continue;
		ts = call_at(work, other, (size_t)at)->arrival_ts;
		ts = ts < call->end_ts ? ts : call->end_ts;
		sum += ts > from ? ts - from : 0;
		*total += call->end_ts - from;
	}
	return sum;
}

/* Whether a member has calls of which the order is not known. */
static bool has_unsure(const struct work *work, const struct member *member)
{
	for (size_t i = 0; i < member->count; i++)
		if (call_at(work, member, i)->unsure || call_at(work, member, i)->failed)
			return true;
	return false;
}

/*
 * `done` waits for `other`, which does not wait for it: a call of `other` is at least `ahead`
 * positions before that of `done`. If it were more, as many calls of `other` would have been under
 * way all the time, and `done` would have had no reason to wait. So the smallest one is right if it
 * explains most of the time that `done` took, and the next one much less.
 */
static bool is_explained(const struct work *work, const struct member *done,
			 const struct member *other, int64_t ahead, bool all_prove)
{
	uint64_t total, next_total, waited, next;

	if (has_unsure(work, done) || has_unsure(work, other))
		return false;
	waited = waited_ns(work, done, other, ahead, all_prove, &total);
	next = waited_ns(work, done, other, ahead + 1, all_prove, &next_total);
	return waited && waited > total / 2 && next < waited / 2;
}

/* Whether the senders of messages may have waited for the receivers, which come at least `ahead`
 * positions before them. Then *back is how far the receivers are ahead of the senders. */
static bool senders_wait(const struct work *work, const struct member *receiver,
			 const struct member *sender, int64_t ahead, int64_t *back)
{
	return call_at(work, sender, 0)->from != MODEL_NONE &&
	       shift_bound(work, sender, receiver, true, back) && *back <= -ahead &&
	       is_explained(work, sender, receiver, *back, true);
}

/* Only one of the members certainly waits for the other. */
static void align_one_way(const struct work *work, struct member *base, struct member *member,
			  bool base_waits, int64_t ahead)
{
	const struct member *waits = base_waits ? base : member;
	const struct member *other = base_waits ? member : base;
	int64_t back;

	member->aligned = is_explained(work, waits, other, ahead, false);
	if (!member->aligned && senders_wait(work, waits, other, ahead, &back)) {
		member->aligned = true;
		ahead = -back;
	}
	member->shift = base_waits ? ahead : -ahead;
	member->aligned = member->aligned && shift_fits(work, base, member, member->shift);
	if (!member->aligned)
		member->shift = 0;
}

/* Sets member->aligned if exactly one shift is possible. */
static void align(struct work *work, struct member *base, struct member *member)
{
	int64_t low, back, found = 0;
	bool base_waits, member_waits;
	unsigned fits = 0;

	if (!comm_hosts_comparable(work->comm->model, base->host, member->host) ||
	    !work->lossless || !gapless(work, base) || !gapless(work, member) ||
	    (work->filtered && (!base->counted || !member->counted)))
		return;
	coming_set(work, base);
	coming_set(work, member);
	/* If base has finished p, the member has reached p - shift: shift >= low. If the member has
	 * finished p, base has reached p + shift: shift <= -back. */
	base_waits = shift_bound(work, base, member, false, &low);
	member_waits = shift_bound(work, member, base, false, &back);
	if (base_waits != member_waits)
		align_one_way(work, base, member, base_waits, base_waits ? low : back);
	if (!base_waits || !member_waits || low > -back || -back - low >= SHIFTS_MAX)
		return;
	for (int64_t shift = low; shift <= -back; shift++) {
		if (!shift_fits(work, base, member, shift))
			continue;
		found = shift;
		fits++;
	}
	member->aligned = fits == 1;
	member->shift = found;
}

/* How well the number of a member's first call is known: 2, the creation of its communicator was
 * recorded; 1, that is assumed; 0, it is not known. */
static unsigned trust(const struct member *member)
{
	return member->created + (member->created && !member->assumed);
}

/* Whether a member fits another one, if its communicator was created when we assume. */
static bool is_possible(const struct work *work, struct member *base, struct member *member)
{
	int64_t low, back;

	if (!gapless(work, base) || !gapless(work, member) || !shift_fits(work, base, member, 0))
		return false;
	if (!comm_hosts_comparable(work->comm->model, base->host, member->host))
		return true;
	coming_set(work, base);
	coming_set(work, member);
	return (!shift_bound(work, base, member, false, &low) || low <= 0) &&
	       (!shift_bound(work, member, base, false, &back) || back <= 0);
}

static void align_member(struct work *work, struct member *base, struct member *member)
{
	bool assumed = member->assumed || base->assumed;

	member->aligned =
		member->created && base->created && (!assumed || is_possible(work, base, member));
	if (!member->aligned)
		align(work, base, member);
}

/* Two processes with one rank of a communicator of NCCL. Those of MPI are found by the lives of the
 * processes (comm_mpi_worlds.c). */
static void claims_add(struct work *work)
{
	const struct member *members = work->members.data;
	const struct comm_call *first = &work->calls->data[members->first];

	for (size_t i = 1; i < work->members.len && !first->mpi && first->from == MODEL_NONE; i++) {
		const struct model_process *process =
			comm_process(work->comm->model, members[i].pid);

		if (members[i].place != members[i - 1].place || members[i].place == MODEL_NONE ||
		    members[i].pid == members[i - 1].pid)
			continue;
		vec_add(&work->comm->claims, (struct model_claim){.job = process ? process->job : 0,
								  .rank = members[i].rank,
								  .pid = members[i - 1].pid,
								  .other_pid = members[i].pid});
	}
}

/* Whether a member is the root of its first call: others may wait for it alone. */
static bool is_root(const struct work *work, const struct member *member)
{
	const struct comm_call *call = call_at(work, member, 0);

	return call->rooted && call->root != MODEL_NONE && call->root == member->rank;
}

static bool is_better_base(const struct work *work, const struct member *member,
			   const struct member *base)
{
	if (trust(member) != trust(base))
		return trust(member) > trust(base);
	if (!trust(member) && is_root(work, member) != is_root(work, base))
		return is_root(work, member);
	return member->count > base->count;
}

static void align_members(struct work *work)
{
	struct member *base = NULL;

	for (size_t i = 0; i < work->members.len; i++) {
		struct member *member = &work->members.data[i];

		if (!base || is_better_base(work, member, base))
			base = member;
	}
	if (!members_fit(work)) {
		claims_add(work);
		return;
	}
	for (size_t i = 0; i < work->members.len; i++) {
		struct member *member = &work->members.data[i];

		if (member == base)
			continue;
		align_member(work, base, member);
		base->aligned |= member->aligned;
	}
}

/* ---- collectives ---- */

static int numbered_compare(const void *left, const void *right)
{
	const struct numbered *a = left, *b = right;

	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return a->member < b->member ? -1 : a->member > b->member;
}

/* A call may be the send of one message and the receive of another. */
static void span_put(struct model_comm *comm, const struct comm_call *call, uint32_t collective)
{
	uint32_t other = map_get(&comm->collective_of, call->span);
	bool receives = call->from != MODEL_NONE && call->place == 1;

	if (other != MAP_NONE)
		map_put(&comm->received, call->span, receives ? collective : other);
	if (other == MAP_NONE || !receives)
		map_put(&comm->collective_of, call->span, collective);
}

static void call_put(struct model_comm *comm, const struct comm_call *call, uint32_t collective)
{
	vec_add(&comm->rank_calls, (struct model_rank_call){.arrival_ts = call->arrival_ts,
							    .end_ts = call->end_ts,
							    .span = call->span,
							    .end_span = call->end_span,
							    .group_end = call->group_end,
							    .thread = call->thread,
							    .pid = call->pid,
							    .rank = call->rank});
	span_put(comm, call, collective);
	if (call->group_end != MODEL_NONE &&
	    map_get(&comm->collective_of, call->group_end) == MAP_NONE)
		map_put(&comm->collective_of, call->group_end, collective);
}

/* Whether the model has all calls of a member from its first one on. */
static bool has_all_calls(const struct work *work, const struct member *member)
{
	return work->lossless && (!work->filtered || (member->counted && gapless(work, member)));
}

/* Whether a rank has calls. Members of a collective are in the order of their ranks; a message has
 * few. */
static bool is_member(const struct work *work, uint32_t rank, bool message)
{
	const struct member *members = work->members.data;
	size_t count = work->members.len;
	size_t at = message ? 0 : lower_bound(count, i, members[i].rank < rank);

	while (message && at < count && members[at].rank != rank)
		at++;
	return at < count && members[at].rank == rank;
}

/* The creation of a communicator by one rank. NULL: there is none. */
static const struct comm_init *
init_of_rank(const struct work *work, const struct model_collective *collective, uint32_t rank)
{
	const struct comm_init key = {
		.comm = collective->comm, .rank = rank, .mpi = collective->mpi};
	const struct comm_init *init = init_from(work->comm, &key);

	return init && init->rank == rank ? init : NULL;
}

/* The first creation by a rank that has no calls. */
static const struct comm_init *init_of_idle(const struct work *work,
					    const struct model_collective *collective)
{
	const struct comm_init key = {.comm = collective->comm, .mpi = collective->mpi};
	const struct comm_init *at = init_from(work->comm, &key);
	const struct comm_init *end = at ? work->comm->inits.data + work->comm->inits.len : NULL;

	for (; at < end && at->mpi == key.mpi && at->comm == key.comm && at->rank != MODEL_NONE;
	     at++)
		if (!is_member(work, at->rank, false))
			return at;
	return NULL;
}

/* A rank that created the communicator but never called a collective on it, or did not send or
 * receive a message. NULL: there is none. It is the same for all collectives of the members. */
static const struct comm_init *find_idle(struct work *work,
					 const struct model_collective *collective)
{
	const uint32_t ends[] = {collective->from, collective->to};

	if (work->idle_known || !work->lossless || work->filtered)
		return work->idle;
	work->idle_known = true;
	if (collective->from == MODEL_NONE)
		work->idle = init_of_idle(work, collective);
	for (unsigned i = 0; !work->idle && collective->from != MODEL_NONE && i < 2; i++)
		if (ends[i] != MODEL_NONE && !is_member(work, ends[i], true))
			work->idle = init_of_rank(work, collective, ends[i]);
	return work->idle;
}

/* The first member that has not reached a number. */
static void find_late(struct work *work, int64_t number, struct model_collective *collective)
{
	const struct comm_init *idle;

	for (size_t i = 0; i < work->members.len; i++) {
		const struct member *member = &work->members.data[i];
		const struct comm_call *last = call_at(work, member, member->count - 1);

		if (!member->aligned || !has_all_calls(work, member) ||
		    position(work, member, member->count - 1) + member->shift >= number)
			continue;
		collective->late_rank = last->rank;
		collective->late_thread = last->thread;
		return;
	}
	idle = work->members.len < collective->nranks ? find_idle(work, collective) : NULL;
	if (!idle)
		return;
	collective->late_rank = idle->rank;
	collective->late_thread = idle->thread;
}

/* What the calls of a collective show of its data. Of a message, only the sender knows. */
static uint8_t data_of(const struct work *work, const struct numbered *calls, uint32_t count)
{
	const struct comm_call *all = work->calls->data;
	uint8_t data = all[calls[0].call].data;

	for (uint32_t i = 1; i < count && all[calls[0].call].from == MODEL_NONE; i++)
		if (all[calls[i].call].data != data)
			return MODEL_DATA_MAYBE;
	return data;
}

/* Adds the calls of a collective, and finds which of them came last. */
static void put_calls(struct work *work, const struct numbered *calls, size_t count,
		      struct model_collective *collective)
{
	struct model_comm *comm = work->comm;
	uint32_t index = (uint32_t)comm->collectives.len;
	uint32_t host = work->members.data[calls->member].host;

	for (size_t i = 0; i < count; i++) {
		const struct comm_call *call = &work->calls->data[calls[i].call];

		if (!comm_hosts_comparable(comm->model, host,
					   work->members.data[calls[i].member].host))
			collective->comparable = false;
		if (call->arrival_ts > work->calls->data[calls[collective->last].call].arrival_ts)
			collective->last = (uint32_t)i;
		collective->synchronizes = collective->synchronizes && call->synchronizes;
		call_put(comm, call, index);
	}
}

/* Adds one collective of `count` calls with the same number. */
static void collective_add(struct work *work, const struct numbered *calls, size_t count,
			   enum model_alignment alignment)
{
	struct model_comm *comm = work->comm;
	const struct comm_call *first = &work->calls->data[calls[0].call];
	const struct member *member = &work->members.data[calls[0].member];
	struct model_collective collective = {
		.comm = first->comm,
		.seq = (uint64_t)calls[0].number,
		.site = comm->model->spans.data[first->span].site,
		.nranks = first->places,
		.from = first->from,
		.to = first->to,
		.tag = first->tag,
		.root = first->root,
		.count = (uint32_t)count,
		.members = (uint32_t)work->members.len,
		.late_rank = MODEL_NONE,
		.late_thread = MODEL_NONE,
		.alignment = (uint8_t)alignment,
		.flow = first->flow,
		.data = data_of(work, calls, (uint32_t)count),
		.rooted = first->rooted,
		.synchronizes = true,
		.mpi = first->mpi,
		.comparable = true,
	};

	if (alignment != COLLECTIVE_ALONE || member->aligned ||
	    (work->members.len == 1 && member->created))
		find_late(work, calls[0].number, &collective);
	put_calls(work, calls, count, &collective);
	vec_add(&comm->collectives, collective);
}

/* How many of the calls have the signature of the one at `like`. *other: one that has not. */
static size_t count_like(const struct work *work, const struct numbered *calls, size_t count,
			 size_t like, size_t *other)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		bool same = work->calls->data[calls[i].call].signature ==
			    work->calls->data[calls[like].call].signature;

		found += same;
		*other = same ? *other : i;
	}
	return found;
}

/* Notes the first disorder of a communicator. Most ranks are right, or the first if none is. */
static void disorder_add(struct work *work, const struct numbered *calls, size_t count)
{
	const struct comm_call *all = work->calls->data, *right, *wrong;
	struct model_comm *comm = work->comm;
	size_t other = 0, like = 0, most = count_like(work, calls, count, 0, &other);

	if (comm->disorders.len &&
	    comm->disorders.data[comm->disorders.len - 1].comm == all[calls->call].comm)
		return;
	if (most <= count - most) {
		size_t others = 0, found = count_like(work, calls, count, other, &others);

		if (found > most) {
			like = other;
			other = others;
			most = found;
		}
	}
	right = &all[calls[like].call];
	wrong = &all[calls[other].call];
	vec_add(&comm->disorders, (struct model_disorder){.comm = right->comm,
							  .seq = (uint64_t)calls->number,
							  .rank = right->rank,
							  .span = right->span,
							  .other_rank = wrong->rank,
							  .other_span = wrong->span,
							  .others = (uint32_t)(count - most)});
}

/* Calls with the same number are one collective if their members are aligned, they have the same
 * signature and none has failed. Otherwise each stands alone. */
static void numbered_add(struct work *work, const struct numbered *calls, size_t count)
{
	const struct member *members = work->members.data;
	const struct comm_call *all = work->calls->data;
	bool same = true, aligned = true, by_creation = true, failed = false, unsure = false;

	for (size_t i = 0; i < count; i++) {
		const struct member *member = &members[calls[i].member];

		aligned = aligned && member->aligned;
		same = same && all[calls[i].call].signature == all[calls[0].call].signature;
		by_creation = by_creation && member->created && !member->assumed;
		failed |= all[calls[i].call].failed;
		unsure |= all[calls[i].call].unsure;
	}
	if (count == 1) {
		collective_add(work, calls, 1, COLLECTIVE_ALONE);
		return;
	}
	if (same && aligned && !failed) {
		collective_add(work, calls, count,
			       !by_creation ? COLLECTIVE_BY_ORDER
			       : unsure     ? COLLECTIVE_UNSURE
					    : COLLECTIVE_BY_CREATION);
		return;
	}
	if (aligned && by_creation && !failed && !unsure && all[calls->call].from == MODEL_NONE)
		disorder_add(work, calls, count);
	for (size_t i = 0; i < count; i++)
		collective_add(work, &calls[i], 1, COLLECTIVE_ALONE);
	work->comm->unaligned += count;
}

/* Groups the calls of aligned members by number. The calls of other members stand alone. */
static void comm_finish(struct work *work)
{
	struct numbered *numbered;
	size_t from, to;

	work->numbered.len = 0;
	for (uint32_t m = 0; m < work->members.len; m++) {
		const struct member *member = &work->members.data[m];

		for (size_t i = 0; i < member->count; i++) {
			struct numbered one = {position(work, member, i) + member->shift,
					       member->first + i, m};

			if (!member->aligned && work->members.len > 1) {
				work->comm->unaligned++;
				collective_add(work, &one, 1, COLLECTIVE_ALONE);
			} else {
				vec_add(&work->numbered, one);
			}
		}
	}
	numbered = work->numbered.data;
	if (work->numbered.len)
		qsort(numbered, work->numbered.len, sizeof(*numbered), numbered_compare);
	for (from = 0; from < work->numbered.len; from = to) {
		for (to = from + 1;
		     to < work->numbered.len && numbered[to].number == numbered[from].number;)
			to++;
		numbered_add(work, &numbered[from], to - from);
	}
}

static void members_clear(struct work *work)
{
	for (size_t i = 0; i < work->members.len; i++)
		free(work->members.data[i].coming);
	work->members.len = 0;
	work->idle_known = false;
	work->idle = NULL;
}

/* Handles calls [from, to), which belong to one communicator. */
static void comm_make(struct work *work, size_t from, size_t to)
{
	const struct comm_call *calls = work->calls->data;
	size_t end;

	for (; from < to; from = end) {
		for (end = from + 1;
		     end < to && calls[end].pid == calls[from].pid &&
		     calls[end].rank == calls[from].rank &&
		     (calls[from].from == MODEL_NONE || calls[end].place == calls[from].place);)
			end++;
		add_member(work, from, end - from);
	}
	align_members(work);
	comm_finish(work);
	members_clear(work);
}

static bool is_lossless(const struct model *model)
{
	for (size_t i = 0; i < model->losses.len; i++)
		if (model->losses.data[i].source == WAFFLE_SOURCE_SPANS)
			return false;
	return !model->sources[WAFFLE_SOURCE_SPANS].lost;
}

/* Sorts the creations of communicators, and counts those of each process. */
static void inits_order(struct model_comm *comm)
{
	if (comm->inits.len)
		qsort(comm->inits.data, comm->inits.len, sizeof(*comm->inits.data), init_compare);
	for (size_t i = 0; i < comm->inits.len; i++) {
		uint32_t pid = comm->inits.data[i].pid, count = map_get(&comm->inits_of, pid);

		map_put(&comm->inits_of, pid, count == MAP_NONE ? 1 : count + 1);
	}
}

void comm_match(struct model_comm *comm, comm_calls *calls)
{
	struct work work = {.comm = comm,
			    .calls = calls,
			    .lossless = is_lossless(comm->model),
			    .filtered = *comm->model->meta->filter};
	const struct model_rank_call *at;
	size_t from, to;

	inits_order(comm);
	if (calls->len)
		qsort(calls->data, calls->len, sizeof(*calls->data), call_compare);
	for (from = 0; from < calls->len; from = to) {
		for (to = from + 1;
		     to < calls->len && same_sequence(&calls->data[to], &calls->data[from]);)
			to++;
		comm_make(&work, from, to);
	}
	members_clear(&work);
	vec_free(&work.members);
	vec_free(&work.numbered);
	at = comm->rank_calls.data;
	for (size_t i = 0; i < comm->collectives.len; i++) {
		comm->collectives.data[i].calls = at;
		at += comm->collectives.data[i].count;
	}
}
