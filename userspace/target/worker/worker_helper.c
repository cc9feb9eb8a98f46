// SPDX-License-Identifier: Apache-2.0
/* The helper, which forks workers, and the workers themselves. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/worker/sandbox.h"
#include "target/worker/worker_internal.h"
#include "target/worker/worker_message_internal.h"

/* ---- a worker ---- */

/* Serves an open() of a library, in the handler of SIGSYS: the tracer opens the file. */
static int open_by_tracer(const char *path, char *real, size_t size)
{
	size_t len = strnlen(path, size);
	struct message ask = {.kind = MESSAGE_OPEN, .size = len, .part = (uint32_t)len}, told;
	int fd = -1, result;

	if (len == size)
		return -ENAMETOOLONG;
	result = message_send(SANDBOX_SOCKET, &ask, path, -1);
	if (!result)
		result = message_take(SANDBOX_SOCKET, &told, real, size - 1, &fd);
	if (result)
		_exit(1);
	real[told.part < size ? told.part : 0] = '\0';
	if (told.kind != MESSAGE_OPENED)
		_exit(1);
	return told.value < 0 ? told.value : fd;
}

/* Receives a whole request. False: the tracer is gone. */
static bool request_take(struct message *first, struct wire_out *request, int *fd)
{
	static char part[MESSAGE_PART_MAX];
	struct message message;
	int more;

	request->bytes.len = 0;
	do {
		if (message_take(SANDBOX_SOCKET, first, part, sizeof(part), fd))
			return false;
		if (first->kind != MESSAGE_REQUEST && *fd >= 0)
			close(*fd);
	} while (first->kind != MESSAGE_REQUEST); /* the rest of a request that killed a worker */
	wire_put(request, part, first->part);
	while (request->bytes.len < first->size && !request->no_memory) {
		if (message_take(SANDBOX_SOCKET, &message, part, sizeof(part), &more) ||
		    message.kind != MESSAGE_MORE || !message.part)
			return false;
		wire_put(request, part, message.part);
	}
	return !request->no_memory;
}

static bool reply_send(int value, const struct wire_out *reply)
{
	struct message message = {.kind = MESSAGE_REPLY, .value = value, .size = reply->bytes.len};
	size_t at = 0;

	do {
		size_t left = reply->bytes.len - at;

		message.part = (uint32_t)(left < MESSAGE_PART_MAX ? left : MESSAGE_PART_MAX);
		if (message_send(SANDBOX_SOCKET, &message, reply->bytes.data + at, -1))
			return false;
		at += message.part;
		message.kind = MESSAGE_MORE;
	} while (at < reply->bytes.len);
	return true;
}

/* Whether this worker must exit and be replaced, since it may lack memory for the next file. */
static bool is_full(void)
{
	struct rusage used;

	return sandbox_memory() && !getrusage(RUSAGE_SELF, &used) &&
	       (size_t)used.ru_maxrss * 1024 > sandbox_memory() / 4 * 3;
}

static _Noreturn void worker_run(const struct worker_table *table, pid_t helper)
{
	struct wire_out request = {0};
	struct message message;
	int fd;

	/* A worker must not be able to send messages in the helper's name. */
	close(SANDBOX_CONTROL);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) || getppid() != helper ||
	    sandbox_shut(open_by_tracer))
		_exit(1);
	while (request_take(&message, &request, &fd)) {
		struct wire_in in = wire_in(request.bytes.data, request.bytes.len);
		unsigned op = (unsigned)message.value;
		struct wire_out reply = {0};
		int value = -ENOSYS;

		sandbox_seconds(WORKER_CPU_SECONDS);
		if (op < WORKER_OPS && table->handlers[op].serve)
			value = table->handlers[op].serve(&in, fd, &reply, table->handlers[op].arg);
		if (reply.no_memory) {
			value = -ENOMEM;
			reply.bytes.len = 0;
		}
		if (fd >= 0)
			close(fd);
		if (!reply_send(value, &reply))
			_exit(1);
		wire_out_free(&reply);
		if (value == -ENOMEM || is_full())
			_exit(0);
	}
	_exit(0);
}

/* ---- the helper ---- */

/* Drops messages that a dead worker has left. False: the tracer is gone. */
static bool socket_drain(void)
{
	char byte;
	ssize_t got;

	do
		got = recv(SANDBOX_SOCKET, &byte, 1, MSG_DONTWAIT | MSG_TRUNC);
	while (got > 0 || (got < 0 && errno == EINTR));
	return got < 0 && errno == EAGAIN;
}

struct helper {
	const struct worker_table *table;
	pid_t worker; /* 0: none */
	int pidfd;
};

static bool control_send(int kind, int status)
{
	struct control control = {kind, status};

	return send(SANDBOX_CONTROL, &control, sizeof(control), MSG_NOSIGNAL) == sizeof(control);
}

static int worker_wait(struct helper *helper)
{
	int status = 0;

	while (waitpid(helper->worker, &status, 0) < 0 && errno == EINTR)
		;
	close(helper->pidfd);
	helper->worker = 0;
	return status;
}

static bool worker_make(struct helper *helper)
{
	pid_t self = getpid();

	helper->worker = fork();
	if (!helper->worker)
		worker_run(helper->table, self);
	if (helper->worker < 0)
		return false;
	helper->pidfd = (int)syscall(SYS_pidfd_open, helper->worker, 0);
	if (helper->pidfd >= 0)
		return true;
	kill(helper->worker, SIGKILL);
	worker_wait(helper);
	return false;
}

/* Handles the exit of a worker. False: the helper must exit, too. The number of deaths is not
 * limited: otherwise the files of one user could end the parsing for all users. */
static bool worker_ended(struct helper *helper)
{
	int status = worker_wait(helper);

	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return true; /* a full worker that exited between two requests */
	return socket_drain() && control_send(CONTROL_DIED, status);
}

static bool control_take(struct helper *helper)
{
	char byte;
	int status = 0;

	if (recv(SANDBOX_CONTROL, &byte, 1, 0) != 1 || byte != CONTROL_RENEW)
		return false;
	if (helper->worker) {
		kill(helper->worker, SIGKILL);
		status = worker_wait(helper);
	}
	return socket_drain() && control_send(CONTROL_RENEWED, status);
}

_Noreturn void helper_run(struct worker_sockets sockets, pid_t parent,
			  const struct worker_table *table)
{
	struct helper helper = {.table = table};
	bool good = true;

	/* Set PR_SET_PDEATHSIG only now, since a change of the user id clears it. */
	if (sandbox_drop(sockets.requests, sockets.control) ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) || getppid() != parent)
		_exit(1);
	while (good) {
		struct pollfd wait[2] = {
			{.fd = SANDBOX_CONTROL, .events = POLLIN},
			{.fd = helper.worker ? helper.pidfd : SANDBOX_SOCKET, .events = POLLIN}};

		if (poll(wait, 2, -1) < 0)
			good = errno == EINTR;
		else if (wait[0].revents)
			good = control_take(&helper);
		else if (helper.worker)
			good = worker_ended(&helper);
		else /* the first request forks the first worker */
			good = wait[1].revents == POLLIN && worker_make(&helper);
	}
	if (helper.worker) {
		kill(helper.worker, SIGKILL);
		worker_wait(&helper);
	}
	_exit(0);
}
