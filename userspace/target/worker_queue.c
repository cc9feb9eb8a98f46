// SPDX-License-Identifier: Apache-2.0
#include "target/worker_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "util/hash.h"
#include "util/map.h"

/* Beyond this limit, replies that nobody fetched are dropped, oldest first. */
#define ENTRIES_MAX 256
#define REPLIES_MAX (64u << 20)

enum entry_state { ENTRY_WAITS, ENTRY_IS_ASKED, ENTRY_ANSWERED };

struct entry {
	uint64_t key;
	dev_t dev;
	ino_t ino;
	uid_t owner;
	enum entry_state state;
	bool missed;    /* a caller got -EAGAIN for it */
	bool quiet;     /* report nothing if it is given up */
	bool forgotten; /* free it when the thread is done with it */
	enum worker_op op;
	struct wire_out request;
	int fd;
	char *name;
	int result;
	struct wire_out reply;
	struct error problem;
};

/* One per process, like the workers (target/worker.c). */
static struct {
	bool open;
	pthread_t thread;
	pthread_mutex_t lock; /* protects the members below */
	pthread_cond_t wake, answered;
	bool stop;
	VEC(struct entry *) entries; /* in the order of their first request */
	struct map spent_ms;         /* owner of files → milliseconds spent on parsing them */
	int ready, end;              /* eventfds: of worker_queue_fd() and of worker_stop_at() */
	uint64_t wait_until_ns;
	bool quiet;
} queue;

static void entry_free(struct entry *entry)
{
	if (entry->fd >= 0)
		close(entry->fd);
	wire_out_free(&entry->request);
	wire_out_free(&entry->reply);
	free(entry->name);
	free(entry);
}

static void entry_remove(size_t at)
{
	struct entry *entry = queue.entries.data[at];

	queue.entries.len--;
	memmove(&queue.entries.data[at], &queue.entries.data[at + 1],
		(queue.entries.len - at) * sizeof(queue.entries.data[0]));
	entry->forgotten = true;
	if (entry->state != ENTRY_IS_ASKED)
		entry_free(entry);
}

/* ---- the thread ---- */

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static uint32_t spent_ms(uid_t owner)
{
	uint32_t spent = map_get(&queue.spent_ms, owner);

	return spent == MAP_NONE ? 0 : spent;
}

/* Chooses the owner whose files have taken the least time, so that no user's files delay all
 * others'. */
static struct entry *entry_next(void)
{
	struct entry *next = NULL;

	for (size_t i = 0; i < queue.entries.len; i++) {
		struct entry *entry = queue.entries.data[i];

		if (entry->state == ENTRY_WAITS &&
		    (!next || spent_ms(entry->owner) < spent_ms(next->owner)))
			next = entry;
	}
	return next;
}

static void entry_ask(struct entry *entry)
{
	uint64_t begin = now_ms();
	struct wire_out reply;
	int result;

	entry->state = ENTRY_IS_ASKED;
	pthread_mutex_unlock(&queue.lock);
	result = worker_call(WORKER_FOR_ARMING, entry->op, &entry->request, entry->fd, entry->name,
			     &reply, &entry->problem);
	pthread_mutex_lock(&queue.lock);
	entry->result = result;
	entry->reply = reply;
	entry->state = ENTRY_ANSWERED;
	close(entry->fd);
	entry->fd = -1;
	map_set(&queue.spent_ms, entry->owner,
		spent_ms(entry->owner) + (uint32_t)(now_ms() - begin));
	if (entry->missed)
		eventfd_write(queue.ready, 1);
	if (entry->forgotten)
		entry_free(entry);
	pthread_cond_signal(&queue.answered);
}

static void *ask_all(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&queue.lock);
	while (!queue.stop) {
		struct entry *entry = entry_next();

		if (entry)
			entry_ask(entry);
		else
			pthread_cond_wait(&queue.wake, &queue.lock);
	}
	pthread_mutex_unlock(&queue.lock);
	return NULL;
}

int worker_queue_open(struct error *err)
{
	pthread_condattr_t monotonic;

	if (queue.open || !worker_is_there())
		return 0;
	queue.ready = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	queue.end = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&queue.lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&queue.wake, NULL);
	pthread_cond_init(&queue.answered, &monotonic);
	pthread_condattr_destroy(&monotonic);
	queue.stop = queue.quiet = false;
	queue.wait_until_ns = 0;
	queue.open = queue.ready >= 0 && queue.end >= 0 &&
		     !pthread_create(&queue.thread, NULL, ask_all, NULL);
	if (queue.open) {
		worker_stop_at(queue.end);
		return 0;
	}
	close(queue.ready);
	close(queue.end);
	return error_set(err, EAGAIN, "no thread can be made that reads files");
}

/* Reports each file once, although several requests may concern it. */
static void given_up_tell(void)
{
	for (size_t i = 0; i < queue.entries.len; i++) {
		const struct entry *entry = queue.entries.data[i];
		bool told = entry->quiet || !entry->missed || entry->state == ENTRY_ANSWERED;

		for (size_t k = 0; k < i && !told; k++)
			told = !strcmp(queue.entries.data[k]->name, entry->name);
		if (!told)
			worker_given_up(entry->name);
	}
}

void worker_queue_close(void)
{
	if (!queue.open)
		return;
	pthread_mutex_lock(&queue.lock);
	given_up_tell();
	queue.stop = true;
	eventfd_write(queue.end, 1);
	pthread_cond_signal(&queue.wake);
	pthread_mutex_unlock(&queue.lock);
	pthread_join(queue.thread, NULL);
	worker_stop_at(-1);
	queue.open = false;
	while (queue.entries.len)
		entry_remove(queue.entries.len - 1);
	vec_free(&queue.entries);
	map_free(&queue.spent_ms);
	close(queue.ready);
	close(queue.end);
	pthread_cond_destroy(&queue.wake);
	pthread_cond_destroy(&queue.answered);
	pthread_mutex_destroy(&queue.lock);
}

/* ---- callers ---- */

int worker_queue_fd(void)
{
	return queue.open ? queue.ready : -1;
}

bool worker_queue_answered(void)
{
	eventfd_t count;

	return queue.open && !eventfd_read(queue.ready, &count);
}

uint64_t worker_queue_wait_until(uint64_t ns)
{
	uint64_t before = queue.wait_until_ns;

	queue.wait_until_ns = ns;
	return before;
}

bool worker_queue_quiet(bool quiet)
{
	bool before = queue.quiet;

	queue.quiet = quiet;
	return before;
}

static uint64_t request_key(enum worker_op op, const struct wire_out *request,
			    const struct stat *file)
{
	uint64_t hash = hash_bytes(HASH_BEGIN, &op, sizeof(op));

	hash = hash_bytes(hash, &file->st_dev, sizeof(file->st_dev));
	hash = hash_bytes(hash, &file->st_ino, sizeof(file->st_ino));
	hash = hash_bytes(hash, &file->st_size, sizeof(file->st_size));
	hash = hash_bytes(hash, &file->st_ctim, sizeof(file->st_ctim));
	return hash_bytes(hash, request->bytes.data, request->bytes.len);
}

static struct entry *entry_find(uint64_t key, const struct wire_out *request)
{
	for (size_t i = 0; i < queue.entries.len; i++) {
		struct entry *entry = queue.entries.data[i];

		if (entry->key == key && entry->request.bytes.len == request->bytes.len &&
		    !memcmp(entry->request.bytes.data, request->bytes.data, request->bytes.len))
			return entry;
	}
	return NULL;
}

static bool is_full(void)
{
	size_t bytes = 0;

	for (size_t i = 0; i < queue.entries.len; i++)
		if (queue.entries.data[i]->state == ENTRY_ANSWERED)
			bytes += queue.entries.data[i]->reply.bytes.len;
	return queue.entries.len >= ENTRIES_MAX || bytes > REPLIES_MAX;
}

/* Makes room by dropping finished replies. False: the queue is still full. */
static bool room_make(void)
{
	for (size_t i = 0; is_full() && i < queue.entries.len;)
		if (queue.entries.data[i]->state == ENTRY_ANSWERED)
			entry_remove(i);
		else
			i++;
	return queue.entries.len < ENTRIES_MAX;
}

/* Removes a waiting entry of an owner who has used more time. Its caller will request it again. */
static bool room_take(uid_t owner)
{
	size_t victim = queue.entries.len;
	uint32_t most = spent_ms(owner);

	for (size_t i = 0; i < queue.entries.len; i++) {
		const struct entry *entry = queue.entries.data[i];

		if (entry->state == ENTRY_WAITS && spent_ms(entry->owner) > most) {
			most = spent_ms(entry->owner);
			victim = i;
		}
	}
	if (victim == queue.entries.len)
		return false;
	entry_remove(victim);
	return true;
}

/* NULL: there is no room. */
static struct entry *entry_add(uint64_t key, enum worker_op op, const struct wire_out *request,
			       int fd, const char *name, const struct stat *file)
{
	struct entry *entry = NULL;

	if (room_make() || room_take(file->st_uid))
		entry = calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	entry->key = key;
	entry->dev = file->st_dev;
	entry->ino = file->st_ino;
	entry->owner = file->st_uid;
	entry->op = op;
	entry->quiet = queue.quiet;
	entry->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	entry->name = strdup(name);
	wire_put(&entry->request, request->bytes.data, request->bytes.len);
	if (entry->fd >= 0 && entry->name && !entry->request.no_memory &&
	    vec_push(&queue.entries, entry)) {
		pthread_cond_signal(&queue.wake);
		return entry;
	}
	entry_free(entry);
	return NULL;
}

static bool entry_wait(const struct entry *entry)
{
	const struct timespec until = {.tv_sec = (time_t)(queue.wait_until_ns / 1000000000),
				       .tv_nsec = (long)(queue.wait_until_ns % 1000000000)};
	int result = 0;

	while (entry->state != ENTRY_ANSWERED && !result)
		result = pthread_cond_timedwait(&queue.answered, &queue.lock, &until);
	return entry->state == ENTRY_ANSWERED;
}

static int locked_ask(uint64_t key, enum worker_op op, const struct wire_out *request, int fd,
		      const char *name, const struct stat *file, struct wire_out *reply,
		      struct error *err)
{
	struct entry *entry =
		entry_find(key, request) ?: entry_add(key, op, request, fd, name, file);

	if (entry && entry_wait(entry)) {
		wire_put(reply, entry->reply.bytes.data, entry->reply.bytes.len);
		if (entry->problem.message[0])
			error_set(err, EPROTO, "%s", entry->problem.message);
		return reply->no_memory ? error_set(err, ENOMEM, "out of memory") : entry->result;
	}
	if (entry) {
		entry->missed = true;
		entry->quiet &= queue.quiet;
	}
	return error_set(err, EAGAIN, "%s: it is still being parsed", name);
}

int worker_ask(enum worker_op op, const struct wire_out *request, int fd, const char *name,
	       struct wire_out *reply, struct error *err)
{
	struct stat file;
	int result;

	if (!queue.open)
		return worker_call(WORKER_FOR_ARMING, op, request, fd, name, reply, err);
	*reply = (struct wire_out){0};
	if (request->no_memory)
		return error_set(err, ENOMEM, "out of memory");
	if (fstat(fd, &file))
		return error_set(err, errno, "%s: %s", name, strerror(errno));
	pthread_mutex_lock(&queue.lock);
	result = locked_ask(request_key(op, request, &file), op, request, fd, name, &file, reply,
			    err);
	pthread_mutex_unlock(&queue.lock);
	return result;
}

void worker_queue_forget(int fd)
{
	struct stat file;

	if (!queue.open || fstat(fd, &file))
		return;
	pthread_mutex_lock(&queue.lock);
	for (size_t i = queue.entries.len; i > 0; i--) {
		const struct entry *entry = queue.entries.data[i - 1];

		if (entry->dev == file.st_dev && entry->ino == file.st_ino)
			entry_remove(i - 1);
	}
	pthread_mutex_unlock(&queue.lock);
}
