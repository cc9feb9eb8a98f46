// SPDX-License-Identifier: Apache-2.0
#include "capture/transport/ring_set.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "capture/transport/ring_process_internal.h"
#include "capture/transport/ring_reader_internal.h"
#include "target/process/process_tids.h"
#include "usdt/ring/ring.h"
#include "usdt/ring/ticks.h"
#include "util/clock.h"
#include "util/map.h"
#include "util/vec.h"
#include "waffle/abi.h"

/* A process may make as many rings as it likes. Each needs a mapping, of which we get 65,530, and a
 * descriptor. Most of both are for other things. */
#define RINGS_MAX 8192
#define FILES_PART 4 /* the part of the descriptors that rings may use */
/* A thread that finds its ring full needs more time than this. So more losses are nonsense. */
#define LOST_NS 4
/* The line between two pairs of clocks is only as good as they are far apart. */
#define PAIR_NS 1000000ull
/* The kernel gives no tid again within this time, and no record waits longer for its turn. */
#define EXIT_NS 2000000000ull

/* Threads that have a ring one after the other and write nothing. More are nonsense, which would
 * keep the tracer busy. */
#define THREADS_MAX 4096

struct ring_source {
	struct ring_reader reader;
	uint64_t address;       /* in the process */
	uint32_t process;       /* index in `processes` */
	uint32_t seen_tid, tid; /* of the thread whose records follow; tid 0: unknown */
	uint64_t limit;         /* records of this round end here */
	uint64_t lost;          /* ring_reader_lost() at the last round */
	uint64_t ts;            /* of the record that was read last */
	uint32_t threads;       /* RING_THREAD records since the last other one */
	bool done;              /* given up, or the capture's end was reached */
	bool frozen;            /* the process has ended: `limit` is the end of its records */
	const struct ring_record *record; /* the next one; NULL: not read yet */
};

/* A thread that has ended. */
struct ring_exit {
	uint64_t ts;
	pid_t pid;
	uint32_t tid;
};

struct ring_set {
	struct ring_set_options options;
	struct ring_mount mount;
	struct ticks_map ticks;
	uint64_t now_ns; /* at the begin of the round */
	/* Of the capture. Before it nothing is armed. But a ring may have records of tracks that
	 * are older than its reader. */
	uint64_t start_ts, end_ts;
	uint32_t session; /* ring_shared.reader */
	VEC(struct ring_process) processes;
	VEC(struct ring_source) sources;
	VEC(struct ring_exit) exits; /* in the order of time */
	struct ring_set_counts counts;
	uint32_t filled;
	bool unwanted; /* the record that was taken last */
	uint64_t made[(sizeof(struct waffle_rec_track_hit) + WAFFLE_FRAME_MAX) / 8 + 1];
};

int ring_set_open(struct ring_set **set, const struct ring_set_options *options, struct error *err)
{
	struct ring_set *made = calloc(1, sizeof(*made));
	int result;

	*set = NULL;
	if (!made)
		return error_set(err, ENOMEM, "out of memory");
	made->options = *options;
	made->start_ts = clock_monotonic_ns();
	made->end_ts = UINT64_MAX;
	made->session = (uint32_t)getpid();
	result = ring_mount_open(&made->mount);
	if (result) {
		ring_set_close(made);
		return error_set(err, -result, "reading rings: %s", strerror(-result));
	}
	ticks_map_add(&made->ticks, ticks_pair_take(TICKS_COUNTER));
	*set = made;
	return 0;
}

bool ring_set_may_map(const struct ring_set *set)
{
	return ring_mount_may_map(&set->mount);
}

static void source_free(struct ring_set *set, struct ring_source *source)
{
	/* Whatever is there: the process maps the same memory. */
	__atomic_store_n(&source->reader.shared->reader, 0, __ATOMIC_RELEASE);
	set->processes.data[source->process].rings--;
	ring_reader_close(&source->reader);
}

void ring_set_close(struct ring_set *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < set->sources.len; i++)
		source_free(set, &set->sources.data[i]);
	for (size_t i = 0; i < set->processes.len; i++)
		ring_process_free(&set->processes.data[i]);
	vec_free(&set->sources);
	vec_free(&set->exits);
	vec_free(&set->processes);
	ring_mount_close(&set->mount);
	free(set);
}

/* ---- processes and threads ---- */

static int process_find_at(const struct ring_set *set, pid_t pid)
{
	for (size_t i = 0; i < set->processes.len; i++)
		if (set->processes.data[i].pid == pid && !set->processes.data[i].ended)
			return (int)i;
	return -1;
}

/* The number of a process, which is added if it is new. -1: out of memory. */
static int process_get(struct ring_set *set, pid_t pid)
{
	int at = process_find_at(set, pid);

	for (size_t i = 0; at < 0 && i < set->processes.len; i++) {
		struct ring_process *old = &set->processes.data[i];
		uint64_t taken = old->forgotten ? 0 : old->taken;

		if (!old->ended || old->rings || (!old->forgotten && old->pid != pid))
			continue;
		ring_process_free(old);
		*old = (struct ring_process){.pid = pid, .taken = taken, .last_at = MAP_NONE};
		at = (int)i;
	}
	if (at >= 0)
		return at;
	if (!vec_push(&set->processes, (struct ring_process){.pid = pid, .last_at = MAP_NONE}))
		return -1;
	return (int)set->processes.len - 1;
}

void ring_set_thread(struct ring_set *set, pid_t pid, uint32_t seen_tid, uint32_t tid)
{
	int at = process_get(set, pid);

	if (at >= 0)
		ring_process_thread_set(&set->processes.data[at], seen_tid, tid);
}

void ring_set_thread_ended(struct ring_set *set, pid_t pid, uint32_t tid)
{
	struct ring_exit end = {.pid = pid, .tid = tid, .ts = clock_monotonic_ns()};

	if (process_find_at(set, pid) >= 0)
		(void)vec_push(&set->exits, end);
}

static void thread_forget(struct ring_set *set, const struct ring_exit *end)
{
	int at = process_find_at(set, end->pid);

	if (at < 0)
		return;
	ring_process_thread_ended(&set->processes.data[at], end->tid);
	for (size_t i = 0; i < set->sources.len; i++)
		if (set->sources.data[i].process == (uint32_t)at &&
		    set->sources.data[i].tid == end->tid)
			set->sources.data[i].tid = 0;
}

/* Forgets the threads that ended some time ago. */
static void threads_forget(struct ring_set *set)
{
	size_t past = 0;

	while (past < set->exits.len && set->exits.data[past].ts + EXIT_NS <= set->now_ns)
		thread_forget(set, &set->exits.data[past++]);
	if (!past)
		return;
	set->exits.len -= past;
	memmove(set->exits.data, set->exits.data + past, set->exits.len * sizeof(*set->exits.data));
}

void ring_set_mapped(struct ring_set *set, pid_t pid, uint64_t start, uint64_t end, uint64_t ts)
{
	int at = process_get(set, pid);

	if (at >= 0)
		ring_process_mapped(&set->processes.data[at], start, end, ts);
}

void ring_set_site(struct ring_set *set, pid_t pid, uint64_t probe, uint32_t site)
{
	int at = process_get(set, pid);

	if (at >= 0)
		ring_process_site_set(&set->processes.data[at], probe, site);
}

/* The site of a probe at the time `ts` of the current record. */
static uint32_t process_site(struct ring_set *set, struct ring_process *process, uint64_t ts,
			     uint64_t probe)
{
	uint32_t site;

	if (ring_process_site(process, ts, probe, &site))
		return site;
	if (!ring_process_may_search(process, set->now_ns))
		return WAFFLE_SITE_UNKNOWN;
	site = set->options.site(ts, process->pid, probe, set->options.arg);
	if (site != WAFFLE_SITE_UNKNOWN)
		ring_process_site_set(process, probe, site);
	return site;
}

/*
 * The thread whose records follow in a ring. 0: unknown. It is looked up only when its first record
 * is delivered, since by then the kernel's message of the thread has arrived (ring_set_thread()).
 */
static uint32_t source_tid(struct ring_set *set, struct ring_source *source)
{
	struct ring_process *process = &set->processes.data[source->process];

	if (!source->tid)
		source->tid = ring_process_tid(process, source->seen_tid, set->now_ns);
	return source->tid;
}

void ring_set_ended(struct ring_set *set, pid_t pid)
{
	int at = process_find_at(set, pid);

	if (at >= 0)
		set->processes.data[at].ended = true;
}

void ring_set_forget(struct ring_set *set, pid_t pid)
{
	ring_set_ended(set, pid);
	for (size_t i = 0; i < set->processes.len; i++)
		if (set->processes.data[i].pid == pid)
			set->processes.data[i].forgotten = true;
}

uint64_t ring_set_taken(const struct ring_set *set, pid_t pid)
{
	uint64_t taken = 0;

	for (size_t i = 0; i < set->processes.len; i++)
		if (set->processes.data[i].pid == pid)
			taken += set->processes.data[i].taken;
	return taken;
}

/* ---- rings ---- */

static bool is_known(const struct ring_set *set, uint64_t ino)
{
	for (size_t i = 0; i < set->sources.len; i++)
		if (set->sources.data[i].reader.memory.ino == ino)
			return true;
	return false;
}

bool ring_set_has(const struct ring_set *set, pid_t pid, uint64_t address)
{
	int process = process_find_at(set, pid);

	for (size_t i = 0; process >= 0 && i < set->sources.len; i++)
		if (set->sources.data[i].address == address &&
		    set->sources.data[i].process == (uint32_t)process)
			return true;
	return false;
}

/* How many rings there may be. A process may have as many as are left for all others. */
static size_t rings_max(void)
{
	size_t max = RINGS_MAX;
	struct rlimit files;

	if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur / FILES_PART < max)
		max = (size_t)files.rlim_cur / FILES_PART;
	return max;
}

static bool has_room(const struct ring_set *set, const struct ring_process *process)
{
	size_t max = rings_max(), count = set->sources.len;

	return count < max && process->rings < max - count;
}

static int source_open(struct ring_set *set, struct ring_source *source, bool taken_over)
{
	pid_t pid = set->processes.data[source->process].pid;

	if (is_known(set, source->reader.memory.ino))
		return -EEXIST;
	if (source->reader.clock == TICKS_NS && process_has_other_time(pid))
		return -EACCES;
	source->lost = ring_reader_lost(&source->reader);
	if (taken_over)
		ring_reader_drop(&source->reader);
	source->limit = source->reader.tail;
	source->seen_tid = __atomic_load_n(&source->reader.shared->tid, __ATOMIC_RELAXED);
	return 0;
}

int ring_set_add(struct ring_set *set, pid_t pid, uint64_t address, uint64_t bytes, bool taken_over)
{
	struct ring_source source = {.address = address, .ts = set->start_ts};
	int process = process_get(set, pid), result;

	if (process < 0 || !vec_reserve(&set->sources, 1))
		return -ENOMEM;
	if (!has_room(set, &set->processes.data[process]))
		return -ENOSPC;
	result = ring_reader_open(&source.reader, &set->mount, pid, address, bytes);
	if (result)
		return result;
	source.process = (uint32_t)process;
	result = source_open(set, &source, taken_over);
	if (result) {
		ring_reader_close(&source.reader);
		return result == -EEXIST ? 0 : result;
	}
	set->processes.data[process].rings++;
	set->sources.data[set->sources.len++] = source;
	/* The thread writes from now on. */
	__atomic_store_n(&source.reader.shared->overwrite, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&source.reader.shared->reader, set->session, __ATOMIC_RELEASE);
	return 0;
}

/* Gives up a ring that contains nonsense. It stays mapped, so that it is not added again. */
static void source_give_up(struct ring_set *set, struct ring_source *source)
{
	source->done = true;
	source->record = NULL;
	set->counts.lost++;
	__atomic_store_n(&source->reader.shared->reader, 0, __ATOMIC_RELEASE);
}

/* ---- records ---- */

static void pair_add(struct ring_set *set)
{
	struct ticks_map *ticks = &set->ticks;
	struct ticks_pair pair = ticks_pair_take(TICKS_COUNTER);

	if (ticks->count >= 2 && pair.ns - ticks->pairs[ticks->count - 2].ns < PAIR_NS)
		ticks->count--;
	ticks_map_add(ticks, pair);
	set->now_ns = pair.ns;
}

/* Counts what the thread found no room for since a time before the last round. */
static void source_losses(struct ring_set *set, struct ring_source *source, uint64_t since_ns)
{
	uint64_t lost = ring_reader_lost(&source->reader), count = lost - source->lost;

	source->lost = lost;
	/* We may have been preempted meanwhile, so the time is read after the number. */
	if (count && count > (clock_monotonic_ns() - since_ns) / LOST_NS)
		source_give_up(set, source);
	else
		set->counts.lost += count;
}

/* The part of the ring that was written since the last round, in 1/256. */
static uint32_t source_filled(const struct ring_source *source, uint64_t head)
{
	uint64_t bytes = head - source->limit;

	return bytes < source->reader.bytes ? (uint32_t)(bytes * 256 / source->reader.bytes) : 256;
}

/* Whether a ring has records that were not delivered. */
static bool source_is_left(const struct ring_source *source)
{
	return !source->done &&
	       (source->record || (int64_t)(source->limit - source->reader.tail) > 0);
}

void ring_set_begin_round(struct ring_set *set)
{
	uint64_t before = set->now_ns;

	pair_add(set);
	threads_forget(set);
	set->filled = set->sources.len != 0;
	for (size_t i = set->sources.len; i > 0; i--) {
		struct ring_source *source = &set->sources.data[i - 1];
		bool ended = set->processes.data[source->process].ended;
		uint64_t head = ring_reader_head(&source->reader);

		if (!source->done) {
			uint32_t filled = source_filled(source, head);

			set->filled = filled > set->filled ? filled : set->filled;
			source_losses(set, source, before);
		}
		/* The limit of the last round may be more than the ring has by now, or ever had. */
		if (!source->done &&
		    (head % 8 || head - source->reader.tail > source->reader.bytes))
			source_give_up(set, source);
		/* Whoever shares the memory may write on when the process is gone: for nobody. */
		if (!source->frozen)
			source->limit = head;
		source->frozen = ended;
		if (!ended || source_is_left(source))
			continue;
		source_free(set, source);
		*source = set->sources.data[--set->sources.len];
	}
}

uint32_t ring_set_count(const struct ring_set *set)
{
	return (uint32_t)set->sources.len;
}

void ring_set_finish(struct ring_set *set, uint64_t end_ts)
{
	set->end_ts = end_ts;
}

/* The time of a record. It is not trusted: a record is not older than the one before it, and not
 * younger than now. */
static uint64_t source_ns(const struct ring_set *set, const struct ring_source *source,
			  uint64_t ticks)
{
	uint64_t ts =
		source->reader.clock == TICKS_COUNTER ? ticks_map_ns(&set->ticks, ticks) : ticks;

	ts = ts > set->now_ns ? set->now_ns : ts;
	return ts > source->ts ? ts : source->ts;
}

/* A ring's record of who writes what follows. False: nonsense. */
static bool thread_follow(struct ring_source *source, const struct ring_record *record)
{
	const struct ring_thread *thread = (const struct ring_thread *)(record + 1);

	if (record->bytes < sizeof(*record) + sizeof(*thread) || ++source->threads > THREADS_MAX)
		return false;
	source->seen_tid = (uint32_t)thread->tid;
	source->tid = 0;
	return true;
}

/* Reads the next record of this round. False: there is none. */
static bool source_load(struct ring_set *set, struct ring_source *source)
{
	while (!source->record) {
		const struct ring_record *record;
		enum ring_result result;

		if (source->done)
			return false;
		result = ring_reader_next(&source->reader, source->limit, &record);
		if (result == RING_EMPTY)
			return false;
		if (result == RING_BROKEN ||
		    (record->kind == RING_THREAD && !thread_follow(source, record))) {
			source_give_up(set, source);
			return false;
		}
		if (record->kind == RING_THREAD)
			continue;
		source->threads = 0;
		source->record = record;
		source->ts = source_ns(set, source, record->ticks);
	}
	if (source->ts <= set->end_ts)
		return true;
	source->done = true;
	source->record = NULL;
	return false;
}

uint64_t ring_set_ts(struct ring_set *set, uint32_t ring)
{
	struct ring_source *source = &set->sources.data[ring];

	return source_load(set, source) ? source->ts : UINT64_MAX;
}

static struct waffle_rec *made_if_wanted(struct ring_set *set, struct waffle_rec *made,
					 uint32_t site)
{
	set->unwanted = site == RING_SITE_UNWANTED;
	return site == WAFFLE_SITE_UNKNOWN || set->unwanted ? NULL : made;
}

static struct waffle_rec *hit_make(struct ring_set *set, struct ring_process *process,
				   struct waffle_rec rec, const struct ring_record *record)
{
	const uint64_t *words = (const uint64_t *)(record + 1);
	struct waffle_rec_hit *hit = (struct waffle_rec_hit *)set->made;
	size_t bytes = record->bytes - sizeof(*record);

	if (bytes < 8 + sizeof(struct waffle_frame) || bytes > 8 + WAFFLE_FRAME_MAX)
		return NULL;
	rec.kind = WAFFLE_REC_HIT;
	*hit = (struct waffle_rec_hit){.rec = rec,
				       .tgid = (uint32_t)process->pid,
				       .site = process_site(set, process, rec.ts, words[0]),
				       .frame_bytes = (uint32_t)bytes - 8};
	memcpy(hit + 1, words + 1, bytes - 8);
	return made_if_wanted(set, &hit->rec, hit->site);
}

static struct waffle_rec *end_make(struct ring_set *set, struct ring_process *process,
				   struct waffle_rec rec, const struct ring_record *record)
{
	const uint64_t *words = (const uint64_t *)(record + 1);
	struct waffle_rec_span_end *end = (struct waffle_rec_span_end *)set->made;

	if (record->bytes != sizeof(*record) + 16)
		return NULL;
	rec.kind = WAFFLE_REC_SPAN_END;
	*end = (struct waffle_rec_span_end){.rec = rec,
					    .tgid = (uint32_t)process->pid,
					    .span_id = words[0],
					    .site = process_site(set, process, rec.ts, words[1]),
					    .probe_addr = words[1]};
	return made_if_wanted(set, &end->rec, end->site);
}

/* Words of a RING_TRACK_HIT in front of its frame, in bytes. */
#define TRACK_HEAD 32

static struct waffle_rec *track_hit_make(struct ring_set *set, struct ring_process *process,
					 struct waffle_rec rec, const struct ring_record *record)
{
	const uint64_t *words = (const uint64_t *)(record + 1);
	struct waffle_rec_track_hit *hit = (struct waffle_rec_track_hit *)set->made;
	size_t bytes = record->bytes - sizeof(*record);

	if (bytes < TRACK_HEAD + sizeof(struct waffle_frame) ||
	    bytes > TRACK_HEAD + WAFFLE_FRAME_MAX)
		return NULL;
	rec.kind = WAFFLE_REC_TRACK_HIT;
	*hit = (struct waffle_rec_track_hit){
		.rec = rec,
		.tgid = (uint32_t)process->pid,
		.site = process_site(set, process, rec.ts, words[0]),
		.frame_bytes = (uint32_t)bytes - TRACK_HEAD,
		.track = (uint32_t)words[1],
		.start_ts = words[2],
		.end_ts = words[3],
	};
	memcpy(hit + 1, words + TRACK_HEAD / 8, bytes - TRACK_HEAD);
	return made_if_wanted(set, &hit->rec, hit->site);
}

struct waffle_rec *ring_set_take(struct ring_set *set, uint32_t ring)
{
	struct ring_source *source = &set->sources.data[ring];
	struct ring_process *process = &set->processes.data[source->process];
	const struct ring_record *record = source->record;
	struct waffle_rec rec = {
		.ts = source->ts, .tid = source_tid(set, source), .cpu = (uint16_t)record->cpu};
	struct waffle_rec *made = NULL;

	set->unwanted = false;
	if (rec.cpu >= set->options.cpu_count)
		rec.cpu = 0;
	if (rec.tid && record->kind == RING_HIT)
		made = hit_make(set, process, rec, record);
	else if (rec.tid && record->kind == RING_SPAN_END)
		made = end_make(set, process, rec, record);
	else if (rec.tid && record->kind == RING_TRACK_HIT)
		made = track_hit_make(set, process, rec, record);
	source->record = NULL;
	set->counts.taken += made != NULL;
	process->taken += made != NULL;
	set->counts.lost += made == NULL && !set->unwanted;
	return made;
}

uint32_t ring_set_filled(const struct ring_set *set)
{
	return set->filled;
}

struct ring_set_counts ring_set_counts(const struct ring_set *set)
{
	return set->counts;
}
