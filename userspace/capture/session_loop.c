// SPDX-License-Identifier: Apache-2.0
/* The main loop of a capture: its wake-ups, the interval between drains, and its end. */
#include <stdio.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/process/opener.h"

#include "capture/session_internal.h"
#include "target/process/process.h"
#include "target/worker/worker_queue.h"

#define FLUSH_NS 1000000000ull /* maximum interval between chunks: what a killed tracer loses */
#define PROGRESS_NS 100000000ull
#define WAIT_MS_MAX 1000
#define PATIENCE_NS 5000000000ull /* the same at the end, until we give up */
#define WRITING_MS 50             /* between two looks at the process that writes a file */
#define STUCK_NS 1000000000ull    /* time without progress of the file until that is reported */
/* The limit after the user has interrupted the wait. A file that makes progress is still
 * completed. */
#define IMPATIENCE_NS 100000000ull
/* The limit of waiting for parsing in one turn of the loop. Most files are parsed faster; the
 * others are armed later. */
#define PARSE_NS 10000000ull
#define AWAIT_MS 5 /* between two drains while waiting */

static int timer_set(struct session *session, uint64_t ns)
{
	struct itimerspec period = {.it_value.tv_nsec = (long)ns, .it_interval.tv_nsec = (long)ns};

	return timerfd_settime(session->timer, 0, &period, NULL) ? session_fail(session, "timer")
								 : 0;
}

/* After a drain: sets when the next one is due. */
static int timer_adapt(struct session *session)
{
	uint64_t records = 0, before = session->interval.ns;

	for (unsigned i = 0; i < WAFFLE_SOURCE_COUNT; i++)
		records += session->result->counts[i].delivered;
	drain_interval_update(&session->interval, records,
			      session->rings ? ring_set_filled(session->rings) : 0);
	return session->interval.ns == before ? 0 : timer_set(session, session->interval.ns);
}

/* Each file and each kind of filtered site needs a descriptor. */
static void files_raise(struct session *session)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &session->files);
	limit = session->files;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	session->files_max = limit.rlim_cur;
}

static int parsed_watch(struct session *session)
{
	int fd = worker_queue_fd();

	return fd < 0 ? 0 : session_watch(session, fd, EPOLLIN, TAG_PARSED);
}

int loop_open(struct session *session)
{
	sigset_t set;

	files_raise(session);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	if (session->options->recorder.window_ns)
		sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, &session->old_mask);
	session->epoll = epoll_create1(EPOLL_CLOEXEC);
	session->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	session->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (session->epoll < 0 || session->signals < 0 || session->timer < 0)
		return session_fail(session, "setting up");
	opener_stop_at(session->signals);
	return worker_queue_open(session->err)
		       ?: timer_set(session, DRAIN_INTERVAL_BUSY_NS)
		       ?: session_watch(session, session->timer, EPOLLIN, TAG_TIMER)
		       ?: session_watch(session, session->signals, EPOLLIN, TAG_SIGNAL)
		       ?: parsed_watch(session);
}

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

/* Counts the signals. The terminal also sends the first Ctrl-C to a command that runs in it, which
 * then ends by itself. All other signals are forwarded to the command. */
static void signals_read(struct session *session)
{
	struct signalfd_siginfo info;

	while (read(session->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGUSR1) {
			flight_request(session);
			continue;
		}
		if (session->options->command && !session->child_done && !session->interrupts++) {
			if (info.ssi_signo != SIGINT || info.ssi_code != SI_KERNEL)
				kill(session->launch.pid, (int)info.ssi_signo);
			continue;
		}
		session->interrupts += 2;
	}
}

/* Whether a signal arrived while the last records are written: the user does not want to wait. */
bool loop_impatient(struct session *session)
{
	unsigned before = session->interrupts;

	signals_read(session);
	return session->interrupts != before;
}

/* ---- the file ---- */

static void writer_report(struct session *session, const char *what)
{
	char line[4400];

	snprintf(line, sizeof(line), "%s: %s", session->result->output, what);
	session_report(session, line);
}

/*
 * Whether the file is so far behind that the rings are not read. The kernel then drops and counts
 * records that do not fit. The loop continues, to handle signals and exits of targets.
 */
static bool writer_is_behind(struct session *session)
{
	struct store_progress progress = store_writer_progress(session->writer);
	uint64_t now = clock_monotonic_ns();

	session->stuck =
		progress.queued > WRITER_BEHIND_BYTES && now > progress.moved_ns + STUCK_NS;
	if (session->stuck && !session->stuck_reported) {
		session->stuck_reported = true;
		writer_report(
			session,
			"its file system does not answer: records that do not fit in memory are "
			"lost; Ctrl-C ends the capture");
	}
	return progress.queued > WRITER_BEHIND_BYTES;
}

bool loop_await_writer(struct session *session, size_t most)
{
	session->awaited_ts = session->awaited_ts ?: clock_monotonic_ns();
	while (true) {
		struct store_progress progress = store_writer_progress(session->writer);
		uint64_t now = clock_monotonic_ns(), since = progress.moved_ns;

		if (most ? progress.queued <= most : !progress.busy)
			return true;
		since = since > session->awaited_ts ? since : session->awaited_ts;
		session->gave_up |= loop_impatient(session) || now > since + PATIENCE_NS;
		if (session->gave_up && now > since + IMPATIENCE_NS)
			return false;
		if (!session->await_reported && now > since + STUCK_NS) {
			session->await_reported = true;
			writer_report(session,
				      "its file system does not answer: waiting some seconds; "
				      "Ctrl-C ends it at once");
		}
		store_writer_wait(session->writer, session->signals, WAIT_MS_MAX / 10);
	}
}

static bool flight_await(struct session *session)
{
	uint64_t until = clock_monotonic_ns() + PATIENCE_NS;

	while (flight_is_writing(session)) {
		if (loop_impatient(session) || clock_monotonic_ns() > until)
			return false;
		poll(NULL, 0, WRITING_MS);
	}
	return true;
}

bool loop_await_flight(struct session *session)
{
	if (!flight_await(session))
		return false;
	flight_flush(session);
	return flight_await(session);
}

/* Targets are removed from the list when their last records have been drained. */
static bool targets_are_gone(const struct session *session)
{
	for (size_t i = 0; i < session->targets.len; i++)
		if (!session->targets.data[i].is_waker &&
		    (!session->stuck || !session->targets.data[i].exit_ts))
			return false;
	return true;
}

static bool stopping(const struct session *session, uint64_t now)
{
	const struct session_options *options = session->options;

	return targets_are_gone(session) || session->full || flight_is_over(session) ||
	       session->interrupts >= 2 || (!options->command && session->interrupts) ||
	       (options->duration_ns && now - session->armed_ts >= options->duration_ns);
}

static void cpu_online(uint32_t cpu, void *arg)
{
	struct session *session = arg;

	mmap_watch_cpu(session->watch, cpu);
}

static int housekeeping(struct session *session, uint64_t now)
{
	struct session_result *result = session->result;

	kernel_sweep(session->kernel, now);
	if (session->stages.functions && python_calls_round(session->stages.functions, now))
		session->busy = true;
	if (flight_turn(session) || wakers_round(session, now))
		return -EIO;
	if (launch_executed(&session->launch) && session_publish(session))
		return -EIO;
	if (now - session->flush_ts >= FLUSH_NS) {
		session->flush_ts = now;
		kernel_cpus_check(session->kernel, cpu_online, session);
		if (store_writer_flush(session->writer, result->counts, session->err) ||
		    (session_wants_sched(session->options) && targets_name_peers(session, false)))
			return -EIO;
	}
	result->file_bytes = store_writer_bytes(session->writer);
	result->armed = session_armed(session);
	if (session->events->progress && session->armed_ts &&
	    now - session->progress_ts >= PROGRESS_NS) {
		session->progress_ts = now;
		session->events->progress(result, now - session->armed_ts, session->events->arg);
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
				return session_fail(session, "timer");
			break;
		case TAG_FILE: /* at once, since the next program may be about to load it */
			arming_changed(session->arming);
			break;
		case TAG_GATE:
			if (programs_held(session))
				return -EIO;
			break;
		case TAG_PARSED:
			worker_queue_answered();
			session->parsed = true;
			targets_parsed(session);
			/* First those that the gate has let go by now. */
			if (programs_held(session))
				return -EIO;
			programs_again(session);
			break;
		case TAG_SIGNAL: /* read in each turn, however many other events are ready */
		case TAG_RING:   /* woken for a fork or an exec, which the drain handles */
		case TAG_MMAP:
			break;
		default:
			target_exited(session, (pid_t)(events[i].data.u64 - TAG_PROCESS));
		}
	}
	return 0;
}

/* Returns for how long the loop may wait, at most until the end of --duration. */
static int wait_ms(const struct session *session)
{
	uint64_t spent = clock_monotonic_ns() - session->armed_ts;
	uint64_t duration = session->options->duration_ns, left = WAIT_MS_MAX;

	if (duration)
		left = spent < duration ? (duration - spent) / 1000000 + 1 : 0;
	if (session->busy)
		return 0;
	return targets_wait_ms(session, left < WAIT_MS_MAX ? (int)left : WAIT_MS_MAX);
}

static int turn(struct session *session, int ms)
{
	struct epoll_event events[32];
	int count = epoll_wait(session->epoll, events, 32, ms);

	if (count < 0 && errno != EINTR)
		return session_fail(session, "epoll");
	session->busy = false;
	worker_queue_wait_until(clock_monotonic_ns() + PARSE_NS);
	return dispatch(session, events, count > 0 ? count : 0)
		       ?: (writer_is_behind(session) ? 0 : session_drain(session))
		       ?: timer_adapt(session);
}

int loop_await(struct session *session, uint64_t until_ns)
{
	session->parsed = false;
	while (!session->parsed && !session->interrupts && clock_monotonic_ns() < until_ns) {
		struct pollfd events = {session->epoll, POLLIN, 0};
		int result;

		/* Uses poll(), since tests take epoll_wait() as the sign that everything is
		 * armed. */
		poll(&events, 1, AWAIT_MS);
		result = turn(session, 0);
		if (result)
			return result;
		signals_read(session);
		result = housekeeping(session, clock_monotonic_ns());
		if (result)
			return result;
	}
	return session->parsed;
}

int loop_run(struct session *session)
{
	kernel_looks_briefly(session->kernel);
	while (true) {
		int result = turn(session, wait_ms(session)) ?: targets_rearm(session);
		uint64_t now;

		targets_remove(session);
		signals_read(session);
		now = clock_monotonic_ns();
		child_reap(session);
		if (!result)
			result = housekeeping(session, now);
		if (result || stopping(session, now))
			return result;
	}
}

/* Discards signals that arrived during the end. They only requested the end and must not terminate
 * the report. */
void loop_close(struct session *session)
{
	struct signalfd_siginfo info;

	while (read(session->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		;
	worker_queue_close();
	opener_stop_at(-1);
	opener_until(0);
	close(session->epoll);
	close(session->timer);
	close(session->signals);
	sigprocmask(SIG_SETMASK, &session->old_mask, NULL);
}
