// SPDX-License-Identifier: Apache-2.0
/*
 * A small training loop to try waffle on: the shape of a real one, with real waits.
 *
 *	loader-0 … loader-N   ask the disk for shards and put batches into a window, in order
 *	disk                  one slow device: serves one request at a time; every 16th shard comes
 *	                      after a backlog of writes that it must bring to stable storage first
 *	checkpoint            saves the weights now and then, and holds their lock meanwhile
 *	training (main)       takes batch n for step n, forward, backward
 *
 * So most steps take some milliseconds of computing, and every 16th waits for its batch: main for a
 * loader, the loader for the disk, the disk for its device. The program keeps a log of its own
 * (--log) and says at the end which step was the slowest.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "waffle_macros.h"

#define MS 1000000ll
#define SHARD_FLOATS 4096 /* 16 KiB, what a pipe takes at once */
#define SHARD_COUNT 8
#define WINDOW 4 /* batches that may be ready before they are needed */
#define LOADERS_MAX 16
#define WEIGHTS 4096
#define BACKLOG_BYTES (4u << 20)

struct options {
	long steps, loaders, slow_every, slow_ms;
	const char *directory, *log;
};

struct batch {
	long number; /* -1: free */
	waffle_span_id_t loaded_by;
	float data[SHARD_FLOATS];
};

struct request {
	long number;
	int loader;
};

struct training {
	struct options options;
	pthread_mutex_t lock; /* of the window: next, ready, batches */
	pthread_cond_t filled, taken;
	long next_load, next_step, ready;
	struct batch window[WINDOW];

	int shards;     /* file of the shards */
	int backlog;    /* file that the disk writes its backlog to */
	int to_disk[2]; /* pipe of struct request */
	int from_disk[LOADERS_MAX][2];

	pthread_mutex_t weights_lock;
	pthread_cond_t checkpoint_due;
	bool checkpoint_wanted, stopping; /* under weights_lock */
	float weights[WEIGHTS];
};

struct loader {
	struct training *training;
	int number;
};

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static void sleep_until(long long ns)
{
	struct timespec until = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL))
		;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void read_whole(int fd, void *buffer, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t got = read(fd, (char *)buffer + done, size - done);

		if (got <= 0)
			die("training: read");
		done += (size_t)got;
	}
}

static void write_whole(int fd, const void *buffer, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t put = write(fd, (const char *)buffer + done, size - done);

		if (put <= 0)
			die("training: write");
		done += (size_t)put;
	}
}

/* ---- the disk ---- */

static bool is_slow(const struct options *options, long number)
{
	return options->slow_every && number % options->slow_every == options->slow_every - 1;
}

/* Writes held back until now go to stable storage, at the speed of an old device. */
static void disk_flush_backlog(struct training *training, const char *page, size_t page_size)
{
	long long until = now_ns() + training->options.slow_ms * MS;

	SPAN("flush backlog", KV_U64("bytes", BACKLOG_BYTES));
	if (lseek(training->backlog, 0, SEEK_SET) < 0)
		die("training: backlog");
	for (size_t done = 0; done < BACKLOG_BYTES; done += page_size)
		write_whole(training->backlog, page, page_size);
	if (fdatasync(training->backlog))
		die("training: fdatasync");
	sleep_until(until);
}

static void *disk_run(void *argument)
{
	struct training *training = argument;
	float shard[SHARD_FLOATS];
	struct request request;

	pthread_setname_np(pthread_self(), "disk");
	while (read(training->to_disk[0], &request, sizeof(request)) == sizeof(request)) {
		long long until = now_ns() + MS;

		SPAN("disk read", KV_I64("shard", request.number % SHARD_COUNT),
		     KV_I64("loader", request.loader));
		if (pread(training->shards, shard, sizeof(shard),
			  (request.number % SHARD_COUNT) * (off_t)sizeof(shard)) != sizeof(shard))
			die("training: shard");
		if (is_slow(&training->options, request.number))
			disk_flush_backlog(training, (const char *)shard, sizeof(shard));
		sleep_until(until);
		write_whole(training->from_disk[request.loader][1], shard, sizeof(shard));
	}
	return NULL;
}

/* ---- the loaders ---- */

static void load_batch(const struct loader *loader, struct batch *batch, long number)
{
	struct training *training = loader->training;
	struct request request = {.number = number, .loader = loader->number};

	SPAN("load shard", KV_I64("batch", number), KV_I64("loader", loader->number));
	write_whole(training->to_disk[1], &request, sizeof(request));
	read_whole(training->from_disk[loader->number][0], batch->data, sizeof(batch->data));
	for (int i = 0; i < SHARD_FLOATS; i++)
		batch->data[i] = batch->data[i] * 0.5f + 0.25f;
	batch->loaded_by = SPAN_ID();
}

static void *loader_run(void *argument)
{
	struct loader *loader = argument;
	struct training *training = loader->training;
	char name[16];

	snprintf(name, sizeof(name), "loader-%d", loader->number);
	pthread_setname_np(pthread_self(), name);
	for (;;) {
		long number;

		pthread_mutex_lock(&training->lock);
		number = training->next_load++;
		while (number < training->options.steps && number >= training->next_step + WINDOW)
			pthread_cond_wait(&training->taken, &training->lock);
		pthread_mutex_unlock(&training->lock);
		if (number >= training->options.steps)
			return NULL;
		load_batch(loader, &training->window[number % WINDOW], number);

		pthread_mutex_lock(&training->lock);
		training->window[number % WINDOW].number = number;
		training->ready++;
		COUNTER("queue depth", training->ready);
		pthread_cond_broadcast(&training->filled);
		pthread_mutex_unlock(&training->lock);
	}
}

/* ---- the checkpoints ---- */

static void checkpoint_save(struct training *training)
{
	long long until = now_ns() + 8 * MS;

	SPAN("save weights", KV_U64("bytes", sizeof(training->weights)));
	if (pwrite(training->shards, training->weights, sizeof(training->weights),
		   SHARD_COUNT * (off_t)sizeof(float[SHARD_FLOATS])) < 0)
		die("training: checkpoint");
	sleep_until(until);
}

static void *checkpoint_run(void *argument)
{
	struct training *training = argument;

	pthread_setname_np(pthread_self(), "checkpoint");
	pthread_mutex_lock(&training->weights_lock);
	while (!training->stopping) {
		if (training->checkpoint_wanted)
			checkpoint_save(training);
		training->checkpoint_wanted = false;
		pthread_cond_wait(&training->checkpoint_due, &training->weights_lock);
	}
	pthread_mutex_unlock(&training->weights_lock);
	return NULL;
}

/* ---- the loop ---- */

static struct batch *batch_wait(struct training *training, long step)
{
	struct batch *batch = &training->window[step % WINDOW];
	long long began = now_ns();
	double waited_ms;

	SPAN("wait batch", KV_I64("step", step));
	pthread_mutex_lock(&training->lock);
	while (batch->number != step)
		pthread_cond_wait(&training->filled, &training->lock);
	pthread_mutex_unlock(&training->lock);
	EVENT("batch ready", KV_I64("step", step), KV_CAUSE_SPAN(batch->loaded_by));
	waited_ms = (double)(now_ns() - began) / 1e6;
	if (waited_ms > 50)
		LOG_WARN("slow batch", KV_I64("step", step), KV_F64("waited_ms", waited_ms));
	return batch;
}

static void batch_done(struct training *training, struct batch *batch)
{
	pthread_mutex_lock(&training->lock);
	batch->number = -1;
	training->ready--;
	training->next_step++;
	COUNTER("queue depth", training->ready);
	pthread_cond_broadcast(&training->taken);
	pthread_mutex_unlock(&training->lock);
}

static float forward(const struct training *training, const struct batch *batch)
{
	float sum = 0;

	SPAN("forward");
	for (int pass = 0; pass < 1200; pass++)
		for (int i = 0; i < SHARD_FLOATS; i++)
			sum += batch->data[i] * training->weights[(i + pass) % WEIGHTS];
	return sum / (1200.f * SHARD_FLOATS);
}

static void backward(struct training *training, const struct batch *batch, float loss)
{
	SPAN("backward", KV_F64("loss", loss));
	pthread_mutex_lock(&training->weights_lock);
	for (int pass = 0; pass < 1000; pass++)
		for (int i = 0; i < WEIGHTS; i++)
			training->weights[i] -=
				1e-6f * loss * batch->data[(i + pass) % SHARD_FLOATS];
	pthread_mutex_unlock(&training->weights_lock);
}

static void step_run(struct training *training, long step)
{
	struct batch *batch;
	float loss;

	SPAN("step", KV_I64("step", step));
	batch = batch_wait(training, step);
	loss = forward(training, batch);
	backward(training, batch, loss);
	batch_done(training, batch);
	COUNTER("loss", loss);
	if (step % 12 == 11) {
		pthread_mutex_lock(&training->weights_lock);
		training->checkpoint_wanted = true;
		pthread_cond_signal(&training->checkpoint_due);
		pthread_mutex_unlock(&training->weights_lock);
	}
}

/* Runs the steps and prints which was the slowest; the log has a line a step. */
static void training_run(struct training *training)
{
	FILE *log = training->options.log ? fopen(training->options.log, "w") : NULL;
	long long total = 0, slowest_ns = 0;
	long slowest = 0;

	if (training->options.log && !log)
		die(training->options.log);
	for (long step = 0; step < training->options.steps; step++) {
		long long began = now_ns(), ended;

		step_run(training, step);
		ended = now_ns();
		total += ended - began;
		if (ended - began > slowest_ns) {
			slowest_ns = ended - began;
			slowest = step;
		}
		if (log)
			fprintf(log, "{\"step\": %ld, \"start_ns\": %lld, \"end_ns\": %lld}\n",
				step, began, ended);
	}
	if (log)
		fclose(log);
	printf("training: %ld steps in %.1f ms, the slowest was step %ld with %.1f ms\n",
	       training->options.steps, (double)total / 1e6, slowest, (double)slowest_ns / 1e6);
}

/* A file that is gone when the program is. */
static int file_temporary(const char *directory)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/training-XXXXXX", directory);
	fd = mkstemp(path);
	if (fd < 0)
		die(path);
	unlink(path);
	return fd;
}

static void training_prepare(struct training *training)
{
	float shard[SHARD_FLOATS];

	pthread_mutex_init(&training->lock, NULL);
	pthread_mutex_init(&training->weights_lock, NULL);
	pthread_cond_init(&training->filled, NULL);
	pthread_cond_init(&training->taken, NULL);
	pthread_cond_init(&training->checkpoint_due, NULL);
	for (int i = 0; i < WINDOW; i++)
		training->window[i].number = -1;
	for (int i = 0; i < WEIGHTS; i++)
		training->weights[i] = (float)(i % 7) / 7;
	training->shards = file_temporary(training->options.directory);
	training->backlog = file_temporary(training->options.directory);
	for (int number = 0; number < SHARD_COUNT; number++) {
		for (int i = 0; i < SHARD_FLOATS; i++)
			shard[i] = (float)((i * 31 + number) % 101) / 101;
		write_whole(training->shards, shard, sizeof(shard));
	}
	if (pipe(training->to_disk))
		die("training: pipe");
	for (int i = 0; i < training->options.loaders; i++)
		if (pipe(training->from_disk[i]))
			die("training: pipe");
}

static long number_or_die(const char *text, long min, long max)
{
	char *end;
	long number = strtol(text, &end, 10);

	if (!*text || *end || number < min || number > max) {
		fprintf(stderr, "training: '%s' is not a number from %ld to %ld\n", text, min, max);
		exit(2);
	}
	return number;
}

static struct options options_read(int argc, char **argv)
{
	static const struct option rows[] = {{"steps", required_argument, NULL, 's'},
					     {"loaders", required_argument, NULL, 'l'},
					     {"slow-every", required_argument, NULL, 'e'},
					     {"slow-ms", required_argument, NULL, 'm'},
					     {"directory", required_argument, NULL, 'd'},
					     {"log", required_argument, NULL, 'o'},
					     {NULL, 0, NULL, 0}};
	struct options options = {48, 3, 16, 120, "/tmp", NULL};
	int letter;

	while ((letter = getopt_long(argc, argv, "", rows, NULL)) != -1) {
		if (letter == 's')
			options.steps = number_or_die(optarg, 1, 100000000);
		else if (letter == 'l')
			options.loaders = number_or_die(optarg, 1, LOADERS_MAX);
		else if (letter == 'e')
			options.slow_every = number_or_die(optarg, 0, 100000000);
		else if (letter == 'm')
			options.slow_ms = number_or_die(optarg, 0, 60000);
		else if (letter == 'd')
			options.directory = optarg;
		else if (letter == 'o')
			options.log = optarg;
		else
			exit(2);
	}
	return options;
}

int main(int argc, char **argv)
{
	static struct training training;
	static struct loader loaders[LOADERS_MAX];
	pthread_t disk, checkpoint, threads[LOADERS_MAX];

	training.options = options_read(argc, argv);
	training_prepare(&training);
	pthread_create(&disk, NULL, disk_run, &training);
	pthread_create(&checkpoint, NULL, checkpoint_run, &training);
	for (int i = 0; i < training.options.loaders; i++) {
		loaders[i] = (struct loader){.training = &training, .number = i};
		pthread_create(&threads[i], NULL, loader_run, &loaders[i]);
	}
	training_run(&training);

	for (int i = 0; i < training.options.loaders; i++)
		pthread_join(threads[i], NULL);
	close(training.to_disk[1]);
	pthread_join(disk, NULL);
	pthread_mutex_lock(&training.weights_lock);
	training.stopping = true;
	pthread_cond_signal(&training.checkpoint_due);
	pthread_mutex_unlock(&training.weights_lock);
	pthread_join(checkpoint, NULL);
	return 0;
}
