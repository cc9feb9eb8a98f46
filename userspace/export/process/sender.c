// SPDX-License-Identifier: Apache-2.0
#include "export/process/sender_internal.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "util/clock.h"
#include "util/own_thread.h"
#include "util/units.h"

/* How long a deliver() that was cancelled may take to return. */
#define CANCEL_NS 500000000ull
#define NAME_BYTES 128
/* How often a process without anything to send looks for parcels of others in the spool. */
#define SPOOL_LOOK_NS 5000000000ull

/* A thread that delivers, too, as long as nothing fails. */
struct sender_helper {
	struct sender *sender;
	unsigned number; /* of the thread, for deliver() */
	pthread_t thread;
};

struct sender {
	const struct sender_type *type;
	void *arg;
	struct chain_host host; /* a copy, since the thread may outlive the chain */
	struct spool *spool;    /* only the first thread uses it */
	char name[NAME_BYTES];
	size_t queue_max;
	uint64_t give_up_ns;

	pthread_mutex_t lock; /* protects all that follows */
	pthread_cond_t changed;
	struct parcel *first, *last;
	size_t queue_bytes;
	unsigned delivering; /* parcels that are being delivered, which are not in the queue, … */
	uint64_t in_flight;  /* … with so many records */
	bool closing, cancelled, started, ended, helpers_end;
	bool abandoned; /* the owner is gone: the thread frees everything */
	bool only_retries;
	bool full_said, failing_said;
	uint64_t refused_said; /* the first refusal, when it came */
	bool spool_fails;      /* the last parcel could not be written to the spool */
	struct backoff backoff;
	uint64_t not_before_ns; /* of the next try; 0: at once */
	bool asked;             /* … because the server said so */
	uint64_t failed_ns;     /* the last failure, of CLOCK_MONOTONIC */
	struct sender_counts counts;

	pthread_t thread;                                      /* the first one */
	struct sender_helper helpers[SENDER_PARALLEL_MAX - 1]; /* the others */
	unsigned helper_max, helper_count;
};

struct sender *sender_new(const struct sender_options *options, const struct sender_type *type,
			  void *arg)
{
	struct sender *sender = calloc(1, sizeof(*sender));
	pthread_condattr_t monotonic;

	if (!sender) {
		type->free(arg);
		spool_close(options->spool);
		return NULL;
	}
	sender->type = type;
	sender->arg = arg;
	sender->host = *options->host;
	sender->spool = options->spool;
	sender->queue_max = options->queue_bytes;
	sender->give_up_ns = options->give_up_ns;
	sender->only_retries = options->only_retries;
	sender->helper_max = options->parallel ? options->parallel - 1 : 0;
	sender->backoff.random = clock_monotonic_ns() ^ (uintptr_t)sender;
	snprintf(sender->name, sizeof(sender->name), "%s", options->name);
	pthread_mutex_init(&sender->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&sender->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return sender;
}

static void sender_free(struct sender *sender)
{
	while (sender->first) {
		struct parcel *parcel = sender->first;

		sender->first = parcel->next;
		free(parcel);
	}
	sender->type->free(sender->arg);
	spool_close(sender->spool);
	pthread_mutex_destroy(&sender->lock);
	pthread_cond_destroy(&sender->changed);
	free(sender);
}

/* Waits for a change until a time of CLOCK_MONOTONIC. False: the time is over. */
static bool wait_until(struct sender *sender, uint64_t until_ns)
{
	struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000ull),
				 .tv_nsec = (long)(until_ns % 1000000000ull)};

	if (until_ns == UINT64_MAX)
		return !pthread_cond_wait(&sender->changed, &sender->lock);
	return !pthread_cond_timedwait(&sender->changed, &sender->lock, &until);
}

static void say(struct sender *sender, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void say(struct sender *sender, const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (sender->host.say && !sender->abandoned)
		sender->host.say(line, sender->host.arg);
}

/* ---- the queue, with the lock held ---- */

static struct parcel *queue_take(struct sender *sender)
{
	struct parcel *parcel = sender->first;

	if (!parcel)
		return NULL;
	sender->first = parcel->next;
	if (!sender->first)
		sender->last = NULL;
	sender->queue_bytes -= sizeof(*parcel) + parcel->len;
	return parcel;
}

static void queue_put_back(struct sender *sender, struct parcel *parcel)
{
	parcel->next = sender->first;
	sender->first = parcel;
	if (!sender->last)
		sender->last = parcel;
	sender->queue_bytes += sizeof(*parcel) + parcel->len;
}

static void parcel_drop(struct sender *sender, struct parcel *parcel)
{
	sender->counts.dropped += parcel->records;
	free(parcel);
}

/* ---- steps of the thread ---- */

/* Moves what is queued to the disk, as far as there is room. */
static void queue_spool(struct sender *sender)
{
	struct parcel *parcel;

	while ((parcel = queue_take(sender))) {
		uint64_t dropped = 0;
		int result;

		sender->in_flight += parcel->records; /* the disk may hang */
		pthread_mutex_unlock(&sender->lock);
		result = spool_put(sender->spool, parcel, &dropped);
		pthread_mutex_lock(&sender->lock);
		sender->in_flight -= parcel->records;
		sender->counts.dropped += dropped;
		sender->counts.spooled -=
			dropped < sender->counts.spooled ? dropped : sender->counts.spooled;
		sender->spool_fails = result;
		if (result) {
			queue_put_back(sender, parcel);
			return;
		}
		sender->counts.spooled += parcel->records;
		free(parcel);
	}
}

static void failure_say(struct sender *sender, const char *why)
{
	if (sender->failing_said || (sender->closing && !sender->host.finished))
		return;
	sender->failing_said = true;
	pthread_mutex_unlock(&sender->lock);
	say(sender, "%s: %s; it is tried again", sender->name, why);
	pthread_mutex_lock(&sender->lock);
}

static void refusal_say(struct sender *sender, uint64_t records, const char *why)
{
	bool first = !sender->counts.refused;

	sender->counts.refused += records;
	if (first)
		snprintf(sender->counts.why, sizeof(sender->counts.why), "%s", why);
	if (!first || sender->only_retries)
		return;
	sender->refused_said = records;
	pthread_mutex_unlock(&sender->lock);
	say(sender, "%s: %" PRIu64 " %s not accepted: %s", sender->name, records,
	    units_plural(records, "record was", "records were"), why);
	pthread_mutex_lock(&sender->lock);
}

/* A success that began before the last failure does not show that the server is back. */
static void success(struct sender *sender, const struct parcel *parcel, bool spooled,
		    const struct sender_reply *reply, uint64_t began_ns)
{
	uint64_t refused = reply->refused < parcel->records ? reply->refused : parcel->records;

	if (began_ns >= sender->failed_ns) {
		backoff_reset(&sender->backoff);
		sender->not_before_ns = 0;
		sender->asked = false;
		sender->failing_said = false;
	}
	*(reply->skipped ? &sender->counts.skipped : &sender->counts.sent) +=
		parcel->records - refused;
	if (spooled)
		sender->counts.spooled -= parcel->records < sender->counts.spooled
						  ? parcel->records
						  : sender->counts.spooled;
	if (refused)
		refusal_say(sender, refused, reply->why);
}

/* Parcels that were under way when another one failed, and now fail, too, are the same failure: the
 * back-off grows once. */
static void back_off(struct sender *sender, uint64_t asked_ns, uint64_t began_ns, uint64_t now_ns)
{
	uint64_t until = now_ns + asked_ns;

	if (!sender->backoff.failures || began_ns >= sender->failed_ns)
		until = now_ns + backoff_next(&sender->backoff, asked_ns);
	else if (asked_ns > BACKOFF_ASKED_MAX_NS)
		until = now_ns + BACKOFF_ASKED_MAX_NS;
	if (until > sender->not_before_ns) {
		sender->not_before_ns = until;
		sender->asked = asked_ns;
	}
	sender->failed_ns = clock_monotonic_ns();
}

/* Returns true if the parcel is to be tried again. */
static bool failure(struct sender *sender, const struct parcel *parcel, bool spooled,
		    const struct sender_reply *reply, uint64_t began_ns, uint64_t now_ns)
{
	if (!sender->counts.refused)
		snprintf(sender->counts.why, sizeof(sender->counts.why), "%s", reply->why);
	sender->counts.retries++;
	back_off(sender, reply->after_ns, began_ns, now_ns);
	failure_say(sender, reply->why);
	return spooled || sender->spool || now_ns < parcel->queued_ns + sender->give_up_ns;
}

/* Takes the next parcel: what is new first, unless it was all spooled after a failure. */
static struct parcel *next_take(struct sender *sender, bool *spooled)
{
	struct parcel *parcel = queue_take(sender);

	*spooled = !parcel && sender->spool && !sender->closing;
	if (!*spooled)
		return parcel;
	pthread_mutex_unlock(&sender->lock);
	parcel = spool_first(sender->spool);
	pthread_mutex_lock(&sender->lock);
	return parcel;
}

static void parcel_settle(struct sender *sender, struct parcel *parcel, bool spooled,
			  enum sender_outcome outcome, const struct sender_reply *reply,
			  uint64_t began_ns, uint64_t now_ns)
{
	bool again = false;

	if (outcome == SENDER_DONE)
		success(sender, parcel, spooled, reply, began_ns);
	else if (outcome == SENDER_REFUSED)
		refusal_say(sender, parcel->records, reply->why);
	else
		again = failure(sender, parcel, spooled, reply, began_ns, now_ns);
	if (spooled) {
		if (!again)
			spool_remove(sender->spool);
		free(parcel);
	} else if (again) {
		queue_put_back(sender, parcel);
	} else if (outcome == SENDER_AGAIN) {
		parcel_drop(sender, parcel);
	} else {
		free(parcel);
	}
}

/* Whether there is something to do before the time of the next try: a new parcel, which after a
 * failure goes to the spool at once. */
static bool has_new(const struct sender *sender)
{
	return sender->first &&
	       (!sender->backoff.failures || (sender->spool && !sender->spool_fails));
}

/* Whether the thread has to wait before it tries again. */
static bool must_wait(const struct sender *sender, uint64_t now_ns)
{
	return now_ns < sender->not_before_ns;
}

/* Delivers a parcel that was taken; by the thread of this number. */
static void parcel_deliver(struct sender *sender, unsigned thread, struct parcel *parcel,
			   bool spooled, uint64_t now_ns)
{
	struct sender_reply reply = {0};
	enum sender_outcome outcome;
	uint32_t records = parcel->records;
	uint64_t began;

	sender->delivering++;
	sender->in_flight += records;
	pthread_mutex_unlock(&sender->lock);
	began = clock_monotonic_ns();
	outcome = sender->type->deliver(sender->arg, thread, parcel, &reply);
	/* What a server asks to wait for begins with its answer. */
	now_ns += clock_monotonic_ns() - began;
	error_one_line(reply.why);
	pthread_mutex_lock(&sender->lock);
	sender->delivering--;
	sender->in_flight -= records;
	parcel_settle(sender, parcel, spooled, outcome, &reply, began, now_ns);
}

uint64_t sender_step(struct sender *sender, uint64_t now_ns)
{
	struct parcel *parcel;
	uint64_t next = 0;
	bool spooled;

	pthread_mutex_lock(&sender->lock);
	if (sender->backoff.failures && sender->spool)
		queue_spool(sender);
	if (must_wait(sender, now_ns)) {
		next = sender->not_before_ns;
		pthread_mutex_unlock(&sender->lock);
		return next;
	}
	parcel = next_take(sender, &spooled);
	if (parcel) {
		parcel_deliver(sender, 0, parcel, spooled, now_ns);
		next = sender->not_before_ns;
	} else {
		next = sender->spool ? now_ns + SPOOL_LOOK_NS : UINT64_MAX;
	}
	pthread_cond_broadcast(&sender->changed);
	pthread_mutex_unlock(&sender->lock);
	return next;
}

/* ---- the threads ---- */

/* At the end each parcel is tried once, until one fails. One that a helper delivers may come back
 * into the queue. */
static bool has_given_up(const struct sender *sender)
{
	return sender->cancelled ||
	       (sender->closing && ((!sender->first && !sender->delivering) ||
				    (sender->backoff.failures && !sender->host.finished)));
}

static void rest_settle(struct sender *sender)
{
	struct parcel *parcel;

	if (sender->spool)
		queue_spool(sender);
	while ((parcel = queue_take(sender)))
		parcel_drop(sender, parcel);
}

static void thread_begin(const struct sender *sender)
{
	prctl(PR_SET_NAME, "waffle-send");
	if (sender->host.thread_begin)
		sender->host.thread_begin();
}

static void *helper_main(void *arg)
{
	const struct sender_helper *helper = arg;
	struct sender *sender = helper->sender;

	thread_begin(sender);
	pthread_mutex_lock(&sender->lock);
	while (!sender->helpers_end) {
		if (!sender->first || sender->backoff.failures) {
			wait_until(sender, UINT64_MAX);
			continue;
		}
		parcel_deliver(sender, helper->number, queue_take(sender), false,
			       clock_monotonic_ns());
		pthread_cond_broadcast(&sender->changed);
	}
	pthread_mutex_unlock(&sender->lock);
	return NULL;
}

static void helpers_start(struct sender *sender)
{
	for (; sender->helper_count < sender->helper_max; sender->helper_count++) {
		struct sender_helper *helper = &sender->helpers[sender->helper_count];

		*helper = (struct sender_helper){.sender = sender,
						 .number = sender->helper_count + 1};
		if (own_thread_start(&helper->thread, helper_main, helper))
			return;
	}
}

/* By the first thread, so that whoever closes the sender need not wait for a helper that hangs. */
static void helpers_end(struct sender *sender)
{
	sender->helpers_end = true;
	pthread_cond_broadcast(&sender->changed);
	pthread_mutex_unlock(&sender->lock);
	for (unsigned i = 0; i < sender->helper_count; i++)
		pthread_join(sender->helpers[i].thread, NULL);
	pthread_mutex_lock(&sender->lock);
}

/* Waits until the first thread has something to do, at the latest until `next_ns`. */
static void work_wait(struct sender *sender, uint64_t next_ns)
{
	while (!has_given_up(sender) && !has_new(sender)) {
		/* What a helper failed to deliver is in the queue. */
		uint64_t until = sender->first && sender->not_before_ns < next_ns
					 ? sender->not_before_ns
					 : next_ns;

		if (clock_monotonic_ns() >= until)
			return;
		wait_until(sender, until);
	}
}

static void *sender_main(void *arg)
{
	struct sender *sender = arg;
	bool abandoned;

	thread_begin(sender);
	pthread_mutex_lock(&sender->lock);
	while (!has_given_up(sender)) {
		uint64_t next;

		pthread_mutex_unlock(&sender->lock);
		next = sender_step(sender, clock_monotonic_ns());
		pthread_mutex_lock(&sender->lock);
		work_wait(sender, next);
	}
	helpers_end(sender);
	rest_settle(sender);
	sender->ended = true;
	abandoned = sender->abandoned;
	pthread_cond_broadcast(&sender->changed);
	pthread_mutex_unlock(&sender->lock);
	if (abandoned)
		sender_free(sender);
	return NULL;
}

int sender_start(struct sender *sender, struct error *err)
{
	int code;

	/* The first thread, which ends the helpers, starts as the last one. */
	helpers_start(sender);
	code = own_thread_start(&sender->thread, sender_main, sender);
	if (code) {
		pthread_mutex_lock(&sender->lock);
		helpers_end(sender);
		pthread_mutex_unlock(&sender->lock);
		return error_set(err, code, "%s: no thread can be started: %s", sender->name,
				 strerror(code));
	}
	sender->started = true;
	return 0;
}

/* ---- the side of the chain ---- */

bool sender_push(struct sender *sender, struct parcel *parcel, uint32_t records)
{
	size_t bytes = parcel ? sizeof(*parcel) + parcel->len : 0;
	bool fits, first = false;

	pthread_mutex_lock(&sender->lock);
	while (parcel && sender->host.finished && sender->started && !sender->ended &&
	       sender->first && sender->queue_bytes + bytes > sender->queue_max)
		wait_until(sender, UINT64_MAX);
	/* A parcel that is larger than the whole queue is taken when that is empty. */
	fits = parcel && !sender->ended &&
	       (!sender->first || sender->queue_bytes + bytes <= sender->queue_max);
	if (fits) {
		parcel->queued_ns = clock_monotonic_ns();
		parcel->next = NULL;
		*(sender->last ? &sender->last->next : &sender->first) = parcel;
		sender->last = parcel;
		sender->queue_bytes += bytes;
		pthread_cond_broadcast(&sender->changed);
	} else {
		sender->counts.dropped += records;
		first = !sender->full_said;
		sender->full_said = true;
	}
	pthread_mutex_unlock(&sender->lock);
	if (first)
		say(sender, "%s: its queue is full; records are dropped", sender->name);
	if (!fits)
		free(parcel);
	return fits;
}

void sender_drop(struct sender *sender, uint64_t records)
{
	pthread_mutex_lock(&sender->lock);
	sender->counts.dropped += records;
	pthread_mutex_unlock(&sender->lock);
}

bool sender_drain(struct sender *sender, uint64_t until_ns)
{
	bool empty;

	pthread_mutex_lock(&sender->lock);
	while ((sender->first || sender->delivering) && !sender->ended &&
	       !sender->backoff.failures && wait_until(sender, until_ns))
		;
	empty = !sender->first && !sender->delivering;
	pthread_mutex_unlock(&sender->lock);
	return empty;
}

struct sender_counts sender_counts(struct sender *sender)
{
	struct sender_counts counts;

	pthread_mutex_lock(&sender->lock);
	counts = sender->counts;
	pthread_mutex_unlock(&sender->lock);
	return counts;
}

static void losses_say(struct sender *sender, const struct sender_counts *counts)
{
	if (sender->only_retries)
		return;
	if (counts->spooled)
		say(sender, "%s: %" PRIu64 " %s in the spool%s%s", sender->name, counts->spooled,
		    units_plural(counts->spooled, "record is", "records are"),
		    *counts->why ? ": " : "", counts->why);
	if (counts->refused > sender->refused_said)
		say(sender, "%s: %" PRIu64 " records were not accepted in all: %s", sender->name,
		    counts->refused, counts->why);
	if (counts->skipped)
		say(sender, "%s: %" PRIu64 " %s not sent: the server takes no metrics",
		    sender->name, counts->skipped,
		    units_plural(counts->skipped, "value of a counter was",
				 "values of counters were"));
	if (counts->dropped)
		say(sender, "%s: %" PRIu64 " %s dropped%s%s", sender->name, counts->dropped,
		    units_plural(counts->dropped, "record was", "records were"),
		    *counts->why ? ": " : "", counts->why);
}

/* Waits until the threads have ended, or until a time. */
static bool end_wait(struct sender *sender, uint64_t until_ns)
{
	while (sender->started && !sender->ended && wait_until(sender, until_ns))
		;
	return !sender->started || sender->ended;
}

/* Frees the sender, or leaves that to its thread, which then says nothing any more. */
static void sender_leave(struct sender *sender)
{
	pthread_t thread = sender->thread;
	bool started = sender->started;

	pthread_mutex_lock(&sender->lock);
	sender->abandoned = started && !sender->ended;
	if (sender->abandoned) {
		/* It may be free once the lock is. */
		pthread_mutex_unlock(&sender->lock);
		pthread_detach(thread);
		return;
	}
	pthread_mutex_unlock(&sender->lock);
	if (started)
		pthread_join(thread, NULL);
	sender_free(sender);
}

struct sender_counts sender_close(struct sender *sender, uint64_t until_ns)
{
	struct sender_counts counts;

	pthread_mutex_lock(&sender->lock);
	sender->closing = true;
	if (!sender->host.finished && !sender->asked) {
		sender->not_before_ns = 0; /* one last try */
		sender->backoff.failures = 0;
	}
	pthread_cond_broadcast(&sender->changed);
	if (!end_wait(sender, until_ns)) {
		sender->cancelled = true;
		pthread_cond_broadcast(&sender->changed);
		pthread_mutex_unlock(&sender->lock);
		if (sender->type->cancel)
			sender->type->cancel(sender->arg);
		pthread_mutex_lock(&sender->lock);
		end_wait(sender, until_ns + CANCEL_NS);
	}
	if (!sender->started)
		rest_settle(sender);
	counts = sender->counts;
	if (sender->started && !sender->ended) {
		/* The thread hangs, such as in a write to a full pipe, or in libcurl, which looks
		 * once a second whether a request was cancelled. */
		for (const struct parcel *parcel = sender->first; parcel; parcel = parcel->next)
			counts.dropped += parcel->records;
		counts.dropped += sender->in_flight;
	}
	pthread_mutex_unlock(&sender->lock);
	losses_say(sender, &counts);
	sender_leave(sender);
	return counts;
}
