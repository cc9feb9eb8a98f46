// SPDX-License-Identifier: Apache-2.0
/*
 * Thread states. The random tests play a machine nanosecond by nanosecond, write down what each
 * thread does in each of them, and compare that with what the model makes of the records.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model_capture.h"
#include "util/memory.h"

struct seen {
	struct model_interval intervals[64];
	unsigned count;
};

static int see(const struct model_interval *interval, void *arg)
{
	struct seen *seen = arg;

	assert_true(seen->count < 64);
	seen->intervals[seen->count++] = *interval;
	return 0;
}

static void assert_interval(const struct model *model, const struct model_interval *interval,
			    uint32_t tid, unsigned thread_state, uint64_t from_ts, uint64_t to_ts)
{
	assert_int_equal(model->threads.data[interval->thread].tid, tid);
	assert_int_equal(interval->state, thread_state);
	assert_int_equal(interval->from_ts, from_ts);
	assert_int_equal(interval->to_ts, to_ts);
}

static void test_span_is_taken_apart_into_running_blocked_and_runnable(void **state)
{
	struct capture capture;
	struct seen seen = {0};
	const struct model *model;
	const struct model_span *span;

	(void)state;
	capture_begin(&capture, true);
	capture_switch(&capture, 1010, 1, 0, 11, 0, 0, 0);
	capture_span(&capture, 1020, 11, 1);
	capture_switch(&capture, 1030, 1, 11, 12, WAFFLE_TASK_INTERRUPTIBLE, 0, 0);
	capture_switch(&capture, 1075, 0, 0, 11, 0, 12, 1070);
	capture_switch(&capture, 1080, 0, 11, 13, 0, 0, 0);
	capture_switch(&capture, 1087, 0, 13, 11, WAFFLE_TASK_UNINTERRUPTIBLE, 0, 0);
	capture_end(&capture, 1090, 11, 1);
	model = capture_load(&capture, 1100);
	span = capture_find(model, 1);
	assert_int_equal(span->flags, MODEL_SPAN_HAS_SCHED);
	assert_int_equal(span->running_ns, 10 + 5 + 3);
	assert_int_equal(span->runnable_ns, 5 + 7);
	assert_int_equal(model_each_interval(model, see, &seen), 0);
	assert_int_equal(seen.count, 9);
	assert_interval(model, &seen.intervals[0], 11, WAFFLE_THREAD_RUNNING, 1010, 1030);
	assert_int_equal(seen.intervals[0].cpu, 1);
	assert_interval(model, &seen.intervals[1], 11, WAFFLE_THREAD_BLOCKED, 1030, 1070);
	assert_int_equal(seen.intervals[1].task_state, WAFFLE_TASK_INTERRUPTIBLE);
	assert_int_equal(seen.intervals[1].syscall, 202);
	assert_int_equal(model->syscall_args.data[seen.intervals[1].args + 2], 3);
	assert_interval(model, &seen.intervals[2], 11, WAFFLE_THREAD_RUNNABLE, 1070, 1075);
	assert_true(seen.intervals[2].woken);
	assert_int_equal(model->threads.data[seen.intervals[2].by].tid, 12);
	assert_interval(model, &seen.intervals[3], 11, WAFFLE_THREAD_RUNNING, 1075, 1080);
	assert_int_equal(seen.intervals[3].cpu, 0);
	assert_interval(model, &seen.intervals[4], 13, WAFFLE_THREAD_RUNNING, 1080, 1087);
	assert_interval(model, &seen.intervals[5], 11, WAFFLE_THREAD_RUNNABLE, 1080, 1087);
	assert_false(seen.intervals[5].woken);
	assert_int_equal(model->threads.data[seen.intervals[5].by].tid, 13);
	for (unsigned i = 6; i < 9; i++)
		assert_true(seen.intervals[i].open && seen.intervals[i].to_ts == 1100);
	capture_free(&capture);
}

static void test_wake_up_before_the_switch_out_leaves_no_blocked_time(void **state)
{
	struct capture capture;
	const struct model *model;

	(void)state;
	capture_begin(&capture, true);
	capture_switch(&capture, 1010, 1, 0, 11, 0, 0, 0);
	capture_span(&capture, 1020, 11, 1);
	capture_switch(&capture, 1030, 1, 11, 0, WAFFLE_TASK_INTERRUPTIBLE, 0, 0);
	capture_switch(&capture, 1050, 1, 0, 11, 0, 12, 1025);
	capture_end(&capture, 1060, 11, 1);
	model = capture_load(&capture, 1100);
	assert_int_equal(capture_find(model, 1)->running_ns, 20);
	assert_int_equal(capture_find(model, 1)->runnable_ns, 20);
	assert_int_equal(model->switches.data[2].wake_ts, 1030);
	capture_free(&capture);
}

static void test_state_read_at_the_begin_holds_until_the_first_switch(void **state)
{
	struct capture capture;
	const struct model *model;
	const struct model_thread *thread;

	(void)state;
	capture_begin(&capture, true);
	capture_state(&capture, 1002, 11, WAFFLE_THREAD_BLOCKED, false);
	capture_state(&capture, 1002, 12, WAFFLE_THREAD_RUNNING, false);
	capture_state(&capture, 1002, 13, WAFFLE_THREAD_RUNNABLE, false);
	capture_switch(&capture, 1010, 1, 13, 12, WAFFLE_TASK_INTERRUPTIBLE, 0, 0);
	capture_state(&capture, 1011, 13, WAFFLE_THREAD_RUNNING, false); /* late: known better */
	capture_state(&capture, 1100, 11, WAFFLE_THREAD_RUNNING, true);
	model = capture_load(&capture, 1100);
	thread = &model->threads.data[0];
	assert_int_equal(thread->tid, 11);
	assert_true(thread->has_sched);
	assert_int_equal(thread->blocked_ns, 98);
	thread = &model->threads.data[1]; /* "R (running)" of a thread that waited for a CPU */
	assert_int_equal(thread->runnable_ns, 8);
	assert_int_equal(thread->running_ns, 90);
	thread = &model->threads.data[2];
	assert_int_equal(thread->running_ns, 8);
	assert_int_equal(thread->blocked_ns, 90);
	capture_free(&capture);
}

static void test_thread_that_hits_a_site_is_running(void **state)
{
	struct capture capture;
	const struct model *model;

	(void)state;
	capture_begin(&capture, true);
	capture_span(&capture, 1001, 11, 1); /* the scheduler is not recorded yet */
	capture_state(&capture, 1002, 12, WAFFLE_THREAD_BLOCKED, false);
	capture_span(&capture, 1020, 11, 2);
	capture_end(&capture, 1040, 11, 2);
	capture_end(&capture, 1050, 11, 1);
	model = capture_load(&capture, 1100);
	assert_int_equal(capture_find(model, 1)->flags, 0);
	assert_int_equal(capture_find(model, 2)->flags, MODEL_SPAN_HAS_SCHED);
	assert_int_equal(capture_find(model, 2)->running_ns, 20);
	capture_free(&capture);
}

static void test_without_scheduler_records_nothing_is_known(void **state)
{
	struct capture capture;
	struct seen seen = {0};
	const struct model *model;

	(void)state;
	capture_begin(&capture, false);
	capture_span(&capture, 1020, 11, 2);
	capture_end(&capture, 1040, 11, 2);
	model = capture_load(&capture, 1100);
	assert_int_equal(capture_find(model, 2)->flags, 0);
	assert_false(model->threads.data[0].has_sched);
	assert_int_equal(model_each_interval(model, see, &seen), 0);
	assert_int_equal(seen.count, 0);
	capture_free(&capture);
}

static void test_new_thread_is_runnable_from_its_creation(void **state)
{
	struct waffle_rec_switch first = {.rec = {1050, 0, WAFFLE_REC_SWITCH, 0},
					  .next_tid = 11,
					  .waker_tid = 10,
					  .wake_ts = 1030,
					  .flags = WAFFLE_SWITCH_NEXT_TRACED | WAFFLE_SWITCH_WOKEN |
						   WAFFLE_SWITCH_NEW,
					  .syscall = -1};
	struct capture capture;
	const struct model *model;
	uint32_t index;

	(void)state;
	capture_begin(&capture, true);
	capture_task(&capture, 1030, 11, 1029, "young");
	capture_add(&capture, &first);
	capture_gone(&capture, 1070, 11, WAFFLE_REC_EXIT); /* and no last switch */
	model = capture_load(&capture, 1100);
	index = model->switches.data[0].next;
	assert_int_equal(model->threads.data[index].runnable_ns, 20);
	assert_int_equal(model->threads.data[index].running_ns, 20);
	assert_int_equal(model->threads.data[index].blocked_ns, 0);
	capture_free(&capture);
}

static int stop_at_second(const struct model_interval *interval, void *arg)
{
	unsigned *count = arg;

	(void)interval;
	return ++*count == 2 ? -77 : 0;
}

static void test_intervals_stop_at_the_first_non_zero_return(void **state)
{
	struct capture capture;
	unsigned count = 0;

	(void)state;
	capture_begin(&capture, true);
	for (unsigned i = 0; i < 10; i++)
		capture_switch(&capture, 1010 + i, 1, 11 + i % 2, 12 - i % 2, 0, 0, 0);
	assert_int_equal(model_each_interval(capture_load(&capture, 1100), stop_at_second, &count),
			 -77);
	assert_int_equal(count, 2);
	capture_free(&capture);
}

/* ---- random machines ---- */

#define THREADS 6
#define CPUS 2
#define LENGTH 3000
#define SPANS_MAX 400
#define RECORDS_MAX 8000
#define FIRST_TID 100

struct played_span {
	uint64_t id;
	unsigned thread;
	uint64_t start, end; /* end 0: open */
};

struct machine {
	uint64_t random;
	uint8_t truth[THREADS][LENGTH]; /* enum waffle_thread_state in each nanosecond */
	uint8_t now[THREADS];
	uint64_t woken_at[THREADS]; /* 0: not woken since it left a CPU */
	uint32_t woken_by[THREADS];
	uint64_t left_at[THREADS]; /* nothing is switched twice in a nanosecond */
	int on_cpu[CPUS];          /* thread, or -1: idle */
	struct played_span spans[SPANS_MAX];
	unsigned span_count;
	bool lossy;
	uint64_t loss_from, loss_to, lost;
	union machine_record {
		struct waffle_rec rec;
		struct waffle_rec_switch sw;
		struct waffle_rec_state thread_state;
		struct waffle_rec_span_end end;
		struct {
			struct waffle_rec_hit hit;
			uint64_t frame[4];
		};
	} records[RECORDS_MAX];
	unsigned count;
};

static unsigned below(struct machine *machine, unsigned limit)
{
	machine->random = machine->random * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(machine->random >> 33) % limit;
}

/*
 * A wake-up whose switch-in is not in the capture is in no record: up to a loss or the end the
 * model says blocked, and that is what is right there.
 */
static void forget_wake(struct machine *machine, unsigned thread, uint64_t until)
{
	if (!machine->woken_at[thread] || machine->woken_at[thread] >= CAPTURE_START + until)
		return;
	while (until-- && machine->truth[thread][until] == WAFFLE_THREAD_RUNNABLE)
		machine->truth[thread][until] = WAFFLE_THREAD_BLOCKED;
}

static void play_switch(struct machine *machine, uint64_t t, unsigned cpu, int next, bool blocks)
{
	int prev = machine->on_cpu[cpu];
	union machine_record *to = &machine->records[machine->count];
	bool lost = machine->lossy && t > machine->loss_from && t <= machine->loss_to;

	if (prev == next)
		return;
	if (lost && next >= 0)
		forget_wake(machine, (unsigned)next, machine->loss_from + 1);
	*to = (union machine_record){0};
	to->sw = (struct waffle_rec_switch){
		.rec = {CAPTURE_START + t, prev < 0 ? 0 : FIRST_TID + (uint32_t)prev,
			WAFFLE_REC_SWITCH, (uint16_t)cpu},
		.next_tid = next < 0 ? 0 : FIRST_TID + (uint32_t)next,
		.prev_state = blocks ? WAFFLE_TASK_INTERRUPTIBLE : 0,
		.syscall = blocks ? 1 : -1,
	};
	if (prev >= 0) {
		to->sw.flags |= WAFFLE_SWITCH_PREV_TRACED | (blocks ? 0 : WAFFLE_SWITCH_PREEMPTED);
		machine->now[prev] = blocks ? WAFFLE_THREAD_BLOCKED : WAFFLE_THREAD_RUNNABLE;
		machine->woken_at[prev] = 0;
		machine->left_at[prev] = t;
	}
	if (next >= 0) {
		to->sw.flags |= WAFFLE_SWITCH_NEXT_TRACED;
		if (machine->woken_at[next]) {
			to->sw.flags |= WAFFLE_SWITCH_WOKEN;
			to->sw.wake_ts = machine->woken_at[next];
			to->sw.waker_tid = machine->woken_by[next];
		}
		machine->now[next] = WAFFLE_THREAD_RUNNING;
	}
	machine->on_cpu[cpu] = next;
	if (lost)
		machine->lost++;
	else
		machine->count++;
}

static int pick_runnable(struct machine *machine, uint64_t t)
{
	unsigned first = below(machine, THREADS);

	for (unsigned i = 0; i < THREADS; i++) {
		unsigned thread = (first + i) % THREADS;

		if (machine->now[thread] == WAFFLE_THREAD_RUNNABLE && machine->left_at[thread] != t)
			return (int)thread;
	}
	return -1;
}

static void play_site(struct machine *machine, uint64_t t, unsigned thread)
{
	union machine_record *to = &machine->records[machine->count];
	unsigned tried = machine->span_count ? below(machine, machine->span_count) : 0;

	*to = (union machine_record){0};
	if (below(machine, 2) && machine->span_count < SPANS_MAX) {
		to->hit = (struct waffle_rec_hit){
			.rec = {CAPTURE_START + t, FIRST_TID + thread, WAFFLE_REC_HIT, 0},
			.tgid = CAPTURE_PID,
			.site = SITE_STEP,
			.frame_bytes = 32};
		to->frame[0] = 1000 + machine->span_count;
		machine->spans[machine->span_count++] =
			(struct played_span){to->frame[0], thread, t, 0};
	} else if (tried < machine->span_count && !machine->spans[tried].end &&
		   machine->spans[tried].thread == thread) {
		to->end = (struct waffle_rec_span_end){
			.rec = {CAPTURE_START + t, FIRST_TID + thread, WAFFLE_REC_SPAN_END, 0},
			.span_id = machine->spans[tried].id,
			.tgid = CAPTURE_PID};
		machine->spans[tried].end = t;
	} else {
		return;
	}
	machine->count++;
}

static void play_states(struct machine *machine, uint64_t t)
{
	for (unsigned i = 0; i < THREADS; i++)
		machine->records[machine->count++].thread_state = (struct waffle_rec_state){
			.rec = {CAPTURE_START + t, FIRST_TID + i, WAFFLE_REC_STATE, 0},
			.tgid = CAPTURE_PID,
			.state = machine->now[i]};
}

static void play_cpu(struct machine *machine, uint64_t t, unsigned cpu)
{
	int thread = machine->on_cpu[cpu];

	if (thread < 0 || !below(machine, 20))
		play_switch(machine, t, cpu, pick_runnable(machine, t), below(machine, 2));
	else if (!below(machine, 4))
		play_site(machine, t, (unsigned)thread);
}

static void play(struct machine *machine, unsigned seed, bool lossy)
{
	*machine = (struct machine){.random = seed * 77 + 5, .on_cpu = {-1, -1}, .lossy = lossy};
	machine->lost = lossy; /* some other thread's, at least */
	machine->loss_from = 1000 + below(machine, 500);
	machine->loss_to = machine->loss_from + below(machine, 300) + 1;
	for (unsigned i = 0; i < THREADS; i++)
		machine->now[i] =
			below(machine, 2) ? WAFFLE_THREAD_RUNNABLE : WAFFLE_THREAD_BLOCKED;
	for (uint64_t t = 0; t < LENGTH; t++) {
		unsigned sleeper = below(machine, THREADS);

		if (t == 3)
			play_states(machine, t);
		for (unsigned cpu = 0; cpu < CPUS; cpu++)
			play_cpu(machine, t, cpu);
		if (machine->now[sleeper] == WAFFLE_THREAD_BLOCKED && !below(machine, 6)) {
			machine->now[sleeper] = WAFFLE_THREAD_RUNNABLE;
			machine->woken_at[sleeper] = CAPTURE_START + t;
			machine->woken_by[sleeper] = FIRST_TID + below(machine, THREADS);
		}
		for (unsigned i = 0; i < THREADS; i++)
			machine->truth[i][t] = machine->now[i];
	}
	for (unsigned i = 0; i < THREADS; i++)
		if (machine->now[i] == WAFFLE_THREAD_RUNNABLE)
			forget_wake(machine, i, LENGTH);
}

/* Writes the records, some of them late. */
static const struct model *machine_load(struct machine *machine, struct capture *capture)
{
	capture_begin(capture, true);
	for (unsigned i = 0; i + 4 < machine->count; i++) {
		unsigned other = i + below(machine, 4);
		union machine_record held = machine->records[i];

		machine->records[i] = machine->records[other];
		machine->records[other] = held;
	}
	for (unsigned i = 0; i < machine->count; i++)
		capture_add(capture, &machine->records[i]);
	if (machine->lost)
		capture_loss(capture, CAPTURE_START + machine->loss_from,
			     CAPTURE_START + machine->loss_to, WAFFLE_SOURCE_SCHED, machine->lost);
	return capture_load(capture, CAPTURE_START + LENGTH);
}

struct painting {
	const struct model *model;
	uint8_t state[THREADS][LENGTH]; /* 0: no interval */
	uint64_t last_to;
};

static int paint(const struct model_interval *interval, void *arg)
{
	struct painting *painting = arg;
	unsigned thread = painting->model->threads.data[interval->thread].tid - FIRST_TID;

	assert_true(thread < THREADS);
	assert_true(interval->to_ts >= painting->last_to);
	assert_true(interval->to_ts > interval->from_ts);
	painting->last_to = interval->to_ts;
	for (uint64_t ts = interval->from_ts; ts < interval->to_ts; ts++) {
		uint64_t t = ts - CAPTURE_START;

		assert_true(t < LENGTH);
		assert_int_equal(painting->state[thread][t], 0);
		painting->state[thread][t] = interval->state;
	}
	return 0;
}

static void check_spans(const struct machine *machine, const struct model *model)
{
	unsigned with_sched = 0;

	for (unsigned i = 0; i < machine->span_count; i++) {
		const struct played_span *played = &machine->spans[i];
		const struct model_span *span = capture_find(model, played->id);
		uint64_t end = played->end ? played->end : LENGTH, sums[4] = {0};

		assert_int_equal(span->start_ts, CAPTURE_START + played->start);
		assert_int_equal(span->end_ts, CAPTURE_START + end);
		assert_int_equal(!!(span->flags & MODEL_SPAN_UNFINISHED), !played->end);
		for (uint64_t t = played->start; t < end; t++)
			sums[machine->truth[played->thread][t]]++;
		if (machine->lost && played->start <= machine->loss_to &&
		    end >= machine->loss_from) {
			assert_true(span->flags & MODEL_SPAN_LOSS);
			assert_int_equal(!!(span->flags & MODEL_SPAN_HAS_SCHED),
					 end == machine->loss_from);
		}
		if (!machine->lost && played->start > 3)
			assert_true(span->flags & MODEL_SPAN_HAS_SCHED);
		if (!(span->flags & MODEL_SPAN_HAS_SCHED))
			continue;
		with_sched++;
		assert_int_equal(span->running_ns, sums[WAFFLE_THREAD_RUNNING]);
		assert_int_equal(span->runnable_ns, sums[WAFFLE_THREAD_RUNNABLE]);
	}
	assert_true(with_sched > 20);
}

static void check_intervals(const struct machine *machine, const struct model *model)
{
	static struct painting painting;
	uint64_t unknown = 0;

	memset(&painting, 0, sizeof(painting));
	painting.model = model;
	assert_int_equal(model_each_interval(model, paint, &painting), 0);
	for (unsigned i = 0; i < THREADS; i++)
		for (uint64_t t = 0; t < LENGTH; t++) {
			if (painting.state[i][t])
				assert_int_equal(painting.state[i][t], machine->truth[i][t]);
			else
				unknown++;
			if (!machine->lost && t > 3)
				assert_true(painting.state[i][t]);
			if (machine->lost && t >= machine->loss_from && t < machine->loss_to)
				assert_false(painting.state[i][t]);
		}
	assert_true(unknown < THREADS * LENGTH / 2);
}

static void check_threads(const struct model *model)
{
	static struct painting painting;

	memset(&painting, 0, sizeof(painting));
	painting.model = model;
	assert_int_equal(model_each_interval(model, paint, &painting), 0);
	for (size_t i = 0; i < model->threads.len; i++) {
		const struct model_thread *thread = &model->threads.data[i];
		uint64_t sums[4] = {0};

		for (uint64_t t = 0; t < LENGTH; t++)
			sums[painting.state[thread->tid - FIRST_TID][t]]++;
		assert_int_equal(thread->running_ns, sums[WAFFLE_THREAD_RUNNING]);
		assert_int_equal(thread->runnable_ns, sums[WAFFLE_THREAD_RUNNABLE]);
		assert_int_equal(thread->blocked_ns, sums[WAFFLE_THREAD_BLOCKED]);
	}
}

/* The intervals of one thread after the other, each in order of time. */
struct kept {
	VEC(struct model_interval) list;
};

static int keep(const struct model_interval *interval, void *arg)
{
	struct kept *of = arg;

	vec_add(&of[interval->thread].list, *interval);
	return 0;
}

static struct kept *kept_new(const struct model *model)
{
	return memory_zeroed(model->threads.len, sizeof(struct kept));
}

static void kept_free(struct kept *kept, const struct model *model)
{
	for (size_t i = 0; i < model->threads.len; i++)
		vec_free(&kept[i].list);
	free(kept);
}

static void assert_same(const struct model_interval *a, const struct model_interval *b)
{
	assert_int_equal(a->thread, b->thread);
	assert_int_equal(a->state, b->state);
	assert_int_equal(a->from_ts, b->from_ts);
	assert_int_equal(a->to_ts, b->to_ts);
	assert_int_equal(a->by, b->by);
	assert_int_equal(a->woken, b->woken);
	assert_int_equal(a->open, b->open);
}

/* Checks that `part` has, without a gap, those of `all` that touch a time, and the one that follows
 * a blocked one of these. */
static void check_part(const struct kept *all, const struct kept *part, uint64_t from, uint64_t to)
{
	size_t at = 0;
	bool follows = false;

	for (size_t i = 0; i < all->list.len; i++) {
		const struct model_interval *interval = &all->list.data[i];
		bool touches = interval->from_ts <= to && interval->to_ts >= from;

		if (touches || follows) {
			while (!follows && at < part->list.len &&
			       part->list.data[at].from_ts < interval->from_ts)
				at++;
			assert_true(at < part->list.len);
			assert_same(&part->list.data[at++], interval);
		}
		follows = touches && interval->state == WAFFLE_THREAD_BLOCKED &&
			  i + 1 < all->list.len && all->list.data[i + 1].from_ts == interval->to_ts;
	}
}

/* Checks that reading from marks delivers the same intervals as reading from the begin. */
static void check_marks(struct machine *machine, const struct model *model)
{
	struct kept *all = kept_new(model), *again = kept_new(model), *part;
	struct model_marks *marks;

	model_each_interval(model, keep, all);
	marks = model_marks_new(model, 1 + below(machine, 40), keep, again);
	for (size_t i = 0; i < model->threads.len; i++) {
		assert_int_equal(again[i].list.len, all[i].list.len);
		for (size_t k = 0; k < all[i].list.len; k++)
			assert_same(&again[i].list.data[k], &all[i].list.data[k]);
	}
	for (unsigned trial = 0; trial < 20; trial++) {
		uint64_t from = CAPTURE_START + below(machine, LENGTH);
		uint64_t to = from + below(machine, LENGTH / 4);

		part = kept_new(model);
		model_marks_intervals(marks, from, to, keep, part);
		for (size_t i = 0; i < model->threads.len; i++)
			check_part(&all[i], &part[i], from, to);
		kept_free(part, model);
	}
	model_marks_free(marks);
	kept_free(all, model);
	kept_free(again, model);
}

static void play_and_check(unsigned seeds, bool lossy)
{
	static struct machine machine;

	for (unsigned seed = 1; seed <= seeds; seed++) {
		struct capture capture;
		const struct model *model;

		play(&machine, seed, lossy);
		model = machine_load(&machine, &capture);
		assert_int_equal(model->bad_records, 0);
		assert_int_equal(model->spans.len, machine.span_count);
		check_spans(&machine, model);
		check_intervals(&machine, model);
		check_threads(model);
		check_marks(&machine, model);
		capture_free(&capture);
	}
}

static void test_random_schedules_agree_with_the_machine_that_played_them(void **state)
{
	(void)state;
	play_and_check(60, false);
}

static void test_with_losses_what_is_said_is_still_true(void **state)
{
	(void)state;
	play_and_check(60, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_span_is_taken_apart_into_running_blocked_and_runnable),
		cmocka_unit_test(test_wake_up_before_the_switch_out_leaves_no_blocked_time),
		cmocka_unit_test(test_state_read_at_the_begin_holds_until_the_first_switch),
		cmocka_unit_test(test_thread_that_hits_a_site_is_running),
		cmocka_unit_test(test_without_scheduler_records_nothing_is_known),
		cmocka_unit_test(test_new_thread_is_runnable_from_its_creation),
		cmocka_unit_test(test_intervals_stop_at_the_first_non_zero_return),
		cmocka_unit_test(test_random_schedules_agree_with_the_machine_that_played_them),
		cmocka_unit_test(test_with_losses_what_is_said_is_still_true),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
