// SPDX-License-Identifier: Apache-2.0
/* The list of targets: found by pid, added, removed. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/address_space/processes.h"
#include "capture/session_internal.h"
#include "target/process/container_id.h"
#include "target/process/process.h"
#include "target/process/rank.h"

struct target *target_find(struct session *session, pid_t pid)
{
	uint32_t index = map_get(&session->target_at, (uint64_t)pid);

	return index == MAP_NONE ? NULL : &session->targets.data[index];
}

/* Writes the rank of a process, if it has one. The environment may change with each exec. */
static int target_rank(struct session *session, pid_t pid)
{
	struct process_rank found;
	struct store_rank rank = {.pid = (uint32_t)pid, .ts = clock_monotonic_ns()};

	if (processes_is_privileged(address_spaces_processes(session->spaces), pid) ||
	    !process_rank_read(&found, pid))
		return 0;
	rank.rank = found.rank;
	rank.world_size = found.world_size;
	rank.job = found.job;
	return store_writer_add_rank(session->writer, &rank, session->err);
}

/* Writes the container of a process, if it is in one. */
static int target_container(struct session *session, pid_t pid)
{
	char id[CONTAINER_ID_BYTES];
	struct store_attribute attribute = {
		.pid = (uint32_t)pid,
		.ts = clock_monotonic_ns(),
		.key = STORE_CONTAINER_ID,
		.value = id,
	};

	if (!container_id_read(id, pid))
		return 0;
	return store_writer_add_attribute(session->writer, &attribute, session->err);
}

/* Writes the network namespace of a process: two sockets with the same addresses may be in two. */
static int target_network(struct session *session, pid_t pid)
{
	uint64_t network = process_network(pid);
	char value[24];
	struct store_attribute attribute = {.pid = (uint32_t)pid,
					    .ts = clock_monotonic_ns(),
					    .key = STORE_NETWORK,
					    .value = value};

	if (!network)
		return 0;
	snprintf(value, sizeof(value), "%" PRIu64, network);
	return store_writer_add_attribute(session->writer, &attribute, session->err);
}

/* Writes the nice value of a process, which may have another one after an exec. */
static int target_nice(struct session *session, pid_t pid)
{
	char value[16];
	struct store_attribute attribute = {.pid = (uint32_t)pid,
					    .ts = clock_monotonic_ns(),
					    .key = STORE_NICE,
					    .value = value};
	int nice;

	errno = 0;
	nice = getpriority(PRIO_PROCESS, (id_t)pid);
	if (errno) /* it is gone; -1 is a value as well */
		return 0;
	snprintf(value, sizeof(value), "%d", nice);
	return store_writer_add_attribute(session->writer, &attribute, session->err);
}

/* Says of the first process that it was found by a name or a cgroup: the user did not name it. */
static int target_found(struct session *session, pid_t pid)
{
	const struct session_options *options = session->options;
	struct store_attribute attribute = {.pid = (uint32_t)pid,
					    .ts = clock_monotonic_ns(),
					    .key = STORE_FOUND,
					    .value = "yes"};

	if (!options->found || !options->pid_count || options->pids[0] != pid)
		return 0;
	return store_writer_add_attribute(session->writer, &attribute, session->err);
}

/* Writes facts of /proc about a process. */
int target_describe(struct session *session, pid_t pid)
{
	char cmdline[4096];
	struct store_process process = {.pid = (uint32_t)pid,
					.ppid = (uint32_t)process_parent(pid),
					.ts = clock_monotonic_ns(),
					.cmdline = cmdline};

	if (session->options->redaction && session->options->redaction->args)
		cmdline[0] = '\0';
	else
		process_cmdline(pid, cmdline, sizeof(cmdline));
	return store_writer_add_process(session->writer, &process, session->err)
		       ?: target_rank(session, pid)
		       ?: target_container(session, pid)
		       ?: target_network(session, pid)
		       ?: target_nice(session, pid)
		       ?: target_found(session, pid);
}

void target_remove(struct session *session, struct target *target)
{
	pid_t pid = target->pid;

	if (target->exec_pending)
		program_ended(session, target);
	if (target->pidfd >= 0)
		close(target->pidfd);
	else
		session->unwatched--;
	holds_free(&target->holds);
	map_remove(&session->target_at, (uint64_t)pid);
	*target = session->targets.data[--session->targets.len];
	if (target != &session->targets.data[session->targets.len])
		map_set(&session->target_at, (uint64_t)target->pid,
			(uint32_t)(target - session->targets.data));
	arming_forget(session->arming, pid);
	if (session->transport)
		transport_forget(session->transport, pid);
	kernel_forget(session->kernel, pid);
	stages_forget(&session->stages, pid);
}

/* At most half of the descriptors may watch exits, since other things need descriptors, too. */
static bool may_watch(const struct session *session)
{
	return session->targets.len - session->unwatched < session->files_max / 2;
}

/* Opens a descriptor that becomes readable when the process exits. -1: it is polled instead.
 * -ESRCH: it is gone. */
static int target_open(const struct session *session, pid_t pid)
{
	int fd = may_watch(session) ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

	if (fd >= 0 || !kill(pid, 0) || errno == EPERM)
		return fd;
	return -ESRCH;
}

int target_add(struct session *session, pid_t pid)
{
	struct target target = {.pid = pid}, *known = target_find(session, pid);
	int result = 0;

	if (known && !known->exit_ts)
		return 0;
	if (known) /* the pid was reused */
		target_remove(session, known);
	target.pidfd = target_open(session, pid);
	if (target.pidfd == -ESRCH)
		return 0;
	if (!vec_reserve(&session->targets, 1) ||
	    !map_set(&session->target_at, (uint64_t)pid, (uint32_t)session->targets.len)) {
		if (target.pidfd >= 0)
			close(target.pidfd);
		return error_set(session->err, ENOMEM, "out of memory");
	}
	session->targets.data[session->targets.len++] = target;
	if (target.pidfd >= 0)
		result = session_watch(session, target.pidfd, EPOLLIN | EPOLLONESHOT,
				       TAG_PROCESS + (uint64_t)pid);
	else
		session->unwatched++;
	return result ?: target_describe(session, pid);
}
