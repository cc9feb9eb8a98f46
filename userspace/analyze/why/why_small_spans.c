// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/why_small_spans_internal.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/why/lookup/why_wait.h"
#include "analyze/why/why_walk_types.h"
#include "model/gpu/gpu_op_kind.h"
#include "util/memory.h"
#include "util/syscall_names.h"

/* Spans that take less than this part of their threads' time are small: a loop without backward()
 * has no steps. Requests are small as well if all of them together take less than this part of the
 * capture, and each is quick: if somebody waits, it is not within them, but before the server looks
 * at them, or in one that began before. */
#define SMALL_PARTS 10 /* one tenth */
/* Requests are small beside a thread that is busy for at least this part of the capture. */
#define BUSY_PARTS 5 /* one fifth */
/* One that takes this part of the capture is not small. */
#define RARE_PARTS 20
#define QUICK_NS 20000000ull
/* A request of at least SLOW_NS is slow if it takes SLOW_TIMES as long as the mean. */
#define SLOW_NS 5000000ull
#define SLOW_TIMES 10

/* A span of a set that is armed wherever its library is mapped: nobody asked for it. */
static bool comes_with_library(const struct site_info *site)
{
	static const char *const categories[] = {"torch", "jax", "mpi", "cuda", "hip", "nccl"};

	for (size_t i = 0; site->call && i < sizeof(categories) / sizeof(categories[0]); i++)
		if (!strcmp(site->category, categories[i]))
			return true;
	return false;
}

/* An operation of a GPU: no thread can wait within it. */
static bool is_of_gpu(const struct model *model, const struct model_span *span)
{
	return !strcmp(model_site(model, span->site)->category, GPU_CATEGORY) &&
	       model_is_track(model, span->thread);
}

struct thread_time {
	uint64_t in_spans; /* of libraries */
	/* Blocked in calls in which no server waits for a request. */
	uint64_t blocked_ns, since_ts; /* since_ts: it is so now; 0: it is not */
};

/* Whether a server may wait for its next request in this call. */
static bool may_be_idle(enum wait_call call)
{
	switch (call) {
	case WAIT_CALL_WRITE:
	case WAIT_CALL_SEND:
	case WAIT_CALL_FILE_READ:
	case WAIT_CALL_FILE_WRITE:
	case WAIT_CALL_FSYNC:
	case WAIT_CALL_MSYNC:
	case WAIT_CALL_FILE_LOCK:
		return false;
	default:
		return true;
	}
}

/* Sums up how long threads were blocked in calls in which they waited for no request. */
static void add_blocked(struct thread_time *times, const struct model *model)
{
	bool idle[WHY_SYSCALLS];

	for (int i = 0; i < WHY_SYSCALLS; i++)
		idle[i] = may_be_idle(wait_call_of(syscall_name(model->meta->machine, i)));
	for (size_t i = 0; i < model->switches.len; i++) {
		const struct model_switch *sw = &model->switches.data[i];

		if (sw->next < model->threads.len && times[sw->next].since_ts) {
			times[sw->next].blocked_ns += sw->ts - times[sw->next].since_ts;
			times[sw->next].since_ts = 0;
		}
		if (sw->prev < model->threads.len && model_switch_blocks(sw) && sw->syscall >= 0 &&
		    sw->syscall < WHY_SYSCALLS && !idle[sw->syscall])
			times[sw->prev].since_ts = sw->ts;
	}
	for (uint32_t i = 0; i < model->threads.len; i++)
		if (times[i].since_ts && times[i].since_ts < model->end_ts)
			times[i].blocked_ns += model->end_ts - times[i].since_ts;
}

struct request_sums {
	uint64_t count, total_ns, longest_ns;
};

static void add_request(struct request_sums *requests, uint64_t ns)
{
	requests->count++;
	requests->total_ns += ns;
	if (ns > requests->longest_ns)
		requests->longest_ns = ns;
}

/* Sums up the spans of libraries by thread, and all requests. False: the user asked for a span. */
static bool add_spans(struct thread_time *times, struct request_sums *requests,
		      const struct model *model)
{
	for (size_t i = 0; i < model->spans.len; i++) {
		const struct model_span *span = &model->spans.data[i];
		const struct site_info *site = model_site(model, span->site);
		bool request = site_is_request(site);
		uint64_t ns = span->end_ts > span->start_ts ? span->end_ts - span->start_ts : 0;

		if (site_is_bookkeeping(site) || site_is_once(site) || is_of_gpu(model, span))
			continue;
		if (!(request || comes_with_library(site)) || span->thread >= model->threads.len)
			return false;
		if (request)
			add_request(requests, ns);
		else
			times[span->thread].in_spans += ns;
	}
	return true;
}

static bool are_small(const struct model *model, const struct thread_time *times)
{
	for (uint32_t i = 0; i < model->threads.len; i++) {
		const struct model_thread *thread = &model->threads.data[i];
		uint64_t ns = thread->running_ns + thread->runnable_ns + thread->blocked_ns;

		if (times[i].in_spans > ns / SMALL_PARTS)
			return false;
	}
	return true;
}

/* The time in which the busiest thread did not wait for a request. */
static uint64_t most_busy(struct thread_time *times, const struct model *model)
{
	uint64_t most_ns = 0;

	add_blocked(times, model);
	for (uint32_t i = 0; i < model->threads.len; i++) {
		const struct model_thread *thread = &model->threads.data[i];
		uint64_t ns = thread->running_ns + thread->runnable_ns + times[i].blocked_ns;

		if (thread->traced && ns > most_ns)
			most_ns = ns;
	}
	return most_ns;
}

static bool are_quick(const struct request_sums *requests)
{
	return requests->longest_ns < QUICK_NS &&
	       (requests->longest_ns < SLOW_NS ||
		requests->longest_ns < SLOW_TIMES * (requests->total_ns / requests->count));
}

static bool are_requests_small(const struct request_sums *requests, struct thread_time *times,
			       const struct model *model)
{
	uint64_t length = model->end_ts - model->start_ts, busy_ns;

	if (!requests->count || (requests->total_ns <= length / SMALL_PARTS && are_quick(requests)))
		return true;
	busy_ns = most_busy(times, model);
	return requests->total_ns <= busy_ns / SMALL_PARTS && busy_ns > length / BUSY_PARTS &&
	       requests->longest_ns < length / RARE_PARTS;
}

bool why_has_only_small_spans(const struct model *model)
{
	struct thread_time *times = memory_zeroed(model->threads.len, sizeof(*times));
	struct request_sums requests = {0};
	bool small = add_spans(times, &requests, model) && are_small(model, times) &&
		     are_requests_small(&requests, times, model);

	free(times);
	return small;
}
