// SPDX-License-Identifier: Apache-2.0
/*
 * Any records of a program, arranged as slices for viewers. Three bytes make a record: what it is,
 * where, and how much later it is. Slices of a thread must nest, each span must be shown from its
 * begin to its end without a gap, and both ends of an arrow must be there.
 */
#include <stdint.h>
#include <string.h>

#include "require.h"
#include "usdt/sink/timeline.h"
#include "util/memory.h"
#include "util/vec.h"

#define THREADS 3
#define RECORDS_MAX 200
#define START 1000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A part of a span on a thread or aside. */
struct part {
	uint64_t id, ts, end_ts;
	uint32_t thread;
	bool aside, known; /* known: its end was known at its begin */
};

struct shown {
	VEC(struct part) parts;
	VEC(size_t) stacks[THREADS]; /* open parts of each thread */
	size_t instants, counters, lost;
	VEC(uint64_t) causes, effects; /* ids of flows */
};

static const struct site_info sites[] = {
	{.name = "span", .category = "", .kind = WAFFLE_SITE_SPAN},
	{.name = "linked",
	 .category = "",
	 .kind = WAFFLE_SITE_SPAN,
	 .key_count = 1,
	 .keys = {{.name = "cause", .type = WAFFLE_KEY_CAUSE_SPAN}}},
	{.name = "event", .category = "", .kind = WAFFLE_SITE_EVENT},
	{.name = "counter", .category = "", .kind = WAFFLE_SITE_COUNTER},
};

/* ---- the format ---- */

static void on_site(void *arg, const struct site_info *site)
{
	(void)arg;
	require(site >= sites && site < sites + sizeof(sites) / sizeof(sites[0]));
}

static void on_thread(void *arg, uint32_t thread, uint32_t tid, const char *name, uint64_t ts)
{
	(void)arg;
	(void)ts;
	require(thread < THREADS && tid > 0 && tid <= THREADS && strlen(name) < WAFFLE_COMM_BYTES);
}

static void on_track(void *arg, uint32_t thread, const struct timeline_track *track)
{
	(void)arg;
	(void)thread;
	(void)track;
	abort();
}

static void take_flows(struct shown *shown, const struct timeline_node *node)
{
	for (size_t i = 0; i < node->flow_count; i++) {
		const struct timeline_flow *flow = &node->flows[i];

		require(flow->cause_ts <= node->node.ts || !flow->caused);
		if (!flow->caused || flow->alone)
			vec_add(&shown->causes, flow->id);
		if (flow->caused)
			vec_add(&shown->effects, flow->id);
	}
}

static void on_begin(void *arg, const struct timeline_node *span)
{
	struct shown *shown = arg;

	vec_add(&shown->stacks[span->thread], shown->parts.len);
	vec_add(&shown->parts, (struct part){.id = span->node.id,
					     .ts = span->node.ts,
					     .end_ts = span->end_ts,
					     .thread = span->thread,
					     .known = span->end_ts != TIMELINE_OPEN});
	take_flows(shown, span);
}

static void on_end(void *arg, const struct timeline_node *span, bool whole)
{
	struct shown *shown = arg;
	struct part *part;

	require(shown->stacks[span->thread].len);
	part = &shown->parts
			.data[shown->stacks[span->thread].data[--shown->stacks[span->thread].len]];
	require(part->id == span->node.id && part->known == whole);
	require(!whole || part->end_ts == span->end_ts);
	part->end_ts = span->end_ts;
	require(part->end_ts != TIMELINE_OPEN && part->ts <= part->end_ts);
}

static uint64_t on_aside(void *arg, const struct timeline_node *span)
{
	struct shown *shown = arg;

	vec_add(&shown->parts, (struct part){.id = span->node.id,
					     .ts = span->node.ts,
					     .end_ts = span->end_ts,
					     .aside = true});
	take_flows(shown, span);
	return shown->parts.len;
}

static void on_aside_end(void *arg, const struct timeline_node *span)
{
	struct shown *shown = arg;
	struct part *part = &shown->parts.data[span->track - 1];

	require(span->track && part->aside && part->id == span->node.id);
	require(part->end_ts == TIMELINE_OPEN && span->end_ts != TIMELINE_OPEN);
	part->end_ts = span->end_ts;
}

static void on_instant(void *arg, const struct timeline_node *event)
{
	struct shown *shown = arg;

	shown->instants++;
	take_flows(shown, event);
}

static void on_counter(void *arg, const struct timeline_node *counter)
{
	(void)counter;
	((struct shown *)arg)->counters++;
}

static void on_loss(void *arg, const struct waffle_rec_loss *loss)
{
	((struct shown *)arg)->lost += loss->count;
}

static const struct timeline_format format = {on_site,    on_thread, on_track,     on_begin,
					      on_end,     on_aside,  on_aside_end, on_instant,
					      on_counter, on_loss};

/* ---- records ---- */

struct spans {
	struct known_span {
		uint64_t id, ts, end_ts;
	} list[RECORDS_MAX];
	size_t count, instants, counters, lost;
};

static void put_hit(struct timeline *timeline, uint32_t site, uint32_t thread, uint64_t ts,
		    uint64_t id, uint64_t cause)
{
	struct {
		struct waffle_rec_hit hit;
		struct waffle_frame frame;
		uint64_t value;
	} record = {
		.hit = {.rec = {.ts = ts, .tid = thread + 1, .kind = WAFFLE_REC_HIT},
			.site = site,
			.frame_bytes = sizeof(struct waffle_frame) + 8},
		.frame = {.id = id},
		.value = cause,
	};

	require(timeline_record(timeline, &record.hit.rec));
}

static void put_end(struct timeline *timeline, struct known_span *span, uint32_t thread,
		    uint64_t ts)
{
	struct waffle_rec_span_end end = {
		.rec = {.ts = ts, .tid = thread + 1, .kind = WAFFLE_REC_SPAN_END},
		.span_id = span->id,
	};

	span->end_ts = ts;
	require(timeline_record(timeline, &end.rec));
}

static void put_span(struct timeline *timeline, struct spans *spans, uint32_t thread, uint64_t ts,
		     unsigned link)
{
	uint64_t cause = spans->count ? spans->list[link % spans->count].id : 0;

	spans->list[spans->count] = (struct known_span){spans->count + 1, ts, TIMELINE_OPEN};
	put_hit(timeline, link > 128, thread, ts, ++spans->count, cause);
}

static void step(struct timeline *timeline, struct spans *spans, const uint8_t *data, uint64_t ts)
{
	uint32_t thread = data[1] % THREADS;
	struct known_span *span = spans->count ? &spans->list[data[1] % spans->count] : NULL;

	switch (data[0] % 8) {
	case 0:
	case 1:
		put_span(timeline, spans, thread, ts, data[2]);
		break;
	case 2:
	case 3:
		if (span && span->end_ts == TIMELINE_OPEN)
			put_end(timeline, span, data[0] / 8 % THREADS, ts);
		break;
	case 4: /* a span that was kept back until its end */
		put_span(timeline, spans, thread, ts - (ts - START) / (1 + data[0] / 8), data[2]);
		put_end(timeline, &spans->list[spans->count - 1], thread, ts);
		break;
	case 5:
		spans->instants++;
		put_hit(timeline, 2, thread, ts, 1000 + spans->instants, 0);
		break;
	case 6:
		spans->counters++;
		put_hit(timeline, 3, thread, ts, 0, 0);
		break;
	default:
		timeline_write(timeline, TIMELINE_OPEN);
		break;
	}
}

/* ---- checks ---- */

static bool cross(const struct part *a, const struct part *b)
{
	return a->ts < b->ts && b->ts < a->end_ts && a->end_ts < b->end_ts;
}

static void check_nesting(const struct shown *shown)
{
	for (size_t i = 0; i < shown->parts.len; i++)
		for (size_t j = 0; j < shown->parts.len; j++) {
			const struct part *a = &shown->parts.data[i], *b = &shown->parts.data[j];

			require(a->aside || b->aside || a->thread != b->thread || !cross(a, b));
		}
}

/* The parts of a span come in the order of time. */
static void check_span(const struct shown *shown, const struct known_span *span, uint64_t last_ts)
{
	uint64_t at = span->ts, end = span->end_ts == TIMELINE_OPEN ? last_ts : span->end_ts;
	unsigned parts = 0;

	for (size_t i = 0; i < shown->parts.len; i++) {
		const struct part *part = &shown->parts.data[i];

		if (part->id != span->id)
			continue;
		require(part->ts == at);
		at = part->end_ts;
		parts++;
	}
	require(parts && at == end);
}

static void check(const struct shown *shown, const struct spans *spans, uint64_t last_ts)
{
	for (unsigned i = 0; i < THREADS; i++)
		require(!shown->stacks[i].len);
	check_nesting(shown);
	for (size_t i = 0; i < spans->count; i++)
		check_span(shown, &spans->list[i], last_ts);
	require(shown->instants == spans->instants && shown->counters == spans->counters);
	require(shown->causes.len == shown->effects.len);
	for (size_t i = 0; i < shown->effects.len; i++) {
		size_t found = 0;

		for (size_t j = 0; j < shown->causes.len; j++)
			found += shown->causes.data[j] == shown->effects.data[i];
		require(found == 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct shown shown = {0};
	struct spans spans = {.count = 0};
	struct timeline *timeline = timeline_new(&format, &shown, 1, START);
	uint64_t ts = START;

	for (size_t i = 0; i < sizeof(sites) / sizeof(sites[0]); i++)
		timeline_add_site(timeline, &sites[i]);
	for (size_t i = 0; i + 3 <= size && i / 3 < RECORDS_MAX; i += 3) {
		ts += data[i + 2] % 4;
		step(timeline, &spans, data + i, ts);
	}
	timeline_write(timeline, ts);
	check(&shown, &spans, ts);
	timeline_free(timeline);
	vec_free(&shown.parts);
	vec_free(&shown.causes);
	vec_free(&shown.effects);
	for (unsigned i = 0; i < THREADS; i++)
		vec_free(&shown.stacks[i]);
	return 0;
}
