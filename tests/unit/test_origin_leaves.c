// SPDX-License-Identifier: Apache-2.0
/*
 * Spans to which no way leads are left out when origins are searched. The answers are those of a
 * model that has everything, in random jobs with spans that were open, late, linked to long after
 * they ended, copied by a fork, or whose records were dropped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model_capture.h"

#include "calls_capture.h"

#include "analyze/origin/origin.h"
#include "render/json/origin_json.h"
#include "render/text/origin_text.h"

#define JOBS 300
#define RANKS 3
#define THREADS 6
#define DEPTH_MAX 6
#define IDS_MAX 400
#define COMM 0xc0ffee
#define STREAM 0xa

struct thread {
	unsigned depth;
	uint64_t open[DEPTH_MAX];
	uint32_t site[DEPTH_MAX];
};

struct job {
	struct capture captures[RANKS];
	unsigned files; /* 1 or RANKS */
	uint64_t seed, ts, next_id, seq;
	struct thread threads[THREADS];
	uint64_t ids[IDS_MAX], events[IDS_MAX]; /* made so far */
	unsigned id_count, event_count;
	bool late; /* some records are late */
};

static uint64_t below(struct job *job, uint64_t limit)
{
	job->seed = job->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (job->seed >> 33) % limit;
}

static bool chance(struct job *job, unsigned percent)
{
	return below(job, 100) < percent;
}

static struct capture *capture_of(struct job *job, unsigned rank)
{
	return &job->captures[job->files == 1 ? 0 : rank];
}

static uint64_t now(struct job *job)
{
	job->ts += 1 + below(job, 3);
	return job->late && chance(job, 3) ? job->ts - 20 : job->ts;
}

/* ---- records ---- */

/* Thread t is of rank t % RANKS, which is process 100 + rank. */
static void hit(struct job *job, unsigned thread, uint32_t site, uint64_t id, uint64_t parent,
		unsigned count, const uint64_t *words)
{
	struct {
		struct waffle_rec_hit hit;
		uint64_t frame[4 + 16];
	} rec = {.hit = {.rec = {now(job), 200 + thread, WAFFLE_REC_HIT, 0},
			 .tgid = 100 + thread % RANKS,
			 .site = site,
			 .frame_bytes = 32 + 8 * count},
		 .frame = {id, parent, 7, 8}};

	if (count)
		memcpy(&rec.frame[4], words, count * sizeof(*words));
	capture_add(capture_of(job, thread % RANKS), &rec);
}

static void end(struct job *job, unsigned thread, uint32_t site, uint64_t id, uint32_t pid)
{
	struct waffle_rec_span_end rec = {.rec = {now(job), 200 + thread, WAFFLE_REC_SPAN_END, 0},
					  .span_id = id,
					  .tgid = pid,
					  .site = site};

	capture_add(capture_of(job, thread % RANKS), &rec);
}

static void back(struct job *job, unsigned thread, uint32_t site, uint64_t id, unsigned count,
		 const uint64_t *words)
{
	call_return_in(capture_of(job, thread % RANKS), 100 + thread % RANKS, now(job),
		       200 + thread, site, id, count, words);
}

static uint64_t parent_of(const struct thread *thread)
{
	return thread->depth ? thread->open[thread->depth - 1] : 0;
}

static uint64_t id_new(struct job *job)
{
	uint64_t id = ++job->next_id;

	if (job->id_count < IDS_MAX)
		job->ids[job->id_count++] = id;
	return id;
}

static uint64_t any_id(struct job *job)
{
	return job->id_count ? job->ids[below(job, job->id_count)] : 0;
}

static uint64_t any_event(struct job *job)
{
	return job->event_count && chance(job, 50) ? job->events[below(job, job->event_count)] : 0;
}

/* ---- what happens ---- */

static void event_make(struct job *job, unsigned thread)
{
	uint64_t id = ++job->next_id, cause = any_event(job);

	hit(job, thread, SITE_FOUND, id, parent_of(&job->threads[thread]), 1, &cause);
	if (job->event_count < IDS_MAX)
		job->events[job->event_count++] = id;
}

static void span_begin(struct job *job, unsigned thread)
{
	struct thread *at = &job->threads[thread];
	uint32_t site = chance(job, 30) ? SITE_LOAD : chance(job, 80) ? SITE_STEP : CALL_FORWARD;
	uint64_t id = id_new(job), parent = chance(job, 15) ? any_id(job) : parent_of(at);
	uint64_t words[] = {chance(job, 40) ? any_id(job) : 0, any_event(job)};

	if (at->depth == DEPTH_MAX)
		return;
	if (!chance(job, 3)) /* else the begin is dropped */
		hit(job, thread, site, id, parent, site == SITE_LOAD ? 2 : 0, words);
	at->site[at->depth] = site;
	at->open[at->depth++] = id;
}

static void span_end(struct job *job, unsigned thread)
{
	struct thread *at = &job->threads[thread];
	unsigned other = chance(job, 5) ? (unsigned)below(job, THREADS) : thread;

	if (!at->depth)
		return;
	at->depth--;
	if (other % RANKS != thread % RANKS)
		other = thread;
	if (!chance(job, 3)) /* else the end is dropped */
		end(job, other, at->site[at->depth], at->open[at->depth], 100 + other % RANKS);
}

/* A span in which the thread does nothing, at least in most cases. */
static void leaf_make(struct job *job, unsigned thread)
{
	uint64_t id = id_new(job), fd = 3;
	bool call = chance(job, 20);

	if (call)
		hit(job, thread, CALL_READ, id, 0, 1, &fd);
	else
		hit(job, thread, SITE_STEP, id, parent_of(&job->threads[thread]), 0, NULL);
	if (chance(job, 10))
		hit(job, (thread + RANKS) % THREADS, SITE_STEP, id_new(job), id, 0, NULL);
	if (chance(job, 5))
		end(job, thread, SITE_STEP, id, 77); /* the copy in a child process */
	if (chance(job, 5))
		event_make(job, thread);
	if (call)
		back(job, thread, CALL_READ, id, 0, NULL);
	else if (!chance(job, 4))
		end(job, thread, SITE_STEP, id, 100 + thread % RANKS);
	else if (chance(job, 50)) /* not valid: it is no call */
		back(job, thread, SITE_STEP, id, 0, NULL);
	if (chance(job, 4))
		end(job, thread, SITE_STEP, id, 78);
}

/* All ranks call a collective, on their first threads, and wait for it. */
static void collective_make(struct job *job)
{
	uint32_t site = chance(job, 50) ? CALL_ALL_REDUCE : CALL_BROADCAST;
	const uint64_t stream = STREAM, argument = site == CALL_BROADCAST ? below(job, RANKS) : 7;

	for (unsigned rank = 0; rank < RANKS; rank++) {
		const uint64_t words[] = {64, argument, COMM, rank, RANKS, job->seq, STREAM};
		uint64_t id = ++job->next_id;

		hit(job, rank, site, id, 0, 7, words);
		back(job, rank, site, id, 0, NULL);
	}
	for (unsigned rank = 0; rank < RANKS; rank++) {
		uint64_t id = ++job->next_id;

		hit(job, rank, CALL_SYNC, id, 0, 1, &stream);
		back(job, rank, CALL_SYNC, id, 0, NULL);
	}
	job->seq++;
}

static void thread_renew(struct job *job, unsigned thread)
{
	struct waffle_rec_exit gone = {.rec = {now(job), 200 + thread, WAFFLE_REC_EXIT, 0},
				       .tgid = 100 + thread % RANKS};

	capture_add(capture_of(job, thread % RANKS), &gone);
	job->threads[thread].depth = 0;
}

static void step_make(struct job *job, bool calls)
{
	unsigned thread = (unsigned)below(job, THREADS);

	switch (below(job, 16)) {
	case 0:
	case 1:
	case 2:
		span_begin(job, thread);
		break;
	case 3:
	case 4:
		span_end(job, thread);
		break;
	case 5:
	case 6:
		event_make(job, thread);
		break;
	case 7:
		if (calls)
			collective_make(job);
		break;
	case 8:
		if (chance(job, 20))
			thread_renew(job, thread);
		break;
	case 9:
		if (chance(job, 20))
			capture_loss(capture_of(job, thread % RANKS), job->ts - 3, job->ts,
				     WAFFLE_SOURCE_SPANS, 2);
		break;
	default:
		leaf_make(job, thread);
		break;
	}
}

/* Files of one job begin at their own times. */
static void file_begin(struct capture *capture, uint64_t start_ts)
{
	struct store_meta meta = {.start_ts = start_ts,
				  .boot_ns = start_ts,
				  .real_ns = 1700000000000000000ull + start_ts,
				  .hostname = "node",
				  .boot_id = "b",
				  .machine = "x86_64",
				  .cpu_count = 2};
	struct error err = ERROR_INIT;
	int fd;

	*capture = (struct capture){.path = "/tmp/waffle-leaves-XXXXXX"};
	fd = mkstemp(capture->path);
	assert_true(fd >= 0);
	close(fd);
	capture_must(store_writer_open(&capture->writer, capture->path, &meta, &err), err);
	for (size_t i = 0; i < CAPTURE_SITES; i++)
		capture_must(store_writer_add_site(capture->writer, &capture_sites[i], &err), err);
	calls_add_sites(capture);
}

static void job_make(struct job *job, uint64_t seed)
{
	bool calls = seed % 8 != 0;

	*job = (struct job){.seed = seed, .ts = 2000, .next_id = 0x1000 * seed};
	job->files = seed % 3 ? 1 : RANKS;
	job->late = seed % 5 == 0;
	for (unsigned i = 0; i < job->files; i++)
		file_begin(&job->captures[i], CAPTURE_START + i);
	for (unsigned rank = 0; calls && rank < RANKS; rank++) {
		const uint64_t words[] = {rank, RANKS}, comm = COMM;
		uint64_t id = ++job->next_id;

		hit(job, rank, CALL_COMM_INIT, id, 0, 2, words);
		back(job, rank, CALL_COMM_INIT, id, 1, &comm);
	}
	for (uint64_t i = 50 + below(job, 400); i--;)
		step_make(job, calls);
	event_make(job, 0);
}

static struct store_reader *job_open(struct job *job)
{
	const char *paths[RANKS];
	const struct store_open_options options = {0};
	struct store_counts counts[WAFFLE_SOURCE_COUNT] = {0};
	struct store_reader *reader;
	struct error err = ERROR_INIT;

	for (unsigned i = 0; i < job->files; i++) {
		paths[i] = job->captures[i].path;
		counts[WAFFLE_SOURCE_SPANS].delivered = job->captures[i].records;
		counts[WAFFLE_SOURCE_SPANS].produced = job->captures[i].records;
		/* The end of an unfinished file is the time of its last record. */
		capture_must(store_writer_close(job->captures[i].writer,
						job->seed % 2 ? 0 : job->ts + 10, counts, &err),
			     err);
	}
	capture_must(store_reader_open_files(&reader, paths, job->files, &options, &err), err);
	return reader;
}

/* ---- answers ---- */

static const struct model_filter everything, declared = {.only_declared = true},
					     leading = {.only_declared = true, .from_event = true};

/* Returns what why --event prints for every event, as text and as JSON. */
static char *answers(struct store_reader *reader, const struct model_filter *keep, size_t *spans)
{
	const struct why_view view = {0};
	struct error err = ERROR_INIT;
	struct origin_index *index;
	struct model *model;
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	capture_must(model_load(&model, reader, STORE_ALL, keep, &err), err);
	*spans += model->spans.len;
	index = origin_index_new(model);
	for (uint32_t i = 0; i < model->events.len; i++) {
		struct origin *origin;

		if (model->events.data[i].site != SITE_FOUND)
			continue;
		origin = origin_new(index, MODEL_NODE_EVENT, i);
		origin_print_text(origin, &view, out);
		assert_int_equal(origin_print_json(origin, out), 0);
		origin_free(origin);
	}
	origin_index_free(index);
	model_free(model);
	fclose(out);
	return text;
}

static void test_answers_are_those_of_a_model_with_all_spans(void **state)
{
	static struct job job;
	size_t all = 0, kept = 0, unused = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= JOBS; seed++) {
		struct store_reader *reader;
		char *want, *few, *got;

		job_make(&job, seed);
		reader = job_open(&job);
		want = answers(reader, &everything, &all);
		few = answers(reader, &declared, &unused);
		got = answers(reader, &leading, &kept);
		if (strcmp(want, few) != 0 || strcmp(want, got) != 0)
			fail_msg("job %llu differs", (unsigned long long)seed);
		free(want);
		free(few);
		free(got);
		store_reader_close(reader);
		for (unsigned i = 0; i < job.files; i++)
			unlink(job.captures[i].path);
	}
	/* It was worth while. */
	assert_true(kept + 2 * JOBS < all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers_are_those_of_a_model_with_all_spans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
