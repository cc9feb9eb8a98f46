// SPDX-License-Identifier: Apache-2.0
#include "usdt/sink/sink_file.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/output.h"
#include "util/own_thread.h"
#include "util/vec.h"

/* How often a wait for room looks whether the recording ends. */
#define LOOK_NS 100000000ull
/* Written by one call, so that progress is visible. */
#define PART_BYTES ((size_t)1 << 20)

static bool hurried;

enum file_step { STEP_NONE, STEP_PUBLISH, STEP_COMMIT, STEP_ABORT };

struct sink_file {
	char *path;
	pthread_mutex_t lock;   /* of all that follows, but for the thread's own part */
	pthread_cond_t changed; /* something is asked or done (CLOCK_MONOTONIC) */
	VEC(unsigned char) queue;
	bool working;        /* the thread has taken something to do */
	enum file_step step; /* what to do when all bytes are written */
	bool opened;         /* with or without success */
	bool ended;          /* the thread has closed the file */
	bool left;           /* nobody waits for the thread any more: it frees the object */
	uint64_t moved_ns;   /* when the thread last did anything, or was first asked to */
	int code;            /* negative errno of the first failure */
	struct error problem;

	/* The thread's own part. */
	VEC(unsigned char) bytes;
	struct output output;
	struct stat identity;
	uint64_t kept; /* bytes in the file */
};

/* ---- the thread ---- */

static void file_free(struct sink_file *file)
{
	vec_free(&file->queue);
	vec_free(&file->bytes);
	pthread_mutex_destroy(&file->lock);
	pthread_cond_destroy(&file->changed);
	free(file->path);
	free(file);
}

/* With the lock. */
static void moved(struct sink_file *file)
{
	file->moved_ns = clock_monotonic_ns();
	pthread_cond_broadcast(&file->changed);
}

static void fail(struct sink_file *file, int code, const struct error *problem)
{
	pthread_mutex_lock(&file->lock);
	if (!file->code) {
		file->code = code;
		file->problem = *problem;
	}
	pthread_mutex_unlock(&file->lock);
}

/* A program may close all descriptors, and then open a file of its own under the number of ours. */
static bool is_ours(struct sink_file *file, int fd)
{
	struct stat now;

	return !fstat(fd, &now) && now.st_dev == file->identity.st_dev &&
	       now.st_ino == file->identity.st_ino;
}

static int part_write(struct sink_file *file, const unsigned char *data, size_t bytes)
{
	int fd = fileno(file->output.file);
	ssize_t n;

	if (!is_ours(file, fd))
		return -EBADF;
	do
		n = write(fd, data, bytes);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n ? -errno : -ENOSPC;
	pthread_mutex_lock(&file->lock);
	moved(file);
	pthread_mutex_unlock(&file->lock);
	return (int)n;
}

static void bytes_write(struct sink_file *file)
{
	struct error problem = ERROR_INIT;
	size_t done = 0;

	while (done < file->bytes.len) {
		size_t left = file->bytes.len - done;
		int n = part_write(file, file->bytes.data + done,
				   left < PART_BYTES ? left : PART_BYTES);

		if (n < 0) {
			if (n != -EBADF && ftruncate(fileno(file->output.file), (off_t)file->kept))
				errno = 0;
			error_set(&problem, -n, "%s: %s; what was written before is kept",
				  file->path,
				  n == -EBADF ? "the program has closed its descriptor"
					      : strerror(-n));
			fail(file, n, &problem);
			return;
		}
		done += (size_t)n;
	}
	file->kept += done;
}

/* The FILE of an output has no bytes of ours in its buffer, since part_write() goes past it. If the
 * program has closed the descriptor, fclose() would close one of its own. */
static int step_do(struct sink_file *file, enum file_step step, struct error *problem)
{
	switch (step) {
	case STEP_PUBLISH:
		return output_publish(&file->output, problem);
	case STEP_COMMIT:
		if (is_ours(file, fileno(file->output.file)))
			return output_commit(&file->output, problem);
		break;
	default:
		if (!file->output.file || is_ours(file, fileno(file->output.file)))
			output_abort(&file->output);
		break;
	}
	return 0;
}

/* With the lock: waits for something to do, and takes it. */
static enum file_step work_take(struct sink_file *file)
{
	enum file_step step;

	while (!file->queue.len && !file->step)
		pthread_cond_wait(&file->changed, &file->lock);
	file->bytes.len = 0;
	if (file->code)
		file->queue.len = 0; /* nothing is written after an error */
	if (file->queue.len) {
		void *data = file->bytes.data;
		size_t cap = file->bytes.cap;

		file->bytes.data = file->queue.data;
		file->bytes.cap = file->queue.cap;
		file->bytes.len = file->queue.len;
		file->queue.data = data;
		file->queue.cap = cap;
		file->queue.len = 0;
		file->working = true;
		return STEP_NONE;
	}
	step = file->step;
	file->step = STEP_NONE;
	file->working = true;
	return step;
}

/* Opens the file and serves until it is closed. */
static void serve(struct sink_file *file)
{
	struct error problem = ERROR_INIT;
	int code = output_open(&file->output, file->path, &problem);
	enum file_step step = STEP_NONE;

	if (!code && fstat(fileno(file->output.file), &file->identity))
		code = error_set(&problem, errno, "%s: %s", file->path, strerror(errno));
	if (code)
		fail(file, code, &problem);
	pthread_mutex_lock(&file->lock);
	file->opened = true;
	moved(file);
	while (step != STEP_COMMIT && step != STEP_ABORT) {
		step = work_take(file);
		pthread_mutex_unlock(&file->lock);
		if (step == STEP_NONE)
			bytes_write(file);
		else
			code = step_do(file, step, &problem);
		if (step != STEP_NONE && code)
			fail(file, code, &problem);
		pthread_mutex_lock(&file->lock);
		file->working = false;
		moved(file);
	}
	pthread_mutex_unlock(&file->lock);
}

static void *file_main(void *arg)
{
	struct sink_file *file = arg;
	bool left;

	prctl(PR_SET_NAME, "waffle-file");
	serve(file);
	pthread_mutex_lock(&file->lock);
	file->ended = true;
	pthread_cond_broadcast(&file->changed);
	left = file->left;
	pthread_mutex_unlock(&file->lock);
	if (left)
		file_free(file);
	return NULL;
}

/* ---- its users ---- */

static struct sink_file *file_new(const char *path)
{
	struct sink_file *file = calloc(1, sizeof(*file));
	pthread_condattr_t attributes;

	if (!file)
		return NULL;
	file->path = strdup(path);
	if (!file->path) {
		free(file);
		return NULL;
	}
	pthread_mutex_init(&file->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&file->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	file->moved_ns = clock_monotonic_ns();
	return file;
}

/* With the lock. */
static void wait_until(struct sink_file *file, uint64_t ns)
{
	struct timespec time = {.tv_sec = (time_t)(ns / 1000000000ull),
				.tv_nsec = (long)(ns % 1000000000ull)};

	pthread_cond_timedwait(&file->changed, &file->lock, &time);
}

/* With the lock. False: the file system has done nothing for too long, or `end` has passed. */
static bool wait_changed(struct sink_file *file, uint64_t end)
{
	uint64_t stuck = file->moved_ns + SINK_FILE_STUCK_NS, until = stuck < end ? stuck : end;

	if (clock_monotonic_ns() >= until)
		return false;
	wait_until(file, until);
	return true;
}

static bool is_idle(const struct sink_file *file)
{
	return file->opened && !file->queue.len && !file->working && !file->step;
}

/* With the lock: waits until all that was asked is done. Returns the thread's error, if any. */
static int wait_idle(struct sink_file *file, struct error *err)
{
	uint64_t end = clock_monotonic_ns() + SINK_FILE_CLOSE_NS;

	while (!is_idle(file) && !file->ended)
		if (!wait_changed(file, end))
			return error_set(err, ETIMEDOUT, "%s: its file system does not answer",
					 file->path);
	return file->code ? error_set(err, -file->code, "%s", file->problem.message) : 0;
}

/* With the lock. The time without progress begins when there is something to do. */
static void ask(struct sink_file *file, enum file_step step)
{
	if (is_idle(file))
		file->moved_ns = clock_monotonic_ns();
	file->step = step;
	pthread_cond_broadcast(&file->changed);
}

/* Leaves the object to the thread, which frees it, unless it has ended. */
static void leave(struct sink_file *file, enum file_step step)
{
	bool ended;

	pthread_mutex_lock(&file->lock);
	if (!file->ended)
		ask(file, step);
	file->left = true;
	ended = file->ended;
	pthread_mutex_unlock(&file->lock);
	if (ended)
		file_free(file);
}

int sink_file_open(struct sink_file **result, const char *path, struct error *err)
{
	struct sink_file *file = file_new(path);
	int code;

	*result = NULL;
	if (!file)
		return error_set(err, ENOMEM, "%s: out of memory", path);
	code = own_thread_start(NULL, file_main, file);
	if (code) {
		file_free(file);
		return error_set(err, code, "%s: no thread can be started to write it: %s", path,
				 strerror(code));
	}
	pthread_mutex_lock(&file->lock);
	code = wait_idle(file, err);
	pthread_mutex_unlock(&file->lock);
	if (code)
		leave(file, STEP_ABORT);
	else
		*result = file;
	return code;
}

const char *sink_file_path(const struct sink_file *file)
{
	return file->path;
}

static bool has_room(const struct sink_file *file, size_t bytes)
{
	return !file->queue.len || file->queue.len + bytes <= SINK_FILE_QUEUE;
}

/* With the lock. Waits for room: for ever, unless the recording ends. */
static int wait_room(struct sink_file *file, size_t bytes, struct error *err)
{
	while (!file->code && !has_room(file, bytes)) {
		uint64_t now = clock_monotonic_ns();

		if (__atomic_load_n(&hurried, __ATOMIC_ACQUIRE) &&
		    now >= file->moved_ns + SINK_FILE_STUCK_NS)
			return error_set(err, ETIMEDOUT, "%s: its file system does not answer",
					 file->path);
		wait_until(file, now + LOOK_NS);
	}
	return file->code ? error_set(err, -file->code, "%s", file->problem.message) : 0;
}

int sink_file_write(struct sink_file *file, const void *data, size_t bytes, struct error *err)
{
	int code;

	pthread_mutex_lock(&file->lock);
	code = wait_room(file, bytes, err);
	if (!code && !vec_reserve(&file->queue, bytes + 1))
		code = error_set(err, ENOMEM, "%s: out of memory", file->path);
	if (!code && bytes) {
		if (is_idle(file))
			file->moved_ns = clock_monotonic_ns();
		memcpy(file->queue.data + file->queue.len, data, bytes);
		file->queue.len += bytes;
		pthread_cond_broadcast(&file->changed);
	}
	pthread_mutex_unlock(&file->lock);
	return code;
}

int sink_file_settle(struct sink_file *file, struct error *err)
{
	int code;

	pthread_mutex_lock(&file->lock);
	code = wait_idle(file, err);
	pthread_mutex_unlock(&file->lock);
	return code;
}

int sink_file_publish(struct sink_file *file, struct error *err)
{
	int code;

	pthread_mutex_lock(&file->lock);
	ask(file, STEP_PUBLISH);
	code = wait_idle(file, err);
	pthread_mutex_unlock(&file->lock);
	return code;
}

void sink_file_hurry(bool hurry)
{
	__atomic_store_n(&hurried, hurry, __ATOMIC_RELEASE);
}

/* Asks for the last step and waits for it. Frees in any case. */
static int end(struct sink_file *file, enum file_step step, struct error *err)
{
	int code;

	pthread_mutex_lock(&file->lock);
	ask(file, step);
	code = wait_idle(file, err);
	pthread_mutex_unlock(&file->lock);
	leave(file, step);
	return code;
}

int sink_file_close(struct sink_file *file, struct error *err)
{
	return end(file, STEP_COMMIT, err);
}

void sink_file_discard(struct sink_file *file)
{
	struct error ignored = ERROR_INIT;

	if (file)
		end(file, STEP_ABORT, &ignored);
}
