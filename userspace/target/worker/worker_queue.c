// SPDX-License-Identifier: Apache-2.0
#include "target/worker/worker_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "target/elf/buildid.h"
#include "target/worker/file_cache.h"
#include "util/input.h"
#include "util/map.h"
#include "util/privileges.h"

/* Beyond this limit, replies that nobody fetched are dropped, oldest first. */
#define ENTRIES_MAX 256
#define REPLIES_MAX (64u << 20)

enum entry_state { ENTRY_WAITS, ENTRY_IS_ASKED, ENTRY_ANSWERED };

struct queue_entry {
	struct stat file;
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

/* Requests whose replies are kept on disk: they say all that the reply depends on, apart from the
 * file and from other files that the worker opens. */
#define CACHED_OPS (1u << WORKER_OBJECT | 1u << WORKER_PROGRAM | 1u << WORKER_CALLS)

/* One per process, like the workers (target/worker/worker.c). */
static struct {
	bool open;
	pthread_t thread;
	/* Used by the thread alone. */
	struct file_cache *cache;    /* NULL: none */
	char program[BUILD_ID_TEXT]; /* build-id of this program: its parsers may differ */
	pthread_mutex_t lock;        /* protects the members below */
	pthread_cond_t wake, answered;
	bool stop;
	VEC(struct queue_entry *) entries; /* in the order of their first request */
	struct map spent_ms; /* owner of files → milliseconds spent on parsing them */
	int ready, end;      /* eventfds: of worker_queue_fd() and of worker_stop_at() */
	uint64_t wait_until_ns;
	bool quiet;
} queue;

static void entry_free(struct queue_entry *entry)
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
	struct queue_entry *entry = queue.entries.data[at];

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

/* Whether to ask for a file before another one: the owner first whose files have taken the least
 * time, so that no user's files delay all others'; of one owner the smallest file first, since a
 * large one takes as long as a hundred small ones. */
static bool is_before(const struct queue_entry *entry, const struct queue_entry *other)
{
	uint32_t spent = spent_ms(entry->file.st_uid), others = spent_ms(other->file.st_uid);

	return spent < others || (spent == others && entry->file.st_size < other->file.st_size);
}

static struct queue_entry *entry_next(void)
{
	struct queue_entry *next = NULL;

	for (size_t i = 0; i < queue.entries.len; i++) {
		struct queue_entry *entry = queue.entries.data[i];

		if (entry->state == ENTRY_WAITS && (!next || is_before(entry, next)))
			next = entry;
	}
	return next;
}

/* The key of a reply: also what it depends on apart from the request. */
static void key_make(struct file_cache_key *key, const struct queue_entry *entry)
{
	struct utsname kernel;

	*key = (struct file_cache_key){.kind = FILE_CACHE_REQUEST};
	wire_put_text(&key->request, queue.program);
	wire_put_text(&key->request, uname(&kernel) ? "" : kernel.release);
	wire_put_text(&key->request, getenv("WAFFLE_DEBUG_DIR"));
	wire_put_u32(&key->request, (uint32_t)entry->op);
	wire_put(&key->request, entry->request.bytes.data, entry->request.bytes.len);
}

/* Takes a reply from the cache. The files that the worker looked for and did not find must be
 * missing still, such as debug files that somebody may have installed. */
static bool reply_recall(const struct file_cache_file *file, const struct file_cache_key *key,
			 struct wire_out *reply)
{
	struct wire_out kept = {0};
	bool good = file_cache_get(queue.cache, file, key, &kept);
	struct wire_in in = wire_in(kept.bytes.data, kept.bytes.len);
	uint32_t count = good ? wire_get_u32(&in) : 0;

	for (uint32_t i = 0; i < count && good; i++) {
		const char *name = wire_get_text(&in);

		good = name && worker_misses(name);
	}
	if (good && !in.bad)
		wire_put(reply, in.at, (size_t)(in.end - in.at));
	wire_out_free(&kept);
	return good && !in.bad && !reply->no_memory;
}

static void reply_keep(const struct file_cache_file *file, const struct file_cache_key *key,
		       const struct worker_opens *opens, const struct wire_out *reply)
{
	struct wire_out kept = {0};

	wire_put_u32(&kept, opens->count);
	wire_put(&kept, opens->missing.bytes.data, opens->missing.bytes.len);
	wire_put(&kept, reply->bytes.data, reply->bytes.len);
	if (!opens->other && !opens->missing.no_memory && !kept.no_memory)
		file_cache_put(queue.cache, file, key, &kept);
	wire_out_free(&kept);
}

/* Asks the worker, or the cache. */
static int entry_parse(struct queue_entry *entry, struct wire_out *reply)
{
	struct worker_opens opens = {0};
	struct file_cache_file file;
	struct file_cache_key key;
	bool cached =
		CACHED_OPS >> entry->op & 1 && file_cache_may_have(queue.cache, entry->fd, &file);
	int result;

	*reply = (struct wire_out){0};
	if (!cached)
		return worker_call(WORKER_FOR_ARMING, entry->op, &entry->request, entry->fd,
				   entry->name, reply, &entry->problem);
	key_make(&key, entry);
	if (reply_recall(&file, &key, reply)) {
		wire_out_free(&key.request);
		return 0;
	}
	wire_out_free(reply);
	result = worker_call_watched(WORKER_FOR_ARMING, entry->op, &entry->request, entry->fd,
				     entry->name, &opens, reply, &entry->problem);
	if (!result && file_cache_is_unchanged(entry->fd, &file))
		reply_keep(&file, &key, &opens, reply);
	wire_out_free(&opens.missing);
	wire_out_free(&key.request);
	return result;
}

static void entry_ask(struct queue_entry *entry)
{
	uint64_t begin = now_ms();
	struct wire_out reply;
	int result;

	entry->state = ENTRY_IS_ASKED;
	pthread_mutex_unlock(&queue.lock);
	result = entry_parse(entry, &reply);
	pthread_mutex_lock(&queue.lock);
	entry->result = result;
	entry->reply = reply;
	entry->state = ENTRY_ANSWERED;
	close(entry->fd);
	entry->fd = -1;
	map_set(&queue.spent_ms, entry->file.st_uid,
		spent_ms(entry->file.st_uid) + (uint32_t)(now_ms() - begin));
	if (entry->missed)
		eventfd_write(queue.ready, 1);
	if (entry->forgotten)
		entry_free(entry);
	pthread_cond_signal(&queue.answered);
}

static void *ask_all(void *arg)
{
	(void)arg;
	privileges_keep_tracing(); /* it starts before the tracer gives up its own */
	pthread_mutex_lock(&queue.lock);
	while (!queue.stop) {
		struct queue_entry *entry = entry_next();

		if (entry)
			entry_ask(entry);
		else
			pthread_cond_wait(&queue.wake, &queue.lock);
	}
	pthread_mutex_unlock(&queue.lock);
	return NULL;
}

/* Opens the cache. A program without a build-id has none. */
static void cache_open(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct build_id id;

	queue.cache = NULL;
	if (fd >= 0 && !build_id_read(fd, &id)) {
		build_id_text(queue.program, &id);
		queue.cache = file_cache_open_default();
	}
	if (fd >= 0)
		close(fd);
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
	cache_open();
	queue.open = queue.ready >= 0 && queue.end >= 0 &&
		     !pthread_create(&queue.thread, NULL, ask_all, NULL);
	if (queue.open) {
		worker_stop_at(queue.end);
		return 0;
	}
	file_cache_close(queue.cache);
	close(queue.ready);
	close(queue.end);
	return error_set(err, EAGAIN, "no thread can be made that reads files");
}

static bool is_given_up(const struct queue_entry *entry)
{
	return !entry->quiet && entry->missed && entry->state != ENTRY_ANSWERED;
}

/* Reports each file once, although several requests may concern it. */
static void given_up_tell(void)
{
	for (size_t i = 0; i < queue.entries.len; i++) {
		const struct queue_entry *entry = queue.entries.data[i];
		bool tell = is_given_up(entry);

		for (size_t k = 0; k < i && tell; k++)
			tell = !is_given_up(queue.entries.data[k]) ||
			       strcmp(queue.entries.data[k]->name, entry->name) != 0;
		if (tell)
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
	file_cache_close(queue.cache);
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

static bool is_unchanged(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static struct queue_entry *entry_find(enum worker_op op, const struct wire_out *request,
				      const struct stat *file)
{
	for (size_t i = 0; i < queue.entries.len; i++) {
		struct queue_entry *entry = queue.entries.data[i];

		if (entry->op == op && is_unchanged(&entry->file, file) &&
		    entry->request.bytes.len == request->bytes.len &&
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
		const struct queue_entry *entry = queue.entries.data[i];

		if (entry->state == ENTRY_WAITS && spent_ms(entry->file.st_uid) > most) {
			most = spent_ms(entry->file.st_uid);
			victim = i;
		}
	}
	if (victim == queue.entries.len)
		return false;
	entry_remove(victim);
	return true;
}

/* NULL: there is no room (EAGAIN in *problem), or no memory or descriptor. */
static struct queue_entry *entry_add(enum worker_op op, const struct wire_out *request, int fd,
				     const char *name, const struct stat *file, int *problem)
{
	struct queue_entry *entry;

	*problem = EAGAIN;
	if (!room_make() && !room_take(file->st_uid))
		return NULL;
	*problem = ENOMEM;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	entry->file = *file;
	entry->op = op;
	entry->quiet = queue.quiet;
	entry->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	*problem = entry->fd < 0 ? errno : ENOMEM;
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

static bool entry_wait(const struct queue_entry *entry)
{
	const struct timespec until = {.tv_sec = (time_t)(queue.wait_until_ns / 1000000000),
				       .tv_nsec = (long)(queue.wait_until_ns % 1000000000)};
	int result = 0;

	while (entry->state != ENTRY_ANSWERED && !result)
		result = pthread_cond_timedwait(&queue.answered, &queue.lock, &until);
	return entry->state == ENTRY_ANSWERED;
}

static int locked_ask(enum worker_op op, const struct wire_out *request, int fd, const char *name,
		      const struct stat *file, struct wire_out *reply, struct error *err)
{
	int problem = 0;
	struct queue_entry *entry =
		entry_find(op, request, file) ?: entry_add(op, request, fd, name, file, &problem);

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
	if (!entry && problem != EAGAIN)
		return error_set(err, problem, "%s: it can't be parsed: %s", name,
				 strerror(problem));
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
	if (input_stat(fd, &file))
		return error_set(err, errno, "%s: %s", name, strerror(errno));
	pthread_mutex_lock(&queue.lock);
	result = locked_ask(op, request, fd, name, &file, reply, err);
	pthread_mutex_unlock(&queue.lock);
	return result;
}

void worker_queue_forget(int fd)
{
	struct stat file;

	if (!queue.open || input_stat(fd, &file))
		return;
	pthread_mutex_lock(&queue.lock);
	for (size_t i = queue.entries.len; i > 0; i--) {
		const struct queue_entry *entry = queue.entries.data[i - 1];

		if (entry->file.st_dev == file.st_dev && entry->file.st_ino == file.st_ino)
			entry_remove(i - 1);
	}
	pthread_mutex_unlock(&queue.lock);
}
