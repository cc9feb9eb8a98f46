// SPDX-License-Identifier: Apache-2.0
/*
 * Requests that Go programs send to other processes, and their answers. No record belongs to a
 * goroutine, but the wake-ups through a connection show that one of them waits:
 *
 *	program     sends: wakes a thread at the other end       is woken at the same connection
 *	               |<------------- a goroutine waits for the answer ------------->|
 *	other end      | works, sleeps, asks others, …                         answers |
 *
 * Meanwhile any thread of the runtime may have nothing to run, whatever ends its own wait.
 */
#include "analyze/why/cause/why_go_answers.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/why/lookup/why_evidence.h"
#include "analyze/why/lookup/why_go.h"
#include "analyze/why/lookup/why_go_busy.h"
#include "analyze/why/lookup/why_go_idle.h"
#include "analyze/why/lookup/why_peers.h"
#include "analyze/why/parts/why_sums.h"
#include "analyze/why/why_verdict.h"
#include "analyze/why/why_walk_types.h"
#include "target/process/descriptors.h"
#include "util/hash.h"
#include "util/memory.h"
#include "util/search.h"

/* A program has done with an answer if it has had nothing to run for so long. */
#define IDLE_NS 1000000ull
/* Limit of a search: answers to look at. */
#define ANSWERS_MAX 64

/* The last message that a program sent over a connection, and the last answer. */
struct talk {
	uint64_t sent_ts;     /* when something was last sent; 0: that is answered, or not known */
	uint64_t answered_ts; /* when the last answer came */
	uint32_t by;          /* from this thread */
};

struct answer_finder {
	struct why_walk *walk;
	uint64_t *out_ts;   /* by thread: since when it has no CPU */
	int16_t *out_calls; /* the system call that it is in then; -1: none, or not known */
	uint64_t *got_ts;   /* when it last got what it may have worked on since */
	struct map talk_at; /* the program's socket, as a hash → index in talks */
	VEC(struct talk) talks;
};

static uint32_t pid_of(const struct why_walk *walk, uint32_t thread)
{
	return walk->model->threads.data[thread].pid;
}

/* The connection at which a thread was woken: the only file that was ready. NULL: none. */
static const struct store_object *connection_of(const struct answer_finder *finder, uint32_t thread)
{
	const struct model *model = finder->walk->model;
	const struct store_object *object =
		model_wait_object(model, model_wait_at(model, thread, finder->out_ts[thread]));

	return object && descriptor_is_socket(object->name) &&
			       strstr(object->detail, DESCRIPTOR_BETWEEN)
		       ? object
		       : NULL;
}

/* A capture may describe a socket several times, and two hosts may have the same inode number. */
static struct talk *talk_of(struct answer_finder *finder, const struct store_object *object)
{
	uint64_t key = object->ino ^ hash_number(store_pid_host(object->pid));
	uint32_t at = map_get(&finder->talk_at, key);

	if (at == MAP_NONE) {
		at = (uint32_t)finder->talks.len;
		map_put(&finder->talk_at, key, at);
		vec_add(&finder->talks, (struct talk){.by = MODEL_NONE});
	}
	return &finder->talks.data[at];
}

/* A thread of a Go program woke a thread at the other end of `object`. */
static void answer_ask(struct answer_finder *finder, const struct store_object *object, uint64_t ts)
{
	uint32_t own = why_socket_other_end(finder->walk, object);

	if (own != MODEL_NONE)
		talk_of(finder, store_reader_object(finder->walk->model->reader, own))->sent_ts =
			ts;
}

/* The thread that answered; MODEL_NONE: not known. Packets may arrive while any thread sends. */
static uint32_t answerer(struct why_walk *walk, const struct store_object *object,
			 const struct why_waker *waker)
{
	uint32_t other = why_socket_other_end(walk, object), peer;
	bool traced = !waker->interrupt && model_is_traced(walk->model, waker->thread);

	if (other == MODEL_NONE)
		return MODEL_NONE;
	if (traced &&
	    pid_of(walk, waker->thread) == store_reader_object(walk->model->reader, other)->pid)
		return waker->thread;
	peer = why_socket_peer(walk, object);
	if (!model_is_traced(walk->model, peer) ||
	    (!why_has_socket_waiter(walk, object) && !why_is_only_thread(walk, peer)))
		return MODEL_NONE;
	return peer;
}

/*
 * When the request was sent that a thread has just answered; 0: not known. If it did not wait for
 * it, it was there when the thread had sent the answer before: at most the time since then counts,
 * and at most that since it got anything.
 */
static uint64_t asked_ts(const struct answer_finder *finder, const struct talk *talk,
			 uint32_t thread)
{
	if (talk->sent_ts)
		return talk->sent_ts;
	if (talk->by != thread)
		return 0;
	return finder->got_ts[thread] > talk->answered_ts ? finder->got_ts[thread]
							  : talk->answered_ts;
}

/* A thread of a Go program was woken at `object`. */
static void answer_add(struct answer_finder *finder, const struct store_object *object,
		       const struct why_waker *waker, const struct model_switch *sw)
{
	struct why_walk *walk = finder->walk;
	uint32_t thread = answerer(walk, object, waker);
	struct why_go_answer answer = {.to_ts = sw->wake_ts,
				       .pid = pid_of(walk, sw->next),
				       .thread = thread,
				       .object = object};
	struct talk *talk;

	/* To a server, its client's next request would look like an answer. */
	if (thread == MODEL_NONE || pid_of(walk, thread) == answer.pid ||
	    why_socket_side(walk, object) != WHY_SIDE_CLIENT)
		return;
	talk = talk_of(finder, object);
	answer.from_ts = asked_ts(finder, talk, thread);
	*talk = (struct talk){.answered_ts = answer.to_ts, .by = thread};
	if (answer.from_ts && answer.from_ts < answer.to_ts)
		vec_add(&walk->go_answers, answer);
}

/* Whether a thread may have got something to work on: a request, or a job of another thread. */
static bool gets_work(const struct answer_finder *finder, uint32_t thread,
		      const struct why_waker *waker)
{
	int16_t number = finder->out_calls[thread];
	enum wait_call call = number < 0 || number >= WHY_SYSCALLS
				      ? WAIT_CALL_NONE
				      : (enum wait_call)finder->walk->calls[number];

	return !waker->interrupt || call == WAIT_CALL_READ || call == WAIT_CALL_SOCKET ||
	       call == WAIT_CALL_POLL || call == WAIT_CALL_POLL_LIST || call == WAIT_CALL_SELECT;
}

static void wake_examine(struct answer_finder *finder, const struct model_switch *sw)
{
	struct why_walk *walk = finder->walk;
	const struct store_object *object;
	struct why_waker waker;

	if (!(sw->flags & WAFFLE_SWITCH_WOKEN) || !model_is_traced(walk->model, sw->next))
		return;
	object = connection_of(finder, sw->next);
	waker = why_waker_in(walk, sw);
	if (gets_work(finder, sw->next, &waker))
		finder->got_ts[sw->next] = sw->wake_ts;
	if (!object)
		return;
	if (!waker.interrupt && model_is_traced(walk->model, waker.thread) &&
	    why_is_go(walk, waker.thread) && pid_of(walk, waker.thread) != pid_of(walk, sw->next))
		answer_ask(finder, object, sw->wake_ts);
	if (why_is_go(walk, sw->next))
		answer_add(finder, object, &waker, sw);
}

static int by_end(const void *left, const void *right)
{
	const struct why_go_answer *a = left, *b = right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->to_ts != b->to_ts)
		return a->to_ts < b->to_ts ? -1 : 1;
	return a->from_ts < b->from_ts ? -1 : a->from_ts > b->from_ts;
}

static void finder_begin(struct answer_finder *finder, size_t threads)
{
	finder->out_ts = memory_zeroed(threads, sizeof(*finder->out_ts));
	finder->out_calls = memory_get((threads + 1) * sizeof(*finder->out_calls));
	/* The call of a thread is unknown until its first switch. 0 would be read(2). */
	memset(finder->out_calls, 0xff, threads * sizeof(*finder->out_calls));
	finder->got_ts = memory_zeroed(threads, sizeof(*finder->got_ts));
}

static void finder_end(struct answer_finder *finder)
{
	free(finder->out_ts);
	free(finder->out_calls);
	free(finder->got_ts);
	map_free(&finder->talk_at);
	vec_free(&finder->talks);
}

void why_go_answers_init(struct why_walk *walk, const struct why_walk *like)
{
	const struct model *model = walk->model;
	struct answer_finder finder = {.walk = walk};

	if (!walk->has_go || !walk->names)
		return;
	if (like) {
		memcpy(&walk->go_answers, &like->go_answers, sizeof(walk->go_answers));
		return;
	}
	finder_begin(&finder, model->threads.len);
	for (size_t i = 0; i < model->switches.len; i++) {
		const struct model_switch *sw = &model->switches.data[i];

		wake_examine(&finder, sw);
		if (sw->prev >= model->threads.len)
			continue;
		finder.out_ts[sw->prev] = sw->ts;
		finder.out_calls[sw->prev] = sw->syscall;
	}
	if (walk->go_answers.len)
		qsort(walk->go_answers.data, walk->go_answers.len, sizeof(*walk->go_answers.data),
		      by_end);
	finder_end(&finder);
}

void why_go_answers_free(struct why_walk *walk)
{
	if (!walk->shared)
		vec_free(&walk->go_answers);
}

/* Index of the first answer to a process after ts. */
static size_t answers_after(const struct why_walk *walk, uint32_t pid, uint64_t ts)
{
	const struct why_go_answer *answers = walk->go_answers.data;

	return lower_bound(walk->go_answers.len, i,
			   answers[i].pid < pid ||
				   (answers[i].pid == pid && answers[i].to_ts <= ts));
}

static void cut(uint64_t *to, uint64_t from, uint64_t ts)
{
	if (ts > from && ts < *to)
		*to = ts;
}

/* The answer that a program waits for at `from`, the first one to come. *to is cut to the time
 * until which that is the same. */
static const struct why_go_answer *answer_any(struct why_walk *walk, uint32_t pid, uint64_t from,
					      uint64_t *to)
{
	size_t first = answers_after(walk, pid, from);

	for (size_t i = first; i < walk->go_answers.len && i - first < ANSWERS_MAX; i++) {
		const struct why_go_answer *answer = &walk->go_answers.data[i];

		walk->why->searched++;
		if (answer->pid != pid)
			break;
		cut(to, from, answer->from_ts);
		if (answer->from_ts > from)
			continue;
		cut(to, from, answer->to_ts);
		return answer;
	}
	return NULL;
}

/* The last answer to a process by ts; NULL: none. */
static const struct why_go_answer *answer_before(struct why_walk *walk, uint32_t pid, uint64_t ts)
{
	size_t end = answers_after(walk, pid, ts);
	const struct why_go_answer *last = end ? &walk->go_answers.data[end - 1] : NULL;

	walk->why->searched++;
	return last && last->pid == pid ? last : NULL;
}

/* Whether a program has something to run from an answer on until ts, so that it may work on it. */
static bool works_until(struct why_walk *walk, const struct why_go_answer *answer, uint64_t ts)
{
	return ts - answer->to_ts <= IDLE_NS ||
	       why_go_idle_ns(walk, answer->pid, answer->to_ts, ts) <= IDLE_NS;
}

/*
 * Finds the answer that one goroutine waits for at `from`, if it goes on at `until`; *to is cut in
 * the same way. The search goes backwards from `until`, from each answer to its request, as long as
 * the program has something to run between an answer and the next request.
 */
static const struct why_go_answer *answer_last(struct why_walk *walk, uint32_t pid, uint64_t from,
					       uint64_t *to, uint64_t until)
{
	for (unsigned i = 0; i < ANSWERS_MAX; i++) {
		const struct why_go_answer *answer = answer_before(walk, pid, until);

		if (!answer || answer->to_ts <= from || !works_until(walk, answer, until))
			return NULL;
		cut(to, from, answer->to_ts);
		if (answer->from_ts <= from)
			return answer;
		cut(to, from, answer->from_ts);
		until = answer->from_ts;
	}
	return NULL;
}

const struct why_go_answer *why_go_answer_at(struct why_walk *walk,
					     const struct why_stretch *stretch, uint64_t *to)
{
	const struct why_link *link = stretch->link;
	const struct why_go_answer *answer;
	uint32_t pid;

	/* Nothing shows what one of many threads without work waits for, outside of all spans. */
	if (!walk->go_answers.len || walk->depth + 1 >= WHY_DEPTH_MAX ||
	    (!link && !walk->instance->program && walk->instance->span == MODEL_NONE) ||
	    !why_is_go(walk, stretch->thread) ||
	    !why_go_is_idle(walk, stretch->thread, stretch->interval))
		return NULL;
	pid = pid_of(walk, stretch->thread);
	if (!link && walk->instance->program)
		answer = answer_any(walk, pid, stretch->from, to);
	else
		answer = answer_last(walk, pid, stretch->from, to,
				     link && link->until_ts ? link->until_ts : walk->end_ts);
	return answer && !why_walk_is_on_path(walk, answer->thread) ? answer : NULL;
}
