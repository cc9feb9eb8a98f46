// SPDX-License-Identifier: Apache-2.0
/* The replay of random schedules, against a slow and simple simulation of the same rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analyze/gpu/replay.h"
#include "util/memory.h"

#define NODES_MAX 200
#define NEVER UINT64_MAX

static uint64_t seed = 1;

static uint32_t random_below(uint32_t count)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((seed >> 33) % count);
}

static uint64_t max(uint64_t left, uint64_t right)
{
	return left > right ? left : right;
}

/* ---- the reference ---- */

/* When all that a node waits for allows it to start; NEVER: something has not started. */
static uint64_t reference_ready(const struct replay_graph *graph, const uint64_t *dur_ns,
				const uint64_t *start_ts, uint32_t node)
{
	uint64_t ready = 0;
	bool first = true;

	for (uint32_t i = 0; i < node; i++) {
		if (graph->nodes.data[node].queue == REPLAY_NONE ||
		    graph->nodes.data[i].queue != graph->nodes.data[node].queue)
			continue;
		if (start_ts[i] == NEVER)
			return NEVER;
		first = false;
		ready = max(ready, start_ts[i] + dur_ns[i] + graph->nodes.data[i].gap_ns);
	}
	for (size_t i = 0; i < graph->edges.len; i++) {
		const struct replay_edge *edge = &graph->edges.data[i];

		if (edge->to != node)
			continue;
		if (start_ts[edge->from] == NEVER)
			return NEVER;
		first = false;
		ready = max(ready, start_ts[edge->from] +
					   (edge->after_start ? 0 : dur_ns[edge->from]) +
					   edge->lag_ns);
	}
	return first ? graph->nodes.data[node].start_ts : ready;
}

/* Starts one node after the other, each time the one that is ready first. Returns how many. */
static size_t reference_run(const struct replay_graph *graph, const uint64_t *dur_ns,
			    uint64_t *start_ts)
{
	uint64_t engine_free[NODES_MAX] = {0};
	size_t started = 0;

	memset(start_ts, 0xff, graph->nodes.len * sizeof(*start_ts));
	for (;;) {
		uint64_t best_ts = NEVER;
		uint32_t best = 0, engine;

		for (uint32_t i = 0; i < graph->nodes.len; i++) {
			uint64_t ready = start_ts[i] == NEVER
						 ? reference_ready(graph, dur_ns, start_ts, i)
						 : NEVER;
			if (ready < best_ts) {
				best_ts = ready;
				best = i;
			}
		}
		if (best_ts == NEVER)
			return started;
		engine = graph->nodes.data[best].engine;
		if (engine != REPLAY_NONE) {
			best_ts = max(best_ts, engine_free[engine]);
			engine_free[engine] = best_ts + dur_ns[best];
		}
		start_ts[best] = best_ts;
		started++;
	}
}

/* ---- random schedules ---- */

/* Nothing says when a node with no dependency became ready for its engine, so it has none. */
static void engines_take_from_first(struct replay_graph *graph)
{
	bool has[NODES_MAX] = {false}, begun[8] = {false};

	for (size_t i = 0; i < graph->edges.len; i++)
		has[graph->edges.data[i].to] = true;
	for (uint32_t i = 0; i < graph->nodes.len; i++) {
		struct replay_node *node = &graph->nodes.data[i];

		if (!has[i] && (node->queue == REPLAY_NONE || !begun[node->queue]))
			node->engine = REPLAY_NONE;
		if (node->queue != REPLAY_NONE)
			begun[node->queue] = true;
	}
}

/* A schedule that follows the rules: its recorded times are those of the reference. */
static void graph_random(struct replay_graph *graph, uint64_t *dur_ns)
{
	uint32_t nodes = 1 + random_below(60);
	uint64_t start_ts[NODES_MAX];

	*graph = (struct replay_graph){.queue_count = 1 + random_below(6),
				       .engine_count = random_below(3)};
	for (uint32_t i = 0; i < nodes; i++) {
		bool engine = graph->engine_count && !random_below(3);
		struct replay_node node = {
			.start_ts = random_below(100),
			.dur_ns = random_below(50),
			.gap_ns = random_below(2) ? random_below(10) : 0,
			.queue = random_below(8) ? random_below(graph->queue_count) : REPLAY_NONE,
			.engine = engine ? random_below(graph->engine_count) : REPLAY_NONE,
			.is_operation = random_below(3) != 0,
		};
		vec_add(&graph->nodes, node);
		dur_ns[i] = node.dur_ns;
	}
	for (uint32_t i = random_below(2 * nodes); i && nodes > 1; i--) {
		uint32_t to = 1 + random_below(nodes - 1);

		vec_add(&graph->edges, (struct replay_edge){.from = random_below(to),
							    .to = to,
							    .lag_ns = random_below(5),
							    .after_start = random_below(2)});
	}
	engines_take_from_first(graph);
	assert_int_equal(reference_run(graph, dur_ns, start_ts), nodes);
	for (uint32_t i = 0; i < nodes; i++)
		graph->nodes.data[i].start_ts = start_ts[i];
}

static void test_unmodified_replay_of_a_random_schedule_is_the_recording(void **state)
{
	(void)state;
	for (int round = 0; round < 500; round++) {
		struct replay_graph graph;
		struct replay_result result;
		replay_violations violations = {0};
		uint64_t dur_ns[NODES_MAX] = {0};

		graph_random(&graph, dur_ns);
		replay_run(&graph, NULL, &result);
		for (uint32_t i = 0; i < graph.nodes.len; i++)
			assert_int_equal(result.start_ts[i], graph.nodes.data[i].start_ts);
		assert_int_equal(result.replayed_ns, result.measured_ns);
		assert_int_equal(result.nodes_executed, graph.nodes.len);
		assert_int_equal(result.operations_executed, result.operations_total);
		assert_true(replay_error(&result) == 0);
		replay_check(&graph, NULL, &violations);
		assert_int_equal(violations.len, 0);
		replay_result_free(&result);
		replay_graph_free(&graph);
	}
}

static void test_replay_with_other_durations_matches_the_reference(void **state)
{
	(void)state;
	for (int round = 0; round < 500; round++) {
		struct replay_graph graph;
		struct replay_result result;
		struct replay_change change = {0};
		uint64_t dur_ns[NODES_MAX] = {0}, start_ts[NODES_MAX];

		graph_random(&graph, dur_ns);
		for (uint32_t i = 0; i < graph.nodes.len; i++)
			dur_ns[i] = random_below(4) ? dur_ns[i] / 2 : random_below(80);
		change.dur_ns = dur_ns;
		reference_run(&graph, dur_ns, start_ts);
		replay_run(&graph, &change, &result);
		for (uint32_t i = 0; i < graph.nodes.len; i++)
			assert_int_equal(result.start_ts[i], start_ts[i]);
		replay_result_free(&result);
		replay_graph_free(&graph);
	}
}

/* ---- selections ---- */

/* Without engines, a part that is replayed alone has the recorded times: what is outside of it
 * happens as recorded. */
static void test_any_part_of_a_schedule_replays_as_recorded(void **state)
{
	(void)state;
	for (int round = 0; round < 500; round++) {
		struct replay_graph graph;
		struct replay_result result;
		bool selected[NODES_MAX];
		struct replay_change change = {.selected = selected};
		uint64_t dur_ns[NODES_MAX] = {0};
		uint64_t from_ts = random_below(300), to_ts = from_ts + random_below(300);

		do {
			graph_random(&graph, dur_ns);
			if (graph.engine_count)
				replay_graph_free(&graph);
		} while (graph.engine_count);
		for (uint32_t i = 0; i < graph.nodes.len; i++)
			selected[i] = graph.nodes.data[i].start_ts >= from_ts &&
				      graph.nodes.data[i].start_ts <= to_ts;
		replay_run(&graph, &change, &result);
		for (uint32_t i = 0; i < graph.nodes.len; i++)
			assert_int_equal(result.start_ts[i],
					 selected[i] ? graph.nodes.data[i].start_ts : NEVER);
		replay_result_free(&result);
		replay_graph_free(&graph);
	}
}

/* ---- changes, by hand ---- */

static const struct replay_node two_streams[] = {
	{.start_ts = 100, .dur_ns = 10, .queue = 0, .engine = REPLAY_NONE, .is_operation = true},
	{.start_ts = 100, .dur_ns = 40, .queue = 1, .engine = REPLAY_NONE, .is_operation = true},
	{.start_ts = 140, .dur_ns = 10, .queue = 0, .engine = REPLAY_NONE, .is_operation = true},
};

static struct replay_graph graph_two_streams(void)
{
	struct replay_graph graph = {.queue_count = 2};

	for (size_t i = 0; i < sizeof(two_streams) / sizeof(two_streams[0]); i++)
		vec_add(&graph.nodes, two_streams[i]);
	vec_add(&graph.edges, (struct replay_edge){.from = 1, .to = 2});
	return graph;
}

static void test_a_cut_edge_does_not_delay(void **state)
{
	struct replay_graph graph = graph_two_streams();
	struct replay_result result;
	bool cut[] = {true}, ignored[] = {false, true, false};

	(void)state;
	replay_run(&graph, &(struct replay_change){.cut = cut, .ignored = ignored}, &result);
	assert_int_equal(result.start_ts[2], 110);
	assert_int_equal(result.measured_ns, 50);
	assert_int_equal(result.replayed_ns, 20);
	replay_result_free(&result);
	replay_graph_free(&graph);
}

static void test_nodes_in_a_circle_are_not_executed(void **state)
{
	struct replay_graph graph = graph_two_streams();
	struct replay_result result;

	(void)state;
	vec_add(&graph.edges, (struct replay_edge){.from = 2, .to = 1});
	replay_run(&graph, NULL, &result);
	assert_int_equal(result.operations_total, 3);
	assert_int_equal(result.operations_executed, 1);
	replay_result_free(&result);
	replay_graph_free(&graph);
}

static void test_check_names_what_started_too_early(void **state)
{
	struct replay_graph graph = graph_two_streams();
	replay_violations violations = {0};

	(void)state;
	graph.nodes.data[2].start_ts = 105;
	assert_int_equal(replay_check(&graph, NULL, &violations), 2);
	assert_int_equal(violations.len, 2);
	assert_true(violations.data[0].in_queue);
	assert_int_equal(violations.data[0].early_ns, 5);
	assert_false(violations.data[1].in_queue);
	assert_int_equal(violations.data[1].from, 1);
	assert_int_equal(violations.data[1].early_ns, 35);
	vec_free(&violations);
	replay_graph_free(&graph);
}

static void test_an_empty_graph_takes_no_time(void **state)
{
	struct replay_graph graph = {0};
	struct replay_result result;

	(void)state;
	replay_run(&graph, NULL, &result);
	assert_int_equal(result.measured_ns, 0);
	assert_int_equal(result.operations_total, 0);
	replay_result_free(&result);
}

/* `test_replay COUNT` prints how many operations a second are replayed, of COUNT on four streams
 * that wait for each other, each with its launch. */
static int measure(uint32_t count)
{
	struct replay_graph graph = {.queue_count = 5};
	struct replay_result result;
	struct timespec from, to;
	double s;

	for (uint32_t i = 0; i < count; i++) {
		struct replay_node launch = {i * 10ull, 5, 5, false, 4, REPLAY_NONE};
		struct replay_node op = {i * 10ull + 7, 30, 0, true, i % 4, REPLAY_NONE};

		vec_add(&graph.nodes, launch);
		vec_add(&graph.nodes, op);
		vec_add(&graph.edges, (struct replay_edge){2 * i, 2 * i + 1, 2, true});
		if (i % 8 == 7)
			vec_add(&graph.edges, (struct replay_edge){2 * i - 1, 2 * i + 1, 0, false});
	}
	clock_gettime(CLOCK_MONOTONIC, &from);
	replay_run(&graph, NULL, &result);
	clock_gettime(CLOCK_MONOTONIC, &to);
	s = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
	printf("%u operations in %.3f s: %.1f million a second\n", count, s, count / s / 1e6);
	replay_result_free(&result);
	replay_graph_free(&graph);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unmodified_replay_of_a_random_schedule_is_the_recording),
		cmocka_unit_test(test_replay_with_other_durations_matches_the_reference),
		cmocka_unit_test(test_any_part_of_a_schedule_replays_as_recorded),
		cmocka_unit_test(test_a_cut_edge_does_not_delay),
		cmocka_unit_test(test_nodes_in_a_circle_are_not_executed),
		cmocka_unit_test(test_check_names_what_started_too_early),
		cmocka_unit_test(test_an_empty_graph_takes_no_time),
	};

	if (argc > 1)
		return measure((uint32_t)strtoul(argv[1], NULL, 10));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
