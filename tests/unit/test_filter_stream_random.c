// SPDX-License-Identifier: Apache-2.0
/*
 * The filter stage against the filter of files: random programs of some threads run through a
 * random expression as records in the order of time, and unfiltered into a file, which is read with
 * the same expression. Both must keep the same. WAFFLE_SEED and WAFFLE_TRIALS choose the
 * pseudo-random numbers and how many programs there are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "filter_random_expression.h"
#include "filter_stream_rig.h"
#include "model_capture.h"

#define TRIALS_DEFAULT 400
#define SITES 5
#define THREADS 3
#define NESTED 5
#define STEPS 400
#define TID 11u

struct thread {
	uint64_t stack[NESTED]; /* ids of its open spans */
	uint64_t trace[NESTED][2];
	uint32_t site[NESTED];
	unsigned depth;
};

struct trial {
	struct world world;
	struct site_info sites[SITES];
	struct capture capture;
	struct rig rig;
	struct thread threads[THREADS];
	struct map given; /* sums of the frames of all hits, by id */
	uint64_t ts, id;
	bool keep_children, rate;
};

static struct totals {
	uint64_t hits, kept, programs, lost, with_children;
} totals;

static uint64_t environment(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

/*
 * ---- a program ----
 *
 * With keep_children all spans end, on the thread of their parents: docs/filter.md says what the
 * stage cannot keep otherwise, as it is not known in time.
 */

/* The value of a function is a number in a record, and a name in a file. */
static bool site_is_plain(const struct site_info *site)
{
	for (unsigned i = 0; i < site->key_count; i++)
		if (strchr("cX", site->keys[i].type))
			return false;
	return true;
}

static void sites_make(struct trial *trial)
{
	struct error err = ERROR_INIT;

	for (unsigned i = 0; i < SITES; i++) {
		do
			site_make(&trial->world);
		while (!site_is_plain(&trial->world.site) ||
		       (i < 2 && trial->world.site.kind != WAFFLE_SITE_SPAN));
		trial->sites[i] = trial->world.site;
	}
	/* The expression asks for the keys of one of them. */
	trial->world.site = trial->sites[below(&trial->world, SITES)];
	for (unsigned i = 0; i < SITES; i++)
		capture_must(store_writer_add_site(trial->capture.writer, &trial->sites[i], &err),
			     err);
}

static void stage_open(struct trial *trial)
{
	rig_open(&trial->rig, trial->world.source, trial->keep_children);
	for (unsigned i = 0; i < CAPTURE_SITES; i++)
		assert_true(filter_stream_add_site(trial->rig.stream, &capture_sites[i]));
	for (unsigned i = 0; i < SITES; i++)
		assert_true(filter_stream_add_site(trial->rig.stream, &trial->sites[i]));
}

static void time_passes(struct trial *trial)
{
	static const uint64_t steps[] = {1, 1, 2, 3, 1000, 10000000, 1ull << 31, 1ull << 32};

	trial->ts += percent(&trial->world, 80) ? 1 + below(&trial->world, 2)
						: steps[below(&trial->world, 8)];
}

static void hit_add(struct trial *trial, struct thread *thread, unsigned site)
{
	struct world *world = &trial->world;
	const struct site_info *info = &trial->sites[site];
	struct thread *other = &trial->threads[below(world, THREADS)];
	struct thread *around = percent(world, 90) || trial->keep_children ? thread : other;
	uint64_t trace[2] = {percent(world, 80) ? rnd(world) : 0, rnd(world)};
	uint64_t parent = around->depth ? around->stack[around->depth - 1] : 0;
	struct random_frame frame = {.size = 0};
	struct {
		struct waffle_rec_hit hit;
		unsigned char frame[RANDOM_FRAME_ROOM];
	} rec;

	if (parent)
		memcpy(trace, around->trace[around->depth - 1], sizeof(trace));
	frame_word(&frame, ++trial->id);
	frame_word(&frame, parent);
	frame_word(&frame, trace[0]);
	frame_word(&frame, trace[0] ? trace[1] : 0);
	for (unsigned i = 0; i < info->key_count; i++)
		random_value(world, &frame, info->keys[i].type);
	rec.hit = (struct waffle_rec_hit){
		.rec = {trial->ts, TID + (uint32_t)(thread - trial->threads), WAFFLE_REC_HIT,
			(uint16_t)below(world, 3)},
		.tgid = CAPTURE_PID,
		.site = CAPTURE_SITES + site,
		.frame_bytes = frame.size,
	};
	memcpy(rec.frame, frame.bytes, frame.size);
	capture_add(&trial->capture, &rec);
	assert_true(map_set(&trial->given, trial->id, (uint32_t)frame_sum(&rec.hit) & 0xffffff));
	filter_stream_hit(trial->rig.stream, &rec.hit, trial->ts);
	totals.hits++;
	if (info->kind != WAFFLE_SITE_SPAN)
		return;
	memcpy(thread->trace[thread->depth], trace, sizeof(trace));
	thread->site[thread->depth] = rec.hit.site;
	thread->stack[thread->depth++] = trial->id;
}

static void end_add(struct trial *trial, struct thread *thread)
{
	struct waffle_rec_span_end rec = {
		.rec = {trial->ts, TID + (uint32_t)(thread - trial->threads), WAFFLE_REC_SPAN_END,
			0},
		.span_id = thread->stack[--thread->depth],
		.tgid = CAPTURE_PID,
		.site = thread->site[thread->depth],
	};

	capture_add(&trial->capture, &rec);
	filter_stream_end(trial->rig.stream, &rec, trial->ts);
}

static void name_add(struct trial *trial, unsigned thread)
{
	const struct random_text *comm = &trial->world.comms[below(&trial->world, POOL)];
	char text[WAFFLE_COMM_BYTES] = "";

	memcpy(text, comm->bytes, comm->len);
	capture_task(&trial->capture, trial->ts, TID + thread, 0, text);
	filter_stream_name(trial->rig.stream, CAPTURE_PID, TID + thread, text);
}

static void program_run(struct trial *trial)
{
	struct world *world = &trial->world;

	for (unsigned i = 0; i < THREADS; i++)
		name_add(trial, i);
	for (unsigned step = below(world, STEPS); step > 0; step--) {
		unsigned number = below(world, THREADS);
		struct thread *thread = &trial->threads[number];
		unsigned site = below(world, SITES);

		time_passes(trial);
		if (percent(world, 2))
			name_add(trial, number);
		else if (thread->depth && percent(world, 35))
			end_add(trial, thread);
		else if (trial->sites[site].kind != WAFFLE_SITE_SPAN || thread->depth < NESTED)
			hit_add(trial, thread, site);
	}
	for (unsigned i = 0; trial->keep_children && i < THREADS; i++) {
		while (trial->threads[i].depth) {
			time_passes(trial);
			end_add(trial, &trial->threads[i]);
		}
	}
	time_passes(trial);
}

/* ---- both results ---- */

static bool is_kept(const struct model *model, const struct map *events, uint64_t id)
{
	return model_span_find(model, id) != MODEL_NONE || map_get(events, id) != MAP_NONE;
}

static void fail_about(const struct trial *trial, const char *what, uint64_t id)
{
	fail_msg("%s: hit %llu: %s", trial->world.source, (unsigned long long)id, what);
}

/* Begins, ends and events of the stage, each at most once and unchanged. */
static void delivered_check(struct trial *trial, struct map *begun, struct map *ended)
{
	for (size_t i = 0; i < trial->rig.out.len; i++) {
		const struct delivered *one = &trial->rig.out.data[i];
		struct map *list = one->kind == WAFFLE_REC_HIT ? begun : ended;

		if (map_get(list, one->id) != MAP_NONE)
			fail_about(trial, "delivered twice", one->id);
		assert_true(map_set(list, one->id, (uint32_t)i));
		if (one->kind == WAFFLE_REC_HIT &&
		    map_get(&trial->given, one->id) != (uint32_t)(one->frame & 0xffffff))
			fail_about(trial, "changed", one->id);
		if (one->kind != WAFFLE_REC_HIT && map_get(begun, one->id) == MAP_NONE)
			fail_about(trial, "its end without its begin", one->id);
	}
}

static bool is_open(const struct trial *trial, uint64_t id)
{
	for (unsigned i = 0; i < THREADS; i++)
		for (unsigned j = 0; j < trial->threads[i].depth; j++)
			if (trial->threads[i].stack[j] == id)
				return true;
	return false;
}

static void results_compare(struct trial *trial, const struct model *model)
{
	uint64_t lost = filter_stream_counts(trial->rig.stream).lost, missing = 0;
	struct map begun = {0}, ended = {0}, events = {0};

	delivered_check(trial, &begun, &ended);
	for (size_t i = 0; i < model->events.len; i++)
		assert_true(map_set(&events, model->events.data[i].id, 1));
	for (uint64_t id = 1; id <= trial->id; id++) {
		bool in_file = is_kept(model, &events, id);
		bool here = map_get(&begun, id) != MAP_NONE;

		if (here && !in_file)
			fail_about(trial, "the stage keeps it, the filter of the file does not",
				   id);
		if (in_file && !here && ++missing > lost)
			fail_about(trial, "the filter of the file keeps it, the stage does not",
				   id);
		if (here && model_span_find(model, id) != MAP_NONE && !is_open(trial, id) &&
		    map_get(&ended, id) == MAP_NONE && !lost)
			fail_about(trial, "its end is missing", id);
	}
	totals.kept += begun.len;
	totals.lost += lost;
	map_free(&begun);
	map_free(&ended);
	map_free(&events);
}

/* ---- all ---- */

static void expression_finish(struct trial *trial)
{
	char whole[SOURCE_BYTES + 64];

	if (!trial->rate)
		return;
	snprintf(whole, sizeof(whole), "(%s) && rate(%u/%s)", trial->world.source,
		 1 + below(&trial->world, 4), percent(&trial->world, 50) ? "ms" : "s");
	memcpy(trial->world.source, whole, sizeof(trial->world.source) - 1);
}

static void trial_run(uint64_t seed)
{
	struct trial *trial = calloc(1, sizeof(*trial));
	struct world *world = &trial->world;

	assert_non_null(trial);
	world->random = seed;
	world->pid = CAPTURE_PID;
	world->tid = TID + 1;
	world->cpu = 1;
	world_make(world);
	capture_begin(&trial->capture, false);
	sites_make(trial);
	expression_make(world);
	trial->keep_children = percent(world, 40);
	trial->rate = !trial->keep_children && percent(world, 20);
	expression_finish(trial);
	stage_open(trial);
	trial->ts = CAPTURE_START + 100;
	program_run(trial);
	trial->capture.keep = (struct model_filter){.filter = trial->rig.filter,
						    .keep_children = trial->keep_children};
	results_compare(trial, capture_load(&trial->capture, trial->ts));
	totals.programs++;
	totals.with_children += trial->keep_children;
	capture_free(&trial->capture);
	rig_close(&trial->rig);
	map_free(&trial->given);
	free(trial);
}

static void test_the_stage_keeps_what_the_filter_of_a_file_keeps(void **state)
{
	uint64_t seed = environment("WAFFLE_SEED", 20261126);
	uint64_t trials = environment("WAFFLE_TRIALS", TRIALS_DEFAULT);

	(void)state;
	for (uint64_t i = 0; i < trials; i++)
		trial_run(seed + i * 1000003);
	print_message("%llu programs, %llu with children, %llu hits, %llu kept, %llu lost\n",
		      (unsigned long long)totals.programs, (unsigned long long)totals.with_children,
		      (unsigned long long)totals.hits, (unsigned long long)totals.kept,
		      (unsigned long long)totals.lost);
	if (trials < TRIALS_DEFAULT)
		return;
	assert_in_range(100 * totals.kept / totals.hits, 20, 80);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_stage_keeps_what_the_filter_of_a_file_keeps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
