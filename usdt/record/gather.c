// SPDX-License-Identifier: Apache-2.0
#include "usdt/record/gather.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/vec.h"

/* Limit of what is copied and not delivered yet. Beyond it records stay in the rings, which then
 * count what does not fit. */
#define TAKEN_BYTES_MAX (256u << 20)
/* One of so many rounds asks which threads are gone. */
#define ALIVE_ROUNDS 8
/* In `kind` of an own record: a thread's name follows. No ring can contain these. */
#define GATHER_NAME 0x7fffu
#define GATHER_END 0x7ffeu /* the thread has ended */

struct gather_pending {
	uint64_t ticks;
	size_t at; /* offset in `bytes` */
	uint32_t tid;
};

struct ring_gather {
	VEC(unsigned char) bytes, spare; /* compact() swaps them */
	VEC(struct gather_pending) pending;
	struct gather_counts counts;
	uint64_t without_before; /* what rings_without() returned when the recording began */
	uint64_t skipped;
	unsigned rounds;
	uint64_t word[RING_RECORD_MAX / 8]; /* the record that is being taken */
};

struct ring_gather *gather_new(void)
{
	return calloc(1, sizeof(struct ring_gather));
}

void gather_free(struct ring_gather *gather)
{
	if (!gather)
		return;
	vec_free(&gather->bytes);
	vec_free(&gather->spare);
	vec_free(&gather->pending);
	free(gather);
}

static bool put(struct ring_gather *gather, const struct ring_record *record, uint32_t tid)
{
	size_t at = gather->bytes.len;

	if (!vec_reserve(&gather->bytes, record->bytes) || !vec_reserve(&gather->pending, 1))
		return false;
	memcpy(gather->bytes.data + at, record, record->bytes);
	gather->bytes.len += record->bytes;
	gather->pending.data[gather->pending.len++] =
		(struct gather_pending){.ticks = record->ticks, .at = at, .tid = tid};
	return true;
}

/* Only other threads get the ring of a thread, when it has ended. */
static void put_end(struct ring_gather *gather, uint32_t tid, uint64_t ticks)
{
	struct ring_record end = {.bytes = sizeof(end), .kind = GATHER_END, .ticks = ticks};

	/* Without memory it is not told, and what is known of the thread stays. */
	(void)put(gather, &end, tid);
}

/* The last name of a thread that still lives. False: it can't be read. */
static bool comm_read(uint32_t tid, char comm[RING_COMM_BYTES])
{
	char path[64], text[RING_COMM_BYTES + 1] = "";
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%u/comm", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (len <= 0)
		return false;
	text[strcspn(text, "\n")] = '\0';
	memset(comm, 0, RING_COMM_BYTES);
	memcpy(comm, text, strnlen(text, RING_COMM_BYTES - 1));
	return true;
}

/* The records that follow are another thread's. */
static void thread_set(struct ring_gather *gather, struct rings_slot *slot, uint32_t tid,
		       uint64_t ticks)
{
	if (slot->named)
		put_end(gather, slot->tid, ticks);
	slot->tid = tid;
	memset(slot->comm, 0, sizeof(slot->comm));
	slot->named = false;
}

/* The same, as the thread says itself. */
static void thread_read(struct ring_gather *gather, struct rings_slot *slot,
			const struct ring_record *record)
{
	struct ring_thread thread;

	if (record->bytes != sizeof(*record) + sizeof(thread))
		return;
	memcpy(&thread, record + 1, sizeof(thread));
	thread_set(gather, slot, (uint32_t)thread.tid, record->ticks);
	memcpy(slot->comm, thread.comm, sizeof(slot->comm));
	slot->comm[sizeof(slot->comm) - 1] = '\0';
}

/* Follows whose records a ring has. `record` is the one that was just read. */
static void slot_follow(struct ring_gather *gather, struct rings_slot *slot,
			const struct ring_record *record)
{
	uint32_t tid;

	/* What the thread said of itself may have been overwritten. */
	if (ring_overtaken(&slot->ring, &tid) && tid && tid != slot->tid) {
		thread_set(gather, slot, tid, record->ticks);
		(void)comm_read(tid, slot->comm);
	}
	if (record->kind == RING_THREAD)
		thread_read(gather, slot, record);
}

/* What is in a ring says whose records follow, so it has to be read. */
static void slot_empty(struct ring_gather *gather, struct rings_slot *slot)
{
	struct ring_record *record = (struct ring_record *)gather->word;
	enum ring_result result;

	while ((result = ring_read(&slot->ring, record)) == RING_RECORD)
		slot_follow(gather, slot, record);
	if (result == RING_BROKEN)
		ring_drop(&slot->ring);
}

void gather_begin(struct ring_gather *gather)
{
	for (struct rings_slot *slot = rings_first(RINGS_COLLECTOR); slot; slot = slot->next) {
		slot_empty(gather, slot);
		slot->lost_before = ring_lost(&slot->ring);
		slot->named = false;
	}
	gather->without_before = rings_without();
}

static void put_name(struct ring_gather *gather, const char *comm, uint32_t tid, uint64_t ticks)
{
	struct {
		struct ring_record record;
		char comm[RING_COMM_BYTES];
	} name = {{.bytes = sizeof(name), .kind = GATHER_NAME, .ticks = ticks}, ""};

	memcpy(name.comm, comm, sizeof(name.comm));
	name.comm[sizeof(name.comm) - 1] = '\0';
	if (put(gather, &name.record, tid)) /* out of memory: the thread has no name */
		gather->counts.taken++;
}

/* Adds a record that was read into the place behind all others, where nothing may be put before. */
static bool put_in_place(struct ring_gather *gather, const struct ring_record *record, uint32_t tid)
{
	if (!vec_reserve(&gather->pending, 1))
		return false;
	gather->pending.data[gather->pending.len++] = (struct gather_pending){
		.ticks = record->ticks, .at = gather->bytes.len, .tid = tid};
	gather->bytes.len += record->bytes;
	return true;
}

/* Adds a record behind what is to be known before it. */
static bool put_after(struct ring_gather *gather, struct rings_slot *slot,
		      const struct ring_record *record)
{
	struct ring_record *copy = (struct ring_record *)gather->word;

	memmove(copy, record, record->bytes);
	slot_follow(gather, slot, copy);
	if (copy->kind == RING_THREAD)
		return true;
	if (!slot->named)
		put_name(gather, slot->comm, slot->tid, copy->ticks);
	slot->named = true;
	gather->counts.taken++;
	return put(gather, copy, slot->tid);
}

/* Takes all records of a ring. Most are read to the place where they stay. */
static void slot_take(struct ring_gather *gather, struct rings_slot *slot)
{
	while (gather->bytes.len < TAKEN_BYTES_MAX) {
		bool placed = vec_reserve(&gather->bytes, RING_RECORD_MAX), done;
		struct ring_record *record =
			placed ? (struct ring_record *)(gather->bytes.data + gather->bytes.len)
			       : (struct ring_record *)gather->word;
		enum ring_result result = ring_read(&slot->ring, record);

		if (result == RING_EMPTY)
			return;
		if (result == RING_BROKEN) {
			ring_drop(&slot->ring);
			gather->skipped++;
			return; /* it may stay so: once a round is enough */
		}
		if (placed && slot->named && record->kind != RING_THREAD && !slot->ring.overtaken) {
			done = put_in_place(gather, record, slot->tid);
			gather->counts.taken++;
		} else {
			done = put_after(gather, slot, record);
		}
		if (!done) { /* out of memory */
			gather->counts.taken--;
			gather->skipped++;
		}
	}
}

static void rings_take(struct ring_gather *gather)
{
	bool reclaim = gather->rounds++ % ALIVE_ROUNDS == 0;
	uint64_t lost = 0;

	gather->counts.fullest = 0;
	for (struct rings_slot *slot = rings_first(RINGS_COLLECTOR); slot; slot = slot->next) {
		uint64_t tail = slot->ring.tail, percent;

		slot_take(gather, slot);
		percent = (slot->ring.tail - tail) * 100 / slot->ring.bytes;
		if (percent > gather->counts.fullest)
			gather->counts.fullest = percent;
		lost += ring_lost(&slot->ring) - slot->lost_before;
		if (reclaim)
			rings_reclaim(slot);
	}
	gather->counts.lost = lost + gather->skipped + rings_without() - gather->without_before;
}

static int pending_compare(const void *a, const void *b)
{
	const struct gather_pending *x = a, *y = b;

	if (x->ticks != y->ticks)
		return x->ticks < y->ticks ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static void pending_sort(struct ring_gather *gather)
{
	size_t len = gather->pending.len;

	for (size_t i = 1; i < len; i++) {
		if (gather->pending.data[i - 1].ticks <= gather->pending.data[i].ticks)
			continue;
		/* Some sorted runs, one a ring: merge sort finds them. */
		qsort(gather->pending.data, len, sizeof(*gather->pending.data), pending_compare);
		return;
	}
}

/* Moves the rest to the front. It is what came during one round. */
static void compact(struct ring_gather *gather, size_t done)
{
	size_t rest = gather->pending.len - done;
	unsigned char *data;
	size_t cap;

	for (size_t i = 0; i < rest; i++) {
		struct gather_pending *one = &gather->pending.data[done + i];
		struct ring_record *record = (struct ring_record *)(gather->bytes.data + one->at);

		if (!vec_reserve(&gather->spare, record->bytes)) {
			gather->skipped++;
			gather->counts.taken--;
			one->at = SIZE_MAX;
			continue;
		}
		memcpy(gather->spare.data + gather->spare.len, record, record->bytes);
		one->at = gather->spare.len;
		gather->spare.len += record->bytes;
	}
	gather->pending.len = 0;
	for (size_t i = 0; i < rest; i++)
		if (gather->pending.data[done + i].at != SIZE_MAX)
			gather->pending.data[gather->pending.len++] =
				gather->pending.data[done + i];
	data = gather->bytes.data;
	cap = gather->bytes.cap;
	gather->bytes.data = gather->spare.data;
	gather->bytes.len = gather->spare.len;
	gather->bytes.cap = gather->spare.cap;
	gather->spare.data = data;
	gather->spare.len = 0;
	gather->spare.cap = cap;
}

void gather_round(struct ring_gather *gather, uint64_t goal,
		  void (*deliver)(const struct gather_item *item, void *arg), void *arg)
{
	size_t done = 0;

	rings_take(gather);
	pending_sort(gather);
	for (; done < gather->pending.len && gather->pending.data[done].ticks < goal; done++) {
		const struct gather_pending *one = &gather->pending.data[done];
		struct ring_record *record = (struct ring_record *)(gather->bytes.data + one->at);
		struct gather_item item = {.tid = one->tid, .record = record, .ticks = one->ticks};

		if (record->kind == GATHER_NAME)
			item.comm = (const char *)(record + 1);
		item.ended = record->kind == GATHER_END;
		deliver(&item, arg);
	}
	if (done)
		compact(gather, done);
}

void gather_names(struct ring_gather *gather, uint64_t ticks)
{
	for (struct rings_slot *slot = rings_first(RINGS_COLLECTOR); slot; slot = slot->next) {
		char comm[RING_COMM_BYTES];

		if (!slot->named || __atomic_load_n(&slot->owner, __ATOMIC_ACQUIRE) != slot->tid ||
		    !comm_read(slot->tid, comm) || !memcmp(comm, slot->comm, sizeof(comm)))
			continue;
		memcpy(slot->comm, comm, sizeof(comm));
		put_name(gather, slot->comm, slot->tid, ticks);
	}
}

struct gather_counts gather_counts(const struct ring_gather *gather)
{
	return gather->counts;
}
