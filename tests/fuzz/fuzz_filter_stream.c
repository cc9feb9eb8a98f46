// SPDX-License-Identifier: Apache-2.0
/*
 * Any records of any processes through any expression: a byte of options, the expression up to a
 * NUL, and then the records. Nothing is delivered that was not given, nothing more often than it
 * was given, and processes that are gone leave nothing.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "filter/filter.h"
#include "filter/stream/stream.h"
#include "require.h"
#include "waffle/abi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define IDS 64
#define PROCESSES 3
#define THREADS 4
#define FRAME_WORDS 40

static const struct site_info sites[] = {
	{.name = "outer",
	 .category = "",
	 .file = "a.c",
	 .func = "f",
	 .object = "a",
	 .kind = WAFFLE_SITE_SPAN,
	 .key_count = 2,
	 .keys = {{WAFFLE_KEY_I64, "n"}, {WAFFLE_KEY_STR, "s"}}},
	{.name = "inner",
	 .category = "net",
	 .file = "b.c",
	 .func = "g",
	 .object = "a",
	 .kind = WAFFLE_SITE_SPAN},
	{.name = "event",
	 .category = "",
	 .file = "a.c",
	 .func = "f",
	 .object = "a",
	 .kind = WAFFLE_SITE_EVENT,
	 .key_count = 1,
	 .keys = {{WAFFLE_KEY_F64, "n"}}},
	{.name = "queue",
	 .category = "",
	 .file = "a.c",
	 .func = "f",
	 .object = "a",
	 .kind = WAFFLE_SITE_COUNTER,
	 .key_count = 1,
	 .keys = {{WAFFLE_KEY_NUMBER, "value"}}},
};
#define SITES (sizeof(sites) / sizeof(sites[0]))

struct input {
	const uint8_t *at, *end;
};

struct counts {
	uint64_t hits[IDS], ends[IDS], all;
};

struct run {
	struct filter_stream *stream;
	struct counts given, delivered;
	uint64_t ts;
};

static uint8_t take(struct input *input)
{
	return input->at < input->end ? *input->at++ : 0;
}

static void deliver(struct waffle_rec *rec, void *arg)
{
	struct run *run = arg;
	uint64_t id = 0;

	run->delivered.all++;
	if (rec->kind == WAFFLE_REC_HIT) {
		const struct waffle_rec_hit *hit = (const void *)rec;

		if (hit->frame_bytes >= sizeof(id))
			memcpy(&id, hit + 1, sizeof(id));
		require(hit->site < SITES && hit->frame_bytes <= WAFFLE_FRAME_MAX);
		run->delivered.hits[id % IDS]++;
		require(run->delivered.hits[id % IDS] <= run->given.hits[id % IDS]);
	} else {
		require(rec->kind == WAFFLE_REC_SPAN_END);
		id = ((const struct waffle_rec_span_end *)rec)->span_id;
		run->delivered.ends[id % IDS]++;
		require(run->delivered.ends[id % IDS] <= run->given.ends[id % IDS]);
	}
	/* Whoever takes a record may change it. */
	memset(rec, 0xff, sizeof(*rec));
}

static void give_hit(struct run *run, struct input *input)
{
	struct {
		struct waffle_rec_hit hit;
		uint64_t words[FRAME_WORDS];
	} rec = {.hit = {.rec = {run->ts, take(input) % THREADS, WAFFLE_REC_HIT, take(input)},
			 .tgid = take(input) % PROCESSES,
			 .site = take(input) % (SITES + 1)}};
	unsigned words = take(input) % (FRAME_WORDS + 1);

	for (unsigned i = 0; i < words; i++)
		rec.words[i] =
			i < 2 ? take(input) % IDS : (uint64_t)take(input) << take(input) % 64;
	rec.hit.frame_bytes = words * 8;
	if (words)
		run->given.hits[rec.words[0]]++;
	else
		run->given.hits[0]++;
	filter_stream_hit(run->stream, &rec.hit, run->ts);
}

static void give_end(struct run *run, struct input *input)
{
	struct waffle_rec_span_end end = {
		.rec = {run->ts, take(input) % THREADS, WAFFLE_REC_SPAN_END, 0},
		.span_id = take(input) % IDS,
		.tgid = take(input) % PROCESSES,
		.site = take(input) % (SITES + 1),
	};

	run->given.ends[end.span_id]++;
	filter_stream_end(run->stream, &end, run->ts);
}

static void give_name(struct run *run, struct input *input)
{
	char comm[WAFFLE_COMM_BYTES];
	uint32_t tgid = take(input) % PROCESSES, tid = take(input) % THREADS;

	for (unsigned i = 0; i < sizeof(comm); i++)
		comm[i] = (char)(i < 3 ? take(input) : 'x');
	filter_stream_name(run->stream, tgid, tid, comm);
}

static void give(struct run *run, struct input *input)
{
	static const uint64_t steps[] = {0, 1, 3, 1000, 1000000, 2000000000};
	uint8_t what = take(input);

	run->ts += steps[what / 16 % 6];
	switch (what % 16) {
	case 0 ... 6:
		give_hit(run, input);
		break;
	case 7 ... 11:
		give_end(run, input);
		break;
	case 12:
		give_name(run, input);
		break;
	case 13:
		filter_stream_thread_exit(run->stream, take(input) % PROCESSES,
					  take(input) % THREADS);
		break;
	case 14:
		filter_stream_process_exit(run->stream, take(input) % PROCESSES);
		break;
	default:
		run->ts -= run->ts ? 1 : 0; /* a record that comes late */
	}
}

static void run_all(const struct filter_expr *filter, bool keep_children, struct input *input)
{
	struct run run = {.ts = 1000};
	struct filter_stream_options options = {
		.filter = filter, .keep_children = keep_children, .deliver = deliver, .arg = &run};
	struct error err = ERROR_INIT;

	require(!filter_stream_open(&run.stream, &options, &err));
	for (size_t i = 0; i < SITES; i++) {
		require(filter_stream_use(run.stream, &sites[i]) <= FILTER_STREAM_ASKS);
		require(filter_stream_add_site(run.stream, &sites[i]));
	}
	while (input->at < input->end)
		give(&run, input);
	for (uint32_t tgid = 0; tgid < PROCESSES; tgid++)
		filter_stream_process_exit(run.stream, tgid);
	require(filter_stream_counts(run.stream).open == 0);
	require(filter_stream_counts(run.stream).delivered == run.delivered.all);
	filter_stream_free(run.stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, data + size};
	bool keep_children = take(&input) & 1;
	const uint8_t *nul = memchr(input.at, 0, (size_t)(input.end - input.at));
	struct filter_expr *filter = NULL;
	struct error err = ERROR_INIT;

	if (!nul)
		return 0;
	if (nul > input.at && filter_parse(&filter, "--filter", (const char *)input.at, &err))
		return 0;
	input.at = nul + 1;
	run_all(filter, keep_children, &input);
	if (filter)
		filter_free(filter);
	return 0;
}
