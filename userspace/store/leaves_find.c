// SPDX-License-Identifier: Apache-2.0
#include "store/leaves_find_internal.h"

#include <pthread.h>
#include <stdlib.h>

#include "util/threads.h"

#define THREADS_MAX 8
/* Spans whose next record is awaited: one for each thread, as long as threads do not collide. */
#define PENDING 256u

/* The last record of a thread, as far as spans are concerned. */
struct pending {
	uint32_t tid, tgid;
	uint64_t id; /* of the span that it began; 0: none */
	uint32_t site;
};

/* One file while it is read. */
struct search {
	struct leaves *leaves;
	struct file_reader *reader;
	uint64_t last_ts;
	bool ordered;  /* no record of a span was late */
	bool required; /* a span of a site for which leaves_if() holds */
	bool (*leaves_if)(const struct site_info *site);
	struct pending pending[PENDING];
};

/* What the threads share. */
struct search_job {
	struct leaves *leaves;
	struct file_reader *const *files;
	uint32_t count, next;
	bool required;
	bool (*leaves_if)(const struct site_info *site);
	pthread_mutex_t lock;
	int code;
	struct error err;
};

static bool has_cause_span(const struct site_info *site)
{
	for (unsigned i = 0; i < site->key_count && i < WAFFLE_KEYS_MAX; i++)
		if (site->keys[i].type == WAFFLE_KEY_CAUSE_SPAN)
			return true;
	return false;
}

static const struct site_info *site_of(const struct file_reader *reader, uint32_t site)
{
	return site < reader->site_count ? reader->sites[site] : NULL;
}

static struct pending *pending_of(struct search *search, uint32_t tid)
{
	return &search->pending[(tid ^ tid >> 8) % PENDING];
}

/* The thread did something else than to end its span. */
static void pending_exclude(struct search *search, struct pending *pending)
{
	leaves_exclude(search->leaves, pending->id);
	pending->id = 0;
}

/* Takes note of a record. Returns whether it says nothing new about the thread: the model needs the
 * first record of a thread, and of a process. */
static bool thread_is_known(struct pending *pending, uint32_t tid, uint32_t tgid)
{
	bool known = pending->tid == tid && pending->tgid == tgid;

	pending->tid = tid;
	pending->tgid = tgid;
	return known;
}

static void causes_exclude(struct search *search, const struct site_info *site,
			   const struct waffle_rec_hit *hit)
{
	struct value_walk walk = value_walk_begin(site, hit + 1, hit->frame_bytes);
	struct value value;

	while (value_walk_next(&walk, &value))
		if (value.type == WAFFLE_KEY_CAUSE_SPAN)
			leaves_exclude(search->leaves, value.u64);
}

static void hit_search(struct search *search, const struct waffle_rec_hit *hit)
{
	struct pending *pending = pending_of(search, hit->rec.tid);
	const struct site_info *site = site_of(search->reader, hit->site);
	struct waffle_frame frame;
	bool known;

	pending_exclude(search, pending);
	known = thread_is_known(pending, hit->rec.tid, hit->tgid);
	if (!leaves_hit_is_valid(hit, &frame) || !site || site->kind == WAFFLE_SITE_SPAN_END)
		return;
	leaves_exclude(search->leaves, frame.parent);
	if (has_cause_span(site))
		causes_exclude(search, site, hit);
	if (site->kind != WAFFLE_SITE_SPAN)
		return;
	search->required |= search->leaves_if(site);
	pending->id = frame.id;
	pending->site = hit->site;
	if (!known || !leaves_may_have(site))
		pending_exclude(search, pending);
}

/* The end of a span. `valid`: the model takes the time of this record as the end. */
static void end_search(struct search *search, const struct waffle_rec *rec, uint64_t id,
		       uint32_t tgid, uint32_t site, bool valid)
{
	struct pending *pending = pending_of(search, rec->tid);

	if (valid && rec->tid && pending->id == id && pending->tid == rec->tid &&
	    pending->tgid == tgid && pending->site == site) {
		pending->id = 0;
		return;
	}
	pending_exclude(search, pending);
	thread_is_known(pending, rec->tid, tgid);
	leaves_exclude(search->leaves, id);
}

static void record_search(struct search *search, const struct waffle_rec *rec)
{
	const struct waffle_rec_span_end *end = (const void *)rec;
	const struct waffle_rec_return *back = (const void *)rec;
	const struct site_info *site;

	switch (rec->kind) {
	case WAFFLE_REC_HIT:
		hit_search(search, (const void *)rec);
		break;
	case WAFFLE_REC_SPAN_END:
		end_search(search, rec, end->span_id, end->tgid, end->site, true);
		break;
	case WAFFLE_REC_RETURN:
		site = site_of(search->reader, back->site);
		end_search(search, rec, back->span_id, back->tgid, back->site,
			   site && site->call && !(back->flags & WAFFLE_RETURN_LEFT));
		break;
	case WAFFLE_REC_TASK:
	case WAFFLE_REC_FORK:
	case WAFFLE_REC_EXEC:
	case WAFFLE_REC_EXIT:
		/* What follows may be another thread with the same number. */
		pending_exclude(search, pending_of(search, rec->tid));
		thread_is_known(pending_of(search, rec->tid), 0, 0);
		return;
	default:
		return;
	}
	search->ordered &= rec->ts >= search->last_ts;
	search->last_ts = rec->ts;
}

/* Reads a file. If a record was late, a leaf may have had something inside of it after all, so the
 * file has none. */
static int file_search(struct search *search, struct error *err)
{
	struct file_reader *reader = search->reader;
	const struct waffle_rec *rec;
	int ret = file_reader_seek(reader, STORE_ALL, err);

	while (!ret && (ret = file_reader_next(reader, &rec, err)) > 0) {
		record_search(search, rec);
		ret = 0;
	}
	for (unsigned i = 0; i < PENDING; i++)
		pending_exclude(search, &search->pending[i]);
	file_reader_rest(reader);
	reader->has_leaves = search->ordered;
	return ret;
}

static void *search_run(void *arg)
{
	struct search_job *job = arg;
	struct search *search = malloc(sizeof(*search));
	struct chunk_scratch scratch = {0}, *own;
	struct error err = ERROR_INIT;
	int ret = search && chunk_scratch_init(&scratch) ? 0
							 : error_set(&err, ENOMEM, "out of memory");

	pthread_mutex_lock(&job->lock);
	while (!ret && !job->code && job->next < job->count) {
		struct file_reader *reader = job->files[job->next++];

		pthread_mutex_unlock(&job->lock);
		*search = (struct search){.leaves = job->leaves,
					  .reader = reader,
					  .ordered = true,
					  .leaves_if = job->leaves_if};
		own = reader->file.scratch;
		reader->file.scratch = &scratch;
		ret = file_search(search, &err);
		reader->file.scratch = own;
		pthread_mutex_lock(&job->lock);
		job->required |= search->required;
	}
	if (ret && !job->code) {
		job->code = ret;
		job->err = err;
	}
	pthread_mutex_unlock(&job->lock);
	chunk_scratch_free(&scratch);
	free(search);
	return NULL;
}

/* Runs the search in this thread and as many others as are useful. */
static void search_all(struct search_job *job)
{
	pthread_t threads[THREADS_MAX];
	unsigned wanted = threads_beside((job->count < THREADS_MAX ? job->count : THREADS_MAX) - 1);
	unsigned count = 0;

	while (count < wanted && !pthread_create(&threads[count], NULL, search_run, job))
		count++;
	search_run(job);
	while (count)
		pthread_join(threads[--count], NULL);
}

/* Whether to search: some sites may have leaves, there is a site without which there are none, and
 * at least half of the records are about spans, so that reading them twice pays. */
static bool is_worthwhile(struct file_reader *const *files, uint32_t count,
			  bool (*leaves_if)(const struct site_info *site))
{
	bool leaf = false, required = false;
	uint64_t records = 0, spans = 0;

	for (uint32_t i = 0; i < count; i++) {
		records += files[i]->data_records;
		spans += files[i]->meta.counts[record_source(WAFFLE_REC_HIT)].delivered;
		for (uint32_t site = 0; site < files[i]->site_count; site++) {
			leaf |= leaves_may_have(files[i]->sites[site]);
			required |= leaves_if(files[i]->sites[site]);
		}
	}
	return leaf && required && spans >= records / 2;
}

int leaves_find(struct leaves **leaves, struct file_reader *const *files, uint32_t count,
		bool (*leaves_if)(const struct site_info *site), struct error *err)
{
	struct search_job job = {.files = files,
				 .count = count,
				 .leaves_if = leaves_if,
				 .lock = PTHREAD_MUTEX_INITIALIZER};
	uint64_t records = 0;

	*leaves = NULL;
	if (!is_worthwhile(files, count, leaves_if))
		return 0;
	for (uint32_t i = 0; i < count; i++)
		records += files[i]->data_records;
	job.leaves = leaves_new(records);
	if (!job.leaves)
		return 0;
	search_all(&job);
	if (job.code || !job.required) {
		leaves_free(job.leaves);
		if (job.code)
			*err = job.err;
		return job.code;
	}
	*leaves = job.leaves;
	return 0;
}
