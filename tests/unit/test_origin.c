// SPDX-License-Identifier: Apache-2.0
/* Origins of symptoms in captures made by hand, and their text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model_capture.h"

#include "calls_capture.h"

#include "analyze/origin/origin.h"
#include "analyze/why/why_pick.h"
#include "render/text/origin_text.h"

#define MS 1000000ull
#define COMM 0xc0ffee
#define STREAM 0xa

/* ---- links ---- */

/*
 * found(0xe3) happened in a step inside of load(0xa2), which is linked to load(0xa1) and to the
 * event 0xe1; load(0xa1) is linked to that event, too. found(0xe4) has a cause that is not there.
 */
static const struct model *linked_capture(struct capture *capture)
{
	capture_begin(capture, true);
	capture_task(capture, CAPTURE_START, 11, 100, "worker");
	capture_hit(capture, 1 * MS, 11, SITE_FOUND, 0xe1, 0, 1, (uint64_t[]){0});
	capture_hit(capture, 2 * MS, 11, SITE_LOAD, 0xa1, 0, 2, (uint64_t[]){0, 0xe1});
	capture_end(capture, 3 * MS, 11, 0xa1);
	capture_hit(capture, 4 * MS, 11, SITE_LOAD, 0xa2, 0, 2, (uint64_t[]){0xa1, 0xe1});
	capture_hit(capture, 5 * MS, 11, SITE_STEP, 0xb1, 0xa2, 0, NULL);
	capture_hit(capture, 6 * MS, 11, SITE_FOUND, 0xe3, 0xb1, 1, (uint64_t[]){0});
	capture_end(capture, 7 * MS, 11, 0xb1);
	capture_end(capture, 8 * MS, 11, 0xa2);
	capture_hit(capture, 9 * MS, 11, SITE_FOUND, 0xe4, 0, 1, (uint64_t[]){0xee});
	return capture_load(capture, 300 * MS);
}

/* The text of why --event. */
static char *origin_printed(const struct model *model, const char *event)
{
	const struct why_view view = {0};
	struct error err = ERROR_INIT;
	struct origin_index *shared;
	struct origin *origin;
	uint32_t index;
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	capture_must(why_pick_event(&index, model, event, &err), err);
	shared = origin_index_new(model);
	origin = origin_new(shared, MODEL_NODE_EVENT, index);
	origin_print_text(origin, &view, out);
	origin_free(origin);
	origin_index_free(shared);
	fclose(out);
	return text;
}

static void test_links_of_an_event_are_followed_to_their_origin(void **state)
{
	static const char want[] =
		"event found 00000000000000e3 of worker (11), at 6.00 ms, a.c:3\n"
		"  1.  certain   event found 00000000000000e1 of worker (11), at 999 us, a.c:3\n"
		"      inside of span load 00000000000000a2 of worker (11), at 4.00 ms, a.c:2\n"
		"      caused by event found 00000000000000e1\n"
		"\nrecords: 10 produced, 10 delivered, 0 lost\n";
	struct capture capture;
	const struct model *model = linked_capture(&capture);
	char *text = origin_printed(model, "00000000000000e3");

	(void)state;
	assert_string_equal(text, want);
	free(text);
	/* A name means the last one. */
	text = origin_printed(model, "found");
	assert_string_equal(text,
			    "event found 00000000000000e4 of worker (11), at 9.00 ms, a.c:3\n"
			    "  1.  certain   event 00000000000000ee, which is not in the capture\n"
			    "      caused by event 00000000000000ee\n"
			    "\nrecords: 10 produced, 10 delivered, 0 lost\n");
	free(text);
	text = origin_printed(model, "0xe1");
	assert_string_equal(
		text, "event found 00000000000000e1 of worker (11), at 999 us, a.c:3\n"
		      "  nothing says what caused it\n"
		      "  to declare a cause, record it as an event and give its id to the span "
		      "that it affected: SPAN(…, KV_CAUSE_EVENT(id))\n"
		      "\nrecords: 10 produced, 10 delivered, 0 lost\n");
	free(text);
	capture_free(&capture);
}

static void test_event_that_is_not_there_is_reported_with_similar_names(void **state)
{
	struct capture capture;
	const struct model *model = linked_capture(&capture);
	struct error err = ERROR_INIT;
	uint32_t index;

	(void)state;
	assert_int_equal(why_pick_event(&index, model, "fuond", &err), -ENOENT);
	assert_string_equal(err.message, "no event 'fuond'; did you mean 'found'");
	err.message[0] = 0;
	assert_int_equal(why_pick_event(&index, model, "0xe9", &err), -ENOENT);
	assert_string_equal(err.message, "no event has the id 0xe9");
	err.message[0] = 0;
	assert_int_equal(why_pick_event(&index, model, "0xa1", &err), -ENOENT);
	assert_string_equal(err.message,
			    "no event has the id 0xa1, but a span has; give --span 0xa1 --origin");
	capture_free(&capture);
}

/* ---- long chains ---- */

#define CHAIN 100000
#define CHAIN_ID(i) (0x100000000ull + (i))

/* The symptom is event CHAIN of a chain of causes, each of which was caused by the one before. */
static void test_way_of_a_long_chain_is_shortened(void **state)
{
	struct capture capture;
	const struct model *model;
	struct origin_index *index;
	struct origin *origin;
	struct origin_way way;
	char *text, *line;
	unsigned lines = 0;

	(void)state;
	capture_begin(&capture, false);
	for (uint64_t i = 0; i <= CHAIN; i++)
		capture_hit(&capture, 2000 + i, 11, SITE_FOUND, CHAIN_ID(i), 0, 1,
			    (uint64_t[]){i ? CHAIN_ID(i - 1) : 0});
	model = capture_load(&capture, 1 * MS);
	index = origin_index_new(model);
	origin = origin_new(index, MODEL_NODE_EVENT, CHAIN);
	assert_int_equal(origin->ends.len, 1);
	assert_int_equal(origin->ends.data[0].steps, CHAIN);
	origin_way_find(&way, origin, &origin->ends.data[0]);
	assert_int_equal(way.steps.len, 2 * ORIGIN_WAY_HALF);
	assert_int_equal(way.left_out, CHAIN - 2 * ORIGIN_WAY_HALF);
	assert_int_equal(way.steps.data[way.head - 1].to.id, CHAIN_ID(CHAIN - ORIGIN_WAY_HALF));
	assert_int_equal(way.steps.data[way.head].from.id, CHAIN_ID(ORIGIN_WAY_HALF));
	assert_int_equal(way.steps.data[way.steps.len - 1].to.id, CHAIN_ID(0));
	origin_way_free(&way);
	origin_free(origin);
	origin_index_free(index);
	text = origin_printed(model, "found");
	assert_non_null(strstr(text, "  1.  certain   event found 0000000100000000 "));
	assert_non_null(strstr(text, "\n      … 99960 more steps\n"));
	for (line = text; (line = strchr(line, '\n')); line++)
		lines++;
	assert_in_range(lines, 40, 50);
	free(text);
	capture_free(&capture);
}

/* Each span of a chain has a cause of its own as well, so that there are as many origins as links.
 * Their ways share all but their last step. */
static void test_ways_of_many_origins_share_their_steps(void **state)
{
	struct capture capture;
	const struct model *model;
	struct origin_index *index;
	struct origin *origin;
	uint64_t span = CHAIN_ID(0), cause = CHAIN_ID(CHAIN);

	(void)state;
	capture_begin(&capture, false);
	for (uint64_t i = 0; i < CHAIN; i++) {
		capture_hit(&capture, 2000 + 2 * i, 11, SITE_LOAD, span + i, 0, 2,
			    (uint64_t[]){i ? span + i - 1 : 0, cause + i});
		if (i + 1 < CHAIN)
			capture_end(&capture, 2001 + 2 * i, 11, span + i);
	}
	capture_hit(&capture, 1 * MS, 11, SITE_FOUND, 0xf0, span + CHAIN - 1, 1, (uint64_t[]){0});
	model = capture_load(&capture, 2 * MS);
	index = origin_index_new(model);
	origin = origin_new(index, MODEL_NODE_EVENT, 0);
	assert_int_equal(origin->ends.len, CHAIN);
	assert_in_range(origin->landings.len, CHAIN, 2 * CHAIN + 1);
	for (uint32_t i = 0; i < CHAIN; i++) {
		const struct origin_end *end = &origin->ends.data[i];

		assert_int_equal(end->node.id, cause + CHAIN - 1 - i);
		assert_int_equal(end->steps, i + 1);
		assert_int_equal(end->grade, WHY_GRADE_CERTAIN);
	}
	origin_free(origin);
	origin_index_free(index);
	capture_free(&capture);
}

/* ---- ranks ---- */

/* Rank r is process 100 + r, thread 200 + r. */
static void rank_hit(struct capture *capture, unsigned rank, uint64_t ts, uint32_t site,
		     uint64_t id, uint64_t parent, unsigned count, const uint64_t *words)
{
	struct {
		struct waffle_rec_hit hit;
		uint64_t frame[4 + 16];
	} rec = {.hit = {.rec = {ts, 200 + rank, WAFFLE_REC_HIT, 0},
			 .tgid = 100 + rank,
			 .site = site,
			 .frame_bytes = 32 + 8 * count},
		 .frame = {id, parent, 7, 8}};

	if (count)
		memcpy(&rec.frame[4], words, count * sizeof(*words));
	capture_add(capture, &rec);
}

static void rank_end(struct capture *capture, unsigned rank, uint64_t ts, uint64_t id)
{
	struct waffle_rec_span_end rec = {.rec = {ts, 200 + rank, WAFFLE_REC_SPAN_END, 0},
					  .span_id = id,
					  .tgid = 100 + rank,
					  .site = SITE_LOAD};

	capture_add(capture, &rec);
}

static void rank_call(struct capture *capture, unsigned rank, uint64_t ts, uint32_t site,
		      uint64_t id, uint64_t argument)
{
	const uint64_t words[] = {64, argument, COMM, rank, 3, 0, STREAM};

	rank_hit(capture, rank, ts, site, id, 0, 7, words);
	call_return_in(capture, 100 + rank, ts + 5, 200 + rank, site, id, 0, NULL);
}

static void rank_sync(struct capture *capture, unsigned rank, uint64_t from, uint64_t to)
{
	const uint64_t stream = STREAM, id = 0x5000 + from;

	rank_hit(capture, rank, from, CALL_SYNC, id, 0, 1, &stream);
	call_return_in(capture, 100 + rank, to, 200 + rank, CALL_SYNC, id, 0, NULL);
}

static void ranks_begin(struct capture *capture)
{
	const uint64_t comm = COMM;

	calls_begin(capture);
	for (unsigned rank = 0; rank < 3; rank++) {
		struct waffle_rec_task task = {.rec = {1001 + rank, 200 + rank, WAFFLE_REC_TASK, 0},
					       .tgid = 100 + rank,
					       .flags = WAFFLE_TASK_TRACED_FLAG,
					       .comm = "train"};
		const uint64_t words[] = {rank, 3}, id = 0x900 + rank;

		capture_add(capture, &task);
		rank_hit(capture, rank, 1010 + rank, CALL_COMM_INIT, id, 0, 2, words);
		call_return_in(capture, 100 + rank, 1020 + rank, 200 + rank, CALL_COMM_INIT, id, 1,
			       &comm);
	}
}

/*
 * Each rank has a span 0xa0 + rank around a collective, that of rank 1 with a link to its event
 * 0xe1. Then rank 0 has the event 0xf0 in its span and 0xf1 after it.
 */
static const struct model *collective_capture(struct capture *capture, uint32_t site,
					      uint64_t argument, uint64_t cause)
{
	ranks_begin(capture);
	rank_hit(capture, 1, 2000, SITE_FOUND, 0xe1, 0, 1, (uint64_t[]){0});
	for (unsigned rank = 0; rank < 3; rank++) {
		rank_hit(capture, rank, 2100 + 10 * rank, SITE_LOAD, 0xa0 + rank, 0, 2,
			 (uint64_t[]){0, rank == 1 ? cause : 0});
		rank_call(capture, rank, 2200 + 10 * rank, site, 0xc0 + rank, argument);
	}
	for (unsigned rank = 0; rank < 3; rank++)
		rank_sync(capture, rank, 2300 + 10 * rank, 2400 + 10 * rank);
	rank_hit(capture, 0, 2500, SITE_FOUND, 0xf0, 0xa0, 1, (uint64_t[]){0});
	for (unsigned rank = 0; rank < 3; rank++)
		rank_end(capture, rank, 2600 + rank, 0xa0 + rank);
	rank_hit(capture, 0, 2700, SITE_FOUND, 0xf1, 0, 1, (uint64_t[]){0});
	return capture_load(capture, 9000);
}

static void test_declared_cause_of_another_rank_is_the_only_origin(void **state)
{
	static const char want[] =
		"event found 00000000000000f0 of train (200), at 1.50 us, a.c:3\n"
		"  1.  certain   event found 00000000000000e1 of train (201), at 1.00 us, a.c:3\n"
		"      inside of span load 00000000000000a0 of train (200), at 1.10 us, a.c:2\n"
		"      through ncclAllReduce number 0 of 3 ranks, to rank 0 from rank 1: span load "
		"00000000000000a1 of train (201), at 1.11 us, a.c:2\n"
		"      caused by event found 00000000000000e1\n"
		"\n";
	struct capture capture;
	const struct model *model = collective_capture(&capture, CALL_ALL_REDUCE, 7, 0xe1);
	char *text = origin_printed(model, "00000000000000f0");

	(void)state;
	assert_int_equal(strncmp(text, want, strlen(want)), 0);
	free(text);
	/* The span has closed: it is no more than likely. */
	text = origin_printed(model, "00000000000000f1");
	assert_non_null(strstr(text, "  1.  likely    event found 00000000000000e1 of train"));
	assert_non_null(strstr(text, "      through ncclAllReduce number 0 of 3 ranks"));
	assert_non_null(strstr(text, "a1 of train (201), at 1.11 us, a.c:2 (likely)\n"));
	assert_null(strstr(text, "  2.  "));
	free(text);
	capture_free(&capture);
}

static void test_without_a_declared_cause_any_rank_may_be_the_origin(void **state)
{
	struct capture capture;
	const struct model *model = collective_capture(&capture, CALL_ALL_REDUCE, 7, 0);
	char *text = origin_printed(model, "00000000000000f0");

	(void)state;
	assert_non_null(strstr(text,
			       "  no cause is declared; any of these ranks may have given the "
			       "data:\n"));
	assert_non_null(strstr(text, "unknown   span load 00000000000000a0 "));
	assert_non_null(strstr(text, "unknown   span load 00000000000000a1 "));
	assert_non_null(strstr(text, "  3.  unknown   span load 00000000000000a"));
	assert_null(strstr(text, "  4.  "));
	assert_non_null(strstr(text, "  to declare a cause, "));
	free(text);
	capture_free(&capture);
}

static void test_broadcast_leads_to_its_root_alone(void **state)
{
	struct capture capture;
	const struct model *model = collective_capture(&capture, CALL_BROADCAST, 2, 0xe1);
	char *text = origin_printed(model, "00000000000000f0");

	(void)state;
	assert_non_null(strstr(text, "  where its data came from; no cause is declared there:\n"
				     "  1.  likely    span load 00000000000000a2 of train (202)"));
	assert_null(strstr(text, "  2.  "));
	free(text);
	capture_free(&capture);
	model = collective_capture(&capture, CALL_BROADCAST, 1, 0xe1);
	text = origin_printed(model, "00000000000000f0");
	assert_non_null(strstr(text, "  1.  certain   event found 00000000000000e1 of train"));
	assert_null(strstr(text, "  2.  "));
	free(text);
	capture_free(&capture);
}

static void test_receive_whose_send_is_not_in_the_capture_is_reported(void **state)
{
	struct capture capture;
	const struct model *model;
	char *text;

	(void)state;
	ranks_begin(&capture);
	rank_hit(&capture, 0, 2000, SITE_LOAD, 0xa0, 0, 2, (uint64_t[]){0, 0});
	rank_call(&capture, 0, 2100, CALL_RECV, 0xc0, 1);
	rank_sync(&capture, 0, 2200, 2300);
	rank_hit(&capture, 0, 2400, SITE_FOUND, 0xf0, 0xa0, 1, (uint64_t[]){0});
	model = capture_load(&capture, 9000);
	text = origin_printed(model, "00000000000000f0");
	assert_non_null(strstr(text, "  nothing says what caused it\n"
				     "  origins may be missing: of ncclRecv number 0, the calls of "
				     "only 1 of 2 ranks are known\n"));
	free(text);
	capture_free(&capture);
}

static void test_context_leads_to_the_process_that_gave_it(void **state)
{
	struct capture capture;
	const struct model *model;
	char *text;

	(void)state;
	ranks_begin(&capture);
	rank_hit(&capture, 0, 2000, SITE_FOUND, 0xe1, 0, 1, (uint64_t[]){0});
	rank_hit(&capture, 0, 2100, SITE_LOAD, 0xa0, 0, 2, (uint64_t[]){0, 0xe1});
	rank_hit(&capture, 1, 2200, SITE_LOAD, 0xa1, 0xa0, 2, (uint64_t[]){0, 0});
	rank_hit(&capture, 2, 2300, SITE_LOAD, 0xa2, 0xa1, 2, (uint64_t[]){0, 0});
	rank_hit(&capture, 2, 2400, SITE_FOUND, 0xf0, 0xa2, 1, (uint64_t[]){0});
	model = capture_load(&capture, 9000);
	text = origin_printed(model, "00000000000000f0");
	assert_non_null(
		strstr(text, "  1.  certain   event found 00000000000000e1 of train (200)"));
	assert_non_null(strstr(text, "      inside of span load 00000000000000a2 "));
	assert_non_null(strstr(text, "      with the context of span load 00000000000000a1 "));
	assert_non_null(strstr(text, "      with the context of span load 00000000000000a0 "));
	free(text);
	capture_free(&capture);
}

/* ---- data that is older than the last one ---- */

/* A message's call on a rank, which waits for it. `seq`: number of the rank's calls before it. */
static void message_call(struct capture *capture, unsigned rank, uint64_t ts, uint32_t site,
			 unsigned peer, uint64_t seq)
{
	const uint64_t words[] = {64, peer, COMM, rank, 3, seq, STREAM}, id = 0x6000 + ts;

	rank_hit(capture, rank, ts, site, id, 0, 7, words);
	call_return_in(capture, 100 + rank, ts + 5, 200 + rank, site, id, 0, NULL);
	rank_sync(capture, rank, ts + 10, ts + 20);
}

/*
 * Ranks 1 and 2 each send a message to rank 0 in a span 0xa0 + rank with the cause 0xe0 + rank.
 * Rank 0 receives that of rank 1 in the span `outer` (0: in none), and that of rank 2 in a span
 * inside, 0xb0, where it then has the symptom 0xf0.
 */
static const struct model *messages_capture(struct capture *capture, uint64_t outer)
{
	ranks_begin(capture);
	for (unsigned rank = 1; rank < 3; rank++) {
		rank_hit(capture, rank, 2000 + rank, SITE_FOUND, 0xe0 + rank, 0, 1,
			 (uint64_t[]){0});
		rank_hit(capture, rank, 2010 + rank, SITE_LOAD, 0xa0 + rank, 0, 2,
			 (uint64_t[]){0, 0xe0 + rank});
	}
	if (outer)
		rank_hit(capture, 0, 2020, SITE_LOAD, outer, 0, 2, (uint64_t[]){0, 0});
	message_call(capture, 1, 2100, CALL_SEND, 0, 0);
	message_call(capture, 0, 2101, CALL_RECV, 1, 0);
	rank_hit(capture, 0, 2200, SITE_LOAD, 0xb0, outer, 2, (uint64_t[]){0, 0});
	message_call(capture, 2, 2300, CALL_SEND, 0, 0);
	message_call(capture, 0, 2301, CALL_RECV, 2, 1);
	rank_hit(capture, 0, 2500, SITE_FOUND, 0xf0, 0xb0, 1, (uint64_t[]){0});
	return capture_load(capture, 9000);
}

static void test_later_message_does_not_hide_an_earlier_one(void **state)
{
	static const uint64_t outer[] = {0xa0, 0};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct capture capture;
		char *text =
			origin_printed(messages_capture(&capture, outer[i]), "00000000000000f0");

		assert_non_null(strstr(text, "  1.  certain   event found 00000000000000e2 "));
		assert_non_null(strstr(text, "  2.  likely    event found 00000000000000e1 "));
		assert_null(strstr(text, "  3.  "));
		free(text);
		capture_free(&capture);
	}
}

/* Rank 0 receives a broadcast in the span 0xa0 and later, in the same span, the all-reduce to which
 * rank 1 gave its declared cause 0xe1. Either may have brought what the symptom 0xf0 shows. */
static void test_undeclared_candidate_leaves_a_declared_origin_certain(void **state)
{
	struct capture capture;
	char *text, *declared, *other;

	(void)state;
	ranks_begin(&capture);
	rank_hit(&capture, 1, 2000, SITE_FOUND, 0xe1, 0, 1, (uint64_t[]){0});
	for (unsigned rank = 0; rank < 3; rank++)
		rank_hit(&capture, rank, 2010 + rank, SITE_LOAD, 0xa0 + rank, 0, 2,
			 (uint64_t[]){0, rank == 1 ? 0xe1 : 0});
	for (unsigned rank = 0; rank < 3; rank++)
		message_call(&capture, rank, 2100 + 5 * rank, CALL_BROADCAST, 2, 0);
	for (unsigned rank = 0; rank < 3; rank++)
		message_call(&capture, rank, 2200 + 5 * rank, CALL_ALL_REDUCE, 7, 1);
	rank_hit(&capture, 0, 2300, SITE_FOUND, 0xf0, 0xa0, 1, (uint64_t[]){0});
	text = origin_printed(capture_load(&capture, 9000), "00000000000000f0");
	declared = strstr(text, "  1.  certain   event found 00000000000000e1 ");
	other = strstr(text, "  where its data came from; no cause is declared there:\n"
			     "  2.  likely    span load 00000000000000a2 ");
	assert_non_null(declared);
	assert_non_null(other);
	assert_true(declared < other);
	free(text);
	capture_free(&capture);
}

/* Rank 0 receives in a span with a link, which has ended when the symptom comes. Nothing went from
 * rank 0 to rank 0. */
static void test_link_of_the_receiving_span_is_not_told_as_a_message(void **state)
{
	static const char want[] =
		"      received through ncclSend number 0 in span load 00000000000000a0 of "
		"train (200), at 1.01 us, a.c:2 (likely)\n"
		"      caused by event found 00000000000000e0\n";
	struct capture capture;
	char *text;

	(void)state;
	ranks_begin(&capture);
	rank_hit(&capture, 0, 2000, SITE_FOUND, 0xe0, 0, 1, (uint64_t[]){0});
	rank_hit(&capture, 0, 2010, SITE_LOAD, 0xa0, 0, 2, (uint64_t[]){0, 0xe0});
	message_call(&capture, 1, 2100, CALL_SEND, 0, 0);
	message_call(&capture, 0, 2101, CALL_RECV, 1, 0);
	rank_end(&capture, 0, 2200, 0xa0);
	rank_hit(&capture, 0, 2500, SITE_FOUND, 0xf0, 0, 1, (uint64_t[]){0});
	text = origin_printed(capture_load(&capture, 9000), "00000000000000f0");
	assert_non_null(strstr(text, want));
	free(text);
	capture_free(&capture);
}

/* Two origins, whose ways begin with the same span. */
static void test_records_of_shared_steps_are_numbered(void **state)
{
	struct capture capture;
	const struct model *model;
	struct origin_index *index;
	struct error err = ERROR_INIT;
	struct origin *origin;
	uint32_t event;

	(void)state;
	capture_begin(&capture, false);
	capture_hit(&capture, 2000, 11, SITE_FOUND, 0xe1, 0, 1, (uint64_t[]){0});
	capture_hit(&capture, 2100, 11, SITE_FOUND, 0xe2, 0, 1, (uint64_t[]){0});
	capture_hit(&capture, 2200, 11, SITE_LOAD, 0xa1, 0, 2, (uint64_t[]){0, 0xe2});
	capture_end(&capture, 2300, 11, 0xa1);
	capture_hit(&capture, 2400, 11, SITE_LOAD, 0xa2, 0, 2, (uint64_t[]){0xa1, 0xe1});
	capture_hit(&capture, 2500, 11, SITE_FOUND, 0xf0, 0xa2, 1, (uint64_t[]){0});
	model = capture_load(&capture, 9000);
	index = origin_index_new(model);
	capture_must(why_pick_event(&event, model, "0xf0", &err), err);
	origin = origin_new(index, MODEL_NODE_EVENT, event);
	assert_int_equal(origin->ends.len, 2);
	capture_must(origin_find_records(origin, &err), err);
	assert_int_not_equal(origin->symptom.record, 0);
	for (size_t i = 0; i < 2; i++) {
		struct origin_way way;

		origin_way_find(&way, origin, &origin->ends.data[i]);
		for (size_t step = 0; step < way.steps.len; step++)
			assert_int_not_equal(way.steps.data[step].to.record, 0);
		assert_int_equal(way.steps.data[way.steps.len - 1].to.record,
				 origin->ends.data[i].node.record);
		origin_way_free(&way);
	}
	origin_free(origin);
	origin_index_free(index);
	capture_free(&capture);
}

static void test_earlier_collectives_without_a_cause_leave_the_origin_certain(void **state)
{
	struct capture capture;
	char *text;

	(void)state;
	ranks_begin(&capture);
	for (unsigned i = 0; i < 5; i++)
		for (unsigned rank = 0; rank < 3; rank++)
			message_call(&capture, rank, 2000 + 100 * i + 5 * rank, CALL_ALL_REDUCE, 7,
				     i);
	rank_hit(&capture, 1, 3000, SITE_FOUND, 0xe1, 0, 1, (uint64_t[]){0});
	for (unsigned rank = 0; rank < 3; rank++)
		rank_hit(&capture, rank, 3010 + rank, SITE_LOAD, 0xa0 + rank, 0, 2,
			 (uint64_t[]){0, rank == 1 ? 0xe1 : 0});
	for (unsigned rank = 0; rank < 3; rank++)
		message_call(&capture, rank, 3100 + 5 * rank, CALL_ALL_REDUCE, 7, 5);
	rank_hit(&capture, 0, 3200, SITE_FOUND, 0xf0, 0xa0, 1, (uint64_t[]){0});
	text = origin_printed(capture_load(&capture, 9000), "00000000000000f0");
	assert_non_null(strstr(text, "  1.  certain   event found 00000000000000e1 "));
	assert_null(strstr(text, "  2.  "));
	free(text);
	capture_free(&capture);
}

/*
 * Rank 2 sends a message in the span 0xb0, which is linked to rank 0's span 0xa0. That one receives
 * a message with the cause 0xe1 from rank 1, before this or after it (`late`), and is open all the
 * time. Rank 1 then receives rank 2's message in the span 0xb1, in which the symptom 0xf0 is.
 */
static const struct model *open_link_capture(struct capture *capture, bool late)
{
	uint64_t ts = late ? 2300 : 2100;

	ranks_begin(capture);
	rank_hit(capture, 1, 2000, SITE_FOUND, 0xe1, 0, 1, (uint64_t[]){0});
	rank_hit(capture, 1, 2010, SITE_LOAD, 0xa1, 0, 2, (uint64_t[]){0, 0xe1});
	rank_hit(capture, 0, 2020, SITE_LOAD, 0xa0, 0, 2, (uint64_t[]){0, 0});
	rank_hit(capture, 2, 2030, SITE_LOAD, 0xb0, 0, 2, (uint64_t[]){0xa0, 0});
	message_call(capture, 1, ts, CALL_SEND, 0, 0);
	message_call(capture, 0, ts + 1, CALL_RECV, 1, 0);
	message_call(capture, 2, 2200, CALL_SEND, 1, 0);
	rank_end(capture, 1, 2400, 0xa1);
	rank_hit(capture, 1, 2410, SITE_LOAD, 0xb1, 0, 2, (uint64_t[]){0, 0});
	message_call(capture, 1, 2420, CALL_RECV, 2, 1);
	rank_hit(capture, 1, 2500, SITE_FOUND, 0xf0, 0xb1, 1, (uint64_t[]){0});
	return capture_load(capture, 9000);
}

static void test_link_to_an_open_span_takes_only_data_from_before(void **state)
{
	struct capture capture;
	const struct model *model = open_link_capture(&capture, false);
	char *text = origin_printed(model, "00000000000000f0");

	(void)state;
	assert_non_null(strstr(text, "  1.  certain   event found 00000000000000e1 "));
	free(text);
	capture_free(&capture);
	model = open_link_capture(&capture, true);
	text = origin_printed(model, "00000000000000f0");
	assert_non_null(strstr(text, "  1.  certain   span load 00000000000000a0 "));
	assert_null(strstr(text, "e1"));
	free(text);
	capture_free(&capture);
}

static void test_context_from_another_process_hides_no_data_of_the_thread(void **state)
{
	struct capture capture;
	char *text;

	(void)state;
	ranks_begin(&capture);
	rank_hit(&capture, 1, 2000, SITE_FOUND, 0xe1, 0, 1, (uint64_t[]){0});
	rank_hit(&capture, 1, 2010, SITE_LOAD, 0xa1, 0, 2, (uint64_t[]){0, 0xe1});
	rank_hit(&capture, 2, 2020, SITE_LOAD, 0xa2, 0, 2, (uint64_t[]){0, 0});
	message_call(&capture, 1, 2100, CALL_SEND, 0, 0);
	message_call(&capture, 0, 2101, CALL_RECV, 1, 0);
	rank_hit(&capture, 0, 2200, SITE_LOAD, 0xb0, 0xa2, 2, (uint64_t[]){0, 0});
	rank_hit(&capture, 0, 2300, SITE_FOUND, 0xf0, 0xb0, 1, (uint64_t[]){0});
	text = origin_printed(capture_load(&capture, 9000), "00000000000000f0");
	assert_non_null(strstr(text, "  1.  likely    event found 00000000000000e1 "));
	assert_non_null(strstr(text, "  2.  likely    span load 00000000000000a2 "));
	free(text);
	capture_free(&capture);
}

/* ---- spans of one name ---- */

/* Makes the processes ranks of one job, as their environment does. */
static void job_make(const struct model *model)
{
	for (uint32_t rank = 0; rank < 3; rank++) {
		uint32_t at = map_get(&model->pids, 100 + rank);

		assert_int_not_equal(at, MAP_NONE);
		((struct model *)model)->processes.data[at].rank = rank;
		((struct model *)model)->processes.data[at].job = 1;
	}
}

static void test_spans_of_one_name_stand_for_collectives_only_without_calls(void **state)
{
	(void)state;
	for (unsigned calls = 0; calls < 2; calls++) {
		struct capture capture;
		const struct model *model;
		char *text;

		if (calls)
			ranks_begin(&capture);
		else
			calls_begin(&capture);
		rank_hit(&capture, 1, 2000, SITE_FOUND, 0xe1, 0, 1, (uint64_t[]){0});
		for (unsigned rank = 0; rank < 3; rank++)
			rank_hit(&capture, rank, 2100 + rank, SITE_LOAD, 0xa0 + rank, 0, 2,
				 (uint64_t[]){0, rank == 1 ? 0xe1 : 0});
		rank_hit(&capture, 0, 2500, SITE_FOUND, 0xf0, 0xa0, 1, (uint64_t[]){0});
		model = capture_load(&capture, 9000);
		job_make(model);
		text = origin_printed(model, "00000000000000f0");
		assert_int_equal(!strstr(text, "  1.  likely    event found 00000000000000e1 "),
				 calls);
		free(text);
		capture_free(&capture);
	}
}

static void test_span_of_one_name_is_joined_with_one_that_overlaps(void **state)
{
	struct capture capture;
	const struct model *model;
	char *text;

	(void)state;
	calls_begin(&capture);
	rank_hit(&capture, 1, 2000, SITE_FOUND, 0xe1, 0, 1, (uint64_t[]){0});
	for (unsigned rank = 0; rank < 2; rank++)
		rank_hit(&capture, rank, 2100 + rank, SITE_LOAD, 0xa0 + rank, 0, 2,
			 (uint64_t[]){0, rank == 1 ? 0xe1 : 0});
	for (unsigned rank = 0; rank < 2; rank++)
		rank_end(&capture, rank, 2200 + rank, 0xa0 + rank);
	rank_hit(&capture, 2, 2300, SITE_FOUND, 0xe2, 0, 1, (uint64_t[]){0});
	rank_hit(&capture, 0, 2500, SITE_FOUND, 0xf0, 0, 1, (uint64_t[]){0});
	model = capture_load(&capture, 9000);
	job_make(model);
	text = origin_printed(model, "00000000000000f0");
	assert_non_null(strstr(text,
			       "      after span load 00000000000000a0, together with, by its "
			       "name and time, span load 00000000000000a1 "));
	free(text);
	capture_free(&capture);
}

/* ---- calls that are not matched ---- */

static void test_ranks_in_different_order_are_reported(void **state)
{
	struct capture capture;
	char *text;

	(void)state;
	ranks_begin(&capture);
	rank_hit(&capture, 0, 2000, SITE_LOAD, 0xa0, 0, 2, (uint64_t[]){0, 0});
	for (unsigned rank = 0; rank < 3; rank++)
		message_call(&capture, rank, 2100 + 5 * rank,
			     rank ? CALL_ALL_REDUCE : CALL_BROADCAST, rank ? 7 : 1, 0);
	rank_hit(&capture, 0, 2500, SITE_FOUND, 0xf0, 0xa0, 1, (uint64_t[]){0});
	text = origin_printed(capture_load(&capture, 9000), "00000000000000f0");
	assert_non_null(strstr(text,
			       "  origins may be missing: collective 0 of a communicator differs "
			       "between ranks: rank 0 called ncclBroadcast; rank 2 called "
			       "ncclAllReduce\n"));
	assert_non_null(strstr(text, "  origins may be missing: 3 calls are not matched, in the "
				     "whole capture; see docs/mpi.md\n"));
	assert_null(strstr(text, "of 3 ranks are known"));
	assert_null(strstr(text, "to declare a cause"));
	free(text);
	capture_free(&capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_links_of_an_event_are_followed_to_their_origin),
		cmocka_unit_test(test_event_that_is_not_there_is_reported_with_similar_names),
		cmocka_unit_test(test_way_of_a_long_chain_is_shortened),
		cmocka_unit_test(test_ways_of_many_origins_share_their_steps),
		cmocka_unit_test(test_declared_cause_of_another_rank_is_the_only_origin),
		cmocka_unit_test(test_without_a_declared_cause_any_rank_may_be_the_origin),
		cmocka_unit_test(test_broadcast_leads_to_its_root_alone),
		cmocka_unit_test(test_receive_whose_send_is_not_in_the_capture_is_reported),
		cmocka_unit_test(test_context_leads_to_the_process_that_gave_it),
		cmocka_unit_test(test_later_message_does_not_hide_an_earlier_one),
		cmocka_unit_test(test_link_to_an_open_span_takes_only_data_from_before),
		cmocka_unit_test(test_ranks_in_different_order_are_reported),
		cmocka_unit_test(test_spans_of_one_name_stand_for_collectives_only_without_calls),
		cmocka_unit_test(test_span_of_one_name_is_joined_with_one_that_overlaps),
		cmocka_unit_test(test_context_from_another_process_hides_no_data_of_the_thread),
		cmocka_unit_test(test_link_of_the_receiving_span_is_not_told_as_a_message),
		cmocka_unit_test(test_earlier_collectives_without_a_cause_leave_the_origin_certain),
		cmocka_unit_test(test_undeclared_candidate_leaves_a_declared_origin_certain),
		cmocka_unit_test(test_records_of_shared_steps_are_numbered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
