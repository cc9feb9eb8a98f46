// SPDX-License-Identifier: Apache-2.0
#include "capture/enrich/tables_internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "target/dwarf/cfi_remote.h"
#include "target/worker/file_cache.h"
#include "target/worker/worker.h"
#include "util/input.h"
#include "util/privileges.h"
#include "util/vec.h"

#define REQUESTS_MAX 1024        /* open files */
#define LARGE_BYTES (16ll << 20) /* table_maker_wait() may leave out files of this size */

struct tables_request {
	uint32_t file;
	int fd;
	char *path;
	bool looked;   /* the cache has no table of the file */
	bool deferred; /* see table_maker_wait() */
	off_t size;
};

struct table_maker {
	struct file_cache *cache; /* NULL: none */
	pthread_t thread;
	pthread_mutex_t lock; /* protects the members below */
	pthread_cond_t wake, idle;
	bool stop;
	unsigned urgent, deferred; /* files that have no table yet */
	VEC(struct tables_request) requests;
	VEC(struct table_made) made;
};

/* A file that is not a program, or was written to meanwhile, gets an empty table. Then unwinding
 * relies on frame pointers alone. */
static struct table_made table_make(const struct table_maker *maker,
				    const struct tables_request *request)
{
	struct table_made made = {.file = request->file, .path = request->path};
	int result = cfi_file_read(&made.table, &made.segments, request->fd, request->path,
				   maker->cache);

	made.no_memory = result == -ENOMEM;
	if (result) {
		cfi_table_free(&made.table);
		made.segments = (struct elf_segments){0};
	}
	return made;
}

static void made_free(struct table_made *made)
{
	cfi_table_free(&made->table);
	free(made->path);
}

/* The next request. First all are looked up in the cache, which is fast. Then the smallest file
 * comes first, since a large one takes as long as a hundred small ones. */
static struct tables_request request_take(struct table_maker *maker)
{
	struct tables_request *list = maker->requests.data, taken;
	size_t next = 0;

	for (size_t i = 0; i < maker->requests.len; i++) {
		if (list[i].looked < list[next].looked ||
		    (list[i].looked == list[next].looked && list[i].size < list[next].size))
			next = i;
	}
	taken = list[next];
	list[next] = list[--maker->requests.len];
	return taken;
}

/* Takes the table of a file from the cache. False: the cache has none. */
static bool table_recall(const struct table_maker *maker, struct tables_request *request,
			 struct table_made *made)
{
	*made = (struct table_made){.file = request->file, .path = request->path};
	request->looked = true;
	if (cfi_file_recall(&made->table, &made->segments, request->fd, maker->cache))
		return false;
	close(request->fd);
	return true;
}

static void request_finish(struct table_maker *maker, const struct tables_request *request,
			   struct table_made *made)
{
	if (!vec_push(&maker->made, *made))
		made_free(made);
	if (request->deferred)
		maker->deferred--;
	else
		maker->urgent--;
	pthread_cond_broadcast(&maker->idle);
}

/* Queues a request again that the cache could not answer. False: out of memory. */
static bool request_defer(struct table_maker *maker, struct tables_request *request)
{
	if (!vec_push(&maker->requests, *request))
		return false;
	if (request->size < LARGE_BYTES)
		return true;
	maker->requests.data[maker->requests.len - 1].deferred = true;
	maker->urgent--;
	maker->deferred++;
	pthread_cond_broadcast(&maker->idle);
	return true;
}

static void request_handle(struct table_maker *maker)
{
	struct tables_request request = request_take(maker);
	struct table_made made;
	bool done = true;

	pthread_mutex_unlock(&maker->lock);
	if (request.looked)
		made = table_make(maker, &request);
	else
		done = table_recall(maker, &request, &made);
	pthread_mutex_lock(&maker->lock);
	if (!done && request_defer(maker, &request))
		return;
	if (!done) {
		close(request.fd);
		made.no_memory = true;
	}
	request_finish(maker, &request, &made);
}

static void *tables_make(void *arg)
{
	struct table_maker *maker = arg;

	privileges_keep_tracing(); /* it starts before the tracer gives up its own */
	pthread_mutex_lock(&maker->lock);
	while (!maker->stop) {
		if (maker->requests.len)
			request_handle(maker);
		else
			pthread_cond_wait(&maker->wake, &maker->lock);
	}
	pthread_mutex_unlock(&maker->lock);
	return NULL;
}

int table_maker_open(struct table_maker **maker, struct error *err)
{
	struct table_maker *made = calloc(1, sizeof(*made));
	pthread_condattr_t clock;
	int result;

	*maker = NULL;
	if (!made)
		return error_set(err, ENOMEM, "out of memory");
	/* Only the result of a worker is kept, since a worker reads no files of other users. */
	if (worker_is_there())
		made->cache = file_cache_open_default();
	pthread_mutex_init(&made->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&made->wake, NULL);
	pthread_cond_init(&made->idle, &clock);
	pthread_condattr_destroy(&clock);
	result = pthread_create(&made->thread, NULL, tables_make, made);
	if (result) {
		file_cache_close(made->cache);
		free(made);
		return error_set(err, result, "a thread for unwinding tables: %s",
				 strerror(result));
	}
	*maker = made;
	return 0;
}

void table_maker_close(struct table_maker *maker)
{
	if (!maker)
		return;
	pthread_mutex_lock(&maker->lock);
	maker->stop = true;
	pthread_cond_signal(&maker->wake);
	pthread_mutex_unlock(&maker->lock);
	pthread_join(maker->thread, NULL);
	for (size_t i = 0; i < maker->requests.len; i++) {
		close(maker->requests.data[i].fd);
		free(maker->requests.data[i].path);
	}
	for (size_t i = 0; i < maker->made.len; i++)
		made_free(&maker->made.data[i]);
	vec_free(&maker->requests);
	vec_free(&maker->made);
	pthread_cond_destroy(&maker->wake);
	pthread_cond_destroy(&maker->idle);
	pthread_mutex_destroy(&maker->lock);
	file_cache_close(maker->cache);
	free(maker);
}

bool table_maker_ask(struct table_maker *maker, uint32_t file, int fd, const char *path)
{
	struct tables_request request = {.file = file, .fd = fd, .path = strdup(path)};
	struct stat status;
	bool done = request.path;

	request.looked = !maker->cache;
	if (!input_stat(fd, &status))
		request.size = status.st_size;
	request.deferred = request.looked && request.size >= LARGE_BYTES;
	pthread_mutex_lock(&maker->lock);
	done = done && vec_push(&maker->requests, request);
	maker->urgent += done && !request.deferred;
	maker->deferred += done && request.deferred;
	pthread_cond_signal(&maker->wake);
	pthread_mutex_unlock(&maker->lock);
	if (done)
		return true;
	close(fd);
	free(request.path);
	return false;
}

bool table_maker_has_room(struct table_maker *maker)
{
	bool room;

	pthread_mutex_lock(&maker->lock);
	room = maker->requests.len < REQUESTS_MAX;
	pthread_mutex_unlock(&maker->lock);
	return room;
}

bool table_maker_take(struct table_maker *maker, struct table_made *made)
{
	bool there;

	pthread_mutex_lock(&maker->lock);
	there = maker->made.len;
	if (there)
		*made = maker->made.data[--maker->made.len];
	pthread_mutex_unlock(&maker->lock);
	return there;
}

void table_maker_wait(struct table_maker *maker, bool all, uint64_t ns)
{
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	ns += (uint64_t)end.tv_nsec;
	end.tv_sec += (time_t)(ns / 1000000000);
	end.tv_nsec = (long)(ns % 1000000000);
	pthread_mutex_lock(&maker->lock);
	while ((maker->urgent || (all && maker->deferred)) &&
	       !pthread_cond_timedwait(&maker->idle, &maker->lock, &end))
		;
	pthread_mutex_unlock(&maker->lock);
}
