// SPDX-License-Identifier: Apache-2.0
/*
 * Removes spans and pairs that never end from their tables: their process or thread has ended, or
 * it has left them by longjmp(). For a living thread this is a guess: a coroutine, too, leaves the
 * stack of its span and comes back, and a span may end on another thread. So such a span is removed
 * only if it is old and its table needs the space.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/call.h"
#include "bpf/filter.h"
#include "kernel/kernel_internal.h"
#include "waffle.skel.h"

#define SWEEP_NS 1000000000ull
#define SWEEP_SOON_NS 10000000ull /* between two when a table is full */
#define LEFT_NS 5000000000ull     /* a span that seems to be left is old */
#define BATCH 4096

/* An entry that may be removed. */
struct candidate {
	uint64_t key[2]; /* a span's id, or struct waffle_pair_key */
	uint64_t ts, sp;
	uint32_t tgid, tid;
	uint8_t state, deferred; /* of a span: enum waffle_open_state, enum waffle_deferred_size */
	bool left;               /* its thread has ended or has left it */
};

struct sweep {
	struct kernel *kernel;
	VEC(struct candidate) list;
	uint32_t count;                                /* entries left in the table */
	uint32_t deferred[WAFFLE_DEFERRED_SIZE_COUNT]; /* deferred spans among them */
	uint64_t lost, now;
};

void kernel_forget(struct kernel *kernel, pid_t pid)
{
	/* Without memory its entries stay until their tables need the room. */
	if (kernel->filtered || kernel->calls)
		(void)vec_push(&kernel->ended, (uint32_t)pid);
}

static int pid_compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static bool has_ended(const struct kernel *kernel, uint32_t tgid)
{
	return kernel->ended.len &&
	       bsearch(&tgid, kernel->ended.data, kernel->ended.len, sizeof(tgid), pid_compare);
}

/* Sorts them, without those whose pid a new target has. */
static void ended_prepare(struct kernel *kernel)
{
	int targets = bpf_map__fd(kernel->bpf->maps.targets);
	uint32_t value;
	size_t kept = 0;

	for (size_t i = 0; i < kernel->ended.len; i++)
		if (bpf_map_lookup_elem(targets, &kernel->ended.data[i], &value))
			kernel->ended.data[kept++] = kernel->ended.data[i];
	kernel->ended.len = kept;
	if (kept)
		qsort(kernel->ended.data, kept, sizeof(uint32_t), pid_compare);
}

/* Calls `each` for all entries of a hash map. */
static void map_walk(const struct bpf_map *map,
		     void (*each)(struct sweep *sweep, const void *key, const void *value),
		     struct sweep *sweep)
{
	size_t key_bytes = bpf_map__key_size(map), value_bytes = bpf_map__value_size(map);
	uint32_t place = 0, count;
	char *keys = malloc(BATCH * key_bytes), *values = malloc(BATCH * value_bytes);
	void *from = NULL;
	int result = keys && values ? 0 : -1;

	while (!result) {
		count = BATCH;
		result = bpf_map_lookup_batch(bpf_map__fd(map), from, &place, keys, values, &count,
					      NULL);
		if (result && errno != ENOENT) /* ENOENT: this was the last batch */
			break;
		for (uint32_t i = 0; i < count; i++)
			each(sweep, keys + i * key_bytes, values + i * value_bytes);
		from = &place;
	}
	free(keys);
	free(values);
}

static bool thread_lives(uint32_t tgid, uint32_t tid)
{
	return !syscall(SYS_tgkill, tgid, tid, 0) || errno != ESRCH;
}

static int candidate_by_ts(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return x->ts < y->ts ? -1 : x->ts > y->ts;
}

/* ---- spans ---- */

static void span_delete(struct sweep *sweep, const struct candidate *span)
{
	struct kernel *kernel = sweep->kernel;

	if (bpf_map_delete_elem(bpf_map__fd(kernel->bpf->maps.filter_open), span->key))
		return; /* it has ended meanwhile */
	sweep->count--;
	if (span->state != WAFFLE_OPEN_DEFERRED)
		return;
	sweep->deferred[span->deferred]--;
	bpf_map_delete_elem(bpf_map__fd(deferred_map(kernel, span->deferred)), span->key);
}

static void span_see(struct sweep *sweep, const void *key, const void *value)
{
	const struct waffle_open *open = value;
	struct candidate span = {
		.ts = open->ts,
		.sp = open->sp,
		.tgid = open->tgid,
		.tid = open->tid,
		.state = open->state,
		.deferred = open->deferred < WAFFLE_DEFERRED_SIZE_COUNT ? open->deferred : 0,
	};

	memcpy(span.key, key, sizeof(span.key[0]));
	sweep->count++;
	if (span.state == WAFFLE_OPEN_DEFERRED)
		sweep->deferred[span.deferred]++;
	if (has_ended(sweep->kernel, span.tgid))
		span_delete(sweep, &span);
	else
		(void)vec_push(&sweep->list, span);
}

/* Sorts by thread, and the spans of a thread from the youngest to the oldest. */
static int span_by_thread(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->tgid != y->tgid)
		return x->tgid < y->tgid ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return -candidate_by_ts(a, b);
}

/* A thread has left a span if it begins another one with its stack pointer at the same place or
 * above. */
static void spans_judge(struct sweep *sweep)
{
	uint64_t highest = 0;
	bool lives = true;

	qsort(sweep->list.data, sweep->list.len, sizeof(struct candidate), span_by_thread);
	for (size_t i = 0; i < sweep->list.len; i++) {
		struct candidate *span = &sweep->list.data[i];

		if (!i || span->tgid != span[-1].tgid || span->tid != span[-1].tid) {
			lives = thread_lives(span->tgid, span->tid);
			highest = 0;
		}
		span->left = !lives || span->sp <= highest;
		if (span->sp > highest)
			highest = span->sp;
	}
}

static bool is_crowded(const struct bpf_map *map, uint32_t count)
{
	return count > bpf_map__max_entries(map) / 2;
}

static bool span_is_in_the_way(const struct sweep *sweep, const struct candidate *span)
{
	const struct kernel *kernel = sweep->kernel;

	return span->left && sweep->now - span->ts > LEFT_NS &&
	       (is_crowded(kernel->bpf->maps.filter_open, sweep->count) ||
		(span->state == WAFFLE_OPEN_DEFERRED &&
		 is_crowded(deferred_map(kernel, span->deferred),
			    sweep->deferred[span->deferred])));
}

static bool spans_are_crowded(const struct sweep *sweep)
{
	bool crowded = is_crowded(sweep->kernel->bpf->maps.filter_open, sweep->count);

	for (int i = 0; i < WAFFLE_DEFERRED_SIZE_COUNT; i++)
		crowded |= is_crowded(deferred_map(sweep->kernel, i), sweep->deferred[i]);
	return crowded;
}

static void spans_sweep(struct sweep *sweep)
{
	map_walk(sweep->kernel->bpf->maps.filter_open, span_see, sweep);
	if (!spans_are_crowded(sweep))
		return;
	spans_judge(sweep);
	qsort(sweep->list.data, sweep->list.len, sizeof(struct candidate), candidate_by_ts);
	for (size_t i = 0; i < sweep->list.len; i++) {
		const struct candidate *span = &sweep->list.data[i];
		uint32_t before = sweep->count;

		if (!span_is_in_the_way(sweep, span))
			continue;
		span_delete(sweep, span);
		if (sweep->count < before && span->state != WAFFLE_OPEN_REJECTED)
			sweep->lost++; /* its end, or all of it */
	}
}

static void buffers_sweep(struct kernel *kernel)
{
	int fd = bpf_map__fd(kernel->bpf->maps.filter_buffers), more;
	uint64_t key, next;

	/* Get the next key before deleting the element: otherwise the walk starts again. */
	more = bpf_map_get_next_key(fd, NULL, &next);
	while (!more) {
		key = next;
		more = bpf_map_get_next_key(fd, &key, &next);
		if (has_ended(kernel, (uint32_t)(key >> 32)))
			bpf_map_delete_elem(fd, &key);
	}
}

/* ---- pairs ---- */

static void pair_delete(struct sweep *sweep, const uint64_t key[2])
{
	const struct waffle_bpf *bpf = sweep->kernel->bpf;

	if (!bpf_map_delete_elem(bpf_map__fd(bpf->maps.call_pairs), key))
		sweep->count--;
	if (sweep->kernel->filtered)
		bpf_map_delete_elem(bpf_map__fd(bpf->maps.call_pairs_deferred), key);
}

static void pair_see(struct sweep *sweep, const void *key, const void *value)
{
	const struct waffle_pair_key *of = key;
	const struct waffle_pair *pair = value;
	struct candidate entry = {.ts = pair->ts, .tgid = of->tgid};

	memcpy(entry.key, key, sizeof(entry.key));
	sweep->count++;
	if (has_ended(sweep->kernel, of->tgid))
		pair_delete(sweep, entry.key);
	else if (pair->id) /* not a thread's own entry */
		(void)vec_push(&sweep->list, entry);
}

/* Whether a map with this many entries is nearly full. */
static bool is_nearly_full(const struct bpf_map *map, uint32_t count)
{
	return count > bpf_map__max_entries(map) / 8 * 7;
}

/* A pair may stay open as long as its process lives, so it is unknown which pairs never end. The
 * oldest ones are the most likely. */
static void pairs_sweep(struct sweep *sweep)
{
	const struct bpf_map *map = sweep->kernel->bpf->maps.call_pairs;
	uint32_t before;

	map_walk(map, pair_see, sweep);
	if (!is_nearly_full(map, sweep->count))
		return;
	qsort(sweep->list.data, sweep->list.len, sizeof(struct candidate), candidate_by_ts);
	for (size_t i = 0; i < sweep->list.len && is_crowded(map, sweep->count); i++) {
		before = sweep->count;
		pair_delete(sweep, sweep->list.data[i].key);
		sweep->lost += before - sweep->count;
	}
}

static void deferred_pair_see(struct sweep *sweep, const void *key, const void *value)
{
	const struct waffle_pair_key *of = key;
	const struct waffle_call_slot *slot = value;
	struct candidate entry = {.ts = slot->deferred.ts, .tgid = of->tgid};

	memcpy(entry.key, key, sizeof(entry.key));
	sweep->count++;
	(void)vec_push(&sweep->list, entry);
}

static void deferred_pairs_sweep(struct sweep *sweep)
{
	const struct bpf_map *map = sweep->kernel->bpf->maps.call_pairs_deferred;

	map_walk(map, deferred_pair_see, sweep);
	if (!is_nearly_full(map, sweep->count))
		return;
	qsort(sweep->list.data, sweep->list.len, sizeof(struct candidate), candidate_by_ts);
	for (size_t i = 0; i < sweep->list.len && is_crowded(map, sweep->count); i++) {
		if (bpf_map_delete_elem(bpf_map__fd(map), sweep->list.data[i].key))
			continue;
		bpf_map_delete_elem(bpf_map__fd(sweep->kernel->bpf->maps.call_pairs),
				    sweep->list.data[i].key);
		sweep->count--;
		sweep->lost++;
	}
}

/* ---- all ---- */

static void table_sweep(struct kernel *kernel, void (*sweeps)(struct sweep *sweep))
{
	struct sweep sweep = {.kernel = kernel, .now = kernel->sweep_ts};

	sweeps(&sweep);
	vec_free(&sweep.list);
	/* Counted like a record that the BPF programs could not emit. */
	__atomic_fetch_add(&kernel->cpu_memory[0].produced[WAFFLE_SOURCE_SPANS], sweep.lost,
			   __ATOMIC_RELAXED);
	__atomic_fetch_add(&kernel->cpu_memory[0].dropped[WAFFLE_SOURCE_SPANS], sweep.lost,
			   __ATOMIC_RELEASE);
}

void kernel_sweep(struct kernel *kernel, uint64_t now_ns)
{
	bool wanted;

	if (!kernel->filtered && !kernel->calls)
		return;
	wanted = __atomic_load_n(&kernel->bpf->bss->sweep_wanted, __ATOMIC_RELAXED);
	if (now_ns - kernel->sweep_ts < (wanted ? SWEEP_SOON_NS : SWEEP_NS))
		return;
	kernel->sweep_ts = now_ns;
	kernel->bpf->bss->sweep_wanted = false;
	ended_prepare(kernel);
	if (kernel->filtered) {
		table_sweep(kernel, spans_sweep);
		buffers_sweep(kernel);
	}
	if (kernel->calls)
		table_sweep(kernel, pairs_sweep);
	if (kernel->calls && kernel->filtered)
		table_sweep(kernel, deferred_pairs_sweep);
	kernel->ended.len = 0;
}
