// SPDX-License-Identifier: Apache-2.0
/* Records that explain waits: details of waits, wake-ups, page faults, I/O, signals and quotas.
 * Also records of limits, CPU speed, stolen time and frequency, and samples of what ran. */
#include <stdlib.h>
#include <string.h>

#include "model/build.h"
#include "util/memory.h"
#include "util/search.h"

void waits_add(struct builder *builder, const struct waffle_rec_wait *rec)
{
	struct model *model = builder->model;
	uint32_t thread = threads_at(builder, rec->rec.tid, rec->rec.ts);

	if (rec->from_ts > rec->rec.ts) {
		model->bad_records++;
		return;
	}
	vec_add(&model->waits, (struct model_wait){.from_ts = rec->from_ts,
						   .to_ts = rec->rec.ts,
						   .address = rec->address,
						   .thread = thread,
						   .kernel_stack = rec->kernel_stack,
						   .user_stack = rec->user_stack,
						   .object = rec->object,
						   .record = builder->record});
}

void waits_add_open(struct builder *builder, const struct waffle_rec_open_wait *rec)
{
	struct model *model = builder->model;
	uint32_t owner =
		rec->owner_tid ? threads_at(builder, rec->owner_tid, rec->rec.ts) : MODEL_NONE;
	uint32_t thread = threads_at(builder, rec->rec.tid, rec->rec.ts);
	uint32_t tracer = threads_outside(builder, rec->tracer_pid, rec->tracer_comm, rec->rec.ts);

	if (rec->from_ts > rec->rec.ts) {
		model->bad_records++;
		return;
	}
	vec_add(&model->open_waits, (struct model_open_wait){.ts = rec->rec.ts,
							     .from_ts = rec->from_ts,
							     .lock = rec->lock,
							     .thread = thread,
							     .owner = owner,
							     .ended = rec->ended_tid,
							     .tracer = tracer,
							     .kernel_stack = rec->kernel_stack,
							     .user_stack = rec->user_stack,
							     .flags = rec->flags,
							     .args = MODEL_NONE,
							     .syscall = -1,
							     .before = !rec->from_ts});
}

void waits_add_wake(struct builder *builder, const struct waffle_rec_wake *rec)
{
	struct model *model = builder->model;
	uint32_t waker = threads_at(builder, rec->rec.tid, rec->rec.ts);
	uint32_t woken = threads_at(builder, rec->woken_tid, rec->rec.ts);

	vec_add(&model->wakes, (struct model_wake){.ts = rec->rec.ts,
						   .waker = waker,
						   .woken = woken,
						   .kernel_stack = rec->kernel_stack,
						   .user_stack = rec->user_stack,
						   .flags = rec->flags});
}

void waits_add_fault(struct builder *builder, const struct waffle_rec_fault *rec)
{
	struct model *model = builder->model;
	uint32_t thread = threads_at(builder, rec->rec.tid, rec->rec.ts);

	if (rec->from_ts > rec->rec.ts || rec->total_ns > rec->rec.ts - rec->from_ts) {
		model->bad_records++;
		return;
	}
	vec_add(&model->faults, (struct model_fault){.from_ts = rec->from_ts,
						     .to_ts = rec->rec.ts,
						     .total_ns = rec->total_ns,
						     .address = rec->address,
						     .ip = rec->ip,
						     .thread = thread,
						     .count = rec->count,
						     .major = rec->flags & WAFFLE_FAULT_MAJOR});
}

void waits_add_io(struct builder *builder, const struct waffle_rec_io *rec)
{
	struct model *model = builder->model;
	uint32_t thread = threads_at(builder, rec->rec.tid, rec->rec.ts);

	if (rec->issue_ts > rec->rec.ts) {
		model->bad_records++;
		return;
	}
	vec_add(&model->ios, (struct model_io){.issue_ts = rec->issue_ts,
					       .done_ts = rec->rec.ts,
					       .sector = rec->sector,
					       .bytes = rec->bytes,
					       .dev = rec->dev,
					       .disk = rec->disk,
					       .thread = thread,
					       .flags = rec->flags,
					       .error = rec->error});
}

void waits_add_signal(struct builder *builder, const struct waffle_rec_signal *rec)
{
	struct model *model = builder->model;
	uint32_t sender = threads_at(builder, rec->rec.tid, rec->rec.ts);
	uint32_t target = threads_at(builder, rec->target_tid, rec->rec.ts);

	vec_add(&model->signals, (struct model_signal){.ts = rec->rec.ts,
						       .sender = sender,
						       .target = target,
						       .signo = rec->signo,
						       .code = rec->code});
}

void waits_add_quota(struct builder *builder, const struct waffle_rec_quota *rec)
{
	struct model *model = builder->model;
	uint32_t thread = threads_at(builder, rec->rec.tid, rec->rec.ts);

	vec_add(&model->quotas, (struct model_quota){.ts = rec->rec.ts,
						     .throttled_ns = rec->throttled_ns,
						     .cgroup = rec->cgroup,
						     .quota_ns = rec->quota_ns,
						     .period_ns = rec->period_ns,
						     .thread = thread});
}

void waits_add_memory(struct builder *builder, const struct waffle_rec_memory *rec)
{
	struct model *model = builder->model;
	size_t len = strnlen(rec->user_comm, sizeof(rec->user_comm));

	vec_add(&model->memories,
		(struct model_memory){.ts = rec->rec.ts,
				      .cgroup = rec->cgroup,
				      .limit_bytes = rec->limit_bytes,
				      .used_bytes = rec->used_bytes,
				      .user_bytes = rec->user_bytes,
				      .thread = threads_at(builder, rec->rec.tid, rec->rec.ts),
				      .user_pid = rec->user_pid,
				      .user_comm = strtab_put(model->strings, rec->user_comm, len),
				      .flags = rec->flags});
}

void waits_add_io_limit(struct builder *builder, const struct waffle_rec_io_limit *rec)
{
	uint32_t thread = threads_at(builder, rec->rec.tid, rec->rec.ts);

	vec_add(&builder->model->io_limits, (struct model_io_limit){.pid = rec->rec.tid,
								    .cgroup = rec->cgroup,
								    .limit = rec->limit,
								    .dev = rec->dev,
								    .kind = rec->kind,
								    .thread = thread});
}

void waits_add_lock_refusal(struct builder *builder, const struct waffle_rec_lock_refusal *rec)
{
	uint32_t former = rec->flags & WAFFLE_LOCK_FORMER ? rec->holder_pid : 0;
	uint32_t holder =
		former ? MODEL_NONE
		       : threads_outside(builder, rec->holder_pid, rec->holder_comm, rec->rec.ts);

	vec_add(&builder->model->lock_refusals,
		(struct model_lock_refusal){.ts = rec->rec.ts,
					    .thread =
						    threads_at(builder, rec->rec.tid, rec->rec.ts),
					    .holder = holder,
					    .former = former,
					    .object = rec->object,
					    .flags = rec->flags});
}

void waits_add_request_failure(struct builder *builder,
			       const struct waffle_rec_request_failure *rec)
{
	vec_add(&builder->model->request_failures,
		(struct model_request_failure){
			.ts = rec->rec.ts,
			.thread = threads_at(builder, rec->rec.tid, rec->rec.ts),
			.object = rec->object,
			.status = rec->status});
}

void waits_add_late_sleep(struct builder *builder, const struct waffle_rec_late_sleep *rec)
{
	if (rec->from_ts > rec->rec.ts) {
		builder->model->bad_records++;
		return;
	}
	vec_add(&builder->model->late_sleeps,
		(struct model_late_sleep){.from_ts = rec->from_ts,
					  .asked_ns = rec->asked_ns,
					  .slack_ns = rec->slack_ns,
					  .thread =
						  threads_at(builder, rec->rec.tid, rec->rec.ts)});
}

void waits_add_stolen(struct builder *builder, const struct waffle_rec_stolen *rec)
{
	struct model *model = builder->model;
	uint32_t thread = threads_at(builder, rec->rec.tid, rec->rec.ts);

	if (rec->from_ts >= rec->rec.ts || rec->stolen_ns > rec->rec.ts - rec->from_ts) {
		model->bad_records++;
		return;
	}
	vec_add(&model->stolen,
		(struct model_stolen){.from_ts = rec->from_ts,
				      .to_ts = rec->rec.ts,
				      .stolen_ns = rec->stolen_ns,
				      .thread = thread,
				      .by_tick = rec->flags & WAFFLE_STOLEN_BY_TICK});
}

void waits_add_frequency(struct builder *builder, const struct waffle_rec_frequency *rec)
{
	struct model *model = builder->model;

	vec_add(&model->frequencies,
		(struct model_frequency){.ts = rec->rec.ts,
					 .khz = rec->khz,
					 .max_khz = rec->max_khz,
					 .cpu = rec->rec.cpu,
					 .read = rec->flags & WAFFLE_FREQUENCY_READ});
}

void waits_add_sample(struct builder *builder, const struct waffle_rec_sample *rec)
{
	uint32_t thread = threads_at(builder, rec->rec.tid, rec->rec.ts);
	bool kernel = rec->flags & WAFFLE_SAMPLE_KERNEL;
	/* A program may call with any number, also one that no kernel has. */
	bool called = kernel && rec->syscall >= 0 && rec->syscall <= INT16_MAX;

	vec_add(&builder->model->samples,
		(struct model_sample){.ts = rec->rec.ts,
				      .thread = thread,
				      .kernel_stack = rec->kernel_stack,
				      .user_stack = rec->user_stack,
				      .syscall = called ? (int16_t)rec->syscall : -1,
				      .kernel = kernel});
}

/* ---- sorting by number, then time ---- */

static int order(uint64_t a_first, uint64_t b_first, uint64_t a_ts, uint64_t b_ts)
{
	if (a_first != b_first)
		return a_first < b_first ? -1 : 1;
	return a_ts < b_ts ? -1 : a_ts > b_ts;
}

#define COMPARE(name, type, first, second)                                                         \
	static int name(const void *left, const void *right)                                       \
	{                                                                                          \
		const struct type *a = left, *b = right;                                           \
		return order(a->first, b->first, a->second, b->second);                            \
	}
COMPARE(wait_compare, model_wait, thread, from_ts)
COMPARE(open_compare, model_open_wait, thread, ts)
COMPARE(wake_compare, model_wake, woken, ts)
COMPARE(fault_compare, model_fault, thread, from_ts)
COMPARE(io_compare, model_io, done_ts, issue_ts)
COMPARE(signal_compare, model_signal, ts, target)
COMPARE(quota_compare, model_quota, thread, ts)
COMPARE(memory_compare, model_memory, thread, ts)
COMPARE(io_limit_compare, model_io_limit, pid, dev)
COMPARE(lock_refusal_compare, model_lock_refusal, thread, ts)
COMPARE(late_sleep_compare, model_late_sleep, thread, from_ts)
COMPARE(request_failure_compare, model_request_failure, thread, ts)
COMPARE(stolen_compare, model_stolen, thread, from_ts)
COMPARE(frequency_compare, model_frequency, cpu, ts)
COMPARE(sample_compare, model_sample, thread, ts)

#define SORT(vector, compare)                                                                      \
	do {                                                                                       \
		if ((vector).len)                                                                  \
			qsort((vector).data, (vector).len, sizeof(*(vector).data), compare);       \
	} while (0)

static struct model_open_wait *open_wait_of(struct model *model, uint32_t thread)
{
	return (struct model_open_wait *)model_open_wait_of(model, thread);
}

/* Moves the files of open waits to them. They are in records of waits with the same end. */
static void open_files_take(struct model *model)
{
	size_t kept = 0;

	for (size_t i = 0; i < model->waits.len; i++) {
		const struct model_wait wait = model->waits.data[i];
		struct model_open_wait *open = open_wait_of(model, wait.thread);

		if (open && open->ts == wait.to_ts)
			open->object = wait.object;
		else
			model->waits.data[kept++] = wait;
	}
	model->waits.len = kept;
}

/* Adds what the states of threads say of open waits: the system call, and when a wait began that is
 * older than the capture. */
static void open_waits_finish(struct model *model)
{
	size_t kept = 0;

	SORT(model->open_waits, open_compare);
	for (size_t i = 0; i < model->open_waits.len; i++) {
		struct model_open_wait wait = model->open_waits.data[i];

		/* Several captures may say the same. */
		if (kept && model->open_waits.data[kept - 1].thread == wait.thread)
			continue;
		if (wait.before)
			wait.from_ts = wait.ts;
		model->open_waits.data[kept++] = wait;
	}
	model->open_waits.len = kept;
	if (kept)
		open_files_take(model);
	for (size_t i = 0; i < model->states.len; i++) {
		const struct model_state *state = &model->states.data[i];
		struct model_open_wait *wait = open_wait_of(model, state->thread);

		if (!wait || state->state != WAFFLE_THREAD_BLOCKED)
			continue;
		if (state->at_end) {
			wait->syscall = state->syscall;
			wait->args = state->args;
			wait->task_state = state->task_state;
		} else if (wait->before && state->ts < wait->from_ts) {
			wait->from_ts = state->ts;
		}
	}
	for (size_t i = 0; i < model->open_waits.len; i++) {
		const struct model_open_wait *wait = &model->open_waits.data[i];

		vec_add(&model->waits, (struct model_wait){.from_ts = wait->from_ts,
							   .to_ts = wait->ts,
							   .thread = wait->thread,
							   .kernel_stack = wait->kernel_stack,
							   .user_stack = wait->user_stack,
							   .object = wait->object});
	}
}

/* What tells why threads sleep, and for how long. */
static void sleeps_finish(struct model *model)
{
	SORT(model->lock_refusals, lock_refusal_compare);
	SORT(model->request_failures, request_failure_compare);
	SORT(model->late_sleeps, late_sleep_compare);
}

void waits_finish(struct model *model)
{
	open_waits_finish(model);
	SORT(model->waits, wait_compare);
	SORT(model->wakes, wake_compare);
	SORT(model->faults, fault_compare);
	SORT(model->ios, io_compare);
	SORT(model->signals, signal_compare);
	SORT(model->quotas, quota_compare);
	SORT(model->memories, memory_compare);
	SORT(model->io_limits, io_limit_compare);
	sleeps_finish(model);
	SORT(model->stolen, stolen_compare);
	SORT(model->frequencies, frequency_compare);
	SORT(model->samples, sample_compare);
}

const struct model_wait *model_wait_at(const struct model *model, uint32_t thread, uint64_t from_ts)
{
	struct model_wait key = {.thread = thread, .from_ts = from_ts};

	if (!model->waits.len)
		return NULL;
	return bsearch(&key, model->waits.data, model->waits.len, sizeof(key), wait_compare);
}

const struct store_object *model_wait_object(const struct model *model,
					     const struct model_wait *wait)
{
	return wait ? store_reader_object(model->reader, wait->object) : NULL;
}

const struct model_open_wait *model_open_wait_of(const struct model *model, uint32_t thread)
{
	const struct model_open_wait *waits = model->open_waits.data;
	size_t at = lower_bound(model->open_waits.len, i, waits[i].thread < thread);

	return at < model->open_waits.len && waits[at].thread == thread ? &waits[at] : NULL;
}

/* The last one of a thread up to a time, in a list that is sorted by both. */
#define LAST_BEFORE(name, type, list)                                                              \
	const struct type *name(const struct model *model, uint32_t thread, uint64_t ts)           \
	{                                                                                          \
		const struct type *all = model->list.data;                                         \
		size_t after = lower_bound(model->list.len, i,                                     \
					   all[i].thread < thread ||                               \
						   (all[i].thread == thread && all[i].ts <= ts));  \
		return after && all[after - 1].thread == thread ? &all[after - 1] : NULL;          \
	}
LAST_BEFORE(model_lock_refusal_before, model_lock_refusal, lock_refusals)
LAST_BEFORE(model_request_failure_before, model_request_failure, request_failures)

const struct model_late_sleep *model_late_sleep_at(const struct model *model, uint32_t thread,
						   uint64_t from_ts)
{
	struct model_late_sleep key = {.thread = thread, .from_ts = from_ts};

	if (!model->late_sleeps.len)
		return NULL;
	return bsearch(&key, model->late_sleeps.data, model->late_sleeps.len, sizeof(key),
		       late_sleep_compare);
}

const struct model_wake *model_wake_at(const struct model *model, uint32_t woken, uint64_t ts)
{
	struct model_wake key = {.woken = woken, .ts = ts};

	if (!model->wakes.len)
		return NULL;
	return bsearch(&key, model->wakes.data, model->wakes.len, sizeof(key), wake_compare);
}

size_t model_stolen_after(const struct model *model, uint32_t thread, uint64_t ts)
{
	const struct model_stolen *stolen = model->stolen.data;

	return lower_bound(model->stolen.len, i,
			   stolen[i].thread < thread ||
				   (stolen[i].thread == thread && stolen[i].to_ts <= ts));
}

/* Index of the CPU's first change after ts, or of the next CPU's first. */
static size_t frequency_after(const struct model *model, uint16_t cpu, uint64_t ts)
{
	const struct model_frequency *all = model->frequencies.data;

	return lower_bound(model->frequencies.len, i,
			   all[i].cpu < cpu || (all[i].cpu == cpu && all[i].ts <= ts));
}

bool model_frequency(const struct model *model, uint16_t cpu, uint64_t from_ts, uint64_t to_ts,
		     uint32_t *khz, uint32_t *max_khz)
{
	const struct model_frequency *all = model->frequencies.data;
	size_t next = frequency_after(model, cpu, from_ts);
	double sum = 0; /* kHz times ns */
	uint64_t at = from_ts;

	if (from_ts >= to_ts || !next || all[next - 1].cpu != cpu)
		return false;
	if (all[next - 1].read && (next == model->frequencies.len || all[next].cpu != cpu))
		return false;
	*max_khz = all[next - 1].max_khz;
	for (; at < to_ts; next++) {
		bool more = next < model->frequencies.len && all[next].cpu == cpu &&
			    all[next].ts < to_ts;
		uint64_t until = more ? all[next].ts : to_ts;

		sum += (double)all[next - 1].khz * (double)(until - at);
		at = until;
	}
	*khz = (uint32_t)(sum / (double)(to_ts - from_ts));
	return true;
}

const char *model_blocked_text(uint16_t task_state)
{
	if (task_state & WAFFLE_TASK_UNINTERRUPTIBLE)
		return "uninterruptible (D)";
	if (task_state & (WAFFLE_TASK_STOPPED | WAFFLE_TASK_TRACED))
		return "stopped";
	return "blocked";
}
