// SPDX-License-Identifier: Apache-2.0
/* Records processes that end waits of the targets, while the capture runs. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/session_internal.h"
#include "capture/wakers_internal.h"
#include "target/process/descriptors.h"
#include "target/process/process.h"
#include "target/process/tcp_peer.h"

#define RECORDED_MAX 8
/* A process with more threads may switch between them very often. */
#define THREADS_MAX 256
/* In the last one of so many parts of a capture no process is added: it could explain little. */
#define LATE_PARTS 4
/* Limit of the time in which other ends of connections are searched. */
#define PEERS_NS 200000000ull

int wakers_begin(struct session *session)
{
	if (!session->options->wakers || !session_wants_sched(session->options))
		return 0;
	session->wakers = wakers_open();
	return session->wakers ? 0 : error_set(session->err, ENOMEM, "out of memory");
}

/* A folder has a link for each one in it, and two for itself. Without root, only processes of our
 * own user are added. */
static bool may_record(pid_t pid)
{
	struct error ignored = ERROR_INIT;
	struct stat threads;
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	return pid != getpid() && !process_check(pid, &ignored) && !process_is_kernel_thread(pid) &&
	       !process_is_privileged(pid) && !stat(path, &threads) &&
	       threads.st_nlink <= THREADS_MAX + 2 && (!geteuid() || threads.st_uid == geteuid());
}

struct states_of {
	struct session *session;
	pid_t pid;
};

/* Keeps the states of its threads until all older records are in the file. */
static int state_keep(const struct waffle_rec *rec, void *arg)
{
	const struct states_of *of = arg;
	const struct waffle_rec_state *state = (const struct waffle_rec_state *)rec;

	wakers_record(of->session->wakers, rec, of->session->armed_ts);
	if (state->tgid == (uint32_t)of->pid && !vec_push(&of->session->waker_states, *state))
		return -ENOMEM;
	return 0;
}

static int states_pass(struct session *session)
{
	struct waffle_rec_state *states = session->waker_states.data;
	size_t count = session->waker_states.len;
	int result = 0;

	if (!count || states[count - 1].rec.ts > drain_delivered_ts(session->drain))
		return 0;
	for (size_t i = 0; i < count && !result; i++) {
		result = stages_pass(&session->stages, &states[i].rec);
		if (result == -EINVAL)
			result = 0; /* it has ended meanwhile */
	}
	session->waker_states.len = 0;
	return result;
}

static void waker_report(struct session *session, pid_t pid, const char *what, uint64_t since_ts)
{
	char comm[16], line[160];

	process_comm(pid, comm);
	snprintf(line, sizeof(line), "%s (%d) %s, and is recorded as well from %.2f s on", comm,
		 pid, what, (double)(since_ts - session->armed_ts) / 1e9);
	session_notify(session, line);
}

/* Nothing is armed in it, and its children are not followed. `what` it does, for the report. */
static int waker_record(struct session *session, pid_t pid, const char *what)
{
	struct states_of states = {session, pid};
	struct store_attribute attribute = {
		.pid = (uint32_t)pid, .key = STORE_WAKER, .value = "yes"};
	struct error ignored = ERROR_INIT;
	struct target *target;
	int result = target_add(session, pid);

	target = result ? NULL : target_find(session, pid);
	if (!target) /* it has ended */
		return result;
	target->is_waker = true;
	session->wakers_recorded++;
	/* Its mappings are read after that, so that no exec is missed in between. Without room for
	 * one more, the capture goes on without it. */
	if (!kernel_target_add_alone(session->kernel, pid, state_keep, &states, &ignored))
		waker_report(session, pid, what, clock_monotonic_ns());
	attribute.ts = clock_monotonic_ns();
	wakers_added(session->wakers, attribute.ts);
	enrich_peers_again(session->enrich);
	return store_writer_add_attribute(session->writer, &attribute, session->err)
		       ?: enrich_process(session->enrich, pid, true, session->err);
}

/* The process at the other end of a connection; 0: none, or it is not known. */
static pid_t peer_find(struct session *session, const struct waker_key *key)
{
	uint64_t begin_ns = clock_monotonic_ns();
	pid_t pid;

	if (session->peers_ns >= PEERS_NS)
		return 0;
	pid = tcp_peer_process(key->pid, key->fd, key->writes,
			       begin_ns + PEERS_NS - session->peers_ns);
	session->peers_ns += clock_monotonic_ns() - begin_ns;
	if (session->peers_ns >= PEERS_NS)
		session_notify(session, "the search for processes at the other ends of connections "
					"took too long: no more of them are recorded");
	return pid;
}

/* 0: it is closed. */
static uint64_t inode_of(const struct waker_key *key)
{
	struct file_key file;
	char kind[32];

	return descriptor_key(&file, kind, sizeof(kind), key->pid, key->fd) ? file.ino : 0;
}

int wakers_round(struct session *session, uint64_t now)
{
	uint64_t duration_ns = session->options->duration_ns;
	uint64_t since_ts = session->armed_ts;
	struct waker_key key;
	int result;

	if (!session->wakers || !since_ts)
		return 0;
	result = states_pass(session);
	if (duration_ns && now - since_ts > duration_ns - duration_ns / LATE_PARTS)
		return result;
	while (!result && session->wakers_recorded < RECORDED_MAX &&
	       wakers_next(session->wakers, since_ts, now, &key) &&
	       !kernel_locks_may_be_held(session->kernel)) {
		bool peer = key.fd >= 0;
		pid_t pid;

		if (!wakers_decide(session->wakers, &key, peer ? inode_of(&key) : 0))
			continue;
		pid = peer ? peer_find(session, &key) : key.pid;
		if (pid && !target_find(session, pid) && may_record(pid))
			result = waker_record(session, pid,
					      peer ? "is at the other end of a long wait"
						   : "ends waits of what is recorded");
	}
	return result;
}
