// SPDX-License-Identifier: Apache-2.0
#include "kernel/gate.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/gate_internal.h"

#define READY_MS 2000 /* marking a file system takes milliseconds */

/* The kernel opens each executed file with the second flags. With O_NONBLOCK it denies the exec of
 * a file with a write lease (F_SETLEASE). Otherwise the gate would wait for the lease, and every
 * other exec for the gate. */
static int group_open(void)
{
	return fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC | FAN_NONBLOCK | FAN_UNLIMITED_QUEUE |
				     FAN_UNLIMITED_MARKS,
			     O_RDONLY | O_LARGEFILE | O_CLOEXEC | O_NONBLOCK);
}

static const char *reason(int code)
{
	if (code == EPERM)
		return "CAP_SYS_ADMIN is missing";
	if (code == EINVAL || code == ENOSYS)
		return "the kernel lacks CONFIG_FANOTIFY_ACCESS_PERMISSIONS";
	return strerror(code);
}

/* The old freezer (cgroup v1) delays even SIGKILL until the process is thawed. */
static bool may_freeze_for_good(void)
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	char *line = NULL;
	size_t size = 0;
	bool may = false;

	/* "6:freezer:/path", or several controllers with commas between. */
	while (file && getline(&line, &size, file) > 0) {
		const char *controllers = strchr(line, ':');
		const char *path = controllers ? strchr(controllers + 1, ':') : NULL;
		const char *name = strstr(line, "freezer");

		may |= path && name && name < path && strcmp(path, ":/\n") != 0;
	}
	free(line);
	if (file)
		fclose(file);
	return may;
}

const char *gate_missing(void)
{
	int group, code;

	if (may_freeze_for_good())
		return "waffle-bpf is in a cgroup of the old freezer, version 1";
	group = group_open();
	code = group < 0 ? errno : 0;
	/* Without permission events the mark is refused, not the group. */
	if (!code && fanotify_mark(group, FAN_MARK_ADD, FAN_OPEN_EXEC_PERM, AT_FDCWD, "/"))
		code = errno;
	if (group >= 0)
		close(group);
	return code ? reason(code) : NULL;
}

static void gate_reap(struct gate *gate)
{
	if (gate->pid > 0) {
		kill(gate->pid, SIGKILL);
		waitpid(gate->pid, NULL, 0);
	}
	gate->pid = 0;
}

/* Whether one of `count` file systems is watched, once all are or the time is up. */
static bool is_ready(struct gate *gate, unsigned count)
{
	struct pollfd ready = {gate->socket, POLLIN, 0};
	bool any = false;

	while (count--) {
		struct gate_message message;

		if (poll(&ready, 1, READY_MS) != 1 ||
		    recv(gate->socket, &message, sizeof(message), MSG_DONTWAIT) != sizeof(message))
			return false;
		any |= message.kind == GATE_MARKED && message.id;
	}
	return any;
}

static int gate_start(struct gate *gate, int group, const struct gate_options *options,
		      struct error *err)
{
	unsigned count;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return error_set(err, errno, "socketpair: %s", strerror(errno));
	gate->pid = fork();
	if (!gate->pid) {
		close(ends[0]);
		gate_process(group, ends[1], options);
	}
	gate->socket = ends[0];
	close(ends[1]);
	if (gate->pid < 0)
		return error_set(err, errno, "fork: %s", strerror(errno));
	count = gate_mark(gate, getpid());
	for (size_t i = 0; i < options->pid_count; i++)
		count += gate_mark(gate, options->pids[i]);
	return is_ready(gate, count) ? 0 : error_set(err, EIO, "no file system can be watched");
}

int gate_open(struct gate **gate, const struct gate_options *options, struct error *err)
{
	const char *missing = gate_missing();
	struct gate *made;
	int group, result;

	*gate = NULL;
	if (missing)
		return error_set(err, EPERM, "%s", missing);
	group = group_open();
	if (group < 0)
		return error_set(err, errno, "%s", reason(errno));
	made = calloc(1, sizeof(*made));
	if (!made) {
		close(group);
		return error_set(err, ENOMEM, "out of memory");
	}
	made->socket = -1;
	made->group = group;
	result = gate_start(made, group, options, err);
	close(group); /* only the gate has it, so when the gate ends the kernel allows all execs */
	if (result)
		gate_close(made);
	else
		*gate = made;
	return result;
}

void gate_close(struct gate *gate)
{
	if (!gate)
		return;
	gate_reap(gate);
	if (gate->socket >= 0)
		close(gate->socket);
	free(gate);
}

int gate_fd(const struct gate *gate)
{
	return gate->socket;
}

struct gate_event gate_next(struct gate *gate)
{
	struct gate_event event = {.kind = GATE_NOTHING, .fd = -1};
	struct gate_message message;
	ssize_t len;

	if (!gate->pid)
		return event;
	len = gate_receive(gate->socket, &message, sizeof(message), &event.fd);
	if (len == -EAGAIN)
		return event;
	if (len != sizeof(message)) {
		gate_reap(gate);
		event.kind = GATE_ENDED;
		return event;
	}
	event.kind = message.kind;
	event.pid = message.pid;
	event.id = message.id;
	event.begin_ts = message.begin_ts;
	return event;
}

void gate_answer(struct gate *gate, uint64_t id)
{
	const struct gate_answer answer = {id};

	/* If the socket is full, the gate releases the exec by its time limit. */
	if (gate->pid)
		gate_send(gate->socket, &answer, sizeof(answer), -1);
}
