// SPDX-License-Identifier: Apache-2.0
#include "target/worker/worker.h"

#include <elf.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "target/elf/buildid.h"
#include "target/elf/debuginfod.h"
#include "target/process/mounts.h"
#include "target/process/opener.h"
#include "target/process/path_at.h"
#include "target/worker/worker_internal.h"
#include "target/worker/worker_message_internal.h"
#include "util/clock.h"
#include "util/hash.h"
#include "util/input.h"
#include "util/map.h"

/* A worker that has not replied after this time is given up, together with its helper. Its own
 * requests for files do not extend the time. */
#define ANSWER_SECONDS 120
#define REQUEST_SECONDS 10 /* limit for a worker to accept a request */
#define NOTICES_MAX 16
#define END_MS 500 /* then a helper that has not exited is killed */
/* A helper that has not replaced its worker after this time is given up. */
#define RENEW_MS 10000
#define RENEW_STEP_MS 20

struct worker_process {
	pthread_mutex_t lock;
	struct worker_sockets sockets;
	pid_t helper;
	bool broken;
	uint64_t owner;   /* owner_of() the files that the worker has read */
	uint64_t culprit; /* key under which its death is counted, see culprit_of() */
	bool named;       /* the request names a file, which the worker will ask for */
	struct debuginfod *debuginfod;
	struct worker_opens *opens; /* of the current request; NULL: nobody wants them */
};

/*
 * Global, like standard error: all callers in the process share the workers, and the workers have
 * no settings in which callers could differ.
 */
static struct {
	bool started;
	unsigned patience; /* in seconds */
	int stop;          /* worker_stop_at(); -1: none */
	struct worker_process list[WORKER_USES];
	int given_up[WORKER_USES]; /* worker_give_up(): eventfds, readable while set */
	pthread_mutex_t lock;      /* protects the members below */
	unsigned notice_count;
	char notices[NOTICES_MAX][1024];
	struct map deaths; /* culprit_of() a file → number of workers that died on such files */
} workers;

static void socket_close(int *socket)
{
	if (*socket >= 0)
		close(*socket);
	*socket = -1;
}

static void process_end(struct worker_process *process)
{
	const struct timespec moment = {.tv_nsec = 1000000};
	const char end = CONTROL_END;
	bool ended = process->helper <= 0;

	/* Closing our sockets may not be enough, since another child may hold copies. */
	if (!ended)
		(void)!send(process->sockets.control, &end, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	socket_close(&process->sockets.requests);
	socket_close(&process->sockets.control);
	/* The helper then exits by itself, and its worker with it. */
	for (unsigned i = 0; i < END_MS && !ended; i++) {
		ended = waitpid(process->helper, NULL, WNOHANG) != 0;
		if (!ended)
			nanosleep(&moment, NULL);
	}
	if (!ended) {
		kill(process->helper, SIGKILL);
		while (waitpid(process->helper, NULL, 0) < 0 && errno == EINTR)
			;
	}
	process->helper = 0;
	process->broken = true;
}

static bool pair_open(int *ours, int *theirs)
{
	const struct timeval silence = {.tv_sec = ANSWER_SECONDS}, room = {REQUEST_SECONDS, 0};
	int sockets[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
		return false;
	*ours = sockets[0];
	*theirs = sockets[1];
	return !setsockopt(*ours, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof(silence)) &&
	       !setsockopt(*ours, SOL_SOCKET, SO_SNDTIMEO, &room, sizeof(room));
}

static int process_start(struct worker_process *process, const struct worker_table *table)
{
	struct worker_sockets theirs = {-1, -1};
	pid_t parent = getpid();
	int result = 0;

	pthread_mutex_init(&process->lock, NULL);
	process->owner = 0;
	process->broken = false;
	process->sockets = theirs;
	if (!pair_open(&process->sockets.requests, &theirs.requests) ||
	    !pair_open(&process->sockets.control, &theirs.control) ||
	    (process->helper = fork()) < 0)
		result = -errno;
	if (!result && !process->helper) {
		workers.started = false;
		helper_run(theirs, parent, table);
	}
	socket_close(&theirs.requests);
	socket_close(&theirs.control);
	if (result)
		process_end(process);
	return result;
}

int worker_start(const struct worker_table *table, struct error *err)
{
	int result = 0;

	if (workers.started)
		return 0;
	pthread_mutex_init(&workers.lock, NULL);
	workers.notice_count = 0;
	workers.patience = ANSWER_SECONDS;
	worker_stop_at(-1);
	for (unsigned i = 0; i < WORKER_USES; i++)
		workers.given_up[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	for (unsigned i = 0; i < WORKER_USES && !result; i++)
		result = workers.given_up[i] < 0 ? -EMFILE : process_start(&workers.list[i], table);
	workers.started = !result;
	if (!result)
		return 0;
	for (unsigned i = 0; i < WORKER_USES; i++) {
		if (workers.list[i].helper > 0)
			process_end(&workers.list[i]);
		socket_close(&workers.given_up[i]);
	}
	return error_set(err, -result, "the processes that parse files can't be made: %s",
			 strerror(-result));
}

void worker_stop(void)
{
	for (unsigned i = 0; workers.started && i < WORKER_USES; i++) {
		process_end(&workers.list[i]);
		socket_close(&workers.given_up[i]);
		debuginfod_close(workers.list[i].debuginfod);
		workers.list[i].debuginfod = NULL;
		pthread_mutex_destroy(&workers.list[i].lock);
	}
	map_free(&workers.deaths);
	workers.started = false;
}

void worker_stop_at(int fd)
{
	workers.stop = fd;
}

void worker_give_up(enum worker_use use, bool give_up)
{
	eventfd_t value;

	if (!workers.started)
		return;
	if (give_up)
		(void)!eventfd_write(workers.given_up[use], 1);
	else
		(void)!eventfd_read(workers.given_up[use], &value);
}

void worker_patience(unsigned seconds)
{
	workers.patience = seconds;
}

bool worker_is_there(void)
{
	return workers.started;
}

uint64_t worker_cpu_ns(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < WORKER_USES && workers.started; i++) {
		pid_t helper = workers.list[i].helper;

		if (helper > 0)
			sum += worker_helper_cpu_ns(helper);
	}
	return sum;
}

int worker_helper(enum worker_use use)
{
	return workers.started ? workers.list[use].helper : 0;
}

/* ---- files that a worker requests ---- */

static int debug_fetch(struct worker_process *process, const char *text)
{
	struct build_id id;

	if (!build_id_parse(&id, text))
		return -EINVAL;
	if (!process->debuginfod)
		process->debuginfod = debuginfod_open();
	return process->debuginfod ? debuginfod_fetch(process->debuginfod, &id) : -ENOENT;
}

/* Whether a parser may need the file. Core files and /proc/kcore are ELF, too, but hold the memory
 * of a program or of the kernel. */
static bool is_parsed(int fd)
{
	unsigned char head[EI_NIDENT + 2], type;

	if (pread(fd, head, sizeof(head), 0) != sizeof(head) || memcmp(head, ELFMAG, SELFMAG) != 0)
		return false;
	type = head[EI_NIDENT + (head[EI_DATA] == ELFDATA2MSB)];
	return type == ET_REL || type == ET_EXEC || type == ET_DYN;
}

/*
 * A file may have taken over the worker that parsed it, so the worker may request anything. It
 * receives only files that it could parse, and no others of this machine.
 */
static int file_open(const char *name, char real[PATH_MAX])
{
	int fd = mounts_are_local(getpid(), MOUNTS_ANY) ? path_at_file(-1, name)
							: opener_file(-1, name);
	char link[64];
	ssize_t len;

	if (fd == -EISDIR || fd == -EINVAL)
		return -ENOEXEC;
	if (fd < 0)
		return fd;
	if (!is_parsed(fd)) {
		close(fd);
		return -ENOEXEC;
	}
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, real, PATH_MAX - 1);
	real[len > 0 ? len : 0] = '\0';
	return fd;
}

/* Whether only the root of this machine can have written a file that belongs to root. The root of a
 * container writes to its overlay, and users mount sticks, images and FUSE file systems that say
 * that root owns a file: with "nosuid". */
static bool is_our_roots(int fd, const struct stat *status)
{
	uint64_t device = (uint64_t)major(status->st_dev) << 20 | minor(status->st_dev);
	struct stat folder;
	struct statvfs mount;

	if (!stat("/", &folder) && folder.st_dev == status->st_dev)
		return true;
	return mounts_device_answers(getpid(), device) && !fstatvfs(fd, &mount) &&
	       !(mount.f_flag & ST_NOSUID);
}

#define OWNER_ANYONE UINT64_MAX
/* The root of some other file system, whose number is added. */
#define OWNER_OF_DEVICE (1ull << 63)

/* Who may have written a file: the user, but 0 only for the root of this machine. */
static uint64_t owner_of(int fd, const struct stat *status)
{
	if (status->st_mode & (S_IWGRP | S_IWOTH))
		return OWNER_ANYONE;
	if (status->st_uid || is_our_roots(fd, status))
		return status->st_uid;
	return OWNER_OF_DEVICE | status->st_dev;
}

/* Records that the worker got a file, with which its owner may have taken it over. */
static void process_saw(struct worker_process *process, int fd)
{
	struct stat status;
	uint64_t owner;

	if (fd < 0 || input_stat(fd, &status))
		return;
	owner = owner_of(fd, &status);
	if (owner && process->owner)
		process->owner = owner == process->owner ? owner : OWNER_ANYONE;
	else if (owner)
		process->owner = owner;
}

/* ---- deaths of workers ---- */

/* A key for whom to blame if a worker dies: the file's owner. Files that others may write to have a
 * key of their own. Without a file, the key is its name. */
static uint64_t culprit_of(int fd, const char *name)
{
	struct stat status;

	if (fd < 0 || input_stat(fd, &status))
		return hash_text(HASH_BEGIN, name) | 1ull << 63;
	return status.st_uid | (uint64_t)((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) << 32;
}

static bool may_parse(uint64_t culprit)
{
	uint32_t deaths;

	pthread_mutex_lock(&workers.lock);
	deaths = map_get(&workers.deaths, culprit);
	pthread_mutex_unlock(&workers.lock);
	return deaths == MAP_NONE || deaths < WORKER_DEATHS_MAX;
}

static void death_count(uint64_t culprit)
{
	uint32_t deaths;

	pthread_mutex_lock(&workers.lock);
	deaths = map_get(&workers.deaths, culprit);
	map_set(&workers.deaths, culprit, deaths == MAP_NONE ? 1 : deaths + 1);
	pthread_mutex_unlock(&workers.lock);
}

static int refused(const char *name, struct error *err)
{
	return error_set(
		err, EPROTO,
		"%s: it is not parsed, since files of its owner have ended parsers %u times", name,
		WORKER_DEATHS_MAX);
}

static void open_note(const struct worker_process *process, const char *name, int result)
{
	struct worker_opens *opens = process->opens;

	if (!opens)
		return;
	if (result == -ENOENT && name[0] == '/' && opens->count < WORKER_OPENS_MAX) {
		wire_put_text(&opens->missing, name);
		opens->count++;
	} else {
		opens->other = true;
	}
}

bool worker_misses(const char *name)
{
	char real[PATH_MAX];
	int fd = file_open(name, real);

	if (fd >= 0)
		close(fd);
	return fd == -ENOENT;
}

static int open_answer(struct worker_process *process, const char *name)
{
	static const char fetched[] = WORKER_DEBUGINFOD;
	struct message message = {.kind = MESSAGE_OPENED};
	char real[PATH_MAX] = "";
	int fd, result;

	if (!strncmp(name, fetched, sizeof(fetched) - 1))
		fd = debug_fetch(process, name + sizeof(fetched) - 1);
	else
		fd = file_open(name, real);
	if (fd >= 0 && !may_parse(culprit_of(fd, name))) {
		close(fd);
		fd = -EACCES;
	}
	if (fd >= 0 && process->named) {
		process->culprit = culprit_of(fd, name);
		process->named = false;
	}
	process_saw(process, fd);
	open_note(process, name, fd);
	message.value = fd < 0 ? fd : 0;
	message.size = message.part = (uint32_t)strlen(real);
	/* Must not block on a worker that takes no replies. */
	result = message_send_now(process->sockets.requests, &message, real, fd);
	if (fd >= 0)
		close(fd);
	return result;
}

/* ---- requests ---- */

static int request_send(int socket, enum worker_op op, const struct wire_out *request, int fd)
{
	struct message message = {
		.kind = MESSAGE_REQUEST, .value = (int)op, .size = request->bytes.len};
	size_t at = 0;

	do {
		size_t left = request->bytes.len - at;
		int result;

		message.part = (uint32_t)(left < MESSAGE_PART_MAX ? left : MESSAGE_PART_MAX);
		result = message_send(socket, &message, request->bytes.data + at, at ? -1 : fd);
		if (result)
			return result;
		at += message.part;
		message.kind = MESSAGE_MORE;
	} while (at < request->bytes.len);
	return 0;
}

/* State and result of a request. */
struct worker_answer {
	uint64_t end; /* when to stop waiting */
	bool stopped; /* given up because of worker_stop_at() or worker_give_up() */
	bool asked;   /* it has requested a file, which it may repeat endlessly */
	bool died;
	int32_t value; /* the handler's result or, if the worker died, its status by waitpid() */
	uint64_t size; /* size of the reply */
	struct wire_out *reply;
};

/* Receives a message from the helper. */
static int control_take(const struct worker_process *process, struct control *control)
{
	ssize_t got;

	do
		got = recv(process->sockets.control, control, sizeof(*control), 0);
	while (got < 0 && errno == EINTR);
	return got == sizeof(*control) ? 0 : -EPIPE;
}

/* worker_stop_at() only applies to arming: a capture that ends arms no more files but still needs
 * names. */
static bool is_for_arming(const struct worker_process *process)
{
	return process == &workers.list[WORKER_FOR_ARMING];
}

static bool is_stopped(const struct worker_process *process)
{
	struct pollfd stops[2] = {
		{.fd = is_for_arming(process) ? workers.stop : -1, .events = POLLIN},
		{.fd = workers.given_up[process - workers.list], .events = POLLIN}};

	return poll(stops, 2, 0) > 0;
}

/* Waits for the helper's next message. The kernel may be unable to end the worker, if a file system
 * does not answer it: then there is none, and the capture's end must not wait for it. */
static int control_await(const struct worker_process *process, struct control *control)
{
	struct pollfd ready = {.fd = process->sockets.control, .events = POLLIN};

	for (int waited = 0; waited < (is_stopped(process) ? END_MS : RENEW_MS);
	     waited += RENEW_STEP_MS)
		if (poll(&ready, 1, RENEW_STEP_MS) > 0)
			return control_take(process, control);
	return -ETIMEDOUT;
}

/* Replaces the worker by a new one, which has not read the files of the old one. */
static int process_renew(struct worker_process *process)
{
	const char renew = CONTROL_RENEW;
	struct control control;
	int result = 0;

	if (send(process->sockets.control, &renew, 1, MSG_NOSIGNAL) != 1)
		return -EPIPE;
	do /* the old worker may have died by itself */
		result = control_await(process, &control);
	while (!result && control.kind != CONTROL_RENEWED);
	process->owner = 0;
	for (ssize_t got = 1; !result && got > 0;) /* drops messages that the old worker left */
		got = recv(process->sockets.requests, &control, sizeof(control),
			   MSG_DONTWAIT | MSG_TRUNC);
	return result;
}

static int milliseconds_until(uint64_t end)
{
	uint64_t now = clock_monotonic_ns();

	return now < end ? (int)((end - now) / 1000000) + 1 : 0;
}

/* Waits for a message from the worker or the helper. 0 or -ETIMEDOUT. */
static int process_wait(const struct worker_process *process, struct worker_answer *answer,
			bool *said)
{
	struct pollfd wait[4] = {
		{.fd = process->sockets.requests, .events = POLLIN},
		{.fd = process->sockets.control, .events = POLLIN},
		{.fd = is_for_arming(process) ? workers.stop : -1, .events = POLLIN},
		{.fd = workers.given_up[process - workers.list], .events = POLLIN}};
	int left, ready;

	do {
		left = milliseconds_until(answer->end);
		ready = left ? poll(wait, 4, left) : 0;
	} while (ready < 0 && errno == EINTR);
	*said = wait[0].revents;
	answer->stopped = ready > 0 && (wait[2].revents || wait[3].revents) &&
			  (answer->asked || (!wait[0].revents && !wait[1].revents));
	return ready > 0 && !answer->stopped ? 0 : -ETIMEDOUT;
}

/* Takes one message. 0: the reply is complete; 1: the worker requested a file; 2: more of the reply
 * follows; or a negative errno. */
static int answer_take(struct worker_process *process, struct worker_answer *answer, char *part,
		       bool first)
{
	struct control control;
	struct message message;
	bool said;
	int fd, result = process_wait(process, answer, &said);

	if (!result && !said) {
		result = control_take(process, &control);
		answer->died = true;
		answer->value = control.status;
		return result;
	}
	if (!result)
		result = message_take(process->sockets.requests, &message, part, MESSAGE_PART_MAX,
				      &fd);
	if (result)
		return result;
	if (fd >= 0)
		close(fd); /* workers have no file to send */
	if (message.kind == MESSAGE_OPEN && first && message.part < PATH_MAX) {
		part[message.part] = '\0';
		answer->asked = true;
		return open_answer(process, part) ?: 1;
	}
	if (message.kind != (first ? MESSAGE_REPLY : MESSAGE_MORE) || (!first && !message.part))
		return -EBADMSG;
	if (first) {
		answer->value = message.value;
		answer->size = message.size;
	}
	if (message.part > answer->size - answer->reply->bytes.len)
		return -EBADMSG;
	wire_put(answer->reply, part, message.part);
	if (answer->reply->no_memory)
		return -ENOMEM;
	return answer->reply->bytes.len < answer->size ? 2 : 0;
}

static int ask(struct worker_process *process, enum worker_op op, const struct wire_out *request,
	       int fd, struct worker_answer *answer)
{
	char *part = malloc(MESSAGE_PART_MAX);
	int result = part ? request_send(process->sockets.requests, op, request, fd) : -ENOMEM;
	bool first = true;

	answer->end = clock_monotonic_ns() + workers.patience * 1000000000ull;
	for (result = result ?: 1; result > 0; first = first && result != 2)
		result = answer_take(process, answer, part, first);
	free(part);
	return result;
}

static void notice_add(const char *line)
{
	pthread_mutex_lock(&workers.lock);
	if (workers.notice_count < NOTICES_MAX)
		snprintf(workers.notices[workers.notice_count++], sizeof(workers.notices[0]), "%s",
			 line);
	pthread_mutex_unlock(&workers.lock);
}

static int failed(const char *name, const char *why, struct error *err)
{
	struct error line = ERROR_INIT;

	error_set(&line, EPROTO, "%s: %s; nothing of this file is used", name, why);
	notice_add(line.message);
	return error_set(err, EPROTO, "%s", line.message);
}

static int died(const char *name, int status, struct error *err)
{
	char why[128];
	int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	if (number == SIGXCPU)
		snprintf(why, sizeof(why), "parsing it takes more than %d s", WORKER_CPU_SECONDS);
	else if (number)
		snprintf(why, sizeof(why), "the process that parsed it was ended by signal %d (%s)",
			 number, strsignal(number));
	else
		snprintf(why, sizeof(why), "the process that parsed it ended");
	return failed(name, why, err);
}

/* Accepts only an errno that a handler may return. */
static int value_of(int32_t value)
{
	return value > 0 || value < -4095 ? -EPROTO : value;
}

/* A file may have taken over the worker that read it, and the worker could then lie about other
 * files. So a worker never reads files of two owners. Files of root may come first. */
static int process_for(struct worker_process *process, int fd)
{
	struct stat status;
	uint64_t owner;
	int result = 0;

	if (fd < 0 || input_stat(fd, &status))
		return 0; /* the request has only a name */
	owner = owner_of(fd, &status);
	if (process->owner && (owner != process->owner || owner == OWNER_ANYONE))
		result = process_renew(process);
	process_saw(process, fd);
	return result;
}

/* Whether to repeat the request with a new worker. */
static bool try_again(const struct worker_answer *answer, unsigned tries)
{
	bool late =
		answer->died && WIFSIGNALED(answer->value) && WTERMSIG(answer->value) == SIGXCPU;

	/* An earlier file may have caused the lack of memory or the death. */
	return tries == 0 && (answer->died || answer->value == -ENOMEM) && !late;
}

static int locked_call(struct worker_process *process, enum worker_op op,
		       const struct wire_out *request, int fd, const char *name,
		       struct wire_out *reply, struct error *err)
{
	struct worker_answer answer;
	unsigned tries = 0;
	int result;

	do {
		answer = (struct worker_answer){.reply = reply};
		reply->bytes.len = 0;
		process->culprit = culprit_of(fd, name);
		process->named = fd < 0;
		if (!may_parse(process->culprit))
			return refused(name, err);
		if (!process->broken && process_for(process, fd))
			process_end(process);
		if (process->broken)
			return error_set(err, EPROTO, "%s: the processes that parse files are gone",
					 name);
		result = ask(process, op, request, fd, &answer);
		if (answer.died || (result && !answer.stopped))
			death_count(process->culprit);
	} while (!result && try_again(&answer, tries++));
	if (result && process_renew(process))
		process_end(process);
	if (result == -ENOMEM)
		return error_set(err, ENOMEM, "out of memory");
	if (result && answer.stopped)
		return error_set(err, EPROTO, "%s: it was given up", name);
	if (result)
		return failed(name, "the process that parsed it did not answer", err);
	if (answer.died)
		return died(name, answer.value, err);
	if (answer.value == -ENOMEM)
		return failed(name, "parsing it takes more memory than a worker may have", err);
	return value_of(answer.value);
}

int worker_call(enum worker_use use, enum worker_op op, const struct wire_out *request, int fd,
		const char *name, struct wire_out *reply, struct error *err)
{
	return worker_call_watched(use, op, request, fd, name, NULL, reply, err);
}

int worker_call_watched(enum worker_use use, enum worker_op op, const struct wire_out *request,
			int fd, const char *name, struct worker_opens *opens,
			struct wire_out *reply, struct error *err)
{
	struct worker_process *process = &workers.list[use];
	int result;

	*reply = (struct wire_out){0};
	if (request->no_memory)
		return error_set(err, ENOMEM, "out of memory");
	pthread_mutex_lock(&process->lock);
	process->opens = opens;
	result = locked_call(process, op, request, fd, name, reply, err);
	process->opens = NULL;
	pthread_mutex_unlock(&process->lock);
	return result;
}

void worker_given_up(const char *name)
{
	struct error ignored = ERROR_INIT;

	failed(name, "the capture ended while it was parsed", &ignored);
}

int worker_reply_bad(const char *name, struct error *err)
{
	return failed(name, "the process that parsed it gave an invalid answer", err);
}

void worker_notices(void (*each)(const char *line, void *arg), void *arg)
{
	for (unsigned i = 0; workers.started && i < workers.notice_count; i++)
		each(workers.notices[i], arg);
}
