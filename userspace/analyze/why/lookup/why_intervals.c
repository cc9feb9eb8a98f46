// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/lookup/why_intervals.h"

#include <stdlib.h>
#include <string.h>

#include "target/elf/request_site.h"
#include "util/memory.h"
#include "util/search.h"
#include "util/syscall_names.h"

/* ---- intervals ---- */

/* The number of a system call; -1: unknown. */
static int16_t number_of(const struct model *model, const char *call)
{
	for (int16_t i = 0; i < WHY_SYSCALLS; i++) {
		const char *name = syscall_name(model->meta->machine, i);

		if (name && !strcmp(name, call))
			return i;
	}
	return -1;
}

/* After a signal the kernel continues a call by restart_syscall(). We use the name of the original
 * call, which left its arguments in place. */
static int16_t begun_syscall(const struct why_intervals *intervals,
			     const struct model_interval *interval)
{
	const struct why_thread *thread = &intervals->threads[interval->thread];
	const uint64_t *args = intervals->model->syscall_args.data;
	size_t count = intervals->model->syscall_args.len;

	if (interval->syscall != intervals->restart || interval->syscall < 0 ||
	    interval->args >= count)
		return interval->syscall;
	for (size_t i = thread->intervals.len; i--;) {
		const struct why_interval *before = &thread->intervals.data[i];

		if (before->state != WAFFLE_THREAD_BLOCKED)
			continue;
		/* A stop may lie in between. */
		if (before->task_state & (WAFFLE_TASK_STOPPED | WAFFLE_TASK_TRACED))
			continue;
		if (before->args < count && args[before->args] == args[interval->args] &&
		    args[before->args + 1] == args[interval->args + 1])
			return before->syscall;
		break;
	}
	return interval->syscall;
}

/* Whether an interval that begins at from_ts shows who ended a wait that was kept. */
static bool ends_kept_wait(const struct why_thread *thread, uint64_t from_ts)
{
	const struct why_interval *last;

	if (!thread->intervals.len)
		return false;
	last = &thread->intervals.data[thread->intervals.len - 1];
	return last->state == WAFFLE_THREAD_BLOCKED && last->to_ts == from_ts;
}

/* For a priority-inheriting lock the kernel spins, without a record, as long as the holder runs. */
int why_intervals_note(const struct model_interval *interval, void *arg)
{
	struct why_intervals *intervals = arg;

	if (interval->state == WAFFLE_THREAD_BLOCKED && interval->syscall >= 0 &&
	    interval->syscall == intervals->futex &&
	    interval->args < intervals->model->syscall_args.len &&
	    wait_takes_pi_lock(&intervals->model->syscall_args.data[interval->args]))
		intervals->threads[interval->thread].spins = true;
	return 0;
}

static int keep_interval(const struct model_interval *from, void *arg)
{
	struct why_intervals *intervals = arg;
	struct why_interval to = {
		.from_ts = from->from_ts,
		.to_ts = from->to_ts,
		.by = from->by,
		.args = from->args,
		.cpu = from->cpu,
		.task_state = from->task_state,
		.state = (uint8_t)from->state,
		.woken = from->woken,
		.interrupt = from->interrupt,
		.open = from->open,
	};

	why_intervals_note(from, intervals);
	if (!windows_touch(intervals->windows, from->from_ts, from->to_ts) &&
	    !ends_kept_wait(&intervals->threads[from->thread], from->from_ts))
		return 0;
	to.syscall = begun_syscall(intervals, from);
	to.continued = to.syscall != from->syscall;
	vec_add(&intervals->threads[from->thread].intervals, to);
	return 0;
}

/* ---- innermost spans ---- */

/* Stack of a thread's open spans, the innermost last. Spans below it may have ended. */
struct interval_spans {
	VEC(struct why_left) spans;
};

bool why_intervals_left(const struct model *model, uint32_t span)
{
	const struct model_span *of = &model->spans.data[span];

	return of->flags & MODEL_SPAN_UNFINISHED && of->parent < model->spans.len &&
	       model->spans.data[of->parent].thread == of->thread &&
	       !(model->spans.data[of->parent].flags & MODEL_SPAN_UNFINISHED);
}

/* When a span ends. One that was left, as by longjmp(), ends with the enclosing one. */
static uint64_t end_of(const struct why_intervals *intervals, uint32_t span)
{
	const struct why_left *left = intervals->left.data;
	const struct model_span *of = &intervals->model->spans.data[span];
	size_t at;

	if (!(of->flags & MODEL_SPAN_UNFINISHED))
		return of->end_ts;
	at = lower_bound(intervals->left.len, i, left[i].span < span);
	return at < intervals->left.len && left[at].span == span ? left[at].end_ts : of->end_ts;
}

/* A parent's index is less than its children's. */
static void find_left(struct why_intervals *intervals)
{
	const struct model *model = intervals->model;

	for (uint32_t i = 0; i < model->spans.len; i++) {
		const struct model_span *of = &model->spans.data[i];
		uint64_t end_ts;

		if (!(of->flags & MODEL_SPAN_UNFINISHED) || of->parent >= i ||
		    model->spans.data[of->parent].thread != of->thread)
			continue;
		end_ts = end_of(intervals, of->parent);
		if (end_ts < of->end_ts)
			vec_add(&intervals->left, (struct why_left){i, end_ts});
	}
}

/* Closes spans that end by ts, and marks where the enclosing one becomes the innermost. */
static void close_spans(struct why_thread *thread, struct interval_spans *open, uint64_t ts)
{
	while (open->spans.len) {
		uint64_t end = open->spans.data[open->spans.len - 1].end_ts;
		uint32_t below = MODEL_NONE;

		if (end > ts)
			break;
		for (open->spans.len--; open->spans.len; open->spans.len--) {
			below = open->spans.data[open->spans.len - 1].span;
			if (open->spans.data[open->spans.len - 1].end_ts > end)
				break;
			below = MODEL_NONE;
		}
		vec_add(&thread->marks, (struct why_mark){end, below});
	}
}

/* Whether it is a request that a server answers: other requests may begin and end on its thread
 * meanwhile. */
static bool is_request(const struct model *model, uint32_t span)
{
	return site_is_request(model_site(model, model->spans.data[span].site));
}

static void mark_span(struct why_intervals *intervals, struct interval_spans *open, uint32_t index)
{
	const struct model_span *span = &intervals->model->spans.data[index];
	struct why_left begun = {index, end_of(intervals, index)};
	struct why_thread *thread;

	if (span->thread >= intervals->count || begun.end_ts <= span->start_ts ||
	    !windows_touch(intervals->windows, span->start_ts, span->end_ts))
		return;
	thread = &intervals->threads[span->thread];
	close_spans(thread, &open[span->thread], span->start_ts);
	vec_add(&thread->marks, (struct why_mark){span->start_ts, index});
	vec_add(&open[span->thread].spans, begun);
	if (!is_request(intervals->model, index))
		return;
	vec_add(&thread->answers, (struct why_answers){span->start_ts, 1});
	vec_add(&thread->answers, (struct why_answers){begun.end_ts, -1});
}

static int earlier(const void *left, const void *right)
{
	const struct why_answers *a = left, *b = right;

	return a->ts < b->ts ? -1 : a->ts > b->ts;
}

/* Until then, `open` of each entry is how it changes the number of open requests. */
static void sum_answers(struct why_thread *thread)
{
	if (thread->answers.len)
		qsort(thread->answers.data, thread->answers.len, sizeof(*thread->answers.data),
		      earlier);
	for (size_t i = 1; i < thread->answers.len; i++)
		thread->answers.data[i].open += thread->answers.data[i - 1].open;
}

/* Forgets the spans that end before a time. */
static void reach_forget(struct why_intervals *intervals, uint64_t ts)
{
	size_t kept = 0;

	for (size_t i = 0; i < intervals->reach.len; i++)
		if (intervals->model->spans.data[intervals->reach.data[i]].end_ts >= ts)
			intervals->reach.data[kept++] = intervals->reach.data[i];
	intervals->reach.len = kept;
}

/* Marks the spans from `from_ts` to `to_ts` that the windows touch. */
static void mark_spans(struct why_intervals *intervals, uint64_t from_ts, uint64_t to_ts)
{
	const struct model *model = intervals->model;
	struct interval_spans *open = memory_zeroed(intervals->count + 1, sizeof(*open));

	reach_forget(intervals, from_ts);
	for (size_t i = 0; i < intervals->reach.len; i++)
		mark_span(intervals, open, intervals->reach.data[i]);
	for (; intervals->next < model->spans.len; intervals->next++) {
		const struct model_span *span = &model->spans.data[intervals->next];

		if (span->start_ts > to_ts)
			break;
		if (span->end_ts < from_ts)
			continue;
		mark_span(intervals, open, intervals->next);
		if (to_ts != UINT64_MAX)
			vec_add(&intervals->reach, intervals->next);
	}
	for (size_t i = 0; i < intervals->count; i++) {
		struct why_thread *thread = &intervals->threads[i];

		close_spans(thread, &open[i], UINT64_MAX);
		sum_answers(thread);
		vec_free(&open[i].spans);
	}
	free(open);
}

/* ---- loading ---- */

void why_intervals_init(struct why_intervals *intervals, const struct model *model)
{
	*intervals = (struct why_intervals){
		.model = model,
		.threads = memory_zeroed(model->threads.len + 1, sizeof(*intervals->threads)),
		.count = model->threads.len,
		.restart = number_of(model, "restart_syscall"),
		.futex = number_of(model, "futex"),
		.waitid = number_of(model, "waitid"),
		.uring = number_of(model, "io_uring_enter"),
		.sendfile = number_of(model, "sendfile"),
	};
	find_left(intervals);
}

static void clear(struct why_intervals *intervals)
{
	intervals->loads++;
	for (size_t i = 0; i < intervals->count; i++) {
		intervals->threads[i].intervals.len = 0;
		intervals->threads[i].marks.len = 0;
		intervals->threads[i].answers.len = 0;
		memset(intervals->threads[i].series, 0, sizeof(intervals->threads[i].series));
		memset(intervals->threads[i].again, 0, sizeof(intervals->threads[i].again));
		intervals->threads[i].last_wakes = (struct why_last_wakes){0};
	}
}

void why_intervals_load(struct why_intervals *intervals, const struct windows *windows)
{
	clear(intervals);
	intervals->windows = windows;
	model_each_interval_by_thread(intervals->model, keep_interval, intervals);
	mark_spans(intervals, 0, UINT64_MAX);
	intervals->windows = NULL;
}

void why_intervals_load_next(struct why_intervals *intervals, const struct model_marks *marks,
			     const struct windows *window)
{
	uint64_t from_ts = window->list.data[0].from_ts, to_ts = window->list.data[0].to_ts;

	clear(intervals);
	intervals->windows = window;
	model_marks_intervals(marks, from_ts, to_ts, keep_interval, intervals);
	mark_spans(intervals, from_ts, to_ts);
	intervals->windows = NULL;
}

void why_intervals_free(struct why_intervals *intervals)
{
	for (size_t i = 0; intervals->threads && i < intervals->count; i++) {
		vec_free(&intervals->threads[i].intervals);
		vec_free(&intervals->threads[i].marks);
		vec_free(&intervals->threads[i].answers);
	}
	free(intervals->threads);
	vec_free(&intervals->left);
	vec_free(&intervals->reach);
}

size_t why_intervals_after(const struct why_intervals *intervals, uint32_t thread, uint64_t ts)
{
	struct why_thread *of = &intervals->threads[thread];

	of->interval_found = lower_bound_near(of->intervals.len, of->interval_found, i,
					      of->intervals.data[i].to_ts <= ts);
	return of->interval_found;
}

/* The number of marks up to ts. */
static size_t marks_until(struct why_thread *of, uint64_t ts)
{
	of->mark_found =
		lower_bound_near(of->marks.len, of->mark_found, i, of->marks.data[i].ts <= ts);
	return of->mark_found;
}

uint32_t why_intervals_span(const struct why_intervals *intervals, uint32_t thread, uint64_t ts,
			    uint64_t *until)
{
	struct why_thread *of;
	size_t found;

	*until = UINT64_MAX;
	if (thread >= intervals->count)
		return MODEL_NONE;
	of = &intervals->threads[thread];
	found = marks_until(of, ts);
	if (found < of->marks.len)
		*until = of->marks.data[found].ts;
	return found ? of->marks.data[found - 1].span : MODEL_NONE;
}

uint64_t why_intervals_span_since(const struct why_intervals *intervals, uint32_t thread,
				  uint64_t ts)
{
	size_t found;

	if (thread >= intervals->count)
		return 0;
	found = marks_until(&intervals->threads[thread], ts);
	return found ? intervals->threads[thread].marks.data[found - 1].ts : 0;
}

/* Index of the thread's first entry of `answers` after ts. */
static size_t answers_after(const struct why_thread *of, uint64_t ts)
{
	return lower_bound(of->answers.len, i, of->answers.data[i].ts <= ts);
}

/* Limit of the intervals to examine. */
#define WAITS_MAX 64

/* Whether the thread is in a wait at ts, or may have waited between `since` and ts. */
static bool waits_since(const struct why_intervals *intervals, uint32_t thread, uint64_t since,
			uint64_t ts)
{
	const struct why_thread *of = &intervals->threads[thread];
	size_t at = why_intervals_after(intervals, thread, ts), end = at;

	if (at < of->intervals.len && of->intervals.data[at].from_ts <= ts &&
	    of->intervals.data[at].state == WAFFLE_THREAD_BLOCKED)
		return true;
	for (; at && of->intervals.data[at - 1].to_ts > since; at--)
		if (of->intervals.data[at - 1].state == WAFFLE_THREAD_BLOCKED ||
		    end - at == WAITS_MAX)
			return true;
	return false;
}

/* A server of RESP executes a command as soon as it has read it, before it reads the next one. Its
 * loop sends the answers, and so ends the spans, only after that. A server of HTTP may have read
 * several requests before it begins with the first one. */
static bool executes_at_once(const struct model *model, uint32_t span)
{
	return request_site_command(model_site(model, model->spans.data[span].site));
}

bool why_intervals_doubts(const struct why_intervals *intervals, uint32_t thread, uint32_t span,
			  uint64_t ts)
{
	const struct model *model = intervals->model;
	const struct why_thread *of;
	size_t next;

	if (span == MODEL_NONE || thread >= intervals->count)
		return false;
	of = &intervals->threads[thread];
	next = answers_after(of, ts);
	if (!next || of->answers.data[next - 1].open < 2 || !is_request(model, span))
		return false;
	return !executes_at_once(model, span) ||
	       waits_since(intervals, thread, model->spans.data[span].start_ts, ts);
}

bool why_intervals_answers(const struct why_intervals *intervals, uint32_t thread, uint64_t from_ts,
			   uint64_t to_ts)
{
	const struct why_thread *of = &intervals->threads[thread];
	size_t at = answers_after(of, from_ts);

	return at < of->answers.len && of->answers.data[at].ts <= to_ts;
}

bool why_intervals_serves(const struct why_intervals *intervals, uint32_t thread, uint64_t from_ts,
			  uint64_t to_ts)
{
	uint64_t ignored;
	uint32_t span;

	if (!why_intervals_answers(intervals, thread, from_ts, to_ts))
		return false;
	span = why_intervals_span(intervals, thread, from_ts, &ignored);
	return span != MODEL_NONE && is_request(intervals->model, span);
}
