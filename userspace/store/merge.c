// SPDX-License-Identifier: Apache-2.0
#include "store/merge_internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "util/threads.h"

#define THREADS_MAX 8
/* Memory for the batches of all files. */
#define BATCHES_BYTES (128u << 20)
#define BATCH_BYTES_MAX (256u << 10)
#define BATCH_BYTES_MIN (4u * RECORD_BYTES_MAX)
/* A job of more files keeps them closed, since a process has few descriptors. */
#define FILES_OPEN 128

/* A record in a batch, which follows. */
struct batch_head {
	uint64_t number;
	uint32_t bytes, reserved;
};

struct batch {
	unsigned char *data;
	size_t len, at;
	int code; /* <= 0: the file ends behind the batch, or the error */
	struct error err;
};

enum input_state {
	INPUT_EMPTY,   /* nobody has asked for a batch yet */
	INPUT_IDLE,    /* the batch that is not read is full */
	INPUT_QUEUED,  /* the batch is empty, and no thread fills it yet */
	INPUT_FILLING, /* a thread fills it */
	INPUT_DONE,
};

struct merge_input {
	const struct merge_source *of;
	struct batch batches[2];
	unsigned reading; /* the batch that the reader takes records from */
	bool begun;       /* its first record was needed */
	enum input_state state;
	bool in_queue; /* perhaps without being in INPUT_QUEUED any more */
	uint32_t next; /* in the queue */
	uint64_t ts;   /* of the record at the head; before the first: a lower bound */
};
#define NO_INPUT UINT32_MAX

struct merge {
	struct merge_input *sources;
	size_t count, batch_bytes;
	uint32_t *heap; /* sources with records, the earliest first */
	size_t heap_len;
	bool taken; /* the record of heap[0] was returned */
	/* Shared with the threads, under `lock`: the states of the sources and the queue. */
	pthread_mutex_t lock;
	pthread_cond_t work, filled;
	uint32_t first, last;
	bool stop;
	pthread_t threads[THREADS_MAX];
	unsigned thread_count;
	struct chunk_scratch scratch; /* of the reader's own thread */
};

/* ---- filling batches ---- */

static bool batch_add(struct batch *batch, const struct merge_source *of,
		      const struct waffle_rec *rec)
{
	struct batch_head head = {.bytes = (uint32_t)record_size(rec, RECORD_BYTES_MAX)};
	uint64_t number = of->reader->number;

	if (!head.bytes)
		return false;
	head.number = number ? of->number_base + number : 0;
	memcpy(batch->data + batch->len, &head, sizeof(head));
	batch->len += sizeof(head);
	memcpy(batch->data + batch->len, rec, head.bytes);
	renumber_record(of->renumber, (struct waffle_rec *)(void *)(batch->data + batch->len));
	batch->len += head.bytes;
	return true;
}

/* Fills a batch of a source that no other thread uses. */
static void batch_fill(const struct merge *merge, struct merge_input *source, struct batch *batch,
		       struct chunk_scratch *scratch)
{
	struct file_reader *reader = source->of->reader;
	const struct waffle_rec *rec;

	reader->file.scratch = scratch;
	batch->len = batch->at = 0;
	batch->code = 1;
	if (!batch->data)
		batch->data = malloc(merge->batch_bytes);
	if (!batch->data) {
		batch->code =
			error_set(&batch->err, ENOMEM, "%s: out of memory", reader->file.path);
		return;
	}
	while (batch->len + sizeof(struct batch_head) + RECORD_BYTES_MAX <= merge->batch_bytes) {
		batch->code = file_reader_next(reader, &rec, &batch->err);
		if (batch->code <= 0)
			break;
		if (!batch_add(batch, source->of, rec)) {
			batch->code = chunk_file_damaged(&reader->file, reader->current->offset,
							 &batch->err);
			break;
		}
	}
	if (merge->count > FILES_OPEN)
		chunk_file_put_down(&reader->file);
	if (batch->code <= 0)
		file_reader_rest(reader);
}

static struct batch *other_batch(struct merge_input *source)
{
	return &source->batches[!source->reading];
}

static void queue_push(struct merge *merge, struct merge_input *source)
{
	uint32_t index = (uint32_t)(source - merge->sources);

	source->state = INPUT_QUEUED;
	if (source->in_queue)
		return;
	source->in_queue = true;
	source->next = NO_INPUT;
	if (merge->first == NO_INPUT)
		merge->first = index;
	else
		merge->sources[merge->last].next = index;
	merge->last = index;
	pthread_cond_signal(&merge->work);
}

static struct merge_input *queue_pop(struct merge *merge)
{
	while (merge->first != NO_INPUT) {
		struct merge_input *source = &merge->sources[merge->first];

		merge->first = source->next;
		source->in_queue = false;
		/* The reader may have filled it itself. */
		if (source->state == INPUT_QUEUED) {
			source->state = INPUT_FILLING;
			return source;
		}
	}
	return NULL;
}

static void *worker_run(void *arg)
{
	struct merge *merge = arg;
	struct chunk_scratch scratch;
	bool good = chunk_scratch_init(&scratch);

	pthread_mutex_lock(&merge->lock);
	while (good && !merge->stop) {
		struct merge_input *source = queue_pop(merge);

		if (!source) {
			pthread_cond_wait(&merge->work, &merge->lock);
			continue;
		}
		pthread_mutex_unlock(&merge->lock);
		batch_fill(merge, source, other_batch(source), &scratch);
		pthread_mutex_lock(&merge->lock);
		source->state = INPUT_IDLE;
		pthread_cond_broadcast(&merge->filled);
	}
	pthread_mutex_unlock(&merge->lock);
	if (good)
		chunk_scratch_free(&scratch);
	return NULL;
}

/* ---- reading batches ---- */

static const struct batch_head *batch_head(const struct batch *batch)
{
	return (const struct batch_head *)(const void *)(batch->data + batch->at);
}

static const struct waffle_rec *batch_rec(const struct batch *batch)
{
	return (const struct waffle_rec *)(const void *)(batch_head(batch) + 1);
}

static void source_done(struct merge *merge, struct merge_input *source)
{
	pthread_mutex_lock(&merge->lock);
	source->state = INPUT_DONE;
	pthread_mutex_unlock(&merge->lock);
	for (unsigned i = 0; i < 2; i++) {
		free(source->batches[i].data);
		source->batches[i].data = NULL;
	}
}

/* Waits until the batch that is not read is full, or fills it if no thread does so yet. */
static void batch_await(struct merge *merge, struct merge_input *source)
{
	pthread_mutex_lock(&merge->lock);
	while (source->state == INPUT_FILLING)
		pthread_cond_wait(&merge->filled, &merge->lock);
	if (source->state != INPUT_IDLE) {
		source->state = INPUT_FILLING;
		pthread_mutex_unlock(&merge->lock);
		batch_fill(merge, source, other_batch(source), &merge->scratch);
		pthread_mutex_lock(&merge->lock);
		source->state = INPUT_IDLE;
	}
	pthread_mutex_unlock(&merge->lock);
}

/* Goes to the source's next record. Returns 1 and sets source.ts; 0: there is none. */
static int source_advance(struct merge *merge, struct merge_input *source, struct error *err)
{
	struct batch *batch = &source->batches[source->reading];

	while (!source->begun || batch->at == batch->len) {
		if (source->begun && batch->code <= 0) {
			int code = batch->code;

			if (code)
				*err = batch->err;
			source_done(merge, source);
			return code;
		}
		batch_await(merge, source);
		source->begun = true;
		source->reading = !source->reading;
		batch = &source->batches[source->reading];
		if (batch->code > 0) {
			pthread_mutex_lock(&merge->lock);
			queue_push(merge, source);
			pthread_mutex_unlock(&merge->lock);
		}
	}
	source->ts = batch_rec(batch)->ts;
	return 1;
}

/* ---- the heap ---- */

static bool source_before(const struct merge *merge, uint32_t a, uint32_t b)
{
	uint64_t ts_a = merge->sources[a].ts, ts_b = merge->sources[b].ts;

	return ts_a != ts_b ? ts_a < ts_b : a < b;
}

static void heap_down(struct merge *merge, size_t at)
{
	uint32_t moved = merge->heap[at];

	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= merge->heap_len)
			break;
		if (child + 1 < merge->heap_len &&
		    source_before(merge, merge->heap[child + 1], merge->heap[child]))
			child++;
		if (!source_before(merge, merge->heap[child], moved))
			break;
		merge->heap[at] = merge->heap[child];
		at = child;
	}
	merge->heap[at] = moved;
}

static void heap_drop_first(struct merge *merge)
{
	merge->heap[0] = merge->heap[--merge->heap_len];
	if (merge->heap_len)
		heap_down(merge, 0);
}

int merge_next(struct merge *merge, const struct waffle_rec **rec, uint64_t *number,
	       struct error *err)
{
	while (merge->heap_len) {
		struct merge_input *source = &merge->sources[merge->heap[0]];
		struct batch *batch = &source->batches[source->reading];
		int ret;

		if (!merge->taken && source->begun) {
			*rec = batch_rec(batch);
			*number = batch_head(batch)->number;
			merge->taken = true;
			return 1;
		}
		if (merge->taken)
			batch->at += sizeof(struct batch_head) + batch_head(batch)->bytes;
		merge->taken = false;
		ret = source_advance(merge, source, err);
		if (ret < 0)
			return ret;
		if (ret)
			heap_down(merge, 0);
		else
			heap_drop_first(merge);
	}
	return 0;
}

/* ---- opening and closing ---- */

static int sources_begin(struct merge *merge, const struct merge_source *sources,
			 struct store_window window, struct error *err)
{
	for (size_t i = 0; i < merge->count; i++) {
		struct merge_input *source = &merge->sources[i];
		struct file_reader *reader = sources[i].reader;
		int ret;

		source->of = &sources[i];
		reader->file.scratch = &merge->scratch;
		ret = file_reader_seek(reader, renumber_window(sources[i].renumber, window), err);
		if (ret)
			return ret;
		source->ts = renumber_time(sources[i].renumber, file_reader_next_ts(reader));
		if (merge->count > FILES_OPEN)
			chunk_file_put_down(&reader->file);
		if (source->ts != UINT64_MAX)
			merge->heap[merge->heap_len++] = (uint32_t)i;
	}
	for (size_t at = merge->heap_len / 2; at-- > 0;)
		heap_down(merge, at);
	return 0;
}

/* Without threads, the reader fills all batches itself. */
static void threads_begin(struct merge *merge)
{
	unsigned wanted = threads_beside(merge->count < THREADS_MAX ? merge->count : THREADS_MAX);

	while (merge->thread_count < wanted &&
	       !pthread_create(&merge->threads[merge->thread_count], NULL, worker_run, merge))
		merge->thread_count++;
}

int merge_open(struct merge **result, const struct merge_source *sources, size_t count,
	       struct store_window window, struct error *err)
{
	struct merge *merge = calloc(1, sizeof(*merge));
	int ret;

	if (!merge)
		return error_set(err, ENOMEM, "out of memory");
	pthread_mutex_init(&merge->lock, NULL);
	pthread_cond_init(&merge->work, NULL);
	pthread_cond_init(&merge->filled, NULL);
	merge->first = merge->last = NO_INPUT;
	merge->count = count;
	merge->batch_bytes = BATCHES_BYTES / 2 / (count ? count : 1);
	if (merge->batch_bytes > BATCH_BYTES_MAX)
		merge->batch_bytes = BATCH_BYTES_MAX;
	if (merge->batch_bytes < BATCH_BYTES_MIN)
		merge->batch_bytes = BATCH_BYTES_MIN;
	merge->sources = calloc((size_t)count + 1, sizeof(*merge->sources));
	merge->heap = calloc((size_t)count + 1, sizeof(*merge->heap));
	ret = merge->sources && merge->heap && chunk_scratch_init(&merge->scratch)
		      ? sources_begin(merge, sources, window, err)
		      : error_set(err, ENOMEM, "out of memory");
	if (ret) {
		merge_close(merge);
		return ret;
	}
	threads_begin(merge);
	*result = merge;
	return 0;
}

void merge_close(struct merge *merge)
{
	if (!merge)
		return;
	pthread_mutex_lock(&merge->lock);
	merge->stop = true;
	pthread_cond_broadcast(&merge->work);
	pthread_mutex_unlock(&merge->lock);
	for (unsigned i = 0; i < merge->thread_count; i++)
		pthread_join(merge->threads[i], NULL);
	for (size_t i = 0; merge->sources && i < merge->count; i++) {
		source_done(merge, &merge->sources[i]);
		if (merge->sources[i].of)
			file_reader_rest(merge->sources[i].of->reader);
	}
	chunk_scratch_free(&merge->scratch);
	pthread_cond_destroy(&merge->work);
	pthread_cond_destroy(&merge->filled);
	pthread_mutex_destroy(&merge->lock);
	free(merge->sources);
	free(merge->heap);
	free(merge);
}
