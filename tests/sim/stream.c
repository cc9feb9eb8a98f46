// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "simulation.h"
#include "stream.h"

#define RING 1024 /* capacity of a queue, as in the real driver; submitting more blocks */
#define RING_WAKE (RING / 2)
#define STREAMS_MAX 1024 /* per process */

/* Tickets count operations and wrap around, so they are compared by their difference. */
struct stream {
	pthread_mutex_t lock;
	struct op *ring; /* NULL: it was freed */
	bool blocking;
	uint32_t submitted;
	uint32_t wanted; /* operations up to this ticket must be executed now */
	struct op_list *record;
	bool stop;
	uint64_t end_ns; /* end of the last completed operation */

	uint32_t completed; /* a futex for threads that wait for an operation */
	uint32_t waiters;
	uint32_t bell; /* a futex on which the stream's thread waits for work */
	bool asleep;

	unsigned number;
	struct stream *next;
};

static pthread_mutex_t streams_lock = PTHREAD_MUTEX_INITIALIZER;
static struct stream *streams;
static unsigned streams_made;
static pthread_mutex_t lists_lock = PTHREAD_MUTEX_INITIALIZER; /* innermost lock */

static void futex_wait(uint32_t *word, uint32_t value)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

static bool ticket_reached(uint32_t at, uint32_t ticket)
{
	return (int32_t)(at - ticket) >= 0;
}

void sim_sleep_until(uint64_t ns)
{
	struct timespec ts = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

/* Takes the next operation that was requested. False: the stream must end. */
static bool op_next(struct stream *stream, struct op *op)
{
	for (;;) {
		uint32_t bell = __atomic_load_n(&stream->bell, __ATOMIC_SEQ_CST);
		bool have, stop;

		pthread_mutex_lock(&stream->lock);
		have = !ticket_reached(stream->completed, stream->wanted);
		stop = stream->stop;
		if (have)
			*op = stream->ring[stream->completed % RING];
		pthread_mutex_unlock(&stream->lock);
		if (have || stop)
			return have;
		__atomic_store_n(&stream->asleep, true, __ATOMIC_SEQ_CST);
		futex_wait(&stream->bell, bell);
		__atomic_store_n(&stream->asleep, false, __ATOMIC_SEQ_CST);
	}
}

/* Ends a stream whose operations are done and to which nobody can submit any more. */
static void stream_end(struct stream *stream)
{
	pthread_mutex_lock(&streams_lock);
	for (struct stream **at = &streams; *at; at = &(*at)->next) {
		if (*at == stream) {
			*at = stream->next;
			break;
		}
	}
	pthread_mutex_unlock(&streams_lock);
	free(stream->ring);
	stream->ring = NULL;
}

static void op_observed(const struct stream *stream, const struct op *op, uint64_t start)
{
	const struct sim_observer *observer = op->about.op ? sim_observer() : NULL;

	if (observer)
		observer->done(&op->about, stream->number, start, stream->end_ns);
}

static void *stream_main(void *arg)
{
	struct stream *stream = arg;
	char name[16];
	struct op op;

	snprintf(name, sizeof(name), "sim stream %u", stream->number % 1000);
	prctl(PR_SET_NAME, name);
	prctl(PR_SET_TIMERSLACK, 1);
	while (op_next(stream, &op)) {
		uint64_t start = op.submit_ns > stream->end_ns ? op.submit_ns : stream->end_ns;

		__atomic_store_n(&stream->end_ns,
				 op.run ? op.run(&op, start) : start + op.duration_ns,
				 __ATOMIC_RELEASE);
		if (stream->end_ns > sim_now_ns())
			sim_sleep_until(stream->end_ns);
		op_observed(stream, &op, start);
		__atomic_add_fetch(&stream->completed, 1, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&stream->waiters, __ATOMIC_SEQ_CST))
			futex_wake(&stream->completed);
	}
	stream_end(stream);
	return NULL;
}

uint32_t stream_number(const struct stream *stream)
{
	return stream->number;
}

uint32_t graph_number(void)
{
	static uint32_t graphs;

	return __atomic_add_fetch(&graphs, 1, __ATOMIC_RELAXED);
}

struct stream *stream_new(bool blocking)
{
	struct stream *stream = calloc(1, sizeof(*stream));
	pthread_t thread;

	if (stream)
		stream->ring = calloc(RING, sizeof(*stream->ring));
	if (!stream || !stream->ring) {
		free(stream);
		return NULL;
	}
	stream->blocking = blocking;
	pthread_mutex_init(&stream->lock, NULL);
	pthread_mutex_lock(&streams_lock);
	stream->number = streams_made++;
	stream->next = streams;
	if (pthread_create(&thread, NULL, stream_main, stream)) {
		free(stream->ring);
		free(stream);
		stream = NULL;
	} else {
		pthread_detach(thread);
		streams = stream;
	}
	pthread_mutex_unlock(&streams_lock);
	return stream;
}

void stream_free(struct stream *stream)
{
	pthread_mutex_lock(&stream->lock);
	stream->record = NULL;
	stream->wanted = stream->submitted;
	stream->stop = true;
	pthread_mutex_unlock(&stream->lock);
	__atomic_add_fetch(&stream->bell, 1, __ATOMIC_SEQ_CST);
	futex_wake(&stream->bell);
}

static bool list_grow(struct op_list *list)
{
	if (list->count == list->room) {
		uint32_t room = list->room ? 2 * list->room : 16;
		struct op *ops = realloc(list->ops, room * sizeof(*ops));

		if (!ops)
			return false;
		list->ops = ops;
		list->room = room;
	}
	return true;
}

static bool list_add(struct op_list *list, const struct op *op)
{
	uint32_t count;
	bool good;

	pthread_mutex_lock(&lists_lock);
	good = list_grow(list);
	if (good)
		list->ops[list->count++] = *op;
	count = list->count;
	pthread_mutex_unlock(&lists_lock);
	if (good && op->about.op && sim_observer())
		sim_observer()->graph(13, list->id, (uint64_t)list->id << 32 | count, 0);
	return good;
}

/* Requests all operations up to `ticket`. Call it with the lock held. Returns whether the thread
 * must be woken. */
static bool want(struct stream *stream, uint32_t ticket)
{
	if (ticket_reached(stream->wanted, ticket))
		return false;
	stream->wanted = ticket;
	return true;
}

static void bell_ring(struct stream *stream)
{
	__atomic_add_fetch(&stream->bell, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&stream->asleep, __ATOMIC_SEQ_CST))
		futex_wake(&stream->bell);
}

bool stream_submit(struct stream *stream, struct op *op, uint32_t *ticket)
{
	bool ok = true, wake = false;

	op->submit_ns = sim_now_ns();
	pthread_mutex_lock(&stream->lock);
	while (!stream->record &&
	       stream->submitted - __atomic_load_n(&stream->completed, __ATOMIC_SEQ_CST) >= RING) {
		uint32_t oldest = stream->submitted - RING + 1;

		pthread_mutex_unlock(&stream->lock);
		stream_wait(stream, oldest);
		pthread_mutex_lock(&stream->lock);
	}
	if (stream->record) {
		ok = list_add(stream->record, op);
	} else {
		stream->ring[stream->submitted++ % RING] = *op;
		if (op->prompt || stream->submitted - stream->wanted >= RING_WAKE)
			wake = want(stream, stream->submitted);
	}
	*ticket = stream->submitted;
	pthread_mutex_unlock(&stream->lock);
	if (wake)
		bell_ring(stream);
	return ok;
}

uint32_t stream_last(struct stream *stream)
{
	uint32_t ticket;

	pthread_mutex_lock(&stream->lock);
	ticket = stream->submitted;
	pthread_mutex_unlock(&stream->lock);
	return ticket;
}

/* Also requests the operation and wakes the thread: otherwise polling would never succeed. */
bool stream_done(struct stream *stream, uint32_t ticket)
{
	bool wake;

	if (ticket_reached(__atomic_load_n(&stream->completed, __ATOMIC_SEQ_CST), ticket))
		return true;
	pthread_mutex_lock(&stream->lock);
	wake = want(stream, ticket);
	pthread_mutex_unlock(&stream->lock);
	if (wake)
		bell_ring(stream);
	return false;
}

void stream_wait(struct stream *stream, uint32_t ticket)
{
	enum sim_sync sync = sim_config()->sync;

	if (stream_done(stream, ticket))
		return;
	__atomic_add_fetch(&stream->waiters, 1, __ATOMIC_SEQ_CST);
	for (;;) {
		uint32_t completed = __atomic_load_n(&stream->completed, __ATOMIC_SEQ_CST);

		if (ticket_reached(completed, ticket))
			break;
		if (sync == SIM_SYNC_BLOCK)
			futex_wait(&stream->completed, completed);
		else if (sync == SIM_SYNC_YIELD)
			sched_yield();
	}
	__atomic_sub_fetch(&stream->waiters, 1, __ATOMIC_SEQ_CST);
}

bool stream_record(struct stream *stream, struct op_list *list)
{
	bool good;

	pthread_mutex_lock(&stream->lock);
	good = !stream->record;
	if (good)
		stream->record = list;
	pthread_mutex_unlock(&stream->lock);
	return good;
}

struct op_list *stream_list(struct stream *stream)
{
	struct op_list *list;

	pthread_mutex_lock(&stream->lock);
	list = stream->record;
	pthread_mutex_unlock(&stream->lock);
	return list;
}

bool streams_record(const struct op_list *list)
{
	bool found = false;

	pthread_mutex_lock(&streams_lock);
	for (struct stream *stream = streams; stream && !found; stream = stream->next)
		found = stream_list(stream) == list;
	pthread_mutex_unlock(&streams_lock);
	return found;
}

void streams_record_end(const struct op_list *list)
{
	pthread_mutex_lock(&streams_lock);
	for (struct stream *stream = streams; stream; stream = stream->next) {
		pthread_mutex_lock(&stream->lock);
		if (stream->record == list)
			stream->record = NULL;
		pthread_mutex_unlock(&stream->lock);
	}
	pthread_mutex_unlock(&streams_lock);
}

/* Lists the streams of the process, or the blocking ones. The caller waits for them without the
 * lock, since other threads may have to submit to a stream first. */
static unsigned streams_get(struct stream **all, bool blocking)
{
	unsigned count = 0;

	pthread_mutex_lock(&streams_lock);
	for (struct stream *stream = streams; stream && count < STREAMS_MAX; stream = stream->next)
		if (stream->blocking || !blocking)
			all[count++] = stream;
	pthread_mutex_unlock(&streams_lock);
	return count;
}

void streams_wait(bool blocking)
{
	struct stream *all[STREAMS_MAX];
	unsigned count = streams_get(all, blocking);

	for (unsigned i = 0; i < count; i++)
		stream_wait(all[i], stream_last(all[i]));
}

static uint64_t follow_run(struct op *op, uint64_t start_ns)
{
	struct stream *other = (struct stream *)op->words[0];
	uint64_t end_ns;

	stream_wait(other, (uint32_t)op->words[1]);
	end_ns = __atomic_load_n(&other->end_ns, __ATOMIC_ACQUIRE);
	return end_ns > start_ns ? end_ns : start_ns;
}

/* Makes all later operations of `stream` wait for all present operations of `other`. */
static bool stream_follow(struct stream *stream, struct stream *other)
{
	struct op op = {.run = follow_run, .words = {(uintptr_t)other, stream_last(other)}};
	uint32_t ticket;

	if (ticket_reached(__atomic_load_n(&other->completed, __ATOMIC_SEQ_CST),
			   (uint32_t)op.words[1]))
		return true;
	return stream_submit(stream, &op, &ticket);
}

bool stream_order(struct stream *stream, struct stream *legacy)
{
	struct stream *all[STREAMS_MAX];
	unsigned count;
	bool good = true;

	if (!legacy || stream->record)
		return true;
	if (stream != legacy)
		return !stream->blocking || stream_follow(stream, legacy);
	count = streams_get(all, true);
	for (unsigned i = 0; good && i < count; i++)
		if (all[i] != legacy)
			good = stream_follow(legacy, all[i]);
	return good;
}
