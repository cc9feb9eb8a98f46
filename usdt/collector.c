// SPDX-License-Identifier: Apache-2.0
#include "usdt/collector.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "store/this_host.h"
#include "usdt/gather.h"
#include "usdt/selection.h"
#include "usdt/sink.h"
#include "usdt/sites.h"
#include "usdt/ticks.h"
#include "util/clock.h"
#include "util/map.h"
#include "util/vec.h"

#define ROUND_NS 10000000ull
#define SETTLE_NS 1000000
#define QUIET_NS 40000000ull
#define ARM_NS 100000000ull
#define FLUSH_NS 1000000000ull
/* Spans that a filter has kept and whose ends are awaited. Beyond it spans have no end, which
 * happens if the ends of millions are lost. */
#define KEPT_MAX (4u << 20)

struct collector_site {
	const struct site_info *info;
	enum selection_use use;
};

struct collector {
	char *path;
	struct sink *sink;
	struct selection *selection;
	struct sites *sites;
	struct ring_gather *gather;
	pthread_t thread;
	uint32_t thread_id;
	uint32_t pid;
	uint32_t clock;
	struct ticks_map ticks;
	uint64_t goal; /* time of the last round: the next one delivers what is older */
	uint64_t armed_ns, flushed_ns, losses_ns;

	pthread_mutex_t lock; /* protects `listed`, since other threads find sites, too */
	VEC(struct collector_site) listed;
	/* Only the collector's thread uses what follows, up to `problem`. */
	VEC(struct collector_site) known; /* those of them that the sink knows, by number */
	struct map kept;                  /* ids of spans that the filter has kept */
	uint64_t left_out;                /* records that are not wanted */
	uint64_t delivered, failed, lost_reported;
	int result; /* the first error of the sink, after which nothing is written */
	bool told;
	struct error problem;

	/* Requests of a flush, and those that were done. The thread sleeps on the first (futex). */
	uint32_t asked, done;
	bool stop;
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

static void name_append(struct collector *collector, const struct gather_item *item, uint64_t ts)
{
	struct waffle_rec_task task = {
		.rec = {.ts = ts, .tid = item->tid, .kind = WAFFLE_REC_TASK},
		.tgid = collector->pid,
		.flags = WAFFLE_TASK_TRACED_FLAG,
	};

	memcpy(task.comm, item->comm, sizeof(task.comm));
	append_counted(collector, &task.rec);
}

/* The site of a probe. NULL: it is not wanted, such as one that only another tracer has armed. */
static const struct collector_site *site_of(struct collector *collector, uint64_t probe,
					    uint32_t *number)
{
	*number = sites_number(collector->sites, probe);
	return *number < collector->known.len ? &collector->known.data[*number] : NULL;
}

/* The last known name of a thread. */
static void comm_of(uint32_t tid, char comm[WAFFLE_COMM_BYTES])
{
	memset(comm, 0, WAFFLE_COMM_BYTES);
	for (struct rings_slot *slot = rings_first(RINGS_COLLECTOR); slot; slot = slot->next)
		if (slot->tid == tid)
			memcpy(comm, slot->comm, sizeof(slot->comm) - 1);
}

/* Returns true if the filter keeps a hit. It remembers the span, whose end is then kept, too. */
static bool hit_is_kept(struct collector *collector, const struct collector_site *site,
			const struct waffle_rec_hit *hit)
{
	const struct waffle_frame *frame = (const void *)(hit + 1);
	char comm[WAFFLE_COMM_BYTES];
	struct filter_subject subject = {
		.site = site->info,
		.frame = frame,
		.frame_bytes = hit->frame_bytes,
		.pid = hit->tgid,
		.tid = hit->rec.tid,
		.cpu = hit->rec.cpu,
		.comm = comm,
		.depth = -1,
	};

	if (!*selection_text(collector->selection))
		return true;
	if (site->use == SELECTION_ASKS) {
		comm_of(hit->rec.tid, comm);
		if (!selection_takes(collector->selection, &subject, hit->rec.ts))
			return false;
	}
	if (site->info->kind == WAFFLE_SITE_SPAN && collector->kept.len < KEPT_MAX)
		map_set(&collector->kept, frame->id, 1);
	return true;
}

static void hit_append(struct collector *collector, const struct gather_item *item, uint64_t ts)
{
	const uint64_t *words = (const uint64_t *)(item->record + 1);
	uint64_t buffer[RING_RECORD_MAX / 8];
	struct waffle_rec_hit *hit = (struct waffle_rec_hit *)buffer;
	size_t bytes = item->record->bytes - sizeof(*item->record);
	const struct collector_site *site;
	uint32_t number;

	if (bytes < 8 + sizeof(struct waffle_frame) || bytes > 8 + WAFFLE_FRAME_MAX) {
		collector->failed++;
		return;
	}
	site = site_of(collector, words[0], &number);
	if (!site) {
		collector->left_out++;
		return;
	}
	*hit = (struct waffle_rec_hit){
		.rec = {.ts = ts,
			.tid = item->tid,
			.kind = WAFFLE_REC_HIT,
			.cpu = item->record->cpu},
		.tgid = collector->pid,
		.site = number,
		.frame_bytes = (uint32_t)bytes - 8,
	};
	memcpy(hit + 1, words + 1, bytes - 8);
	if (hit_is_kept(collector, site, hit))
		append_counted(collector, &hit->rec);
	else
		collector->left_out++;
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
	if (!site_of(collector, end.probe_addr, &end.site) ||
	    (*selection_text(collector->selection) &&
	     map_remove(&collector->kept, end.span_id) == MAP_NONE))
		collector->left_out++;
	else
		append_counted(collector, &end.rec);
}

static void item_deliver(const struct gather_item *item, void *arg)
{
	struct collector *collector = arg;
	uint64_t ts = ticks_map_ns(&collector->ticks, item->ticks);

	if (item->comm)
		name_append(collector, item, ts);
	else if (item->record->kind == RING_HIT)
		hit_append(collector, item, ts);
	else if (item->record->kind == RING_SPAN_END)
		end_append(collector, item, ts);
	else
		collector->failed++;
}

/* ---- rounds ---- */

/* Tells the sink of sites that were found since the last round. */
static void sites_append(struct collector *collector)
{
	for (;;) {
		struct collector_site site;

		pthread_mutex_lock(&collector->lock);
		if (collector->known.len == collector->listed.len) {
			pthread_mutex_unlock(&collector->lock);
			return;
		}
		site = collector->listed.data[collector->known.len];
		pthread_mutex_unlock(&collector->lock);
		if (!vec_push(&collector->known, site))
			return; /* out of memory: again in the next round */
		if (!collector->result)
			collector->result =
				sink_add_site(collector->sink, site.info, &collector->problem);
	}
}

static void losses_append(struct collector *collector)
{
	struct gather_counts counts = gather_counts(collector->gather);
	struct waffle_rec_loss loss = {
		.rec = {.ts = clock_monotonic_ns(), .kind = WAFFLE_REC_LOSS},
		.source = WAFFLE_SOURCE_SPANS,
		.from_ts = collector->losses_ns,
		.count = counts.lost - collector->lost_reported,
	};

	if (loss.count)
		append(collector, &loss.rec);
	collector->lost_reported = counts.lost;
	collector->losses_ns = loss.rec.ts;
}

/* In a finished file, produced = delivered + lost. What the filter left out is not produced. */
static void counts_get(const struct collector *collector,
		       struct store_counts counts[WAFFLE_SOURCE_COUNT])
{
	struct gather_counts gathered = gather_counts(collector->gather);

	memset(counts, 0, WAFFLE_SOURCE_COUNT * sizeof(*counts));
	counts[WAFFLE_SOURCE_SPANS] = (struct store_counts){
		.produced = gathered.taken + gathered.lost - collector->left_out,
		.delivered = collector->delivered,
		.lost = gathered.lost + collector->failed,
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

/* Returns whether there was anything to do. */
static bool round_run(struct collector *collector, enum round_kind kind)
{
	struct ticks_pair now = ticks_pair_take(collector->clock);
	uint64_t before = gather_counts(collector->gather).taken;

	ticks_map_add(&collector->ticks, now);
	sites_append(collector);
	gather_round(collector->gather, kind == ROUND_SETTLED ? collector->goal : UINT64_MAX,
		     item_deliver, collector);
	collector->goal = now.ticks;
	return gather_counts(collector->gather).taken != before;
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

static void *collector_main(void *arg)
{
	struct collector *collector = arg;
	bool busy = true;

	prctl(PR_SET_NAME, "waffle");
	__atomic_store_n(&collector->thread_id, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&collector->stop, __ATOMIC_ACQUIRE)) {
		uint32_t asked = __atomic_load_n(&collector->asked, __ATOMIC_ACQUIRE);
		bool wanted = asked != collector->done;

		busy = round_run(collector, wanted ? ROUND_ALL : ROUND_SETTLED);
		if (wanted) {
			flush(collector);
			__atomic_store_n(&collector->done, asked, __ATOMIC_RELEASE);
			futex_wake(&collector->done);
		}
		duties_run(collector);
		if (!__atomic_load_n(&collector->stop, __ATOMIC_ACQUIRE))
			futex_wait(&collector->asked, asked, busy ? ROUND_NS : QUIET_NS);
	}
	return NULL;
}

/* ---- opening and closing ---- */

static uint32_t site_found(const struct site_info *site, void *arg)
{
	struct collector *collector = arg;
	struct collector_site found = {site, selection_site(collector->selection, site)};
	uint32_t number = WAFFLE_SITE_UNKNOWN;

	if (found.use == SELECTION_NEVER)
		return number;
	pthread_mutex_lock(&collector->lock);
	if (vec_push(&collector->listed, found))
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

static int file_open(struct collector *collector, struct error *err)
{
	struct this_host host;
	struct sink_origin origin = {.meta = this_host_meta(&host)};
	char command[1024];
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	command_read(command, sizeof(command));
	origin.meta.command = command;
	origin.meta.filter = selection_text(collector->selection);
	origin.meta.sources = "spans";
	origin.meta.cpu_count = cpus > 0 ? (uint32_t)cpus : 1;
	origin.process = (struct store_process){
		.pid = collector->pid,
		.ppid = (uint32_t)getppid(),
		.ts = origin.meta.start_ts,
		.cmdline = command,
	};
	collector->losses_ns = collector->flushed_ns = origin.meta.start_ts;
	return sink_open(&collector->sink, collector->path, &origin, err);
}

static void collector_free(struct collector *collector)
{
	if (collector->sink)
		sink_discard(collector->sink);
	selection_free(collector->selection);
	sites_free(collector->sites);
	gather_free(collector->gather);
	vec_free(&collector->listed);
	vec_free(&collector->known);
	map_free(&collector->kept);
	pthread_mutex_destroy(&collector->lock);
	free(collector->path);
	free(collector);
}

/* The thread gets no signal of the program. */
static int thread_start(struct collector *collector, struct error *err)
{
	sigset_t all, before;
	int code;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	code = pthread_create(&collector->thread, NULL, collector_main, collector);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return code ? error_set(err, code, "no thread can be started to record: %s", strerror(code))
		    : 0;
}

int collector_open(struct collector **result, const char *path, const char *filter,
		   struct error *err)
{
	struct collector *collector = calloc(1, sizeof(*collector));
	struct sites_callbacks callbacks = {site_found, collector};
	int code;

	*result = NULL;
	if (!collector)
		return error_set(err, ENOMEM, "%s: out of memory", path);
	pthread_mutex_init(&collector->lock, NULL);
	collector->pid = (uint32_t)getpid();
	collector->path = strdup(path);
	collector->sites = sites_new(&callbacks);
	collector->gather = gather_new();
	collector->clock = (uint32_t)ticks_choose();
	code = selection_open(&collector->selection, filter, err);
	if (!code && (!collector->path || !collector->sites || !collector->gather))
		code = error_set(err, ENOMEM, "%s: out of memory", path);
	if (!code)
		code = file_open(collector, err);
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
}

bool collector_flush(struct collector *collector, uint64_t wait_ns)
{
	uint32_t mine = __atomic_add_fetch(&collector->asked, 1, __ATOMIC_ACQ_REL);
	uint64_t end = clock_monotonic_ns() + wait_ns, now = 0;

	futex_wake(&collector->asked);
	for (;;) {
		uint32_t done = __atomic_load_n(&collector->done, __ATOMIC_ACQUIRE);

		if ((int32_t)(done - mine) >= 0)
			return true;
		now = clock_monotonic_ns();
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
	struct store_counts counts[WAFFLE_SOURCE_COUNT];
	int result;

	sites_disarm(collector->sites);
	__atomic_store_n(&collector->stop, true, __ATOMIC_RELEASE);
	__atomic_add_fetch(&collector->asked, 1, __ATOMIC_ACQ_REL);
	futex_wake(&collector->asked);
	pthread_join(collector->thread, NULL);
	/* Threads that have found their site armed and are about to write get a moment. */
	round_run(collector, ROUND_ALL);
	nanosleep(&(struct timespec){.tv_nsec = SETTLE_NS}, NULL);
	while (round_run(collector, ROUND_ALL))
		;
	gather_names(collector->gather, collector->goal);
	losses_append(collector);
	counts_get(collector, counts);
	result = sink_close(collector->sink, clock_monotonic_ns(), counts, &collector->problem);
	collector->sink = NULL;
	if (result && !collector->told)
		error_set(err, -result, "%s", collector->problem.message);
	collector_free(collector);
	return result;
}
