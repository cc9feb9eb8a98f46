// SPDX-License-Identifier: Apache-2.0
#include "capture/drain_internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "store/record.h"
#include "util/clock.h"

/* A record becomes readable at most this much later than its timestamp. */
#define SETTLE_NS 2000000ull
/*
 * Limits of one round. If producers are faster than the drain, the kernel's buffers fill up, and
 * the kernel counts what it drops. Meanwhile the drain's memory stays bounded, and so does the time
 * until signals are checked again.
 */
#define TAKEN_BYTES_MAX (8u << 20)  /* copied and not delivered yet */
#define SHARE_BYTES_MIN (64u << 10) /* per queue and round */
#define MERGE_NS 20000000ull
/* A round takes records for at most this long if forks, execs or exits are among them, since a
 * child is armed only when its record is taken. */
#define NOTICE_NS 20000000ull
#define MERGE_RECORDS 16 /* between two checks of the clock */
/* Between two looks at what the kernel skipped: a system call for each program. */
#define SKIPPED_NS 1000000000ull

struct drain_pending {
	uint64_t ts;
	size_t at; /* offset in `bytes` */
};

/* One ordered source of the merge: the switches of a CPU, or all other records. */
struct drain_cursor {
	uint64_t ts;
	uint32_t source; /* CPU number, RING + number of a ring of libwaffle, or OTHERS */
};
#define OTHERS UINT32_MAX
#define RING 0x80000000u

struct drain {
	struct kernel *kernel;
	struct ring_set *rings; /* NULL: none */
	struct drain_callbacks callbacks;
	VEC(uint8_t) bytes;                /* records copied from the kernel */
	VEC(struct drain_pending) pending; /* their times and offsets */
	size_t next;                       /* first entry of `pending` not yet delivered */
	uint64_t *queue_ts; /* per queue of the kernel: all older records were taken */
	uint64_t taken_ts;  /* time of the record taken last */
	/* Older records are delivered in this round, and in rounds that continue it. */
	uint64_t goal_ts;
	bool unfinished;          /* the goal was not reached yet */
	uint64_t forks;           /* number of forks noticed */
	uint64_t notice_end_ts;   /* of this round */
	uint64_t delivered_ts;    /* the last goal that was reached */
	uint64_t *position, *end; /* per CPU: next switch to read, end of this round */
	VEC(struct drain_cursor) heap;
	uint64_t *dropped;                     /* per CPU and source, at the last round */
	uint64_t rings_lost;                   /* by rings of libwaffle, at the last round */
	uint64_t losses_from_ts;               /* start of drops that were not reported yet */
	uint64_t skipped[WAFFLE_SOURCE_COUNT]; /* runs of BPF programs, as reported */
	uint64_t skipped_from_ts;              /* the last look at them */
	uint64_t delivered[WAFFLE_SOURCE_COUNT];
	uint64_t refused[WAFFLE_SOURCE_COUNT]; /* records that the callback rejected */
	int failed;
};

/* Copies a record, with its time. */
static void record_take(const void *data, size_t size, void *arg)
{
	struct drain *drain = arg;
	const struct waffle_rec *rec = data;
	size_t len = record_size(data, size), at = drain->bytes.len;
	unsigned source = len ? record_source(rec->kind) : WAFFLE_SOURCE_COUNT;

	if (len && rec->kind == WAFFLE_REC_RING) {
		drain->taken_ts = rec->ts;
		drain->callbacks.ring(data, drain->callbacks.arg);
		if (clock_monotonic_ns() >= drain->notice_end_ts)
			kernel_take_enough(drain->kernel);
		return;
	}
	drain->forks += len && rec->kind == WAFFLE_REC_FORK;
	/* Reject kinds that never come from a queue, since no source counts them. Also reject times
	 * after the end of the last round. */
	if (source >= WAFFLE_SOURCE_COUNT || rec->ts > RECORD_TS_MAX ||
	    !vec_reserve(&drain->bytes, len) || !vec_reserve(&drain->pending, 1)) {
		drain->refused[source < WAFFLE_SOURCE_COUNT ? source : WAFFLE_SOURCE_SPANS]++;
		return;
	}
	drain->taken_ts = rec->ts;
	memcpy(drain->bytes.data + at, data, len);
	drain->bytes.len += len;
	drain->pending.data[drain->pending.len++] = (struct drain_pending){.ts = rec->ts, .at = at};
	if (rec->kind == WAFFLE_REC_FORK || rec->kind == WAFFLE_REC_EXEC ||
	    rec->kind == WAFFLE_REC_EXIT) {
		drain->callbacks.notice(rec, drain->callbacks.arg);
		if (clock_monotonic_ns() >= drain->notice_end_ts)
			kernel_take_enough(drain->kernel);
	}
}

/* No record is older than the capture. */
static uint64_t *queues_open(const struct kernel *kernel, uint64_t now)
{
	uint32_t count = kernel_ring_count(kernel);
	uint64_t *queue_ts = calloc(count, sizeof(*queue_ts));

	for (uint32_t i = 0; queue_ts && i < count; i++)
		queue_ts[i] = now;
	return queue_ts;
}

int drain_open(struct drain **drain, struct kernel *kernel, const struct drain_callbacks *callbacks,
	       struct error *err)
{
	uint32_t cpus = kernel_cpu_count(kernel);
	struct drain *made = calloc(1, sizeof(*made));

	*drain = NULL;
	if (!made)
		return error_set(err, ENOMEM, "out of memory");
	made->kernel = kernel;
	made->callbacks = *callbacks;
	made->losses_from_ts = clock_monotonic_ns();
	made->skipped_from_ts = made->losses_from_ts;
	made->queue_ts = queues_open(kernel, made->losses_from_ts);
	made->position = calloc(cpus, sizeof(*made->position));
	made->end = calloc(cpus, sizeof(*made->end));
	made->dropped = calloc((size_t)cpus * WAFFLE_SOURCE_COUNT, sizeof(*made->dropped));
	if (!made->queue_ts || !made->position || !made->end || !made->dropped ||
	    !vec_reserve(&made->heap, (size_t)cpus + 1)) {
		drain_close(made);
		return error_set(err, ENOMEM, "reading the kernel's buffers: out of memory");
	}
	*drain = made;
	return 0;
}

void drain_use_rings(struct drain *drain, struct ring_set *rings)
{
	drain->rings = rings;
}

void drain_close(struct drain *drain)
{
	if (!drain)
		return;
	vec_free(&drain->bytes);
	vec_free(&drain->pending);
	free(drain->queue_ts);
	free(drain->position);
	free(drain->end);
	vec_free(&drain->heap);
	free(drain->dropped);
	free(drain);
}

static int pending_compare(const void *a, const void *b)
{
	const struct drain_pending *x = a, *y = b;

	if (x->ts != y->ts)
		return x->ts < y->ts ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

/* Rings are nearly in order, so use insertion sort, unless many records are out of place. */
static void pending_sort(struct drain *drain)
{
	struct drain_pending *list = drain->pending.data;
	size_t len = drain->pending.len, moves = 0;

	for (size_t i = drain->next + 1; i < len; i++) {
		struct drain_pending one = list[i];
		size_t hole = i;

		for (; hole > drain->next && list[hole - 1].ts > one.ts; hole--, moves++)
			list[hole] = list[hole - 1];
		list[hole] = one;
		if (moves > 16 * len) {
			qsort(list + drain->next, len - drain->next, sizeof(*list),
			      pending_compare);
			return;
		}
	}
}

static void heap_down(struct drain *drain, size_t at)
{
	struct drain_cursor *heap = drain->heap.data, one = heap[at];

	for (size_t child; (child = 2 * at + 1) < drain->heap.len; at = child) {
		if (child + 1 < drain->heap.len && heap[child + 1].ts < heap[child].ts)
			child++;
		if (one.ts <= heap[child].ts)
			break;
		heap[at] = heap[child];
	}
	heap[at] = one;
}

/* The time of a source's next record, or UINT64_MAX if it has none in this round. */
static uint64_t cursor_ts(struct drain *drain, uint32_t source)
{
	if (source == OTHERS)
		return drain->next < drain->pending.len ? drain->pending.data[drain->next].ts
							: UINT64_MAX;
	if (source >= RING)
		return ring_set_ts(drain->rings, source - RING);
	if (drain->position[source] == drain->end[source])
		return UINT64_MAX;
	return kernel_slot(drain->kernel, source, drain->position[source])->rec.ts;
}

/* Adds a source to the end of the heap's memory, which has room for it. */
static void heap_add(struct drain *drain, uint32_t source)
{
	uint64_t ts = cursor_ts(drain, source);

	if (ts != UINT64_MAX)
		drain->heap.data[drain->heap.len++] =
			(struct drain_cursor){.ts = ts, .source = source};
}

static void heap_build(struct drain *drain)
{
	uint32_t cpus = kernel_cpu_count(drain->kernel);
	uint32_t rings = drain->rings ? ring_set_count(drain->rings) : 0;

	drain->heap.len = 0;
	/* Without memory they are not read in this round. */
	if (!vec_reserve(&drain->heap, (size_t)cpus + 1 + rings))
		rings = 0;
	for (uint32_t cpu = 0; cpu < cpus; cpu++) {
		drain->end[cpu] =
			__atomic_load_n(&kernel_cpu(drain->kernel, cpu)->head, __ATOMIC_ACQUIRE);
		heap_add(drain, cpu);
	}
	heap_add(drain, OTHERS);
	for (uint32_t i = 0; i < rings; i++)
		heap_add(drain, RING + i);
	for (size_t i = drain->heap.len / 2; i > 0; i--)
		heap_down(drain, i - 1);
}

static int deliver(struct drain *drain, struct waffle_rec *rec, enum waffle_source source)
{
	int result = drain->failed ?: drain->callbacks.record(rec, drain->callbacks.arg);

	if (result) {
		if (result != -EINVAL) /* one malformed record does not stop the draining */
			drain->failed = result;
		drain->refused[source]++;
	} else {
		drain->delivered[source]++;
	}
	return result;
}

bool drain_fork_waits(const struct drain *drain)
{
	/* Without room the fork cannot be taken now: only delivering makes room. */
	return drain->bytes.len < TAKEN_BYTES_MAX &&
	       kernel_fork_count(drain->kernel) > drain->forks;
}

/* Whether a round has delivered enough. A forked child runs unarmed until its record is taken. */
static bool merge_ends(const struct drain *drain, uint64_t end_ts)
{
	return drain_fork_waits(drain) || clock_monotonic_ns() >= end_ts;
}

/* Delivers the next record of a source. */
static void source_deliver(struct drain *drain, uint32_t source)
{
	if (source == OTHERS) {
		size_t at = drain->pending.data[drain->next++].at;
		struct waffle_rec *rec = (struct waffle_rec *)(drain->bytes.data + at);

		deliver(drain, rec, record_source(rec->kind));
	} else if (source >= RING) {
		struct waffle_rec *rec = ring_set_take(drain->rings, source - RING);

		if (rec)
			deliver(drain, rec, WAFFLE_SOURCE_SPANS);
	} else {
		struct waffle_rec_switch slot =
			*kernel_slot(drain->kernel, source, drain->position[source]++);

		deliver(drain, &slot.rec, WAFFLE_SOURCE_SCHED);
	}
}

/* Delivers the records before the goal, oldest first. False: the time is up. */
static bool merge(struct drain *drain)
{
	uint64_t end_ts = clock_monotonic_ns() + MERGE_NS;

	for (unsigned count = 1; drain->heap.len && drain->heap.data[0].ts < drain->goal_ts;
	     count++) {
		struct drain_cursor *top = &drain->heap.data[0];

		if (count % MERGE_RECORDS == 0 && merge_ends(drain, end_ts))
			return false;
		source_deliver(drain, top->source);
		top->ts = cursor_ts(drain, top->source);
		if (top->ts == UINT64_MAX)
			*top = drain->heap.data[--drain->heap.len];
		heap_down(drain, 0);
	}
	return true;
}

/* Drops the delivered records from the front of the copies, once this is worth copying the rest. */
static void compact(struct drain *drain)
{
	size_t keep = drain->pending.len - drain->next;
	VEC(uint8_t) bytes = {0};

	if (drain->next < keep)
		return;
	if (!keep) {
		drain->bytes.len = 0;
	} else {
		for (size_t i = 0; i < keep; i++) {
			struct drain_pending *one = &drain->pending.data[drain->next + i];
			size_t len = record_size(drain->bytes.data + one->at,
						 drain->bytes.len - one->at);

			if (!vec_reserve(&bytes, len)) {
				vec_free(&bytes);
				return; /* out of memory: they stay in place */
			}
			memcpy(bytes.data + bytes.len, drain->bytes.data + one->at, len);
			drain->pending.data[i] =
				(struct drain_pending){.ts = one->ts, .at = bytes.len};
			bytes.len += len;
		}
		vec_free(&drain->bytes);
		drain->bytes.data = bytes.data;
		drain->bytes.len = bytes.len;
		drain->bytes.cap = bytes.cap;
	}
	drain->pending.len = keep;
	drain->next = 0;
}

static void loss_report(struct drain *drain, uint32_t source, uint16_t cpu, uint64_t from_ts,
			uint64_t count)
{
	struct waffle_rec_loss loss = {
		.rec = {.ts = clock_monotonic_ns(), .kind = WAFFLE_REC_LOSS, .cpu = cpu},
		.source = source,
		.from_ts = from_ts,
		.count = count,
	};

	drain->failed = drain->callbacks.record(&loss.rec, drain->callbacks.arg);
}

/*
 * Reports, per CPU and source, what was dropped since the last round. The record has the time at
 * which the counters were read rather than the start of the round, since drops may occur during a
 * round. Otherwise the gap would look like a wait.
 */
static void report_losses(struct drain *drain)
{
	uint64_t begin = clock_monotonic_ns();
	uint64_t lost = drain->rings ? ring_set_counts(drain->rings).lost : 0;

	for (uint32_t cpu = 0; cpu < kernel_cpu_count(drain->kernel); cpu++) {
		for (uint32_t source = 0; source < WAFFLE_SOURCE_COUNT; source++) {
			uint64_t *last = &drain->dropped[cpu * WAFFLE_SOURCE_COUNT + source];
			uint64_t dropped = __atomic_load_n(
				&kernel_cpu(drain->kernel, cpu)->dropped[source], __ATOMIC_ACQUIRE);

			if (dropped == *last || drain->failed)
				continue;
			loss_report(drain, source, (uint16_t)cpu, drain->losses_from_ts,
				    dropped - *last);
			*last = dropped;
		}
	}
	if (lost != drain->rings_lost && !drain->failed) {
		loss_report(drain, WAFFLE_SOURCE_SPANS, 0, drain->losses_from_ts,
			    lost - drain->rings_lost);
		drain->rings_lost = lost;
	}
	/* A record gets its timestamp before it is dropped. */
	drain->losses_from_ts = begin - SETTLE_NS;
}

/* Reports, per source, the runs of BPF programs that the kernel skipped since the last look. */
static void report_skipped(struct drain *drain, bool final)
{
	uint64_t begin = clock_monotonic_ns(), counts[WAFFLE_SOURCE_COUNT];

	if (!final && begin - drain->skipped_from_ts < SKIPPED_NS)
		return;
	kernel_skipped(drain->kernel, counts);
	for (uint32_t source = 0; source < WAFFLE_SOURCE_COUNT; source++) {
		if (counts[source] == drain->skipped[source])
			continue;
		if (!drain->failed)
			loss_report(drain, source, 0, drain->skipped_from_ts,
				    counts[source] - drain->skipped[source]);
		drain->skipped[source] = counts[source];
	}
	drain->skipped_from_ts = begin;
}

/* The queue that lags behind most. */
static uint32_t queue_behind(const struct drain *drain)
{
	uint32_t behind = 0;

	for (uint32_t i = 1; i < kernel_ring_count(drain->kernel); i++)
		if (drain->queue_ts[i] < drain->queue_ts[behind])
			behind = i;
	return behind;
}

/*
 * Copies a share of records from each queue. If there is no room, it delivers first. If one queue
 * lags behind and so prevents delivery, it takes more from that queue alone. Returns whether there
 * is more.
 */
static bool queues_take(struct drain *drain)
{
	uint32_t count = kernel_ring_count(drain->kernel), behind = queue_behind(drain);
	bool full = drain->bytes.len >= TAKEN_BYTES_MAX, more = false;
	size_t share = TAKEN_BYTES_MAX / count;
	uint64_t now = clock_monotonic_ns();

	if (full && drain->unfinished)
		return true;
	drain->notice_end_ts = now + NOTICE_NS;
	share = share > SHARE_BYTES_MIN ? share : SHARE_BYTES_MIN;
	for (uint32_t i = 0; i < count; i++) {
		bool empty = false;

		drain->taken_ts = 0;
		if (!full || i == behind)
			empty = kernel_ring_take(drain->kernel, i, share, record_take, drain);
		if (empty)
			drain->queue_ts[i] = now;
		else if (drain->taken_ts > drain->queue_ts[i])
			drain->queue_ts[i] = drain->taken_ts;
		more = more || !empty;
	}
	return more;
}

int drain_round(struct drain *drain, bool final)
{
	bool more = queues_take(drain);

	/* What is older than the goal is in the rings by now. */
	if (drain->rings && !drain->unfinished)
		ring_set_begin_round(drain->rings);
	pending_sort(drain);
	heap_build(drain);
	if (!drain->unfinished)
		drain->goal_ts = final && !more ? UINT64_MAX
						: drain->queue_ts[queue_behind(drain)] - SETTLE_NS;
	if (!drain->failed)
		drain->failed = drain->callbacks.round(drain->goal_ts, drain->callbacks.arg);
	drain->unfinished = !merge(drain);
	if (!drain->unfinished)
		drain->delivered_ts = drain->goal_ts;
	compact(drain);
	for (uint32_t cpu = 0; cpu < kernel_cpu_count(drain->kernel); cpu++)
		__atomic_store_n(&kernel_tail(drain->kernel, cpu)->tail, drain->position[cpu],
				 __ATOMIC_RELEASE);
	report_losses(drain);
	report_skipped(drain, final);
	more = more || drain->unfinished || (final && drain->goal_ts != UINT64_MAX);
	/* After a failure the final round still takes all records, and counts them as lost. */
	return more && (final || !drain->failed) ? 1 : drain->failed;
}

void drain_give_up(struct drain *drain)
{
	drain->failed = drain->failed ?: -ECANCELED;
}

uint64_t drain_delivered_ts(const struct drain *drain)
{
	return drain->delivered_ts;
}

void drain_counts(const struct drain *drain, struct store_counts *counts)
{
	for (uint32_t source = 0; source < WAFFLE_SOURCE_COUNT; source++) {
		counts[source] = (struct store_counts){
			.produced = drain->skipped[source],
			.delivered = drain->delivered[source],
			.lost = drain->refused[source] + drain->skipped[source],
		};
		for (uint32_t cpu = 0; cpu < kernel_cpu_count(drain->kernel); cpu++) {
			counts[source].produced += kernel_cpu(drain->kernel, cpu)->produced[source];
			counts[source].lost += kernel_cpu(drain->kernel, cpu)->dropped[source];
		}
	}
	if (drain->rings) {
		struct ring_set_counts rings = ring_set_counts(drain->rings);

		counts[WAFFLE_SOURCE_SPANS].produced += rings.taken + rings.lost;
		counts[WAFFLE_SOURCE_SPANS].lost += rings.lost;
	}
}
