// SPDX-License-Identifier: Apache-2.0
#include "target/process/opener.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/process/path_at.h"
#include "util/clock.h"
#include "util/fd_message.h"
#include "util/privileges.h"
#include "util/wire.h"

#define PATHS_MAX 64 /* limit of remembered paths */
/* How often to wait again for a process that is not stuck, but only waits for a CPU. */
#define WAITS_MAX 20
#define SPIN_NS 100000
#define STOP_GRACE_MS 20 /* for an answer after the request to stop */
/* Reading the first bytes of a file shows whether its file system answers. */
#define FIRST_BYTES 64
#define REPLY_MAX (200u << 10) /* further names are omitted */
#define READ_MAX (128u << 10)

enum opener_kind { OPEN_FILE, OPEN_FOLLOW, OPEN_LIST, READ_MEMORY };

struct open_request {
	uint32_t kind;
	bool in_root;    /* the message carries a descriptor: of the root, or of the memory */
	uint32_t size;   /* READ_MEMORY */
	uint64_t offset; /* READ_MEMORY */
	char path[PATH_MAX];
	char prefix[NAME_MAX + 1];
};

struct reply {
	int32_t result; /* 0, or a negative errno */
	uint32_t bytes;
	char text[REPLY_MAX];
};

#define REPLY_HEAD offsetof(struct reply, text)

/* One per process, like the workers (target/worker/worker.c). */
static struct {
	pthread_mutex_t lock;
	pid_t pid; /* 0: not started */
	int socket;
	int stop;          /* the descriptor of opener_stop_at(), plus one; 0: none */
	uint64_t until_ns; /* of opener_until() */
	pid_t stuck[OPENER_STUCK_MAX];
	unsigned stuck_count;
	char *paths[PATHS_MAX]; /* at which processes are stuck */
	unsigned path_count;
} opener = {.lock = PTHREAD_MUTEX_INITIALIZER, .socket = -1};

/* ---- messages ---- */

static bool send_with(int socket, const void *bytes, size_t size, int fd)
{
	const struct iovec part = {(void *)(uintptr_t)bytes, size};

	return !fd_message_send(socket, &part, 1, fd, 0);
}

/* Returns the number of bytes received; below 0: the other end is closed. */
static ssize_t take_with(int socket, void *bytes, size_t size, int *fd)
{
	struct iovec part = {bytes, size};
	int flags = 0;

	return fd_message_take(socket, &part, 1, fd, &flags);
}

/* ---- the process that opens ---- */

static int file_serve(int root, const char *path, int *fd)
{
	char first[FIRST_BYTES];
	int opened = path_at_file(root, path);

	if (opened < 0)
		return opened;
	if (pread(opened, first, sizeof(first), 0) < 0) {
		int result = -errno;

		close(opened);
		return result;
	}
	*fd = opened;
	return 0;
}

static void memory_serve(const struct open_request *request, int memory, struct reply *reply)
{
	size_t size = request->size < READ_MAX ? request->size : READ_MAX;
	ssize_t got = pread(memory, reply->text, size, (off_t)request->offset);

	if (got < 0)
		reply->result = -errno;
	else
		reply->bytes = (uint32_t)got;
}

static void request_serve(const struct open_request *request, int root, struct reply *reply,
			  int *fd)
{
	struct wire_out names = {0};
	char real[PATH_MAX];

	switch (request->kind) {
	case READ_MEMORY:
		memory_serve(request, root, reply);
		return;
	case OPEN_FILE:
		reply->result = file_serve(root, request->path, fd);
		return;
	case OPEN_FOLLOW:
		if (!path_at_follow(root, request->path, real)) {
			reply->result = -ENOENT;
			return;
		}
		reply->bytes = (uint32_t)strlen(real) + 1;
		memcpy(reply->text, real, reply->bytes);
		return;
	default:
		path_at_list(root, request->path, request->prefix, &names);
		if (!names.no_memory)
			reply->bytes = (uint32_t)(names.bytes.len < REPLY_MAX ? names.bytes.len
									      : REPLY_MAX);
		if (reply->bytes)
			memcpy(reply->text, names.bytes.data, reply->bytes);
		wire_out_free(&names);
	}
}

/* Closes all descriptors but its socket: if this process gets stuck, it must not keep descriptors
 * of the tracer open. */
static void serve(int socket, pid_t parent)
{
	static struct open_request request;
	static struct reply reply;
	int fd, root;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "waffle-opener");
	if (getppid() != parent || dup2(socket, 0) != 0)
		_exit(0);
	close_range(1, ~0u, 0);
	sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
	privileges_keep_tracing();
	if (!send_with(0, "", 1, -1))
		_exit(0);
	while (take_with(0, &request, sizeof(request), &root) == sizeof(request)) {
		reply.result = 0;
		reply.bytes = 0;
		fd = -1;
		request_serve(&request, request.in_root ? root : -1, &reply, &fd);
		if (!send_with(0, &reply, REPLY_HEAD + reply.bytes, fd))
			break;
		if (fd >= 0)
			close(fd);
		if (root >= 0)
			close(root);
	}
	_exit(0);
}

/* ---- its callers ---- */

/* Whether the process is not stuck but runnable, by its state in /proc/PID/stat (proc(5)). */
static bool is_runnable(void)
{
	char path[64], text[256] = "";
	const char *state;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", opener.pid);
	file = fopen(path, "re");
	if (file) {
		(void)!fgets(text, sizeof(text), file);
		fclose(file);
	}
	state = strrchr(text, ')');
	return state && !strncmp(state, ") R", 3);
}

static int ms_until(uint64_t ns)
{
	uint64_t now = clock_monotonic_ns(), ms = ns > now ? (ns - now) / 1000000 + 1 : 0;

	return ms < OPENER_WAIT_MS ? (int)ms : OPENER_WAIT_MS;
}

/* Reading memory takes some microseconds. Then we do not give up our CPU: on a busy machine it
 * would take milliseconds to get it back, while a program is held. */
static bool reply_spin(void)
{
	struct pollfd ready = {.fd = opener.socket, .events = POLLIN};
	uint64_t until_ns = clock_monotonic_ns() + SPIN_NS;

	while (poll(&ready, 1, 0) < 1)
		if (clock_monotonic_ns() >= until_ns)
			return false;
	return true;
}

/* Waits for the reply, but no longer than until `stop` (-1: none) is readable, or until until_ns.
 */
static bool reply_await(int stop, uint64_t until_ns)
{
	struct pollfd ready[2] = {{.fd = opener.socket, .events = POLLIN},
				  {.fd = stop, .events = POLLIN}};
	bool over = false;

	for (unsigned i = 0; i < WAITS_MAX && !over; i++) {
		if (poll(ready, 2, ms_until(until_ns)) > 0)
			break;
		over = clock_monotonic_ns() >= until_ns;
		if (!over && !is_runnable())
			break;
	}
	if ((ready[1].revents || over) && !ready[0].revents)
		poll(ready, 1, STOP_GRACE_MS);
	return ready[0].revents;
}

/* Waits until the process reports that it has closed its copies of the tracer's descriptors. With
 * these open, probes would outlive the tracer. */
static bool is_ready(void)
{
	char byte;
	int fd;

	return reply_await(-1, UINT64_MAX) && take_with(opener.socket, &byte, 1, &fd) == 1;
}

static bool start(void)
{
	const int room = 512 << 10;
	pid_t parent = getpid();
	int sockets[2];

	if (opener.pid)
		return true;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
		return false;
	for (int i = 0; i < 2; i++)
		setsockopt(sockets[i], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	opener.pid = fork();
	if (!opener.pid)
		serve(sockets[1], parent);
	close(sockets[1]);
	if (opener.pid < 0) {
		close(sockets[0]);
		opener.pid = 0;
		return false;
	}
	opener.socket = sockets[0];
	return is_ready();
}

static void end(void)
{
	if (!opener.pid)
		return;
	close(opener.socket);
	kill(opener.pid, SIGKILL);
	opener.pid = 0;
	opener.socket = -1;
}

static void paths_forget(void)
{
	while (opener.path_count)
		free(opener.paths[--opener.path_count]);
}

/* Forgets stuck processes that have ended. They are killed, so each ends when its open returns. */
static void stuck_look(void)
{
	for (unsigned i = opener.stuck_count; i > 0; i--)
		if (waitpid(opener.stuck[i - 1], NULL, WNOHANG))
			opener.stuck[i - 1] = opener.stuck[--opener.stuck_count];
	if (!opener.stuck_count)
		paths_forget();
}

static bool is_stuck(const char *path)
{
	for (unsigned i = 0; i < opener.path_count; i++)
		if (!strcmp(opener.paths[i], path))
			return true;
	return false;
}

static void abandon(const char *path)
{
	opener.stuck[opener.stuck_count++] = opener.pid;
	end();
	if (opener.path_count < PATHS_MAX && (opener.paths[opener.path_count] = strdup(path)))
		opener.path_count++;
}

static int locked_ask(const struct open_request *request, int root, struct reply *reply, int *fd)
{
	uint64_t until_ns = opener.until_ns > clock_monotonic_ns() ? opener.until_ns : UINT64_MAX;

	stuck_look();
	if (is_stuck(request->path))
		return -ETIMEDOUT;
	if (opener.stuck_count == OPENER_STUCK_MAX)
		return -EBUSY;
	if (!start() || !send_with(opener.socket, request, sizeof(*request), root)) {
		end();
		return -EIO;
	}
	if (!reply_spin() && !reply_await(opener.stop - 1, until_ns)) {
		abandon(request->path);
		return -ETIMEDOUT;
	}
	if (take_with(opener.socket, reply, sizeof(*reply), fd) < (ssize_t)REPLY_HEAD) {
		end();
		return -EIO;
	}
	return reply->result;
}

/* Returns a descriptor, 0, or a negative errno. With `reply` NULL only a descriptor is wanted. */
static int ask(enum opener_kind kind, int root, const char *path, const char *prefix,
	       struct reply *reply)
{
	struct open_request *request = calloc(1, sizeof(*request));
	struct reply *own = reply ? NULL : calloc(1, sizeof(*own));
	int result = -ENOMEM, fd = -1;

	if (request && (reply || own)) {
		request->kind = kind;
		request->in_root = root >= 0;
		result = strlen(path) < sizeof(request->path) &&
					 strlen(prefix) < sizeof(request->prefix)
				 ? 0
				 : -ENAMETOOLONG;
	}
	if (!result) {
		memcpy(request->path, path, strlen(path));
		memcpy(request->prefix, prefix, strlen(prefix));
		pthread_mutex_lock(&opener.lock);
		result = locked_ask(request, root, reply ? reply : own, &fd);
		pthread_mutex_unlock(&opener.lock);
	}
	free(request);
	free(own);
	return result ?: fd >= 0 ? fd : 0;
}

int opener_file(int root, const char *path)
{
	int result = ask(OPEN_FILE, root, path, "", NULL);

	return result ? result : -EIO; /* 0: no descriptor came (0 is standard input) */
}

bool opener_follow(int root, const char *path, char real[PATH_MAX])
{
	struct reply *reply = calloc(1, sizeof(*reply));
	bool found = reply && !ask(OPEN_FOLLOW, root, path, "", reply) && reply->bytes &&
		     reply->bytes <= PATH_MAX;

	if (found)
		memcpy(real, reply->text, reply->bytes);
	free(reply);
	return found;
}

char *opener_list(int root, const char *folder, const char *prefix, size_t *bytes)
{
	struct reply *reply = calloc(1, sizeof(*reply));
	char *names = NULL;

	*bytes = 0;
	if (reply && !ask(OPEN_LIST, root, folder, prefix, reply) && reply->bytes &&
	    (names = malloc(reply->bytes))) {
		*bytes = reply->bytes;
		memcpy(names, reply->text, reply->bytes);
		names[reply->bytes - 1] = '\0';
	}
	free(reply);
	return names;
}

/* Names the process of an open file such as /proc/PID/mem. False: it is another file. */
static bool process_name(int fd, char name[PATH_MAX])
{
	char link[64];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, name, PATH_MAX - 1);
	name[len > 0 ? len : 0] = '\0';
	if (strncmp(name, "/proc/", 6) != 0)
		return false;
	*strrchr(name, '/') = '\0';
	return true;
}

static ssize_t memory_ask(const struct open_request *request, int fd, void *to)
{
	struct reply *reply = malloc(sizeof(*reply));
	ssize_t result = -EIO;
	int none = -1;

	if (!reply)
		return -ENOMEM;
	pthread_mutex_lock(&opener.lock);
	/* The process ends with the thread that started it. */
	for (unsigned i = 0; i < 2 && result == -EIO; i++)
		result = locked_ask(request, fd, reply, &none);
	pthread_mutex_unlock(&opener.lock);
	if (!result) {
		result = reply->bytes < request->size ? reply->bytes : (ssize_t)request->size;
		memcpy(to, reply->text, (size_t)result);
	}
	free(reply);
	return result;
}

ssize_t opener_read(int fd, void *to, size_t size, uint64_t offset)
{
	struct open_request *request = calloc(1, sizeof(*request));
	ssize_t result;

	if (!request)
		return -ENOMEM;
	request->kind = READ_MEMORY;
	request->in_root = true;
	request->size = (uint32_t)(size < READ_MAX ? size : READ_MAX);
	request->offset = offset;
	if (process_name(fd, request->path))
		result = memory_ask(request, fd, to);
	else
		result = pread(fd, to, size, (off_t)offset);
	free(request);
	return result;
}

void opener_stop_at(int fd)
{
	pthread_mutex_lock(&opener.lock);
	opener.stop = fd + 1;
	pthread_mutex_unlock(&opener.lock);
}

void opener_until(uint64_t ns)
{
	pthread_mutex_lock(&opener.lock);
	opener.until_ns = ns;
	pthread_mutex_unlock(&opener.lock);
}

void opener_stop(void)
{
	pid_t pid;

	pthread_mutex_lock(&opener.lock);
	pid = opener.pid;
	end();
	if (pid)
		waitpid(pid, NULL, 0);
	stuck_look();
	opener.stuck_count = 0;
	paths_forget();
	pthread_mutex_unlock(&opener.lock);
}
