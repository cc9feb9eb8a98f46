// SPDX-License-Identifier: Apache-2.0
#include "usdt/record/collector.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "filter/stream/stream.h"
#include "store/this_host.h"
#include "usdt/record/gather.h"
#include "usdt/name/names.h"
#include "usdt/sink/sink.h"
#include "usdt/sink/sink_file.h"
#include "usdt/record/sites.h"
#include "usdt/ring/ticks.h"
#include "usdt/name/tracks.h"
#include "util/clock.h"
#include "util/map.h"
#include "util/own_thread.h"
#include "util/vec.h"

#define ROUND_NS 10000000ull
#define BUSY_NS 1000000ull /* after a round that found a ring rather full */
#define BUSY_PERCENT 20
#define SETTLE_NS 1000000
#define QUIET_NS 20000000ull
#define ARM_NS 100000000ull
#define FLUSH_NS 1000000000ull
/* Words of a RING_TRACK_HIT in front of its frame, in bytes. */
#define TRACK_HEAD 32
/* Times of a track that are farther away are those of a wrong clock. */
#define TRACK_REACH_NS (30ull * 86400 * 1000000000)

struct collector {
	char *path;
	struct sink *sink;
	struct filter_expr *filter; /* NULL: everything is kept */
	struct filter_stream *stream;
	struct sites *sites;
	struct ring_gather *gather;
	pthread_t thread;
	uint32_t thread_id;
	uint32_t pid;
	uint32_t clock;
	bool overwrite;
	struct ticks_map ticks;
	uint64_t goal; /* time of the last round: the next one delivers what is older */
	uint64_t armed_ns, flushed_ns, losses_ns;

	pthread_mutex_t lock; /* protects `listed`, since other threads find sites, too */
	VEC(const struct site_info *) listed;
	/* Only the collector's thread uses what follows, up to `problem`. */
	bool keep_children;
	struct map tracks; /* numbers of those whose names the sink knows */
	/* Of the hit that is being delivered: its track, or 0, and the thread that delivered it. */
	uint32_t track, track_tid;
	uint32_t named_track; /* the filter's thread 0 has its name */
	bool told_time;
	size_t known; /* number of those that the filter and the sink know */
	uint64_t delivered, failed, lost_reported;
	int result; /* the first error of the sink, after which nothing is written */
	bool told;
	struct error problem;

	/* Requests of a flush, and those that were done. The thread sleeps on the first (futex). */
	uint32_t asked, done;
	bool stop;
	int closed; /* what sink_close() returned, once the thread has ended */
};

/* ---- records ---- */

static bool append(struct collector *collector, const struct waffle_rec *rec)
{
	struct error problem = ERROR_INIT;
	int result = collector->result;

	if (!result)
		result = sink_record(collector->sink, rec, &problem);
	/* The sink only rejects a record that is not valid. After other errors it is of no use. */
	if (result && result != -EINVAL && !collector->result) {
		collector->result = result;
		collector->problem = problem;
	}
	return !result;
}

static void append_counted(struct collector *collector, const struct waffle_rec *rec)
{
	if (append(collector, rec))
		collector->delivered++;
	else
		collector->failed++;
}

/* Tells the sink the name of a track when it first has something. */
static void track_append(struct collector *collector, uint32_t number, uint64_t ts, uint32_t tid)
{
	const struct waffle_track_ *track = tracks_find(number);
	struct waffle_rec_track rec = {
		.rec = {.ts = ts, .tid = tid, .kind = WAFFLE_REC_TRACK},
		.tgid = collector->pid,
		.track = number,
	};

	if (!track || map_get(&collector->tracks, number) != MAP_NONE ||
	    !map_set(&collector->tracks, number, 1))
		return;
	memcpy(rec.name, track->name, sizeof(rec.name));
	memcpy(rec.group, track->group, sizeof(rec.group));
	append(collector, &rec.rec);
}

static void on_track_append(struct collector *collector, const struct waffle_rec_hit *hit)
{
	const struct waffle_frame *frame = (const void *)(hit + 1);
	struct waffle_rec_on_track rec = {
		.rec = hit->rec,
		.id = frame->id,
		.tgid = collector->pid,
		.track = collector->track,
	};

	rec.rec.kind = WAFFLE_REC_ON_TRACK;
	append_counted(collector, &rec.rec);
}

static void kept_append(struct waffle_rec *rec, void *arg)
{
	struct collector *collector = arg;

	if (collector->track) {
		rec->tid = collector->track_tid;
		if (rec->kind == WAFFLE_REC_HIT)
			on_track_append(collector, (const struct waffle_rec_hit *)rec);
	}
	append_counted(collector, rec);
}

static void name_append(struct collector *collector, const struct gather_item *item, uint64_t ts)
{
	struct waffle_rec_task task = {
		.rec = {.ts = ts, .tid = item->tid, .kind = WAFFLE_REC_TASK},
		.tgid = collector->pid,
		.flags = WAFFLE_TASK_TRACED_FLAG,
	};

	memcpy(task.comm, item->comm, sizeof(task.comm));
	filter_stream_name(collector->stream, task.tgid, item->tid, task.comm);
	append_counted(collector, &task.rec);
}

/* Tells the filter and the sink of sites that were found since the last round. */
static void sites_append(struct collector *collector)
{
	for (;;) {
		const struct site_info *site;

		pthread_mutex_lock(&collector->lock);
		if (collector->known == collector->listed.len) {
			pthread_mutex_unlock(&collector->lock);
			return;
		}
		site = collector->listed.data[collector->known];
		pthread_mutex_unlock(&collector->lock);
		if (!filter_stream_add_site(collector->stream, site))
			return; /* out of memory: again in the next round */
		collector->known++;
		if (!collector->result)
			collector->result =
				sink_add_site(collector->sink, site, &collector->problem);
	}
}

/* The number of the site with a probe; WAFFLE_SITE_UNKNOWN: it is not wanted, such as one that only
 * another tracer has armed. */
static uint32_t site_number(struct collector *collector, uint64_t probe, uint64_t ticks)
{
	uint32_t number = sites_number(collector->sites, probe, ticks);

	if (number >= collector->known && number != WAFFLE_SITE_UNKNOWN)
		sites_append(collector); /* it was found during this round */
	return number;
}

static void hit_append(struct collector *collector, const struct gather_item *item, uint64_t ts)
{
	const uint64_t *words = (const uint64_t *)(item->record + 1);
	uint64_t buffer[RING_RECORD_MAX / 8];
	struct waffle_rec_hit *hit = (struct waffle_rec_hit *)buffer;
	size_t bytes = item->record->bytes - sizeof(*item->record);

	if (bytes < 8 + sizeof(struct waffle_frame) || bytes > 8 + WAFFLE_FRAME_MAX) {
		collector->failed++;
		return;
	}
	*hit = (struct waffle_rec_hit){
		.rec = {.ts = ts,
			.tid = item->tid,
			.kind = WAFFLE_REC_HIT,
			.cpu = item->record->cpu},
		.tgid = collector->pid,
		.site = site_number(collector, words[0], item->ticks),
		.frame_bytes = (uint32_t)bytes - 8,
	};
	memcpy(hit + 1, words + 1, bytes - 8);
	filter_stream_hit(collector->stream, hit, ts);
}

static void end_append(struct collector *collector, const struct gather_item *item, uint64_t ts)
{
	const uint64_t *words = (const uint64_t *)(item->record + 1);
	struct waffle_rec_span_end end = {
		.rec = {.ts = ts,
			.tid = item->tid,
			.kind = WAFFLE_REC_SPAN_END,
			.cpu = item->record->cpu},
		.tgid = collector->pid,
	};

	if (item->record->bytes != sizeof(*item->record) + 16) {
		collector->failed++;
		return;
	}
	end.span_id = words[0];
	end.probe_addr = words[1];
	end.site = site_number(collector, end.probe_addr, item->ticks);
	if (end.site != WAFFLE_SITE_UNKNOWN)
		filter_stream_end(collector->stream, &end, ts);
}

/* Whether a time that the program gave may be right. One line tells of the first that is not. */
static bool time_is_near(struct collector *collector, const uint64_t *words, uint64_t ts)
{
	uint64_t start = words[2], end = words[3];
	const struct waffle_track_ *track = tracks_find((uint32_t)words[1]);

	if (start <= end && start + TRACK_REACH_NS >= ts && end <= ts + TRACK_REACH_NS)
		return true;
	if (!collector->told_time)
		fprintf(stderr,
			"waffle: what is recorded on the track '%s' is more than 30 days away from "
			"now and counts as lost: is its clock right?\n",
			track ? track->name : "?");
	collector->told_time = true;
	return false;
}

/* For the filter a track is the thread 0 of its process, with the track's name. */
static void track_name(struct collector *collector)
{
	const struct waffle_track_ *track = tracks_find(collector->track);
	char comm[WAFFLE_COMM_BYTES];

	if (!track || collector->named_track == collector->track)
		return;
	memcpy(comm, track->name, sizeof(comm));
	comm[sizeof(comm) - 1] = '\0';
	filter_stream_name(collector->stream, collector->pid, 0, comm);
	collector->named_track = collector->track;
}

static void track_hit_deliver(struct collector *collector, struct waffle_rec_hit *hit,
			      uint64_t end_ts, uint64_t probe, uint64_t ts)
{
	const struct waffle_frame *frame = (const void *)(hit + 1);
	const struct name_site *name = (const struct name_site *)(uintptr_t)probe;
	struct waffle_rec_span_end end = {
		.rec = hit->rec,
		.span_id = frame->id,
		.tgid = collector->pid,
		.site = hit->site,
		.probe_addr = probe,
	};

	end.rec.kind = WAFFLE_REC_SPAN_END;
	end.rec.ts = end_ts;
	if (collector->keep_children) {
		/* The filter may deliver the hit later, and in the order of its thread. */
		on_track_append(collector, hit);
		collector->track = 0;
	} else {
		hit->rec.tid = end.rec.tid = 0;
		track_name(collector);
	}
	filter_stream_hit(collector->stream, hit, ts);
	if (name->site.kind == WAFFLE_SITE_SPAN)
		filter_stream_end(collector->stream, &end, ts);
}

/* A hit whose times the program gave. Its span's end is known, too. */
static void track_hit_append(struct collector *collector, const struct gather_item *item,
			     uint64_t ts)
{
	const uint64_t *words = (const uint64_t *)(item->record + 1);
	uint64_t buffer[RING_RECORD_MAX / 8];
	struct waffle_rec_hit *hit = (struct waffle_rec_hit *)buffer;
	size_t bytes = item->record->bytes - sizeof(*item->record);

	if (bytes < TRACK_HEAD + sizeof(struct waffle_frame) ||
	    bytes > TRACK_HEAD + WAFFLE_FRAME_MAX || !time_is_near(collector, words, ts)) {
		collector->failed++;
		return;
	}
	*hit = (struct waffle_rec_hit){
		.rec = {.ts = words[2],
			.tid = item->tid,
			.kind = WAFFLE_REC_HIT,
			.cpu = item->record->cpu},
		.tgid = collector->pid,
		.site = site_number(collector, words[0], item->ticks),
		.frame_bytes = (uint32_t)(bytes - TRACK_HEAD),
	};
	if (hit->site == WAFFLE_SITE_UNKNOWN)
		return;
	memcpy(hit + 1, words + TRACK_HEAD / 8, bytes - TRACK_HEAD);
	track_append(collector, (uint32_t)words[1], ts, item->tid);
	collector->track = (uint32_t)words[1];
	collector->track_tid = item->tid;
	track_hit_deliver(collector, hit, words[3], words[0], ts);
	collector->track = 0;
}

static void item_deliver(const struct gather_item *item, void *arg)
{
	struct collector *collector = arg;
	uint64_t ts = ticks_map_ns(&collector->ticks, item->ticks);

	if (item->comm)
		name_append(collector, item, ts);
	else if (item->ended)
		filter_stream_thread_exit(collector->stream, collector->pid, item->tid);
	else if (item->record->kind == RING_HIT)
		hit_append(collector, item, ts);
	else if (item->record->kind == RING_SPAN_END)
		end_append(collector, item, ts);
	else if (item->record->kind == RING_TRACK_HIT)
		track_hit_append(collector, item, ts);
	else
		collector->failed++;
}

/* ---- rounds ---- */

/* Records that found no room in a ring or in the filter. */
static uint64_t lost(const struct collector *collector)
{
	return gather_counts(collector->gather).lost + filter_stream_counts(collector->stream).lost;
}

static void losses_append(struct collector *collector)
{
	uint64_t count = lost(collector);
	struct waffle_rec_loss loss = {
		.rec = {.ts = clock_monotonic_ns(), .kind = WAFFLE_REC_LOSS},
		.source = WAFFLE_SOURCE_SPANS,
		.from_ts = collector->losses_ns,
		.count = count - collector->lost_reported,
	};

	if (loss.count)
		append(collector, &loss.rec);
	collector->lost_reported = count;
	collector->losses_ns = loss.rec.ts;
}

/* What the filter rejects is not produced. */
static void counts_get(const struct collector *collector,
		       struct store_counts counts[WAFFLE_SOURCE_COUNT])
{
	uint64_t all_lost = lost(collector) + collector->failed;

	memset(counts, 0, WAFFLE_SOURCE_COUNT * sizeof(*counts));
	counts[WAFFLE_SOURCE_SPANS] = (struct store_counts){
		.produced = collector->delivered + all_lost,
		.delivered = collector->delivered,
		.lost = all_lost,
	};
}

static void flush(struct collector *collector)
{
	struct store_counts counts[WAFFLE_SOURCE_COUNT];

	losses_append(collector);
	counts_get(collector, counts);
	if (!collector->result)
		collector->result = sink_flush(collector->sink, counts, &collector->problem);
	collector->flushed_ns = clock_monotonic_ns();
}

/* A round delivers … */
enum round_kind {
	ROUND_SETTLED, /* what is older than the last round */
	ROUND_ALL,     /* also what has just been written */
};

/* Returns for how long there will be nothing to do. */
static uint64_t round_run(struct collector *collector, enum round_kind kind)
{
	struct ticks_pair now = ticks_pair_take(collector->clock);
	uint64_t before = gather_counts(collector->gather).taken;
	struct gather_counts after;

	ticks_map_add(&collector->ticks, now);
	sites_append(collector);
	/* A flight recorder leaves the records in the rings until they are wanted. */
	if (collector->overwrite && kind == ROUND_SETTLED)
		return ARM_NS;
	gather_round(collector->gather, kind == ROUND_SETTLED ? collector->goal : UINT64_MAX,
		     item_deliver, collector);
	collector->goal = now.ticks;
	after = gather_counts(collector->gather);
	return after.fullest > BUSY_PERCENT ? BUSY_NS : after.taken != before ? ROUND_NS : QUIET_NS;
}

static void duties_run(struct collector *collector)
{
	uint64_t now = clock_monotonic_ns();

	if (now - collector->armed_ns >= ARM_NS) {
		sites_arm(collector->sites);
		collector->armed_ns = now;
	}
	if (now - collector->flushed_ns >= FLUSH_NS) {
		gather_names(collector->gather, collector->goal);
		flush(collector);
	}
	if (collector->result && !collector->told) {
		fprintf(stderr, "waffle: %s; the program goes on untraced\n",
			collector->problem.message);
		collector->told = true;
		sites_disarm(collector->sites);
	}
}

static void futex_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

static void futex_wait(uint32_t *word, uint32_t seen, uint64_t ns)
{
	struct timespec time = {.tv_sec = (time_t)(ns / 1000000000ull),
				.tv_nsec = (long)(ns % 1000000000ull)};

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, &time, NULL, 0);
}

/* False: not all is in the file. Who waits for the flush gives up, and the recording goes on: if it
 * failed for good, the next flush says so. */
static bool settle(struct collector *collector)
{
	struct error ignored = ERROR_INIT;

	return collector->result || !sink_settle(collector->sink, &ignored);
}

/* The end of the recording, in the collector's thread: the one that ends it may have a small stack.
 */
static void finish(struct collector *collector)
{
	struct store_counts counts[WAFFLE_SOURCE_COUNT];

	/* Threads that have found their site armed and are about to write get a moment. */
	round_run(collector, ROUND_ALL);
	nanosleep(&(struct timespec){.tv_nsec = SETTLE_NS}, NULL);
	while (round_run(collector, ROUND_ALL) != QUIET_NS)
		;
	gather_names(collector->gather, collector->goal);
	losses_append(collector);
	counts_get(collector, counts);
	collector->closed =
		sink_close(collector->sink, clock_monotonic_ns(), counts, &collector->problem);
	collector->sink = NULL;
}

static void *collector_main(void *arg)
{
	struct collector *collector = arg;
	uint32_t served = 0;
	uint64_t pause;

	prctl(PR_SET_NAME, "waffle");
	__atomic_store_n(&collector->thread_id, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&collector->stop, __ATOMIC_ACQUIRE)) {
		uint32_t asked = __atomic_load_n(&collector->asked, __ATOMIC_ACQUIRE);
		bool wanted = asked != served;

		pause = round_run(collector, wanted ? ROUND_ALL : ROUND_SETTLED);
		if (wanted) {
			flush(collector);
			served = asked;
			if (settle(collector)) {
				__atomic_store_n(&collector->done, asked, __ATOMIC_RELEASE);
				futex_wake(&collector->done);
			}
		}
		duties_run(collector);
		if (!__atomic_load_n(&collector->stop, __ATOMIC_ACQUIRE))
			futex_wait(&collector->asked, asked, pause);
	}
	finish(collector);
	return NULL;
}

/* ---- opening and closing ---- */

static uint32_t site_found(const struct site_info *site, void *arg)
{
	struct collector *collector = arg;
	uint32_t number = WAFFLE_SITE_UNKNOWN;

	if (filter_stream_use(collector->stream, site) == FILTER_STREAM_DORMANT)
		return number;
	pthread_mutex_lock(&collector->lock);
	if (vec_push(&collector->listed, site))
		number = (uint32_t)collector->listed.len - 1;
	pthread_mutex_unlock(&collector->lock);
	return number;
}

/* The command line, for display. */
static void command_read(char *text, size_t size)
{
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? 0 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	len = len > 0 ? len : 0;
	while (len > 0 && !text[len - 1])
		len--;
	for (ssize_t i = 0; i < len; i++)
		if (!text[i] || text[i] == '\n')
			text[i] = ' ';
	text[len] = '\0';
}

static int sink_make(struct collector *collector, const char *process, struct error *err)
{
	struct this_host host;
	struct sink_origin origin = {.meta = this_host_meta(&host)};
	char command[1024];
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int result;

	command_read(command, sizeof(command));
	origin.meta.command = command;
	origin.meta.filter = collector->filter ? filter_source(collector->filter) : "";
	origin.meta.sources = "spans";
	origin.meta.cpu_count = cpus > 0 ? (uint32_t)cpus : 1;
	origin.process = (struct store_process){
		.pid = collector->pid,
		.ppid = (uint32_t)getppid(),
		.ts = origin.meta.start_ts,
		.cmdline = command,
	};
	collector->losses_ns = collector->flushed_ns = origin.meta.start_ts;
	result = *collector->path ? sink_open(&collector->sink, collector->path, &origin, err) : 0;
	if (!result && process)
		result = sink_process_open(&collector->sink, process, &collector->thread_id,
					   &origin, err);
	return result;
}

static void collector_free(struct collector *collector)
{
	if (collector->sink)
		sink_discard(collector->sink);
	filter_stream_free(collector->stream);
	if (collector->filter)
		filter_free(collector->filter);
	sites_free(collector->sites);
	gather_free(collector->gather);
	map_free(&collector->tracks);
	vec_free(&collector->listed);
	pthread_mutex_destroy(&collector->lock);
	free(collector->path);
	free(collector);
}

static int thread_start(struct collector *collector, struct error *err)
{
	int code = own_thread_start(&collector->thread, collector_main, collector);

	return code ? error_set(err, code, "no thread can be started to record: %s", strerror(code))
		    : 0;
}

static int filter_begin(struct collector *collector, const struct collector_options *options,
			struct error *err)
{
	struct filter_stream_options stream = {
		.keep_children = options->keep_children,
		.deliver = kept_append,
		.arg = collector,
	};
	int result = options->filter ? filter_parse(&collector->filter, "WAFFLE_FILTER",
						    options->filter, err)
				     : 0;

	collector->keep_children = options->keep_children;
	stream.filter = collector->filter;
	return result ?: filter_stream_open(&collector->stream, &stream, err);
}

int collector_open(struct collector **result, const char *path,
		   const struct collector_options *options, struct error *err)
{
	struct collector *collector = calloc(1, sizeof(*collector));
	struct sites_callbacks callbacks = {site_found, collector};
	int code;

	*result = NULL;
	if (!collector)
		return error_set(err, ENOMEM, "out of memory");
	pthread_mutex_init(&collector->lock, NULL);
	collector->pid = (uint32_t)getpid();
	collector->path = strdup(path ? path : "");
	collector->clock = (uint32_t)ticks_choose();
	collector->overwrite = options->overwrite;
	collector->sites = sites_new(&callbacks, collector->clock);
	collector->gather = gather_new();
	sink_file_hurry(false);
	code = filter_begin(collector, options, err);
	if (!code && (!collector->path || !collector->sites || !collector->gather))
		code = error_set(err, ENOMEM, "out of memory");
	if (!code)
		code = sink_make(collector, options->process, err);
	if (!code) {
		struct ticks_pair now = ticks_pair_take(collector->clock);

		ticks_map_add(&collector->ticks, now);
		collector->goal = now.ticks;
		gather_begin(collector->gather);
		code = thread_start(collector, err);
	}
	if (code)
		collector_free(collector);
	else
		*result = collector;
	return code;
}

void collector_arm(struct collector *collector)
{
	sites_arm_new(collector->sites);
	sites_arm_names(collector->sites);
}

void collector_arm_again(struct collector *collector)
{
	sites_arm(collector->sites);
}

bool collector_flush(struct collector *collector, uint64_t wait_ns)
{
	uint32_t mine = __atomic_add_fetch(&collector->asked, 1, __ATOMIC_ACQ_REL);
	uint64_t end = ticks_ns() + wait_ns, now = 0;

	futex_wake(&collector->asked);
	for (;;) {
		uint32_t done = __atomic_load_n(&collector->done, __ATOMIC_ACQUIRE);

		if ((int32_t)(done - mine) >= 0)
			return true;
		now = ticks_ns();
		if (now >= end)
			return false;
		futex_wait(&collector->done, done, end - now);
	}
}

bool collector_is_self(const struct collector *collector)
{
	return __atomic_load_n(&collector->thread_id, __ATOMIC_ACQUIRE) ==
	       (uint32_t)syscall(SYS_gettid);
}

int collector_close(struct collector *collector, struct error *err)
{
	int result;

	sites_disarm(collector->sites);
	__atomic_store_n(&collector->stop, true, __ATOMIC_RELEASE);
	__atomic_add_fetch(&collector->asked, 1, __ATOMIC_ACQ_REL);
	futex_wake(&collector->asked);
	sink_file_hurry(true);
	pthread_join(collector->thread, NULL);
	result = collector->closed;
	if (result && !collector->told)
		error_set(err, -result, "%s", collector->problem.message);
	collector_free(collector);
	return result;
}
