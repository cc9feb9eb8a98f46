/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random CUDA programs, a GPU that runs them by simple rules, and the capture that they leave. The
 * same program can run with other durations, which says what a replay of its capture has to find.
 *
 * Each thread has streams and events of its own, so that a thread that gets ahead changes nothing
 * for the other ones. An operation starts as soon as three things have happened: it was launched,
 * the operation before it on its stream has ended, and all operations that its stream waits for
 * have ended.
 */
#ifndef WAFFLE_TEST_GPU_PROGRAM_H
#define WAFFLE_TEST_GPU_PROGRAM_H

#include "gpu_capture.h"

#include "model/gpu/gpu_timeline.h"

#define PROGRAM_ACTIONS_MAX 200
#define PROGRAM_THREADS 3
#define PROGRAM_STREAMS 3 /* of each thread */
#define PROGRAM_FIRST_TID 11
#define PROGRAM_START 2000

enum program_kind {
	PROGRAM_KERNEL,
	PROGRAM_COPY,
	PROGRAM_RECORD, /* of an event of the stream, that has the same number */
	PROGRAM_WAIT,   /* the stream waits for the event of `other` */
	PROGRAM_SYNC,   /* with the stream */
	PROGRAM_SYNC_EVENT,
	PROGRAM_KIND_COUNT
};

struct program_action {
	unsigned kind, thread, stream, other, name; /* name: of the kernel */
	uint64_t gap_ns;                            /* the thread does something else before */
	uint64_t dur_ns;                            /* of the operation */
	/* What happened in a run. */
	uint64_t call_ts, return_ts, start_ts, end_ts;
};

struct program {
	struct program_action actions[PROGRAM_ACTIONS_MAX];
	unsigned count;
	uint64_t launch_ns, order_ns; /* how long the GPU takes to begin an operation */
	uint64_t makespan_ns;         /* of the last run */
};

static const char *const program_names[] = {"gemm_a", "gemm_b", "softmax"};
enum { PROGRAM_SITE_KERNEL = CALL_SITES_END, PROGRAM_SITE_COPY = PROGRAM_SITE_KERNEL + 3 };
enum { PROGRAM_SITE_LAUNCH = PROGRAM_SITE_COPY + 1 };

/* ---- the program ---- */

static uint64_t program_seed = 1;

static inline uint32_t program_random(uint32_t below)
{
	program_seed = program_seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((program_seed >> 33) % below);
}

static inline void program_make(struct program *program, unsigned count)
{
	*program = (struct program){.count = count};
	for (unsigned i = 0; i < count; i++)
		program->actions[i] = (struct program_action){
			.kind = program_random(3) ? PROGRAM_KERNEL
						  : program_random(PROGRAM_KIND_COUNT),
			.thread = program_random(PROGRAM_THREADS),
			.stream = program_random(PROGRAM_STREAMS),
			.other = program_random(PROGRAM_STREAMS),
			.name = program_random(3),
			.gap_ns = 2 + program_random(20),
			.dur_ns = 2 * program_random(60),
		};
}

/* ---- the GPU ---- */

struct program_run {
	uint64_t now[PROGRAM_THREADS];
	uint64_t end[PROGRAM_THREADS][PROGRAM_STREAMS];     /* of the last operation */
	uint64_t pending[PROGRAM_THREADS][PROGRAM_STREAMS]; /* of what the stream waits for */
	uint64_t event[PROGRAM_THREADS][PROGRAM_STREAMS];   /* of what the event stands for */
};

static inline uint64_t program_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline void program_launch(const struct program *program, struct program_run *run,
				  struct program_action *action)
{
	uint64_t *end = &run->end[action->thread][action->stream];
	uint64_t *pending = &run->pending[action->thread][action->stream];
	uint64_t before = program_max(*end, *pending);

	action->start_ts = program_max(action->call_ts + 1 + program->launch_ns,
				       before ? before + program->order_ns : 0);
	action->end_ts = action->start_ts + action->dur_ns;
	*end = action->end_ts;
	*pending = 0;
}

static inline void program_step(const struct program *program, struct program_run *run,
				struct program_action *action)
{
	unsigned thread = action->thread, stream = action->stream;
	uint64_t until = 0;

	action->call_ts = run->now[thread] + action->gap_ns;
	switch (action->kind) {
	case PROGRAM_KERNEL:
	case PROGRAM_COPY:
		program_launch(program, run, action);
		break;
	case PROGRAM_RECORD:
		run->event[thread][stream] =
			program_max(run->end[thread][stream], run->pending[thread][stream]);
		break;
	case PROGRAM_WAIT:
		run->pending[thread][stream] = program_max(run->pending[thread][stream],
							   run->event[thread][action->other]);
		break;
	case PROGRAM_SYNC:
		until = program_max(run->end[thread][stream], run->pending[thread][stream]);
		break;
	default:
		until = run->event[thread][action->other];
	}
	action->return_ts = program_max(action->call_ts, until) + 2;
	run->now[thread] = action->return_ts;
}

/* Runs the program, and measures it as a replay does: from the first launch or synchronisation to
 * the last end. */
static inline void program_go(struct program *program)
{
	struct program_run run = {0};
	uint64_t from_ts = UINT64_MAX, to_ts = 0;

	for (unsigned i = 0; i < PROGRAM_THREADS; i++)
		run.now[i] = PROGRAM_START;
	for (unsigned i = 0; i < program->count; i++) {
		struct program_action *action = &program->actions[i];

		program_step(program, &run, action);
		if (action->kind > PROGRAM_COPY)
			continue;
		from_ts = action->call_ts + 1 < from_ts ? action->call_ts + 1 : from_ts;
		to_ts = program_max(to_ts, action->end_ts);
	}
	program->makespan_ns = from_ts < to_ts ? to_ts - from_ts : 0;
}

/* ---- its capture ---- */

static inline uint64_t program_stream(const struct program_action *action, unsigned stream)
{
	return 0x7f00 + action->thread * PROGRAM_STREAMS + stream;
}

static inline uint64_t program_event(const struct program_action *action, unsigned stream)
{
	return 0xe000 + action->thread * PROGRAM_STREAMS + stream;
}

static inline void program_sites(struct capture *capture)
{
	struct site_info site =
		CALL_SITE("", "gpu", WAFFLE_SITE_SPAN, SITE_ROLE_NONE, 7, {WAFFLE_KEY_STR, "op"},
			  CALL_U64("device"), CALL_U64("stream"), CALL_U64("correlation"),
			  {WAFFLE_KEY_STR, "grid"}, {WAFFLE_KEY_STR, "kind"}, CALL_U64("bytes"));
	const struct site_info launch = CALL_SITE("launch", "gpu", WAFFLE_SITE_EVENT,
						  SITE_ROLE_NONE, 1, CALL_U64("correlation"));
	struct error err = ERROR_INIT;

	site.call = false;
	for (unsigned i = 0; i < 3; i++) {
		site.name = program_names[i];
		capture_must(store_writer_add_site(capture->writer, &site, &err), err);
	}
	site.name = "copy";
	capture_must(store_writer_add_site(capture->writer, &site, &err), err);
	capture_must(store_writer_add_site(capture->writer, &launch, &err), err);
}

/* The words of a text of at most eight bytes. */
static inline void program_text(uint64_t words[2], const char *text)
{
	words[0] = strlen(text);
	words[1] = 0;
	memcpy(&words[1], text, words[0]);
}

static inline void program_record_op(struct capture *capture, const struct program_action *action,
				     unsigned index)
{
	bool copy = action->kind == PROGRAM_COPY;
	uint32_t site = copy ? PROGRAM_SITE_COPY : PROGRAM_SITE_KERNEL + action->name;
	uint64_t number = 7 + action->thread * PROGRAM_STREAMS + action->stream;
	uint64_t words[10] = {0, 0, 0, number, 1 + index};
	struct waffle_rec_on_track mark = {
		.rec = {action->start_ts, PROGRAM_FIRST_TID, WAFFLE_REC_ON_TRACK, 0},
		.id = 10000 + index,
		.tgid = CAPTURE_PID,
		.track = (uint32_t)number};
	struct waffle_rec_span_end end = {
		.rec = {action->end_ts, PROGRAM_FIRST_TID, WAFFLE_REC_SPAN_END, 0},
		.span_id = 10000 + index,
		.tgid = CAPTURE_PID,
		.site = site};

	program_text(words, copy ? "copy" : "kernel");
	program_text(words + 5, "4,1,1");
	program_text(words + 7, copy ? "HtoD" : "");
	if (words[7]) {
		words[9] = 4096;
	} else { /* an empty text has no word of bytes */
		words[8] = 0;
	}
	capture_add(capture, &mark);
	hit(capture, action->start_ts, PROGRAM_FIRST_TID, site, 10000 + index, words[7] ? 10 : 9,
	    words);
	capture_add(capture, &end);
}

/* Two launches within one call would be nested: each has its thread's call of its own. */
static inline void program_record_call(struct capture *capture, const struct program_action *action,
				       unsigned index)
{
	uint32_t tid = PROGRAM_FIRST_TID + action->thread;
	uint64_t id = 20000 + index, ts = action->call_ts;
	uint64_t stream = program_stream(action, action->stream);
	uint64_t event = program_event(action, action->stream);
	uint64_t other = program_event(action, action->other);

	switch (action->kind) {
	case PROGRAM_KERNEL:
		hit(capture, ts, tid, CALL_LAUNCH, id, WORDS(GEMM, 1, 1, stream));
		break;
	case PROGRAM_COPY: {
		uint64_t words[] = {4096, 4, 0, stream};

		memcpy(&words[2], "HtoD", 4);
		hit(capture, ts, tid, CALL_COPY_ASYNC, id, 4, words);
		break;
	}
	case PROGRAM_RECORD:
		hit(capture, ts, tid, CALL_RECORD, id, WORDS(event, stream));
		break;
	case PROGRAM_WAIT:
		hit(capture, ts, tid, CALL_WAIT, id, WORDS(stream, other));
		break;
	case PROGRAM_SYNC:
		hit(capture, ts, tid, CALL_SYNC, id, WORDS(stream));
		break;
	default:
		hit(capture, ts, tid, CALL_SYNC_EVENT, id, WORDS(other));
	}
	if (action->kind <= PROGRAM_COPY)
		hit(capture, ts + 1, tid, PROGRAM_SITE_LAUNCH, 30000 + index, WORDS(1 + index));
	if (action->kind == PROGRAM_COPY)
		returns(capture, ts + 1, tid, CALL_COPY_ASYNC, id);
	if (action->kind >= PROGRAM_SYNC)
		returns(capture, action->return_ts, tid,
			action->kind == PROGRAM_SYNC ? CALL_SYNC : CALL_SYNC_EVENT, id);
}

/* The capture of the last run. */
static inline const struct model *program_capture(const struct program *program,
						  struct capture *capture)
{
	uint64_t end_ts = PROGRAM_START;

	gpu_begin(capture);
	program_sites(capture);
	for (uint32_t i = 0; i < PROGRAM_THREADS; i++) {
		named(capture, PROGRAM_FIRST_TID + i, CAPTURE_PID, "trainer");
		for (uint64_t j = 0; j < PROGRAM_STREAMS; j++)
			makes_stream(capture, PROGRAM_FIRST_TID + i,
				     0x7f00 + i * PROGRAM_STREAMS + j, 1);
	}
	for (unsigned i = 0; i < program->count; i++)
		program_record_call(capture, &program->actions[i], i);
	for (unsigned i = 0; i < program->count; i++) {
		if (program->actions[i].kind <= PROGRAM_COPY)
			program_record_op(capture, &program->actions[i], i);
		end_ts = program_max(end_ts, program->actions[i].return_ts);
		end_ts = program_max(end_ts, program->actions[i].end_ts);
	}
	return capture_load(capture, end_ts + 1);
}

#endif
