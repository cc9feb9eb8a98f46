/* SPDX-License-Identifier: Apache-2.0 */
/* A capture made by hand: records pass through a .waffle file into a model. Include it after
 * cmocka. */
#ifndef WAFFLE_TEST_MODEL_CAPTURE_H
#define WAFFLE_TEST_MODEL_CAPTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/model.h"
#include "store/store.h"

struct capture {
	char path[64];
	struct store_writer *writer;
	struct store_reader *reader;
	struct model *model;
	struct model_filter keep; /* passed to capture_load() */
	uint64_t records, lost[WAFFLE_SOURCE_COUNT];
};

enum capture_site {
	SITE_STEP,    /* span, "step" */
	SITE_LOAD,    /* span, "load", causes a span and an event */
	SITE_FOUND,   /* event, "found", caused by an event */
	SITE_DEPTH,   /* counter, "depth" */
	SITE_FAILED,  /* log message of severity error, "failed" */
	SITE_STEP_AT, /* span, "step" again, at another place, with a number and a string */
};

static const struct site_info capture_sites[] = {
	{"step",
	 "train",
	 "a.c",
	 "f",
	 "/bin/a",
	 1,
	 WAFFLE_SITE_SPAN,
	 SITE_ROLE_NONE,
	 false,
	 false,
	 false,
	 false,
	 0,
	 0,
	 {{0, NULL}}},
	{"load",
	 "io",
	 "a.c",
	 "f",
	 "/bin/a",
	 2,
	 WAFFLE_SITE_SPAN,
	 SITE_ROLE_NONE,
	 false,
	 false,
	 false,
	 false,
	 2,
	 2,
	 {{WAFFLE_KEY_CAUSE_SPAN, "after"}, {WAFFLE_KEY_CAUSE_EVENT, "because"}}},
	{"found",
	 "",
	 "a.c",
	 "f",
	 "/bin/a",
	 3,
	 WAFFLE_SITE_EVENT,
	 SITE_ROLE_NONE,
	 false,
	 false,
	 false,
	 false,
	 1,
	 1,
	 {{WAFFLE_KEY_CAUSE_EVENT, "because"}}},
	{"depth",
	 "",
	 "a.c",
	 "f",
	 "/bin/a",
	 4,
	 WAFFLE_SITE_COUNTER,
	 SITE_ROLE_NONE,
	 false,
	 false,
	 false,
	 false,
	 1,
	 1,
	 {{WAFFLE_KEY_NUMBER, "value"}}},
	{"failed",
	 "",
	 "a.c",
	 "f",
	 "/bin/a",
	 5,
	 WAFFLE_SITE_LOG_ERROR,
	 SITE_ROLE_NONE,
	 false,
	 false,
	 false,
	 false,
	 0,
	 0,
	 {{0, NULL}}},
	{"step",
	 "train",
	 "b.c",
	 "g",
	 "/bin/a",
	 6,
	 WAFFLE_SITE_SPAN,
	 SITE_ROLE_NONE,
	 false,
	 false,
	 false,
	 false,
	 2,
	 2,
	 {{WAFFLE_KEY_I64, "n"}, {WAFFLE_KEY_STR, "file"}}},
};
#define CAPTURE_SITES (sizeof(capture_sites) / sizeof(capture_sites[0]))

#define CAPTURE_START 1000
#define CAPTURE_PID 10

#define capture_must(call, err)                                                                    \
	do {                                                                                       \
		if ((call) < 0)                                                                    \
			fail_msg("%s", (err).message);                                             \
	} while (0)

static inline void capture_begin_with(struct capture *capture, bool sched, const char *filter)
{
	struct store_meta meta = {.start_ts = CAPTURE_START,
				  .boot_ns = 5000,
				  .real_ns = 1700000000000000000ull,
				  .hostname = "node",
				  .kernel = "6.1.0",
				  .machine = "x86_64",
				  .version = "0.1.0",
				  .command = "a --fast",
				  .filter = filter,
				  .cpu_count = 2,
				  .sched = sched};
	struct error err = ERROR_INIT;
	int fd;

	*capture = (struct capture){0};
	strcpy(capture->path, "/tmp/waffle-model-XXXXXX");
	fd = mkstemp(capture->path);
	assert_true(fd >= 0);
	close(fd);
	capture_must(store_writer_open(&capture->writer, capture->path, &meta, &err), err);
	for (size_t i = 0; i < CAPTURE_SITES; i++)
		capture_must(store_writer_add_site(capture->writer, &capture_sites[i], &err), err);
}

static inline void capture_begin(struct capture *capture, bool sched)
{
	capture_begin_with(capture, sched, "");
}

static inline void capture_add(struct capture *capture, const void *rec)
{
	struct error err = ERROR_INIT;

	capture->records++;
	capture_must(store_writer_append(capture->writer, rec, &err), err);
}

/* `words` are the values after the frame's head. */
static inline void capture_hit_of(struct capture *capture, uint64_t ts, uint32_t pid, uint32_t tid,
				  uint32_t site, uint64_t id, uint64_t parent, unsigned count,
				  const uint64_t *words)
{
	struct {
		struct waffle_rec_hit hit;
		uint64_t frame[4 + 64];
	} rec = {.hit = {.rec = {ts, tid, WAFFLE_REC_HIT, 0},
			 .tgid = pid,
			 .site = site,
			 .frame_bytes = 32 + 8 * count},
		 .frame = {id, parent, 7, 8}};

	if (count)
		memcpy(&rec.frame[4], words, count * sizeof(*words));
	capture_add(capture, &rec);
}

static inline void capture_hit(struct capture *capture, uint64_t ts, uint32_t tid, uint32_t site,
			       uint64_t id, uint64_t parent, unsigned count, const uint64_t *words)
{
	capture_hit_of(capture, ts, CAPTURE_PID, tid, site, id, parent, count, words);
}

static inline void capture_span(struct capture *capture, uint64_t ts, uint32_t tid, uint64_t id)
{
	capture_hit(capture, ts, tid, SITE_STEP, id, 0, 0, NULL);
}

static inline void capture_end(struct capture *capture, uint64_t ts, uint32_t tid, uint64_t id)
{
	struct waffle_rec_span_end rec = {.rec = {ts, tid, WAFFLE_REC_SPAN_END, 0},
					  .span_id = id,
					  .tgid = CAPTURE_PID,
					  .site = SITE_STEP};

	capture_add(capture, &rec);
}

#define BOTH_TRACED (WAFFLE_SWITCH_PREV_TRACED | WAFFLE_SWITCH_NEXT_TRACED)

/* Thread `prev` leaves a CPU for `next`; state 0: preempted; waker 0 and wake_ts 0: not woken. */
static inline void capture_switch(struct capture *capture, uint64_t ts, uint16_t cpu, uint32_t prev,
				  uint32_t next, uint16_t state, uint32_t waker, uint64_t wake_ts)
{
	struct waffle_rec_switch rec = {.rec = {ts, prev, WAFFLE_REC_SWITCH, cpu},
					.next_tid = next,
					.waker_tid = waker,
					.wake_ts = wake_ts,
					.prev_state = state,
					.flags = (uint8_t)(BOTH_TRACED |
							   (wake_ts ? WAFFLE_SWITCH_WOKEN : 0) |
							   (state ? 0 : WAFFLE_SWITCH_PREEMPTED)),
					.syscall = state ? 202 : -1,
					.args = {1, 2, 3}};

	capture_add(capture, &rec);
}

static inline void capture_state(struct capture *capture, uint64_t ts, uint32_t tid, uint16_t state,
				 bool at_end)
{
	struct waffle_rec_state rec = {.rec = {ts, tid, WAFFLE_REC_STATE, 1},
				       .tgid = CAPTURE_PID,
				       .state = state,
				       .task_state = WAFFLE_TASK_INTERRUPTIBLE,
				       .syscall = 7,
				       .at_end = at_end};

	capture_add(capture, &rec);
}

static inline void capture_task(struct capture *capture, uint64_t ts, uint32_t tid,
				uint64_t start_ts, const char *comm)
{
	struct waffle_rec_task rec = {.rec = {ts, tid, WAFFLE_REC_TASK, 0},
				      .tgid = CAPTURE_PID,
				      .flags = WAFFLE_TASK_TRACED_FLAG,
				      .start_ts = start_ts};

	snprintf(rec.comm, sizeof(rec.comm), "%.15s", comm);
	capture_add(capture, &rec);
}

/* The thread that was started at `start_ts` has that name in its program. */
static inline void capture_thread_name(struct capture *capture, uint64_t ts, uint32_t tid,
				       uint64_t start_ts, const char *name)
{
	struct waffle_rec_thread_name rec = {.rec = {ts, tid, WAFFLE_REC_THREAD_NAME, 0},
					     .tgid = CAPTURE_PID,
					     .start_ts = start_ts};

	snprintf(rec.name, sizeof(rec.name), "%s", name);
	capture_add(capture, &rec);
}

static inline void capture_gone(struct capture *capture, uint64_t ts, uint32_t tid, uint16_t kind)
{
	struct waffle_rec_exit rec = {.rec = {ts, tid, kind, 0}, .tgid = CAPTURE_PID};

	capture_add(capture, &rec);
}

static inline void capture_loss(struct capture *capture, uint64_t from_ts, uint64_t to_ts,
				uint32_t source, uint64_t count)
{
	struct waffle_rec_loss rec = {.rec = {to_ts, 0, WAFFLE_REC_LOSS, 0},
				      .source = source,
				      .from_ts = from_ts,
				      .count = count};

	capture->lost[source] += count;
	capture_add(capture, &rec);
}

/* Ends the capture and reads a window of it. */
static inline const struct model *capture_load_window(struct capture *capture, uint64_t end_ts,
						      struct store_window window)
{
	struct store_counts counts[WAFFLE_SOURCE_COUNT] = {0};
	struct error err = ERROR_INIT;

	counts[WAFFLE_SOURCE_SPANS].delivered = capture->records;
	for (unsigned i = 0; i < WAFFLE_SOURCE_COUNT; i++) {
		counts[i].lost = capture->lost[i];
		counts[i].produced = counts[i].delivered + counts[i].lost;
	}
	capture_must(store_writer_close(capture->writer, end_ts, counts, &err), err);
	capture_must(store_reader_open(&capture->reader, capture->path, &err), err);
	capture_must(model_load(&capture->model, capture->reader, window, &capture->keep, &err),
		     err);
	return capture->model;
}

static inline const struct model *capture_load(struct capture *capture, uint64_t end_ts)
{
	return capture_load_window(capture, end_ts, STORE_ALL);
}

static inline void capture_free(struct capture *capture)
{
	model_free(capture->model);
	store_reader_close(capture->reader);
	unlink(capture->path);
}

static inline const struct model_span *capture_find(const struct model *model, uint64_t id)
{
	uint32_t index = model_span_find(model, id);

	if (index >= model->spans.len)
		fail_msg("span %llu is not in the model", (unsigned long long)id);
	assert_int_equal(model->spans.data[index].id, id);
	return &model->spans.data[index];
}

#endif
