// SPDX-License-Identifier: Apache-2.0
#include "store/file_process_internal.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/output.h"
#include "util/privileges.h"
#include "util/vec.h"

/* Precedes the bytes of a request. */
struct write_request {
	uint32_t kind; /* enum file_request */
	uint32_t bytes;
};

struct write_answer {
	int32_t code;
	bool published;
	bool unnamed; /* the request was to publish the file, and failed */
	uint64_t kept;
	char message[sizeof(((struct error *)0)->message)];
};

struct file_process {
	pid_t pid;
	int socket;
	VEC(unsigned char) queue;
	size_t sent; /* bytes at its front that the socket has accepted */
	struct write_answer answer;
	size_t answer_bytes; /* received so far */
	struct file_state state;
};

/* ---- the writer process ---- */

struct served {
	int socket;
	struct output output;
	int code; /* errno of the first write that failed: nothing is written after it */
	uint64_t kept;
	bool published; /* the file has its final name */
	VEC(unsigned char) bytes;
};

static bool all_read(int socket, void *to, size_t bytes)
{
	ssize_t got = 0;

	do /* recv() of 0 bytes would block */
		got = bytes ? recv(socket, to, bytes, MSG_WAITALL) : 0;
	while (got < 0 && errno == EINTR);
	return got >= 0 && (size_t)got == bytes;
}

static void answer_send(struct served *served, const struct write_answer *answer)
{
	if (send(served->socket, answer, sizeof(*answer), MSG_NOSIGNAL) != sizeof(*answer))
		_exit(0);
}

static int all_write(struct served *served)
{
	int fd = fileno(served->output.file);
	size_t done = 0;

	while (done < served->bytes.len) {
		ssize_t n = write(fd, served->bytes.data + done, served->bytes.len - done);

		if (n > 0) {
			done += (size_t)n;
		} else if (n == 0 || errno != EINTR) {
			int code = n ? errno : ENOSPC;

			/* If this fails, readers find the end of the last whole chunk
			 * themselves. */
			if (ftruncate(fd, (off_t)served->kept))
				errno = 0;
			return code;
		}
	}
	served->kept += done;
	return 0;
}

static int request_do(struct served *served, enum file_request kind)
{
	struct error ignored = ERROR_INIT;

	switch (kind) {
	case FILE_WRITE:
		served->code = served->code ?: all_write(served);
		return served->code;
	case FILE_PUBLISH:
		return -output_publish(&served->output, &ignored);
	case FILE_COMMIT:
		return -output_commit(&served->output, &ignored);
	}
	return EINVAL;
}

static void request_serve(struct served *served, enum file_request kind)
{
	struct write_answer answer = {.code = request_do(served, kind)};

	served->published |= kind != FILE_WRITE && !answer.code;
	answer.published = served->published;
	answer.unnamed = kind != FILE_WRITE && answer.code && !served->published;
	answer.kept = served->kept;
	answer_send(served, &answer);
}

static _Noreturn void serve(int socket, const char *path, bool only_new)
{
	struct served served = {.socket = socket};
	struct error err = ERROR_INIT;
	struct write_answer answer = {0};
	struct write_request request;
	int code = only_new ? output_open_new(&served.output, path, &err)
			    : output_open(&served.output, path, &err);

	served.published = !code && !served.output.temporary;
	answer.code = -code;
	answer.published = served.published;
	memcpy(answer.message, err.message, sizeof(answer.message));
	answer_send(&served, &answer);
	while (!code && served.output.file && all_read(socket, &request, sizeof(request))) {
		served.bytes.len = 0;
		if (!vec_reserve(&served.bytes, request.bytes + 1u) ||
		    !all_read(socket, served.bytes.data, request.bytes))
			break;
		served.bytes.len = request.bytes;
		request_serve(&served, (enum file_request)request.kind);
	}
	output_abort(&served.output);
	_exit(0);
}

/* Closes all descriptors of the tracer but the socket. Probes must be released when the tracer
 * ends, and readers of the tracer's messages must see end of file. */
static _Noreturn void become(int socket, const char *path, bool only_new)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	prctl(PR_SET_NAME, "waffle-writer");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	privileges_keep_files();
	/* Descriptors 0 to 2 are opened, so that no file gets their numbers. */
	if (dup2(socket, 3) != 3)
		_exit(1);
	close_range(4, ~0u, 0);
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	if (open("/dev/null", O_RDWR) != 0 || dup(0) != 1 || dup(0) != 2)
		_exit(1);
	serve(3, path, only_new);
}

/* ---- the tracer ---- */

bool file_process_can(const char *path)
{
	return strcmp(path, "-") != 0 && strncmp(path, "/dev/", 5) != 0 &&
	       strncmp(path, "/proc/", 6) != 0;
}

static void failed(struct file_process *process, int code, const char *message)
{
	struct file_state *state = &process->state;

	if (!code || state->code)
		return;
	state->code = code;
	snprintf(state->message, sizeof(state->message), "%s", message);
}

static void process_gone(struct file_process *process)
{
	process->queue.len = process->sent = 0;
	process->state.unanswered = 0;
	failed(process, EPIPE, "the process that writes the file was killed");
}

static void answers_read(struct file_process *process)
{
	struct write_answer *answer = &process->answer;

	while (process->state.unanswered) {
		ssize_t got = recv(process->socket, (char *)answer + process->answer_bytes,
				   sizeof(*answer) - process->answer_bytes, MSG_DONTWAIT);

		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (got <= 0) {
			process_gone(process);
			return;
		}
		process->answer_bytes += (size_t)got;
		if (process->answer_bytes < sizeof(*answer))
			continue;
		process->answer_bytes = 0;
		answer->message[sizeof(answer->message) - 1] = '\0';
		process->state.unanswered--;
		process->state.kept = answer->kept;
		process->state.published = answer->published;
		process->state.unnamed |= answer->unnamed && !process->state.code;
		process->state.moved_ns = clock_monotonic_ns();
		failed(process, answer->code, answer->message);
	}
}

static void queue_send(struct file_process *process)
{
	while (process->sent < process->queue.len) {
		ssize_t n = send(process->socket, process->queue.data + process->sent,
				 process->queue.len - process->sent, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n < 0) {
			process_gone(process);
			break;
		}
		process->sent += (size_t)n;
		process->state.moved_ns = clock_monotonic_ns();
	}
	if (process->sent < process->queue.len / 2 && process->sent < process->queue.len)
		return;
	process->queue.len -= process->sent;
	if (process->queue.len)
		memmove(process->queue.data, process->queue.data + process->sent,
			process->queue.len);
	process->sent = 0;
}

const struct file_state *file_process_look(struct file_process *process)
{
	answers_read(process);
	queue_send(process);
	process->state.queued = process->queue.len - process->sent;
	return &process->state;
}

void file_process_wait(struct file_process *process, int stop, int ms)
{
	bool queued = process->sent < process->queue.len;
	struct pollfd ready[] = {
		{.fd = process->socket, .events = (short)(POLLIN | (queued ? POLLOUT : 0))},
		{.fd = stop, .events = POLLIN},
	};

	poll(ready, 2, ms);
}

bool file_process_send(struct file_process *process, enum file_request kind, const void *data,
		       size_t bytes)
{
	struct write_request request = {.kind = kind, .bytes = (uint32_t)bytes};

	if (!vec_reserve(&process->queue, sizeof(request) + bytes))
		return false;
	/* No request was pending, so the time without progress starts now. */
	if (!process->state.unanswered)
		process->state.moved_ns = clock_monotonic_ns();
	memcpy(process->queue.data + process->queue.len, &request, sizeof(request));
	process->queue.len += sizeof(request);
	if (bytes)
		memcpy(process->queue.data + process->queue.len, data, bytes);
	process->queue.len += bytes;
	process->state.unanswered++;
	file_process_look(process);
	return true;
}

static bool is_readable(int fd)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};

	return fd >= 0 && poll(&ready, 1, 0) == 1;
}

int file_process_settle(struct file_process *process, const char *path, int stop, struct error *err)
{
	while (file_process_look(process)->unanswered) {
		if (is_readable(stop))
			return error_set(err, EINTR,
					 "%s: its file system does not answer; nothing was written",
					 path);
		file_process_wait(process, stop, 1000);
	}
	return 0;
}

static int open_await(struct file_process *process, const char *path, int stop, struct error *err)
{
	int result;

	process->state.unanswered = 1;
	result = file_process_settle(process, path, stop, err);
	return !result && process->state.code
		       ? error_set(err, process->state.code, "%s", process->state.message)
		       : result;
}

int file_process_open(struct file_process **process, const char *path, bool only_new, int stop,
		      struct error *err)
{
	struct file_process *made = calloc(1, sizeof(*made));
	int sockets[2], result;

	*process = NULL;
	if (!made || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets)) {
		result = error_set(err, made ? errno : ENOMEM, "%s: %s", path, strerror(errno));
		free(made);
		return result;
	}
	made->socket = sockets[0];
	made->pid = fork();
	if (!made->pid)
		become(sockets[1], path, only_new);
	close(sockets[1]);
	result = made->pid < 0 ? error_set(err, errno, "%s: %s", path, strerror(errno))
			       : open_await(made, path, stop, err);
	if (result)
		file_process_close(made);
	else
		*process = made;
	return result;
}

void file_process_close(struct file_process *process)
{
	if (!process)
		return;
	/* Another process that is being started may hold the socket as well, so that closing it
	 * would not tell the process. */
	shutdown(process->socket, SHUT_WR);
	close(process->socket);
	if (process->pid > 0 && process->state.unanswered)
		kill(process->pid, SIGKILL);
	/* A process that is blocked in its file system may outlive us. */
	for (unsigned i = 0; process->pid > 0 && i < 100 && !waitpid(process->pid, NULL, WNOHANG);
	     i++)
		usleep(i * 200);
	vec_free(&process->queue);
	free(process);
}
