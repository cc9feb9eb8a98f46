// SPDX-License-Identifier: Apache-2.0
/* The text that `why` prints for causes and chains made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <yajl/yajl_tree.h>

#include "model_capture.h"

#include "analyze/why/why_pick.h"
#include "render/json/why_json.h"
#include "render/text/why_text.h"
#include "util/memory.h"

#define MS 1000000ull

struct made {
	struct capture capture;
	struct why why;
};

static uint32_t thread_of(const struct model *model, uint32_t tid)
{
	for (uint32_t i = 0; i < model->threads.len; i++)
		if (model->threads.data[i].tid == tid)
			return i;
	fail_msg("thread %u is not in the model", tid);
	return MODEL_NONE;
}

static uint32_t text_of(struct made *made, const char *text)
{
	return strtab_add(made->why.texts, text, strlen(text));
}

/* A worker's span of 200 ms: it waited 168 ms for a lock that loader-2 held. */
static const struct model *lock_capture(struct made *made)
{
	struct capture *capture = &made->capture;

	capture_begin(capture, true);
	capture_task(capture, CAPTURE_START, 11, 100, "worker");
	capture_task(capture, CAPTURE_START, 12, 100, "loader-2");
	capture_task(capture, CAPTURE_START, 13, 100, "back\033[2Jup");
	capture_hit(capture, 1 * MS, 12, SITE_LOAD, 0xb2, 0, 2, (uint64_t[]){0, 0});
	capture_span(capture, 2 * MS, 11, 0xb1);
	capture_hit(capture, 10 * MS, 11, SITE_LOAD, 0xa1, 0, 2, (uint64_t[]){0xb2, 0});
	capture_switch(capture, 184 * MS, 1, 13, 12, WAFFLE_TASK_INTERRUPTIBLE, 0, 0);
	capture_end(capture, 210 * MS, 11, 0xa1);
	capture_end(capture, 211 * MS, 11, 0xb1);
	return capture_load(capture, 300 * MS);
}

static void add_step(struct made *made, struct why_step step)
{
	step.args = step.wait = step.behind = step.preemptor = MODEL_NONE;
	step.from_cpu = MODEL_CPU_NONE;
	if (step.state != WAFFLE_THREAD_RUNNABLE)
		step.cpu = MODEL_CPU_NONE;
	assert_true(vec_push(&made->why.steps, step));
}

static void add_part(struct made *made, struct why_part part)
{
	part.step = (uint32_t)made->why.steps.len - part.step_count;
	assert_true(vec_push(&made->why.parts, part));
}

struct cast {
	uint32_t worker, loader, backup, load, request;
	struct why_step lock; /* what the worker waited for */
};

static void add_disk(struct made *made, const struct cast *cast)
{
	uint32_t file = text_of(made, "/data/shard-7");

	add_step(made, cast->lock);
	add_step(made, (struct why_step){.from_ts = 20 * MS,
					 .to_ts = 170 * MS,
					 .thread = cast->loader,
					 .state = WAFFLE_THREAD_BLOCKED,
					 .syscall = 17,
					 .task_state = WAFFLE_TASK_UNINTERRUPTIBLE,
					 .span = cast->load,
					 .by = cast->backup,
					 .interrupt = true,
					 .object = file,
					 .meaning = text_of(made, "waits for block I/O, ext4")});
	add_part(made, (struct why_part){.cause = WHY_DISK_READ,
					 .grade = WHY_GRADE_CERTAIN,
					 .ns = 150 * MS,
					 .stretches = 1,
					 .thread = cast->loader,
					 .span = cast->load,
					 .object = file,
					 .step_count = 2});
}

static void add_running(struct made *made, const struct cast *cast)
{
	add_step(made, (struct why_step){.from_ts = 10 * MS,
					 .to_ts = 20 * MS,
					 .thread = cast->worker,
					 .state = WAFFLE_THREAD_RUNNING,
					 .syscall = -1,
					 .span = cast->request,
					 .by = MODEL_NONE,
					 .cpu_khz = 3450000, /* as good as its best */
					 .cpu_max_khz = 3500000});
	add_part(made, (struct why_part){.cause = WHY_RUNNING,
					 .grade = WHY_GRADE_CERTAIN,
					 .ns = 32 * MS,
					 .stretches = 2,
					 .thread = cast->worker,
					 .span = cast->request,
					 .step_count = 1});
}

static void add_contention(struct made *made, const struct cast *cast)
{
	add_step(made, cast->lock);
	add_step(made, (struct why_step){.from_ts = 170 * MS,
					 .to_ts = 184 * MS,
					 .thread = cast->loader,
					 .state = WAFFLE_THREAD_RUNNABLE,
					 .syscall = -1,
					 .span = cast->load,
					 .cpu = 1,
					 .by = cast->backup});
	add_part(made, (struct why_part){.cause = WHY_CPU_CONTENTION,
					 .grade = WHY_GRADE_LIKELY,
					 .ns = 14 * MS,
					 .stretches = 1,
					 .thread = cast->backup,
					 .span = MODEL_NONE,
					 .step_count = 2});
}

static void add_holder(struct made *made, const struct cast *cast)
{
	add_step(made, cast->lock);
	add_step(made, (struct why_step){.from_ts = 184 * MS,
					 .to_ts = 188 * MS,
					 .thread = cast->loader,
					 .state = WAFFLE_THREAD_RUNNING,
					 .syscall = -1,
					 .span = cast->load,
					 .by = MODEL_NONE,
					 .cpu_khz = 1230000,
					 .cpu_max_khz = 3500000});
	add_part(made, (struct why_part){.cause = WHY_LOCK,
					 .grade = WHY_GRADE_CERTAIN,
					 .ns = 4 * MS,
					 .stretches = 1,
					 .thread = cast->loader,
					 .span = cast->load,
					 .object = cast->lock.object,
					 .step_count = 2});
}

static const struct why *why_of_lock(struct made *made)
{
	const struct model *model = lock_capture(made);
	struct cast cast = {.worker = thread_of(model, 11),
			    .loader = thread_of(model, 12),
			    .backup = thread_of(model, 13),
			    .load = model_span_find(model, 0xb2),
			    .request = model_span_find(model, 0xa1)};
	struct why *why = &made->why;

	*why = (struct why){.model = model, .texts = strtab_new()};
	assert_non_null(why->texts);
	text_of(made, "");
	cast.lock = (struct why_step){.from_ts = 20 * MS,
				      .to_ts = 188 * MS,
				      .thread = cast.worker,
				      .state = WAFFLE_THREAD_BLOCKED,
				      .syscall = 202,
				      .task_state = WAFFLE_TASK_INTERRUPTIBLE,
				      .span = cast.request,
				      .by = cast.loader,
				      .object = text_of(made, "futex 0x7f01 (queue_lock)")};
	add_disk(made, &cast);
	add_running(made, &cast);
	add_contention(made, &cast);
	add_holder(made, &cast);
	assert_true(vec_push(&why->instances, (struct why_instance){.ended_by = MODEL_NONE,
								    .span = cast.request,
								    .thread = cast.worker,
								    .from_ts = 10 * MS,
								    .to_ts = 210 * MS,
								    .running_ns = 32 * MS,
								    .blocked_ns = 168 * MS,
								    .part_count = 4}));
	return why;
}

static void made_free(struct made *made)
{
	strtab_free(made->why.texts);
	vec_free(&made->why.instances);
	vec_free(&made->why.parts);
	vec_free(&made->why.steps);
	capture_free(&made->capture);
}

static char *text_printed(const struct why *why, struct why_view view)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	why_print_text(why, &view, out);
	fclose(out);
	return text;
}

static void test_parts_of_one_wait_are_told_under_that_wait(void **state)
{
	static const char want[] =
		"load 00000000000000a1 of worker (11), process 10, at 10.0 ms: 200 ms\n"
		"  running 32.0 ms (16.0 %), runnable 0 ns (0.0 %), blocked 168 ms (84.0 "
		"%)\n"
		"   1.  75.0 %    150 ms  disk-read         certain  loader-2 (12) in "
		"load, "
		"/data/shard-7\n"
		"   2.  16.0 %   32.0 ms  running           certain  worker (11) in "
		"load\n"
		"   3.   7.0 %   14.0 ms  cpu-contention    likely   back\xef\xbf\xbd[2Jup (13)\n"
		"   4.   2.0 %   4.00 ms  lock              certain  loader-2 (12) in "
		"load, "
		"futex 0x7f01 (queue_lock)\n"
		"      168 ms blocked on futex 0x7f01 (queue_lock) ← woken by loader-2 "
		"(12), "
		"which spent those 168 ms:\n"
		"        150 ms uninterruptible (D) in pread64 on /data/shard-7: waits for block "
		"I/O, ext4 "
		"[1]\n"
		"        14.0 ms runnable behind back\xef\xbf\xbd[2Jup (13) on cpu 1 [3]\n"
		"        4.00 ms running in load, at 1.2 of 3.5 GHz [4]\n"
		"  linked to its cause: span load 00000000000000b2 of loader-2 (12), at "
		"999 us\n"
		"\nrecords: 9 produced, 9 delivered, 0 lost\n";
	struct made made = {0};
	char *text = text_printed(why_of_lock(&made), (struct why_view){0});

	(void)state;
	assert_string_equal(text, want);
	free(text);
	made_free(&made);
}

static void test_causes_beyond_those_shown_are_summed_up(void **state)
{
	static const char want[] =
		"load 00000000000000a1 of worker (11), process 10, at 10.0 ms: 200 ms\n"
		"  running 32.0 ms (16.0 %), runnable 0 ns (0.0 %), blocked 168 ms (84.0 "
		"%)\n"
		"  records were lost during it: its causes are likely at best\n"
		"   1.  75.0 %    150 ms  disk-read         certain  loader-2 (12) in "
		"load, "
		"/data/shard-7\n"
		"   …   25.0 %   50.0 ms  3 more\n"
		"      168 ms blocked on futex 0x7f01 (queue_lock) ← woken by loader-2 "
		"(12), "
		"which spent of those 168 ms:\n"
		"        150 ms uninterruptible (D) in pread64 on /data/shard-7: waits for block "
		"I/O, ext4 "
		"[1]\n"
		"  linked to its cause: span load 00000000000000b2 of loader-2 (12), at "
		"999 us\n"
		"\nrecords: 9 produced, 9 delivered, 0 lost\n";
	struct made made = {0};
	char *text;

	(void)state;
	why_of_lock(&made);
	made.why.instances.data[0].loss = true;
	text = text_printed(&made.why, (struct why_view){.causes = 1});
	assert_string_equal(text, want);
	free(text);
	made_free(&made);
}

static unsigned count_of(const char *text, const char *part)
{
	unsigned count = 0;

	for (const char *at = text; (at = strstr(at, part)); at++)
		count++;
	return count;
}

static void test_a_wait_that_two_spans_share_is_explained_once(void **state)
{
	struct made made = {0};
	struct why_instance inner;
	char *text;

	(void)state;
	why_of_lock(&made);
	inner = made.why.instances.data[0];
	assert_true(vec_push(&made.why.instances, inner));
	text = text_printed(&made.why, (struct why_view){0});
	assert_non_null(strstr(text, "      168 ms blocked on futex 0x7f01 (queue_lock) [1] [3] "
				     "[4]: explained above, at load 00000000000000a1\n"));
	assert_int_equal(count_of(text, "woken by"), 1);
	free(text);
	/* Evidence is complete for each. */
	text = text_printed(&made.why, (struct why_view){.evidence = true});
	assert_null(strstr(text, "explained above"));
	free(text);
	made_free(&made);
}

static void test_a_cause_of_many_stretches_adds_up(void **state)
{
	struct made made = {0};
	char *text;

	(void)state;
	why_of_lock(&made);
	made.why.parts.data[0].stretches = 3;
	text = text_printed(&made.why, (struct why_view){0});
	assert_non_null(strstr(text, " [1], the longest of 3 stretches, 150 ms together\n"));
	free(text);
	made_free(&made);
}

/* Thread 12 ended before the time, and 14 began afterwards. */
static void test_a_go_program_has_the_threads_that_lived_in_the_time(void **state)
{
	struct made made = {0};
	char *text;

	(void)state;
	capture_begin(&made.capture, true);
	capture_task(&made.capture, CAPTURE_START, 11, 100, "go");
	capture_task(&made.capture, CAPTURE_START, 12, 100, "go");
	capture_task(&made.capture, CAPTURE_START, 13, 100, "go");
	capture_gone(&made.capture, 5 * MS, 12, WAFFLE_REC_EXIT);
	capture_task(&made.capture, 250 * MS, 14, 250 * MS, "go");
	made.why.model = capture_load(&made.capture, 300 * MS);
	made.why.texts = strtab_new();
	vec_add(&made.why.instances, ((struct why_instance){.span = MODEL_NONE,
							    .thread = thread_of(made.why.model, 11),
							    .program = true,
							    .from_ts = 10 * MS,
							    .to_ts = 210 * MS,
							    .ended_by = MODEL_NONE}));
	text = text_printed(&made.why, (struct why_view){0});
	if (!strstr(text, ", a Go program with 2 threads"))
		fail_msg("%s", text);
	free(text);
	made_free(&made);
}

static void test_colours_are_only_where_they_are_asked_for(void **state)
{
	struct made made = {0};
	char *plain = text_printed(why_of_lock(&made), (struct why_view){0});
	char *painted = text_printed(&made.why, (struct why_view){.colour = true});

	(void)state;
	assert_null(strchr(plain, '\033'));
	assert_non_null(strstr(painted, "\033[1mload 00000000000000a1"));
	/* None of the program's own. */
	assert_null(strstr(painted, "\033[2J"));
	free(plain);
	free(painted);
	made_free(&made);
}

/* ---- JSON ---- */

static yajl_val json_printed(const struct why *why, struct why_view view)
{
	char *text = NULL, problem[256];
	size_t len;
	FILE *out = open_memstream(&text, &len);
	yajl_val tree;

	assert_non_null(out);
	assert_int_equal(why_print_json(why, &view, out), 0);
	fclose(out);
	tree = yajl_tree_parse(text, problem, sizeof(problem));
	if (!tree)
		fail_msg("%s in %s", problem, text);
	free(text);
	return tree;
}

static yajl_val at(yajl_val tree, const char *key, yajl_type type)
{
	const char *path[] = {key, NULL};
	yajl_val found = yajl_tree_get(tree, path, type);

	if (!found)
		fail_msg("no %s of that type", key);
	return found;
}

#define text_at(tree, key) YAJL_GET_STRING(at(tree, key, yajl_t_string))
#define number_at(tree, key) YAJL_GET_INTEGER(at(tree, key, yajl_t_number))

static void test_json_tells_each_cause_with_its_chain(void **state)
{
	struct made made = {0};
	yajl_val tree = json_printed(why_of_lock(&made), (struct why_view){0});
	yajl_val instance = at(tree, "instances", yajl_t_array)->u.array.values[0];
	yajl_val parts = at(instance, "parts", yajl_t_object);
	yajl_val causes = at(instance, "causes", yajl_t_array), cause, culprit, chain, links;

	(void)state;
	assert_string_equal(text_at(instance, "span"), "load");
	assert_string_equal(text_at(instance, "id"), "00000000000000a1");
	assert_int_equal(number_at(instance, "start_ns"), 10 * MS);
	assert_int_equal(number_at(instance, "duration_ns"), 200 * MS);
	assert_int_equal(number_at(parts, "running_ns"), 32 * MS);
	assert_int_equal(number_at(parts, "runnable_ns"), 0);
	assert_int_equal(number_at(parts, "blocked_ns"), 168 * MS);
	assert_int_equal(number_at(parts, "unknown_ns"), 0);
	assert_int_equal(causes->u.array.len, 4);
	cause = causes->u.array.values[0];
	culprit = at(cause, "culprit", yajl_t_object);
	chain = at(cause, "chain", yajl_t_array);
	assert_string_equal(text_at(cause, "cause"), "disk-read");
	assert_string_equal(text_at(cause, "grade"), "certain");
	assert_true(YAJL_GET_DOUBLE(at(cause, "share", yajl_t_number)) == 0.75);
	assert_int_equal(number_at(culprit, "pid"), 10);
	assert_int_equal(number_at(culprit, "tid"), 12);
	assert_string_equal(text_at(culprit, "comm"), "loader-2");
	assert_string_equal(text_at(culprit, "span"), "load");
	assert_string_equal(text_at(culprit, "object"), "/data/shard-7");
	assert_int_equal(chain->u.array.len, 2);
	assert_string_equal(text_at(chain->u.array.values[0], "comm"), "worker");
	assert_string_equal(text_at(chain->u.array.values[0], "syscall"), "futex");
	assert_int_equal(number_at(at(chain->u.array.values[0], "by", yajl_t_object), "tid"), 12);
	assert_string_equal(text_at(chain->u.array.values[1], "state"), "blocked");
	assert_string_equal(text_at(chain->u.array.values[1], "meaning"),
			    "waits for block I/O, ext4");
	at(chain->u.array.values[0], "meaning", yajl_t_null);
	/* It ran where the interrupt arrived, nothing more. */
	at(chain->u.array.values[1], "by", yajl_t_null);
	at(at(causes->u.array.values[2], "culprit", yajl_t_object), "span", yajl_t_null);
	chain = at(causes->u.array.values[2], "chain", yajl_t_array);
	assert_int_equal(number_at(chain->u.array.values[1], "cpu"), 1);
	at(chain->u.array.values[1], "from_cpu", yajl_t_null);
	at(chain->u.array.values[1], "preempted", yajl_t_false);
	at(chain->u.array.values[1], "preemptor", yajl_t_null);
	chain = at(causes->u.array.values[3], "chain", yajl_t_array);
	assert_int_equal(number_at(chain->u.array.values[1], "cpu_khz"), 1230000);
	assert_int_equal(number_at(chain->u.array.values[1], "cpu_max_khz"), 3500000);
	assert_int_equal(number_at(at(tree, "records", yajl_t_object), "delivered"), 9);
	links = at(instance, "links", yajl_t_array);
	assert_int_equal(links->u.array.len, 1);
	assert_string_equal(text_at(links->u.array.values[0], "kind"), "span");
	assert_string_equal(text_at(links->u.array.values[0], "name"), "load");
	assert_string_equal(text_at(links->u.array.values[0], "id"), "00000000000000b2");
	assert_int_equal(number_at(links->u.array.values[0], "start_ns"), 1 * MS);
	yajl_tree_free(tree);
	made_free(&made);
}

static void test_json_of_a_thread_in_a_window_has_no_span(void **state)
{
	struct made made = {0};
	yajl_val tree, instance;

	(void)state;
	why_of_lock(&made);
	made.why.instances.data[0].span = MODEL_NONE;
	tree = json_printed(&made.why, (struct why_view){0});
	instance = at(tree, "instances", yajl_t_array)->u.array.values[0];
	at(instance, "span", yajl_t_null);
	at(instance, "id", yajl_t_null);
	assert_int_equal(number_at(at(instance, "thread", yajl_t_object), "tid"), 11);
	yajl_tree_free(tree);
	made_free(&made);
}

/* ---- what is asked for ---- */

static void test_spans_are_asked_for_by_name_or_id(void **state)
{
	struct made made = {0};
	const struct model *model = lock_capture(&made);
	const struct {
		const char *wanted, *name;
		uint64_t id;
		const char *problem;
	} cases[] = {
		{"load", "load", 0, NULL},
		{"00000000000000a1", NULL, 0xa1, NULL},
		{"0xa1", NULL, 0xa1, NULL},
		{"0xa2", NULL, 0, "no span has the id 0xa2"},
		{"loda", NULL, 0, "no span 'loda'; did you mean 'load'"},
		{"a1", NULL, 0, "no span 'a1'; there are 'load', 'step'"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct why_wanted wanted = {.span = cases[i].wanted, .to_ns = UINT64_MAX};
		struct why_query query = {0};
		struct error err = ERROR_INIT;
		int result = why_pick(&query, model, &wanted, &err);

		if (cases[i].problem) {
			assert_int_equal(result, -ENOENT);
			assert_string_equal(err.message, cases[i].problem);
			continue;
		}
		assert_int_equal(result, 0);
		assert_int_equal(query.span_id, cases[i].id);
		if (cases[i].name)
			assert_string_equal(query.name, cases[i].name);
		else
			assert_null(query.name);
	}
	capture_free(&made.capture);
}

static void test_a_thread_is_asked_for_by_number_or_name_and_within_the_capture(void **state)
{
	struct made made = {0};
	const struct model *model = lock_capture(&made);
	struct why_wanted wanted = {.thread = "loader-2", .from_ns = MS, .to_ns = UINT64_MAX};
	struct why_query query = {0};
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(why_pick(&query, model, &wanted, &err), 0);
	assert_int_equal(query.tid, 0);
	assert_string_equal(query.comm, "loader-2");
	assert_int_equal(query.from_ts, CAPTURE_START + MS);
	assert_int_equal(query.to_ts, model->end_ts);
	wanted.thread = "11";
	assert_int_equal(why_pick(&query, model, &wanted, &err), 0);
	assert_int_equal(query.tid, 11);
	assert_null(query.comm);
	wanted.thread = "loader";
	assert_int_equal(why_pick(&query, model, &wanted, &err), -ENOENT);
	assert_string_equal(err.message, "no thread 'loader'; did you mean 'loader-2'");
	wanted.from_ns = 400 * MS;
	err.message[0] = 0;
	assert_int_equal(why_pick(&query, model, &wanted, &err), -EINVAL);
	assert_string_equal(err.message, "the capture ends before that time; waffle-bpf info "
					 "shows how long it is");
	capture_free(&made.capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts_of_one_wait_are_told_under_that_wait),
		cmocka_unit_test(test_causes_beyond_those_shown_are_summed_up),
		cmocka_unit_test(test_a_wait_that_two_spans_share_is_explained_once),
		cmocka_unit_test(test_a_cause_of_many_stretches_adds_up),
		cmocka_unit_test(test_a_go_program_has_the_threads_that_lived_in_the_time),
		cmocka_unit_test(test_colours_are_only_where_they_are_asked_for),
		cmocka_unit_test(test_json_tells_each_cause_with_its_chain),
		cmocka_unit_test(test_json_of_a_thread_in_a_window_has_no_span),
		cmocka_unit_test(test_spans_are_asked_for_by_name_or_id),
		cmocka_unit_test(
			test_a_thread_is_asked_for_by_number_or_name_and_within_the_capture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
