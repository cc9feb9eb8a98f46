// SPDX-License-Identifier: Apache-2.0
/*
 * moved WAY SEED: the victim begins a span and puts it into a queue; another thread ends it. The
 * victim is idle meanwhile, or at the next request.
 *
 *	queue	the worker has other jobs in front of it, and is busy with them all the time
 *	stages	the first stage computes, then wakes the second one, which ends the span
 *	inject	the same, and the first stage is still busy with another job; the jobs carry
 *		contexts
 *	busy	the same without contexts
 *	spin	the worker polls the queue and never sleeps
 */
#include "zoo.h"

#define ROUNDS 6
#define OTHERS 4
#define JOBS 16

struct job {
	waffle_span_t span; /* the victim's; valid only if `wanted` */
	waffle_context_t context;
	bool wanted;
	long ms;
};

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	struct job jobs[JOBS];
	atomic_int put, taken;
};

static struct queue first = {.lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER};
static struct queue second = {.lock = PTHREAD_MUTEX_INITIALIZER,
			      .filled = PTHREAD_COND_INITIALIZER};
static pthread_barrier_t done;
static long long ended;
static atomic_int finished;
static int turn;
static const char *way;

static bool is(const char *name)
{
	return !strcmp(way, name);
}

static void put(struct queue *queue, const struct job *job)
{
	pthread_mutex_lock(&queue->lock);
	queue->jobs[queue->put % JOBS] = *job;
	queue->put++;
	pthread_cond_signal(&queue->filled);
	pthread_mutex_unlock(&queue->lock);
}

static struct job take(struct queue *queue)
{
	struct job job;

	while (is("spin") && queue->taken == queue->put)
		;
	pthread_mutex_lock(&queue->lock);
	while (queue->taken == queue->put)
		pthread_cond_wait(&queue->filled, &queue->lock);
	job = queue->jobs[queue->taken % JOBS];
	queue->taken++;
	pthread_mutex_unlock(&queue->lock);
	return job;
}

static void compute(const struct job *job, struct zoo_time *t)
{
	WAFFLE_INJECT(job->context);
	SPAN("compute");
	zoo_burn(job->ms);
	zoo_time_end(t);
}

static void finish(const struct job *job)
{
	if (!job->wanted)
		return;
	SPAN_END(job->span);
	ended = now_ns();
	finished++;
	pthread_barrier_wait(&done);
}

/* The time of the other jobs in front of the wanted one, and its own. */
static void worker(void)
{
	struct zoo_time all = {0}, own;

	for (int i = 0; i < ROUNDS;) {
		struct job job = take(&first);

		if (!job.wanted && first.taken % (OTHERS + 1) == 1)
			zoo_time_begin(&all);
		zoo_time_begin(&own);
		compute(&job, &own);
		if (!job.wanted) {
			zoo_time_end(&all);
			continue;
		}
		zoo_say_cause(i, "user-work", is("queue") ? all.running : own.running, zoo_self(),
			      "compute", NULL);
		if (is("stages") || is("inject") || is("busy"))
			put(&second, &job);
		else
			finish(&job);
		i++;
	}
}

static void finisher(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct job job = take(&second);

		zoo_burn(2);
		finish(&job);
	}
}

static void idle(void)
{
	SPAN("idle");
	sleep_ms(4);
}

static void put_others(void)
{
	struct job job = {.ms = 20};
	int others = is("queue") ? OTHERS : is("inject") || is("busy") ? 1 : 0;

	for (int i = 0; i < others; i++)
		put(&first, &job);
	/* The worker has begun the first one. */
	while (first.taken != first.put - others + (others > 0))
		sleep_ms(1);
	sleep_ms(2);
}

static void victim(void)
{
	struct zoo_time t;

	for (turn = 0; turn < ROUNDS; turn++) {
		struct job job = {.wanted = true, .ms = is("queue") ? 5 : zoo_vary(turn, 80, 150)};

		put_others();
		zoo_time_begin(&t);
		job.span = SPAN_BEGIN("victim", KV_I64("i", turn));
		if (is("inject"))
			job.context = waffle_span_context(job.span);
		put(&first, &job);
		while (finished <= turn)
			idle();
		pthread_barrier_wait(&done);
		zoo_time_end(&t);
		t.end = ended;
		zoo_say_victim(turn, &t);
	}
}

int main(int argc, char **argv)
{
	zoo_begin(argc, argv);
	way = argc > 2 ? argv[1] : "queue";
	pthread_barrier_init(&done, NULL, 2);
	zoo_go();
	if (is("stages") || is("inject") || is("busy"))
		ZOO_RUN({"victim", victim}, {"worker", worker}, {"finisher", finisher},
			{"innocent", zoo_innocent});
	else
		ZOO_RUN({"victim", victim}, {"worker", worker}, {"innocent", zoo_innocent});
	return 0;
}
