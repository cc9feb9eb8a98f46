// SPDX-License-Identifier: Apache-2.0
/* Waits of threads on which Go's runtime has nothing to run (why_go_idle.c): what they mean for the
 * thread, for the program as a whole, and for other programs that wait for it. */
#include "analyze/why/cause/why_blocked.h"
#include "analyze/why/cause/why_blocked_internal.h"

#include <stdio.h>
#include <string.h>

#include "analyze/why/lookup/why_go_idle.h"
#include "analyze/why/lookup/why_peers.h"
#include "analyze/why/parts/why_idle.h"
#include "analyze/why/parts/why_sums.h"
#include "analyze/why/why_verdict.h"
#include "analyze/why/why_walk_types.h"
#include "target/process/descriptors.h"
#include "util/memory.h"
#include "util/text.h"

/* ---- one of many threads ---- */

#define IDLE_TEXT "Go's runtime waits for work (goroutines are not followed), "

/* Returns a text that says what ended the wait of an idle thread, by the verdict on the wait. NULL:
 * the verdict names it, since it was something outside of the runtime. */
static const char *idle_text(const struct why_walk *walk, const struct why_blocked *blocked,
			     const struct why_verdict *verdict)
{
	const struct model_thread *threads = walk->model->threads.data;

	if (verdict->kind == WHY_VERDICT_FOLLOW) {
		bool own = threads[verdict->thread].pid == threads[blocked->thread].pid;

		return own ? IDLE_TEXT "woken by its own threads" : NULL;
	}
	switch (verdict->cause) {
	case WHY_TIMER:
	case WHY_SLEEP:
		return IDLE_TEXT "woken by a timer";
	case WHY_INTERRUPT:
		return IDLE_TEXT "woken by an interrupt: a timer, or the network";
	case WHY_NOT_RECORDED:
		return IDLE_TEXT "woken by a thread that is not recorded";
	case WHY_UNKNOWN:
		return blocked->interval->open ? IDLE_TEXT "not woken"
					       : IDLE_TEXT "woken by what is not recorded";
	default:
		return NULL;
	}
}

static struct why_verdict end_idle(struct why_walk *walk, const struct why_blocked *blocked,
				   const char *text)
{
	struct why_verdict verdict =
		why_verdict_end(walk, WHY_IDLE, why_grade_least(blocked->grade, WHY_GRADE_LIKELY),
				MODEL_NONE, strtab_put(walk->why->texts, text, strlen(text)));

	verdict.idle = true;
	return verdict;
}

/* ---- the whole program ---- */

#define PROGRAM_TEXT "no goroutine can run, "
#define CLIENT_TEXT PROGRAM_TEXT "until a client of "
#define MAY_BE_BLOCKED_TEXT "goroutines may wait for work, or be blocked"
#define TIMER_TEXT "a timer of Go's runtime (time.Sleep, a ticker, a timeout)"

static bool is_of_program(const struct why_walk *walk, const struct why_blocked *blocked)
{
	const struct model_thread *threads = walk->model->threads.data;

	return walk->instance->program &&
	       threads[blocked->thread].pid == threads[walk->instance->thread].pid;
}

/* The socket that the runtime's poller found ready; NULL: another file, several, or none. */
static const struct store_object *socket_of(const struct why_blocked *blocked)
{
	const struct store_object *object = blocked->facts.object;

	return blocked->facts.call == WAIT_CALL_POLL && object && descriptor_is_socket(object->name)
		       ? object
		       : NULL;
}

/*
 * Whether the wake-up may be for another client than the one that waits at `before`: its message
 * came, or another thread of the runtime passes work on. If the thread waits again before the
 * program answers, as in a broker between many clients, that was not what the one at `before`
 * waited for.
 */
static bool may_be_for_another(struct why_walk *walk, const struct why_blocked *blocked,
			       const struct why_step *before)
{
	const struct model *model = walk->model;
	const struct store_object *socket = socket_of(blocked);

	if (blocked->kind == WAIT_FUTEX)
		return !blocked->waker.interrupt && model_is_traced(model, blocked->waker.thread);
	if (!socket || before->wait == MODEL_NONE ||
	    why_socket_side(walk, socket) != WHY_SIDE_SERVER)
		return false;
	return !why_is_other_end(
		walk, store_reader_object(model->reader, model->waits.data[before->wait].object),
		socket);
}

bool why_go_is_any(struct why_walk *walk, const struct why_blocked *blocked)
{
	const struct model_thread *threads = walk->model->threads.data;
	const struct why_step *before = walk->depth > 1 ? &walk->path[walk->depth - 2] : NULL;
	bool other = before && threads[before->thread].pid != threads[blocked->thread].pid;

	if (!why_go_is_idle(walk, blocked->thread, blocked->interval))
		return false;
	return is_of_program(walk, blocked) ||
	       (other && !may_be_for_another(walk, blocked, before));
}

/* A client woke the program, which is a server. */
static struct why_verdict end_served(struct why_walk *walk, const struct why_blocked *blocked,
				     const struct store_object *socket)
{
	const char *between = strstr(socket->detail, DESCRIPTOR_BETWEEN);
	int len = between ? (int)(between - socket->detail) : (int)strlen(socket->detail);
	char text[256];

	snprintf(text, sizeof(text), CLIENT_TEXT "%.*s sends something", len, socket->detail);
	return end_idle(walk, blocked, text);
}

/* Nothing is recorded of who made a socket ready: its name is all that is known. */
static struct why_verdict end_socket(struct why_walk *walk, struct why_blocked *blocked,
				     const struct why_verdict *verdict)
{
	return why_blocked_end(walk, blocked, WHY_SOCKET, WHY_GRADE_LIKELY,
			       verdict->cause == WHY_INTERRUPT ? MODEL_NONE : verdict->thread);
}

static struct why_verdict at_program(struct why_walk *walk, struct why_blocked *blocked,
				     struct why_verdict verdict)
{
	const struct store_object *socket = socket_of(blocked);

	if (socket && why_socket_side(walk, socket) == WHY_SIDE_SERVER)
		return end_served(walk, blocked, socket);
	if (verdict.kind != WHY_VERDICT_END)
		return verdict;
	switch (verdict.cause) {
	case WHY_TIMER:
	case WHY_SLEEP:
		return end_idle(walk, blocked, PROGRAM_TEXT "until " TIMER_TEXT " ends");
	case WHY_INTERRUPT:
		return socket ? end_socket(walk, blocked, &verdict)
			      : end_idle(walk, blocked,
					 PROGRAM_TEXT
					 "until an interrupt: a timer, or the network");
	case WHY_NOT_RECORDED:
		return socket ? end_socket(walk, blocked, &verdict) : verdict;
	case WHY_UNKNOWN:
		return blocked->interval->open
			       ? end_idle(walk, blocked, PROGRAM_TEXT "until the capture ends")
			       : verdict;
	default:
		return verdict;
	}
}

/* Whether the program had no goroutine to run, and no client gave it one. */
static bool is_unserved(const struct why_walk *walk, const struct why_part *part)
{
	return part->cause == WHY_IDLE &&
	       !text_begins(strtab_get(walk->why->texts, part->object), CLIENT_TEXT);
}

void why_go_doubt(struct why_walk *walk, const struct why_instance *instance)
{
	uint64_t whole_ns = instance->to_ts - instance->from_ts, idle_ns = 0;
	uint64_t blocked_ns = instance->blocked_ns;

	for (size_t i = 0; i < walk->sums.len; i++)
		if (is_unserved(walk, &walk->sums.data[i].part))
			idle_ns += walk->sums.data[i].part.ns;
	if (instance->running_ns > whole_ns / WHY_IDLE_PARTS ||
	    idle_ns < blocked_ns - blocked_ns / WHY_IDLE_PARTS)
		return;
	for (size_t i = 0; i < walk->sums.len; i++) {
		struct why_sum *sum = &walk->sums.data[i];

		if (!is_unserved(walk, &sum->part))
			continue;
		sum->part.cause = WHY_UNKNOWN;
		sum->part.idle = false;
		sum->part.object =
			why_blocked_object_with(walk, sum->part.object, MAY_BE_BLOCKED_TEXT);
		memset(sum->grade_ns, 0, sizeof(sum->grade_ns));
		sum->grade_ns[WHY_GRADE_UNKNOWN] = sum->part.ns;
	}
}

/* Other programs wait for this one, whose goroutine waits for a timer. Which thread of the runtime
 * has that timer says nothing. */
static struct why_verdict name_timer(struct why_walk *walk, const struct why_blocked *blocked,
				     struct why_verdict verdict)
{
	const struct model_process *process = model_process_of(walk->model, blocked->thread);

	if (verdict.kind != WHY_VERDICT_END || verdict.cause != WHY_TIMER)
		return verdict;
	verdict.object = strtab_put(walk->why->texts, TIMER_TEXT, strlen(TIMER_TEXT));
	if (verdict.span == MODEL_NONE && process &&
	    model_is_traced(walk->model, process->main_thread))
		verdict.thread = process->main_thread;
	return verdict;
}

/* The record of a wait names the file that was ready. If it names the poller itself, none was, or
 * several were. So an interrupt that ended the wait was most likely a timer's. */
static struct why_verdict at_interrupt(struct why_walk *walk, const struct why_blocked *blocked,
				       struct why_verdict verdict)
{
	const struct store_object *object = blocked->facts.object;

	if (verdict.kind != WHY_VERDICT_END || verdict.cause != WHY_INTERRUPT || !object ||
	    blocked->facts.call != WAIT_CALL_POLL || !descriptor_is_epoll(object->name))
		return verdict;
	return why_blocked_end(walk, blocked, WHY_TIMER, WHY_GRADE_LIKELY, blocked->thread);
}

struct why_verdict why_go_at_idle(struct why_walk *walk, struct why_blocked *blocked,
				  struct why_verdict verdict)
{
	const char *text;

	if (!why_go_is_idle(walk, blocked->thread, blocked->interval))
		return verdict;
	verdict = at_interrupt(walk, blocked, verdict);
	if (is_of_program(walk, blocked))
		return at_program(walk, blocked, verdict);
	if (!blocked->waiting.outside)
		return name_timer(walk, blocked, verdict);
	text = idle_text(walk, blocked, &verdict);
	return text ? end_idle(walk, blocked, text) : verdict;
}
