// SPDX-License-Identifier: Apache-2.0
#include "capture/session.h"

#include <bpf/bpf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "capture/arming.h"
#include "capture/details.h"
#include "capture/drain.h"
#include "capture/launch.h"
#include "capture/pace.h"
#include "probe/kernel.h"
#include "target/mmap_watch.h"
#include "target/process.h"

#define FLUSH_NS 1000000000ull /* between two chunks at most: what a killed tracer loses */
#define PROGRESS_NS 100000000ull
#define RESCAN_NS 50000000ull /* between two looks at the mappings of a process that maps much */

enum { TAG_TIMER, TAG_SIGNAL, TAG_RING, TAG_MMAP, TAG_PROCESS };

struct target {
	pid_t pid;
	int pidfd;
	bool exec_pending; /* a new program runs and its sites are not armed yet */
	bool maps_changed;
	uint64_t scan_ts; /* of the last look at its mappings */
};

struct session {
	const struct session_options *options;
	const struct session_events *events;
	struct session_result *result;
	struct error *err;
	struct kernel *kernel;
	struct drain *drain;
	struct details *details;
	struct plan *plan; /* NULL: no filter */
	struct arming *arming;
	struct mmap_watch *watch;
	struct store_writer *writer;
	struct launch launch;
	VEC(struct target) targets;
	int epoll, timer, signals;
	sigset_t old_mask;
	uint64_t start_ts, end_ts, flush_ts, progress_ts;
	struct pace pace;
	struct rlimit files; /* of open files, as it was */
	bool warned;         /* of a file that could not be armed */
	unsigned interrupts;
	bool child_done;
};

static int fail(struct session *session, const char *what)
{
	return error_set(session->err, errno, "%s: %s", what, strerror(errno));
}

static void notify(struct session *session, const char *line)
{
	session->events->notify(line, session->events->arg);
}

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static bool wants_sched(const struct session_options *options)
{
	return (options->sources & CAPTURE_SCHED) &&
	       (!options->filter || filter_wants_sched(options->filter));
}

/* ---- setting up ---- */

static int watch_fd(struct session *session, int fd, uint32_t events, uint64_t tag)
{
	struct epoll_event event = {.events = events, .data.u64 = tag};

	return epoll_ctl(session->epoll, EPOLL_CTL_ADD, fd, &event) ? fail(session, "epoll") : 0;
}

static int timer_set(struct session *session, uint64_t ns)
{
	struct itimerspec period = {.it_value.tv_nsec = (long)ns, .it_interval.tv_nsec = (long)ns};

	return timerfd_settime(session->timer, 0, &period, NULL) ? fail(session, "timer") : 0;
}

/* After a drain: when the next one is due. */
static int timer_adapt(struct session *session)
{
	uint64_t records = 0, before = session->pace.ns;

	for (unsigned i = 0; i < WAFFLE_SOURCE_COUNT; i++)
		records += session->result->counts[i].delivered;
	pace_drained(&session->pace, records);
	return session->pace.ns == before ? 0 : timer_set(session, session->pace.ns);
}

/* Each file and each kind of filtered site takes a descriptor. */
static void files_raise(struct session *session)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &session->files);
	limit = session->files;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int loop_open(struct session *session)
{
	sigset_t set;

	files_raise(session);
	signal(SIGXFSZ, SIG_IGN); /* a file size limit is an error of write(), not the end */
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, &session->old_mask);
	session->epoll = epoll_create1(EPOLL_CLOEXEC);
	session->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	session->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (session->epoll < 0 || session->signals < 0 || session->timer < 0)
		return fail(session, "setting up");
	return timer_set(session, PACE_BUSY_NS)
		       ?: watch_fd(session, session->timer, EPOLLIN, TAG_TIMER)
		       ?: watch_fd(session, session->signals, EPOLLIN, TAG_SIGNAL);
}

/* What this kernel can give of what is wanted. */
static uint32_t sources_recorded(const struct session *session)
{
	uint32_t sources = session->options->sources & CAPTURE_SPANS;

	if (wants_sched(session->options))
		sources |= CAPTURE_SCHED;
	return sources | sources_of_waits(kernel_wait_sources(session->kernel));
}

static int writer_open(struct session *session)
{
	struct store_meta meta = {0};
	char sources[SOURCES_TEXT];
	struct utsname name;
	char host[256] = "";
	int result;

	uname(&name);
	gethostname(host, sizeof(host) - 1);
	/* The three clocks at one moment, as near as calls in a row get. */
	meta.start_ts = clock_monotonic_ns();
	meta.boot_ns = clock_ns(CLOCK_BOOTTIME);
	meta.real_ns = clock_ns(CLOCK_REALTIME);
	meta.hostname = host;
	meta.kernel = name.release;
	meta.machine = name.machine;
	meta.version = WAFFLE_VERSION;
	meta.command = session->options->label;
	meta.filter = session->options->filter ? filter_source(session->options->filter) : "";
	meta.cpu_count = kernel_cpu_count(session->kernel);
	meta.sched = wants_sched(session->options);
	meta.sources = sources_text(sources, sources_recorded(session));
	session->start_ts = session->flush_ts = meta.start_ts;
	result = store_writer_open(&session->writer, session->options->output, &meta, session->err);
	session->result->file_written = !result;
	return result;
}

static struct target *target_find(struct session *session, pid_t pid)
{
	for (size_t i = 0; i < session->targets.len; i++)
		if (session->targets.data[i].pid == pid)
			return &session->targets.data[i];
	return NULL;
}

/* Writes down what /proc says of a process. */
static int target_describe(struct session *session, pid_t pid)
{
	char cmdline[4096];
	struct store_process process = {.pid = (uint32_t)pid,
					.ppid = (uint32_t)process_parent(pid),
					.ts = clock_monotonic_ns(),
					.cmdline = cmdline};

	process_cmdline(pid, cmdline, sizeof(cmdline));
	return store_writer_add_process(session->writer, &process, session->err);
}

/* Follows a process until it exits. A process that is gone already is none: 0. */
static int target_add(struct session *session, pid_t pid)
{
	struct target target = {.pid = pid};
	int result;

	if (target_find(session, pid))
		return 0;
	target.pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (target.pidfd < 0)
		return errno == ESRCH || errno == EINVAL ? 0 : fail(session, "pidfd_open");
	if (!vec_push(&session->targets, target)) {
		close(target.pidfd);
		return error_set(session->err, ENOMEM, "out of memory");
	}
	result = watch_fd(session, target.pidfd, EPOLLIN, TAG_PROCESS + (uint64_t)pid);
	return result ?: target_describe(session, pid);
}

static void target_remove(struct session *session, pid_t pid)
{
	struct target *target = target_find(session, pid);

	if (!target)
		return;
	close(target->pidfd);
	*target = session->targets.data[--session->targets.len];
	arming_forget(session->arming, pid);
	kernel_filter_forget(session->kernel, pid);
}

static int targets_open(struct session *session)
{
	const struct session_options *options = session->options;
	int result = 0;

	for (size_t i = 0; i < options->pid_count && !result; i++)
		result = process_check(options->pids[i], session->err)
				 ?: kernel_target_add(session->kernel, options->pids[i], session->err)
				 ?: target_add(session, options->pids[i]);
	if (!result && options->command)
		result = launch_prepare(&session->launch, options->command, &session->files,
					session->err)
				 ?: kernel_target_add(session->kernel, session->launch.pid,
						      session->err)
				 ?: target_add(session, session->launch.pid);
	return result;
}

/* ---- records ---- */

static int record_store(struct waffle_rec *rec, void *arg)
{
	struct session *session = arg;
	int result;

	if (rec->kind == WAFFLE_REC_SPAN_END) {
		struct waffle_rec_span_end *end = (struct waffle_rec_span_end *)rec;

		end->site = arming_site_at(session->arming, (pid_t)end->tgid, end->probe_addr);
	}
	result = details_record(session->details, rec, session->err);
	return result ?: store_writer_append(session->writer, rec, session->err);
}

static int state_store(const struct waffle_rec *rec, void *arg)
{
	struct waffle_rec_state state = *(const struct waffle_rec_state *)rec;

	return record_store(&state.rec, arg);
}

/* Called from within a drain: only takes note. */
static void record_notice(const struct waffle_rec *rec, void *arg)
{
	struct session *session = arg;
	struct target *target;

	if (rec->kind == WAFFLE_REC_FORK && session->options->follow) {
		const struct waffle_rec_fork *fork = (const struct waffle_rec_fork *)rec;

		target_add(session, (pid_t)fork->child_tgid);
	} else if (rec->kind == WAFFLE_REC_EXEC) {
		target = target_find(session, (pid_t)((const struct waffle_rec_exit *)rec)->tgid);
		if (target)
			target->exec_pending = true;
	}
}

static void mapping_notice(pid_t pid, void *arg)
{
	struct target *target = target_find(arg, pid);

	if (target)
		target->maps_changed = true;
}

static bool wants_spans(const struct session *session)
{
	return session->options->sources & CAPTURE_SPANS;
}

static int process_arm(struct session *session, pid_t pid, struct error *err)
{
	return wants_spans(session) ? arming_scan(session->arming, pid, err) : 0;
}

/* A file that stays dormant is said once, as soon as it is known. */
static void warn_of_arming(struct session *session)
{
	const char *warning = arming_warning(session->arming);

	if (warning && !session->warned)
		notify(session, warning);
	session->warned |= warning != NULL;
}

/* Arms new programs and libraries. A process that is gone is no error here. */
static int targets_rearm(struct session *session)
{
	mmap_watch_read(session->watch, mapping_notice, session);
	for (size_t i = 0; i < session->targets.len; i++) {
		struct target *target = &session->targets.data[i];
		struct error gone = ERROR_INIT;
		bool exec = target->exec_pending;
		uint64_t now = clock_monotonic_ns();
		int result;

		if (!exec && (!target->maps_changed || now - target->scan_ts < RESCAN_NS))
			continue;
		target->exec_pending = target->maps_changed = false;
		target->scan_ts = now;
		if (details_process(session->details, target->pid, session->err))
			return -EIO;
		result = process_arm(session, target->pid, &gone);
		if (exec) {
			if (session->options->command && wants_spans(session) && !result)
				arming_scan_needed(session->arming, target->pid);
			kernel_exec_release(session->kernel, target->pid);
			if (!result)
				result = target_describe(session, target->pid);
		}
		if (result && result != -ESRCH)
			return error_set(session->err, -result, "%s", gone.message);
	}
	warn_of_arming(session);
	return 0;
}

static int drain(struct session *session, bool final)
{
	int result = drain_round(session->drain, final);

	drain_counts(session->drain, session->result->counts);
	return result;
}

/* ---- the loop ---- */

static void child_reap(struct session *session)
{
	int status;

	if (!session->options->command || session->child_done)
		return;
	if (waitpid(session->launch.pid, &status, WNOHANG) == session->launch.pid) {
		session->child_done = true;
		session->result->exit_status = status;
		session->result->exec_errno = launch_failure(&session->launch);
	}
}

/* A first Ctrl-C also goes to a command that runs in our terminal: let it end by itself. Others are
 * passed on. */
static void signals_read(struct session *session)
{
	struct signalfd_siginfo info;

	while (read(session->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (session->options->command && !session->child_done && !session->interrupts++) {
			if (info.ssi_signo != SIGINT || info.ssi_code != SI_KERNEL)
				kill(session->launch.pid, (int)info.ssi_signo);
			continue;
		}
		session->interrupts += 2;
	}
}

static bool stopping(const struct session *session, uint64_t now)
{
	const struct session_options *options = session->options;

	return !session->targets.len || session->interrupts >= 2 ||
	       (!options->command && session->interrupts) ||
	       (options->duration_ns && now - session->start_ts >= options->duration_ns);
}

static int housekeeping(struct session *session, uint64_t now)
{
	struct session_result *result = session->result;

	if (now - session->flush_ts >= FLUSH_NS) {
		session->flush_ts = now;
		if (store_writer_flush(session->writer, result->counts, session->err))
			return -EIO;
	}
	result->file_bytes = store_writer_bytes(session->writer);
	if (session->events->progress && now - session->progress_ts >= PROGRESS_NS) {
		session->progress_ts = now;
		session->events->progress(result, now - session->start_ts, session->events->arg);
	}
	return 0;
}

static int dispatch(struct session *session, const struct epoll_event *events, int count)
{
	uint64_t expirations;

	for (int i = 0; i < count; i++) {
		switch (events[i].data.u64) {
		case TAG_TIMER:
			if (read(session->timer, &expirations, sizeof(expirations)) < 0 &&
			    errno != EAGAIN)
				return fail(session, "timer");
			break;
		case TAG_SIGNAL:
			signals_read(session);
			break;
		case TAG_RING: /* woken for a fork or an exec: the drain sees it */
		case TAG_MMAP: /* what is there is read in any case */
			break;
		default:
			/* Its last records are in the rings before it is taken off the list. */
			drain(session, false);
			target_remove(session, (pid_t)(events[i].data.u64 - TAG_PROCESS));
		}
	}
	return 0;
}

static int loop(struct session *session)
{
	while (true) {
		struct epoll_event events[32];
		int count = epoll_wait(session->epoll, events, 32, 1000), result;
		uint64_t now;

		if (count < 0 && errno != EINTR)
			return fail(session, "epoll");
		result = dispatch(session, events, count > 0 ? count : 0)
				 ?: drain(session, false)
				 ?: timer_adapt(session)
				 ?: targets_rearm(session);
		now = clock_monotonic_ns();
		child_reap(session);
		if (!result)
			result = housekeeping(session, now);
		if (result || stopping(session, now))
			return result;
	}
}

/* ---- from beginning to end ---- */

static int arm_all(struct session *session)
{
	int result = 0;

	for (size_t i = 0; i < session->options->pid_count && !result; i++)
		result = process_arm(session, session->options->pids[i], session->err);
	return result;
}

/* Late libraries are watched for before the first look at the mappings, so that none slips through.
 */
static void watch_open(struct session *session)
{
	struct error problem = ERROR_INIT;

	if (mmap_watch_open(&session->watch, &problem))
		notify(session, problem.message);
	else
		watch_fd(session, mmap_watch_fd(session->watch), EPOLLIN, TAG_MMAP);
}

int session_configure(struct kernel_options *kernel, struct plan **plan,
		      const struct session_options *options, struct error *err)
{
	const struct filter_expr *filter = options->filter;
	int result;

	*plan = NULL;
	*kernel = (struct kernel_options){
		.ring_bytes = options->ring_bytes,
		.sched_slots = (uint32_t)(options->sched_bytes / sizeof(struct waffle_rec_switch)),
		.sched = wants_sched(options),
		.wait_sources = sources_to_waits(options->sources),
		.wait_min_ns = options->wait_min_ns,
		.stack_gap_ns = options->stack_gap_ns,
		.follow = options->follow,
		.hold_exec = options->command && (options->sources & CAPTURE_SPANS),
	};
	if (!filter)
		return 0;
	result = plan_open(plan, filter, options->keep_children, err);
	if (result)
		return result;
	kernel->filtered = !(*plan)->is_static;
	kernel->tracks = (*plan)->tracks;
	kernel->keep_children = options->keep_children;
	kernel->holds = filter_uses(filter, FILTER_DUR);
	kernel->rate = filter->rate;
	return 0;
}

static int session_kernel_open(struct session *session)
{
	struct kernel_options kernel;

	return session_configure(&kernel, &session->plan, session->options, session->err)
		       ?: kernel_open(&session->kernel, &kernel, session->err);
}

static int start(struct session *session)
{
	const struct session_options *options = session->options;
	struct drain_callbacks callbacks = {record_store, record_notice, session};
	int result = loop_open(session)
			     ?: session_kernel_open(session)
			     ?: drain_open(&session->drain, session->kernel, &callbacks, session->err)
			     ?: writer_open(session)
			     ?: details_open(&session->details, session->kernel, session->writer,
					     session->err)
			     ?: arming_open(&session->arming, session->kernel, session->writer,
					    session->plan, options->follow, session->err)
			     ?: targets_open(session);

	for (uint32_t i = 0; !result && i < kernel_ring_count(session->kernel); i++)
		result = watch_fd(session, kernel_ring_fd(session->kernel, i), EPOLLIN | EPOLLET,
				  TAG_RING);
	if (result)
		return result;
	session->pace = pace_begin(options->ring_bytes, kernel_ring_count(session->kernel),
				   wants_sched(options) ? options->sched_bytes : 0,
				   kernel_cpu_count(session->kernel));
	watch_open(session);
	result = kernel_attach(session->kernel, session->err)
			 ?: kernel_snapshot(session->kernel, false, state_store, session,
					    session->err)
			 ?: arm_all(session);
	session->result->ready_cpu_ns = cpu_ns();
	return result;
}

/*
 * The end is one moment for all sites: disarming them takes the kernel some milliseconds, in which
 * it would still report ends of spans whose begins it does not report any more.
 */
static int finish(struct session *session)
{
	struct error ignored = ERROR_INIT;
	int result;

	kernel_snapshot(session->kernel, true, state_store, session, &ignored);
	kernel_finish(session->kernel);
	session->end_ts = clock_monotonic_ns();
	session->result->duration_ns = session->end_ts - session->start_ts;
	session->result->tracer_cpu_ns = cpu_ns() - session->result->ready_cpu_ns;
	arming_release(session->arming);
	kernel_detach(session->kernel);
	result = drain(session, true);
	if (details_warning(session->details))
		notify(session, details_warning(session->details));
	session->result->sites = arming_site_count(session->arming);
	return result;
}

static void close_all(struct session *session)
{
	arming_close(session->arming);
	mmap_watch_close(session->watch);
	drain_close(session->drain);
	details_close(session->details);
	launch_abort(
		&session->launch); /* it has a copy of the pipe whose end kernel_close() awaits */
	kernel_close(session->kernel);
	plan_free(session->plan);
	for (size_t i = 0; i < session->targets.len; i++)
		close(session->targets.data[i].pidfd);
	vec_free(&session->targets);
	close(session->epoll);
	close(session->timer);
	close(session->signals);
	sigprocmask(SIG_SETMASK, &session->old_mask, NULL);
}

static void filter_say(const char *line, void *arg)
{
	notify(arg, line);
}

/* A filter that nothing can pass is a mistake, most likely in a name; unless it is for switches. */
static void warn_of_filter(struct session *session)
{
	const struct filter_expr *filter = session->options->filter;
	char names[400], line[600];

	plan_warn(session->plan, filter_say, session);
	if (arming_match_count(session->arming) ||
	    (filter_uses(filter, FILTER_KIND) && filter_wants_sched(filter)))
		return;
	arming_names(session->arming, names, sizeof(names));
	snprintf(line, sizeof(line), "no site can match the filter; there are sites named %s",
		 names);
	notify(session, line);
}

/* Sources that were wanted and that this kernel does not have. */
static void warn_of_sources(struct session *session)
{
	uint32_t wanted = session->options->sources, missing = wanted & ~sources_recorded(session);
	char names[SOURCES_TEXT], line[300];

	if (wanted == CAPTURE_DEFAULT)
		missing &= ~CAPTURE_OF_MACHINE;
	if (!missing || !wants_sched(session->options))
		return;
	snprintf(line, sizeof(line), "this kernel does not tell of: %s; not recorded",
		 sources_text(names, missing));
	notify(session, line);
}

static void warn_after_arming(struct session *session)
{
	warn_of_sources(session);
	warn_of_arming(session);
	if (!session->options->command && wants_spans(session) &&
	    !arming_site_count(session->arming))
		notify(session,
		       "no sites in the target's files: it was built without waffle.h, or its "
		       "notes were stripped; only the scheduler is recorded");
	if (session->plan && !session->options->command && arming_site_count(session->arming))
		warn_of_filter(session);
}

int session_run(const struct session_options *options, const struct session_events *events,
		struct session_result *result, struct error *err)
{
	struct session session = {.options = options,
				  .events = events,
				  .result = result,
				  .err = err,
				  .launch = {-1, -1, -1},
				  .epoll = -1,
				  .timer = -1,
				  .signals = -1};
	struct error close_error = ERROR_INIT;
	struct stat file;
	int code, closed = 0;
	bool started;

	*result = (struct session_result){.exit_status = -1};
	code = start(&session);
	started = !code;
	if (started) {
		warn_after_arming(&session);
		if (options->command) {
			details_ready(session.details);
			launch_go(&session.launch);
		}
		code = loop(&session);
		/* What a command is made of is known by now. */
		if (session.plan && options->command && arming_site_count(session.arming))
			warn_of_filter(&session);
		closed = finish(&session);
	}
	if (session.writer) {
		int written = store_writer_close(session.writer, session.end_ts, result->counts,
						 &close_error);

		if (!code && !closed && written)
			closed = error_set(err, -written, "%s", close_error.message);
		if (!started) { /* nothing was captured */
			unlink(options->output);
			result->file_written = false;
		} else if (!stat(options->output, &file)) {
			result->file_bytes = (uint64_t)file.st_size;
		}
	}
	close_all(&session);
	return code ?: closed;
}
