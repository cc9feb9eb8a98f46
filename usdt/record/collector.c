// SPDX-License-Identifier: Apache-2.0
#include "usdt/record/collector.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "store/this_host.h"
#include "usdt/record/crash.h"
#include "usdt/record/delivery.h"
#include "usdt/record/own_threads.h"
#include "usdt/record/request.h"
#include "usdt/say/say.h"
#include "usdt/sink/sink_file.h"
#include "util/own_thread.h"

#define ROUND_NS 10000000ull
#define BUSY_NS 1000000ull /* after a round that found a ring rather full */
#define BUSY_PERCENT 20
#define SETTLE_NS 1000000
#define QUIET_NS 20000000ull
#define ARM_NS 100000000ull
#define FLUSH_NS 1000000000ull

struct collector {
	char *path;
	struct filter_expr *filter; /* NULL: everything is kept */
	struct delivery delivery;
	struct ring_gather *gather;
	pthread_t thread;
	uint32_t thread_id;
	uint32_t clock;
	bool overwrite;
	void (*recorded)(void); /* NULL: it was called */
	uint64_t goal;          /* time of the last round: the next one delivers what is older */
	uint64_t armed_ns, flushed_ns;
	bool told;       /* an error that ended the writing has been reported */
	uint32_t served; /* the last request that was served */
	bool stop;
};

/* ---- rounds ---- */

/* Records that found no room in a ring. */
static uint64_t unread(const struct collector *collector)
{
	return gather_counts(collector->gather).lost;
}

static void flush(struct collector *collector)
{
	struct delivery *delivery = &collector->delivery;
	struct store_counts counts[WAFFLE_SOURCE_COUNT];

	delivery_losses(delivery, unread(collector));
	delivery_counts(delivery, counts);
	if (!delivery->result)
		delivery->result = sink_flush(delivery->sink, counts, &delivery->problem);
	collector->flushed_ns = clock_monotonic_ns();
}

/* A round delivers … */
enum round_kind {
	ROUND_SETTLED, /* delivers records that are older than the last round */
	ROUND_ALL,     /* also delivers records that were just written */
};

/* Returns for how long there will be nothing to do. */
static uint64_t round_run(struct collector *collector, enum round_kind kind)
{
	struct ticks_pair now = ticks_pair_take(collector->clock);
	uint64_t before = gather_counts(collector->gather).taken;
	struct gather_counts after;

	ticks_map_add(&collector->delivery.ticks, now);
	delivery_sites(&collector->delivery);
	/* A flight recorder leaves the records in the rings until they are wanted. */
	if (collector->overwrite && kind == ROUND_SETTLED)
		return ARM_NS;
	gather_round(collector->gather, kind == ROUND_SETTLED ? collector->goal : UINT64_MAX,
		     delivery_item, &collector->delivery);
	collector->goal = now.ticks;
	after = gather_counts(collector->gather);
	return after.fullest > BUSY_PERCENT ? BUSY_NS : after.taken != before ? ROUND_NS : QUIET_NS;
}

static void duties_run(struct collector *collector)
{
	struct delivery *delivery = &collector->delivery;
	uint64_t now = clock_monotonic_ns();

	if (collector->recorded && gather_counts(collector->gather).taken) {
		collector->recorded();
		collector->recorded = NULL;
	}
	if (now - collector->armed_ns >= ARM_NS) {
		sites_arm(delivery->sites);
		collector->armed_ns = now;
	}
	if (now - collector->flushed_ns >= FLUSH_NS) {
		gather_names(collector->gather, collector->goal);
		flush(collector);
		crash_rest_end();
	}
	if (delivery->result && !collector->told) {
		say_line("%s; the program goes on untraced", delivery->problem.message);
		collector->told = true;
		sites_disarm(delivery->sites);
	}
}

/* False: not all is in the file. Who waits for the flush gives up, and the recording goes on: if it
 * failed for good, the next flush says so. */
static bool settle(struct delivery *delivery)
{
	struct error ignored = ERROR_INIT;

	return delivery->result || !sink_settle(delivery->sink, &ignored);
}

static void request_answer(struct collector *collector, uint32_t asked)
{
	flush(collector);
	collector->served = asked;
	if (settle(&collector->delivery))
		request_serve(asked);
}

/* Takes what is still in the rings and closes the file. All this is done by the collector's thread,
 * since callbacks of the program run meanwhile, and the program's threads may be in a sandbox. */
static void finish(struct collector *collector)
{
	struct delivery *delivery = &collector->delivery;
	struct store_counts counts[WAFFLE_SOURCE_COUNT];
	int result;

	sites_disarm(delivery->sites);
	/* Threads that have found their site armed and are about to write get a moment. */
	round_run(collector, ROUND_ALL);
	nanosleep(&(struct timespec){.tv_nsec = SETTLE_NS}, NULL);
	while (round_run(collector, ROUND_ALL) != QUIET_NS)
		;
	gather_names(collector->gather, collector->goal);
	delivery_losses(delivery, unread(collector));
	delivery_counts(delivery, counts);
	result = sink_close(delivery->sink, clock_monotonic_ns(), counts, &delivery->problem);
	delivery->sink = NULL;
	delivery->result = result;
}

static void *collector_main(void *arg)
{
	struct collector *collector = arg;
	struct own_threads own = {0};

	prctl(PR_SET_NAME, "waffle");
	request_begin_self();
	__atomic_store_n(&collector->thread_id, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&collector->stop, __ATOMIC_ACQUIRE) && !own_threads_are_all(&own)) {
		uint32_t asked = request_asked();
		bool wanted = asked != collector->served;
		uint64_t pause = round_run(collector, wanted ? ROUND_ALL : ROUND_SETTLED);

		if (wanted)
			request_answer(collector, asked);
		duties_run(collector);
		if (!__atomic_load_n(&collector->stop, __ATOMIC_ACQUIRE))
			request_pause(asked, pause);
	}
	finish(collector);
	request_end(!collector->delivery.result);
	return NULL;
}

/* ---- opening and closing ---- */

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

static int sink_make(struct collector *collector, const struct collector_options *options,
		     struct error *err)
{
	struct sink **sink = &collector->delivery.sink, *file = NULL;
	struct this_host host;
	struct sink_origin origin = {.meta = this_host_meta(&host)};
	char command[1024];
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int result = 0;

	command_read(command, sizeof(command));
	origin.meta.command = command;
	origin.meta.filter = collector->filter ? filter_source(collector->filter) : "";
	origin.meta.sources = "spans";
	origin.meta.cpu_count = cpus > 0 ? (uint32_t)cpus : 1;
	origin.process = (struct store_process){
		.pid = collector->delivery.pid,
		.ppid = (uint32_t)getppid(),
		.ts = origin.meta.start_ts,
		.cmdline = command,
	};
	collector->delivery.losses_ns = collector->flushed_ns = origin.meta.start_ts;
	/* The file comes last, since it replaces one that another recording may have written. */
	if (options->process)
		result = sink_process_open(sink, options->process, options->names->process,
					   &collector->thread_id, &origin, err);
	if (!result && *collector->path)
		result = sink_open(&file, collector->path, &origin, err);
	if (!result && options->process && file)
		sink_process_add_file(*sink, file);
	else if (!result && file)
		*sink = file;
	return result;
}

static void collector_free(struct collector *collector)
{
	delivery_free(&collector->delivery);
	if (collector->filter)
		filter_free(collector->filter);
	gather_free(collector->gather);
	free(collector->path);
	free(collector);
}

static int thread_start(struct collector *collector, struct error *err)
{
	int code;

	collector->served = request_begin();
	code = own_thread_start(&collector->thread, collector_main, collector);
	if (code)
		request_end(false);
	return code ? error_set(err, code, "no thread can be started to record: %s", strerror(code))
		    : 0;
}

static int filter_begin(struct collector *collector, const struct collector_options *options,
			struct error *err)
{
	struct filter_stream_options stream = {
		.keep_children = options->keep_children,
		.deliver = delivery_kept,
		.arg = &collector->delivery,
	};
	int result = options->filter ? filter_parse(&collector->filter, options->names->filter,
						    options->filter, err)
				     : 0;

	collector->delivery.keep_children = options->keep_children;
	stream.filter = collector->filter;
	return result ?: filter_stream_open(&collector->delivery.stream, &stream, err);
}

/* Everything but the file and the thread. */
static int parts_make(struct collector *collector, const struct collector_options *options,
		      const char *path, struct error *err)
{
	struct delivery *delivery = &collector->delivery;
	int code;

	delivery_begin(delivery);
	delivery->pid = (uint32_t)getpid();
	collector->path = strdup(path ? path : "");
	collector->clock = (uint32_t)ticks_choose();
	collector->overwrite = options->overwrite;
	collector->recorded = options->recorded;
	delivery->sites =
		sites_new(&(struct sites_callbacks){delivery_found, delivery}, collector->clock);
	collector->gather = gather_new();
	code = filter_begin(collector, options, err);
	if (!code && (!collector->path || !delivery->sites || !collector->gather))
		code = error_set(err, ENOMEM, "out of memory");
	return code;
}

int collector_open(struct collector **result, const char *path,
		   const struct collector_options *options, struct error *err)
{
	struct collector *collector = calloc(1, sizeof(*collector));
	int code;

	*result = NULL;
	if (!collector)
		return error_set(err, ENOMEM, "out of memory");
	sink_file_hurry(false);
	code = parts_make(collector, options, path, err);
	if (!code)
		code = sink_make(collector, options, err);
	if (!code) {
		struct ticks_pair now = ticks_pair_take(collector->clock);

		ticks_map_add(&collector->delivery.ticks, now);
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
	sites_arm_new(collector->delivery.sites);
	sites_arm_names(collector->delivery.sites);
}

void collector_arm_again(struct collector *collector)
{
	sites_arm(collector->delivery.sites);
}

int collector_close(struct collector *collector, bool exits, struct error *err)
{
	int result;

	/* A signal handler that has interrupted malloc() may have called exit(). So the thread is
	 * not joined then. To detach one that still runs takes no lock. */
	if (exits)
		pthread_detach(collector->thread);
	__atomic_store_n(&collector->stop, true, __ATOMIC_RELEASE);
	sink_file_hurry(true);
	request_wake();
	if (!request_wait_end(sites_wait_for_loader, !exits))
		return error_set(err, EDEADLK, COLLECTOR_STUCK);
	result = collector->delivery.result;
	if (result && !collector->told)
		error_set(err, -result, "%s", collector->delivery.problem.message);
	if (exits)
		return result;
	pthread_join(collector->thread, NULL);
	collector_free(collector);
	return result;
}
