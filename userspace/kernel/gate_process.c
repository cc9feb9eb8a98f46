// SPDX-License-Identifier: Apache-2.0
/*
 * The process that answers the kernel. While it does not answer, no program starts on the file
 * systems that it watches. So it takes no lock and allocates nothing, waits for nothing but its two
 * descriptors, and does not block on the tracer.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "bpf/shared.h"
#include "kernel/gate_internal.h"
#include "util/privileges.h"

#define MS 1000000ull
#define SECOND 1000000000ull
#define BEAT_MS 100
#define BEATS_MISSED_MS 500 /* after which a gate that does not run is killed */
#define HELD_MAX 64
#define SPENT_MAX 256
#define SILENCE_MAX 3 /* after so many execs without an answer the tracer counts as stuck */

/* An exec that waits. */
struct held {
	uint64_t id;
	uint64_t since_ts, until_ts;
	pid_t pid;
	int fd; /* identifies the kernel's question; -1: free */
};

/* The time for which a process was held, within the second that began at since_ts. */
struct spent {
	uint64_t since_ts, ns;
	pid_t pid;
};

struct gate_state {
	int group, socket;
	const struct gate_options *options;
	timer_t alarm;
	uint64_t beat_ts, last_id;
	unsigned silence;
	struct held held[HELD_MAX];
	struct spent spent[SPENT_MAX]; /* by pid */
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

/* Re-arms the watchdog: a kernel timer that kills this process unless it is re-armed in time.
 * SIGKILL also ends a process that is stopped, or in a frozen cgroup. */
static void beat(struct gate_state *state, uint64_t now)
{
	const struct itimerspec period = {.it_value.tv_nsec = BEATS_MISSED_MS * MS};

	if (now - state->beat_ts < BEAT_MS / 2 * MS)
		return;
	state->beat_ts = now;
	if (timer_settime(state->alarm, 0, &period, NULL))
		_exit(1);
}

static void allow(const struct gate_state *state, int fd)
{
	struct fanotify_response response = {.fd = fd, .response = FAN_ALLOW};

	/* If the kernel rejects the answer, this process must end, since nothing else releases
	 * that exec. */
	while (write(state->group, &response, sizeof(response)) < 0)
		if (errno != EINTR && errno != ENOENT)
			_exit(1);
		else if (errno == ENOENT)
			break; /* its thread was killed */
	close(fd);
}

/* Whether the programs of a process are held. */
static bool is_target(const struct gate_state *state, pid_t pid)
{
	uint32_t key = (uint32_t)pid, value;
	uint64_t word = __atomic_load_n(&state->options->bits[(key >> 6) & (WAFFLE_TGID_WORDS - 1)],
					__ATOMIC_RELAXED);

	return (word >> (key & 63) & 1) &&
	       !bpf_map_lookup_elem(state->options->targets, &key, &value) &&
	       value == WAFFLE_TARGET;
}

/* Sends a message to the tracer, without waiting. False: the message could not be sent. */
static bool tell(const struct gate_state *state, const struct gate_message *message, int fd)
{
	return gate_send(state->socket, message, sizeof(*message), fd);
}

/* Processes with the same hash of their pid share an entry. A process that loses its entry may
 * be held for longer. */
static struct spent *spent_of(struct gate_state *state, pid_t pid, uint64_t now)
{
	struct spent *spent = &state->spent[(unsigned)pid % SPENT_MAX];

	if (spent->pid != pid || now - spent->since_ts > SECOND)
		*spent = (struct spent){.pid = pid, .since_ts = now};
	return spent;
}

static void release(struct gate_state *state, struct held *held, uint64_t now)
{
	spent_of(state, held->pid, now)->ns += now - held->since_ts;
	allow(state, held->fd);
	held->fd = -1;
}

static struct held *held_find(struct gate_state *state, int fd, uint64_t id)
{
	for (size_t i = 0; i < HELD_MAX; i++)
		if (fd < 0 ? state->held[i].fd < 0
			   : state->held[i].fd >= 0 && state->held[i].id == id)
			return &state->held[i];
	return NULL;
}

static void hold(struct gate_state *state, int fd, pid_t pid)
{
	uint64_t now = now_ns(), spent = spent_of(state, pid, now)->ns;
	struct held *held = held_find(state, -1, 0);
	struct gate_message message = {
		.kind = GATE_EXEC, .pid = pid, .id = state->last_id + 1, .begin_ts = now};

	if (!held || spent >= GATE_HOLD_MS * MS || state->silence >= SILENCE_MAX ||
	    !tell(state, &message, fd)) {
		message.kind = GATE_PASSED;
		message.id = 0;
		tell(state, &message, fd);
		allow(state, fd);
		return;
	}
	*held = (struct held){.id = ++state->last_id,
			      .since_ts = now,
			      .until_ts = now + GATE_HOLD_MS * MS - spent,
			      .pid = pid,
			      .fd = fd};
}

static void questions_read(struct gate_state *state)
{
	_Alignas(struct fanotify_event_metadata) char bytes[4096];
	ssize_t len = read(state->group, bytes, sizeof(bytes));
	const struct fanotify_event_metadata *event = (const void *)bytes;

	if (len < 0 && errno != EAGAIN && errno != EINTR)
		_exit(1);
	for (; len > 0 && FAN_EVENT_OK(event, len); event = FAN_EVENT_NEXT(event, len)) {
		if (event->vers != FANOTIFY_METADATA_VERSION)
			_exit(1);
		if (event->fd < 0)
			continue;
		if (!(event->mask & FAN_OPEN_EXEC_PERM))
			close(event->fd);
		else if (is_target(state, event->pid))
			hold(state, event->fd, event->pid);
		else
			allow(state, event->fd);
	}
}

/* Watches a file system. The tracer has opened a place in it, so no path is walked here, which
 * could wait for another file system. */
static void mark(const struct gate_state *state, int place)
{
	static const char format[] = "/proc/self/fd/";
	char link[sizeof(format) + 3 * sizeof(place)];
	struct gate_message message = {.kind = GATE_MARKED};

	snprintf(link, sizeof(link), "%s%d", format, place);
	message.id = !fanotify_mark(state->group, FAN_MARK_ADD | FAN_MARK_FILESYSTEM,
				    FAN_OPEN_EXEC_PERM, AT_FDCWD, link);
	close(place);
	tell(state, &message, -1);
}

/* Reads the tracer's messages: an exec may go on or, with a descriptor, a file system must be
 * watched.
 */
static void answers_read(struct gate_state *state)
{
	while (true) {
		struct gate_answer answer;
		int place = -1;
		ssize_t len = gate_receive(state->socket, &answer, sizeof(answer), &place);
		struct held *held;

		if (len == -EAGAIN)
			return;
		if (len != sizeof(answer))
			_exit(0); /* the tracer has gone */
		state->silence = 0;
		if (place >= 0) {
			mark(state, place);
			continue;
		}
		held = held_find(state, 0, answer.id);
		if (held)
			release(state, held, now_ns());
	}
}

/* Allows the execs whose time is over. Returns the time at which the next one must be allowed. */
static uint64_t overdue_release(struct gate_state *state, uint64_t now)
{
	uint64_t next_ts = now + BEAT_MS * MS;

	for (size_t i = 0; i < HELD_MAX; i++) {
		struct held *held = &state->held[i];
		const struct gate_message message = {
			.kind = GATE_LATE, .pid = held->pid, .id = held->id};

		if (held->fd < 0)
			continue;
		if (held->until_ts > now) {
			next_ts = held->until_ts < next_ts ? held->until_ts : next_ts;
			continue;
		}
		state->silence++;
		/* First, so that the tracer can know it when the program begins. */
		tell(state, &message, -1);
		release(state, held, now);
	}
	return next_ts;
}

/* Makes it immune to the terminal's and the tracer's signals. */
static void become(struct gate_state *state)
{
	struct sigevent kill = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
	struct rlimit files = {1024, 1024};
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	prctl(PR_SET_NAME, "waffle-gate");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_NOFILE, &files);
	setpriority(PRIO_PROCESS, 0, 0);
	sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
	privileges_keep_tracing();
	if (timer_create(CLOCK_MONOTONIC, &kill, &state->alarm))
		_exit(1);
	beat(state, now_ns());
}

/* Closes the tracer's descriptors, since links that this process keeps open would outlive the
 * tracer. */
static void keep_only(int a, int b, int c)
{
	int last = -1, keep[] = {a, b, c};

	for (size_t done = 0; done < 3; done++) {
		int next = -1;

		for (size_t i = 0; i < 3; i++)
			if (keep[i] > last && (next < 0 || keep[i] < next))
				next = keep[i];
		if (next < 0)
			break;
		if (next > last + 1)
			close_range((unsigned)last + 1, (unsigned)next - 1, 0);
		last = next;
	}
	close_range((unsigned)last + 1, ~0u, 0);
}

void gate_process(int group, int socket, const struct gate_options *options)
{
	struct gate_state state = {.group = group, .socket = socket, .options = options};

	for (size_t i = 0; i < HELD_MAX; i++)
		state.held[i].fd = -1;
	keep_only(group, socket, options->targets);
	become(&state);
	while (true) {
		struct pollfd ready[] = {{group, POLLIN, 0}, {socket, POLLIN, 0}};
		uint64_t now = now_ns(), next_ts = overdue_release(&state, now);

		beat(&state, now);
		if (poll(ready, 2, (int)((next_ts - now) / MS) + 1) < 0 && errno != EINTR)
			_exit(1);
		if (ready[0].revents)
			questions_read(&state);
		if (ready[1].revents)
			answers_read(&state);
	}
}
