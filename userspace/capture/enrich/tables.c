// SPDX-License-Identifier: Apache-2.0
#include "capture/enrich/tables_internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "target/dwarf/cfi_remote.h"
#include "util/privileges.h"
#include "util/vec.h"

#define REQUESTS_MAX 1024 /* open files, until all of their tables are made */

struct tables_request {
	uint32_t file;
	int fd;
	char *path;
};

struct table_maker {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake, idle;
	bool stop, busy;
	VEC(struct tables_request) requests;
	size_t next; /* index in `requests` */
	VEC(struct table_made) made;
};

/* A file that is not a program, or was written to meanwhile, gets an empty table. Then unwinding
 * relies on frame pointers alone. */
static struct table_made table_make(const struct tables_request *request)
{
	struct table_made made = {.file = request->file, .path = request->path};
	int result = cfi_file_read(&made.table, &made.segments, request->fd, request->path);

	made.no_memory = result == -ENOMEM;
	if (result) {
		free(made.table.rows);
		made.table = (struct cfi_table){0};
		made.segments = (struct elf_segments){0};
	}
	return made;
}

static void made_free(struct table_made *made)
{
	free(made->table.rows);
	free(made->path);
}

static void *tables_make(void *arg)
{
	struct table_maker *maker = arg;

	privileges_keep_tracing(); /* it starts before the tracer gives up its own */
	pthread_mutex_lock(&maker->lock);
	while (!maker->stop) {
		struct table_made made;
		struct tables_request request;

		if (maker->next == maker->requests.len) {
			maker->next = maker->requests.len = 0;
			maker->busy = false;
			pthread_cond_broadcast(&maker->idle);
			pthread_cond_wait(&maker->wake, &maker->lock);
			continue;
		}
		request = maker->requests.data[maker->next++];
		pthread_mutex_unlock(&maker->lock);
		made = table_make(&request);
		pthread_mutex_lock(&maker->lock);
		if (!vec_push(&maker->made, made))
			made_free(&made);
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
	pthread_mutex_init(&made->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&made->wake, NULL);
	pthread_cond_init(&made->idle, &clock);
	pthread_condattr_destroy(&clock);
	result = pthread_create(&made->thread, NULL, tables_make, made);
	if (result) {
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
	for (size_t i = maker->next; i < maker->requests.len; i++) {
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
	free(maker);
}

bool table_maker_ask(struct table_maker *maker, uint32_t file, int fd, const char *path)
{
	struct tables_request request = {file, fd, strdup(path)};
	bool done = request.path;

	pthread_mutex_lock(&maker->lock);
	done = done && vec_push(&maker->requests, request);
	maker->busy = maker->busy || done;
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

void table_maker_wait(struct table_maker *maker, uint64_t ns)
{
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	ns += (uint64_t)end.tv_nsec;
	end.tv_sec += (time_t)(ns / 1000000000);
	end.tv_nsec = (long)(ns % 1000000000);
	pthread_mutex_lock(&maker->lock);
	while (maker->busy && !pthread_cond_timedwait(&maker->idle, &maker->lock, &end))
		;
	pthread_mutex_unlock(&maker->lock);
}
