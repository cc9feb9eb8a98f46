// SPDX-License-Identifier: Apache-2.0
/* Samples of running time: what they say of a cause, and that they change no duration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "analyze/why/lookup/why_phases_internal.h"
#include "analyze/why/why_aggregate.h"
#include "render/json/samples_json.h"
#include "render/text/samples_text_internal.h"
#include "util/json.h"
#include "why_capture.h"

static void sample(struct capture *capture, uint64_t ts, uint32_t tid, uint32_t kernel,
		   uint32_t user, int syscall)
{
	capture_add(capture, &(struct waffle_rec_sample){.rec = {ts, tid, WAFFLE_REC_SAMPLE, 1},
							 .kernel_stack = kernel,
							 .user_stack = user,
							 .syscall = syscall,
							 .flags = kernel ? WAFFLE_SAMPLE_KERNEL : 0,
							 .period_ns = 1000});
}

/* Adds a function of the process, of that source. Names of Python need no file that has them. */
static uint64_t function_of(struct capture *capture, uint64_t number, const char *function,
			    const char *source)
{
	struct store_name name = {.pid = CAPTURE_PID, .value = STORE_NAMED | number};
	struct error err = ERROR_INIT;
	char text[128];

	snprintf(text, sizeof(text), "%s (%s:%d)", function, source, 7);
	name.name = text;
	capture_must(store_writer_add_name(capture->writer, &name, &err), err);
	return name.value;
}

static uint64_t function_add(struct capture *capture, uint64_t number, const char *function)
{
	return function_of(capture, number, function, "/srv/app.py");
}

/* Adds a stack of functions, innermost first. */
static void stack_add(struct capture *capture, const uint64_t *functions, uint32_t count)
{
	struct store_stack stack = {.addresses = functions, .count = count, .pid = CAPTURE_PID};
	struct error err = ERROR_INIT;

	capture_must(store_writer_add_stack(capture->writer, &stack, &err), err);
}

static void user_stack(struct capture *capture, uint64_t number, const char *function)
{
	uint64_t address = function_add(capture, number, function);

	stack_add(capture, &address, 1);
}

static const struct sample_place *place(const struct why *why, const struct why_part *part,
					uint32_t at, uint32_t count)
{
	assert_true(at < part->place_count);
	assert_int_equal(why->places.data[part->place + at].count, count);
	return sample_places_get(why->sample_places, why->places.data[part->place + at].place);
}

static void check_text(const struct why *why, const struct why_part *part, const char *expected)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	samples_print(out, why->sample_places, why_part_places(why, part), part->place_count, 2);
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
}

/* Loads a capture that ends at 102000, and asks with the names of its functions. */
static struct why *ask_named(struct capture *capture, struct stack_names **names,
			     struct why_query query)
{
	struct error err = ERROR_INIT;
	struct why *why;

	capture_load(capture, 102000);
	*names = stack_names_open(capture->reader, false);
	query.names = *names;
	capture_must(why_new(&why, capture->model, &query, &err), err);
	return why;
}

/* Thread 10 runs a span from 1000 to 101000. `count` samples have the first `stacks` stacks in
 * turn. */
static struct why *ask_sampled(struct capture *capture, struct stack_names **names, int count,
			       int stacks)
{
	gets(capture, 1000, 1, 0, 10, 0, 0, 0);
	capture_span(capture, 1000, 10, 1);
	for (int i = 0; i < count; i++)
		sample(capture, 2000 + (uint64_t)i * 100, 10, 0, 1 + (uint32_t)(i % stacks), -1);
	capture_end(capture, 101000, 10, 1);
	return ask_named(capture, names, (struct why_query){.span_id = 1});
}

/* Thread 10 runs a span from 1000 to 101000. `count` samples: 7 of 10 in its own code. */
static struct why *sampled_in(const char *function, struct capture *capture,
			      struct stack_names **names, int count)
{
	capture_begin(capture, true);
	user_stack(capture, 1, function);
	kernel_stack(capture, 0xffffffff81000000, "vfs_write");
	gets(capture, 1000, 1, 0, 10, 0, 0, 0);
	capture_span(capture, 1000, 10, 1);
	for (int i = 0; i < count; i++)
		sample(capture, 2000 + (uint64_t)i * 100, 10, i % 10 < 7 ? 0 : 2, 1,
		       i % 10 < 7 ? -1 : NR_WRITE);
	capture_end(capture, 101000, 10, 1);
	sample(capture, 101500, 10, 0, 1, -1); /* taken outside of any span */
	return ask_named(capture, names, (struct why_query){.span_id = 1});
}

static struct why *sampled(struct capture *capture, struct stack_names **names, int count)
{
	return sampled_in("gemm_kernel", capture, names, count);
}

static void end(struct capture *capture, struct stack_names *names, struct why *why)
{
	why_free(why);
	stack_names_close(names);
	capture_free(capture);
}

/* Loads a capture with one span, and explains that. end() frees the names. */
static struct why *ask_with_names(struct capture *capture, uint64_t end_ts,
				  struct stack_names **names)
{
	struct why_query query = {.span_id = 1};
	struct error err = ERROR_INIT;
	struct why *why;

	capture_load(capture, end_ts);
	*names = stack_names_open(capture->reader, false);
	query.names = *names;
	capture_must(why_new(&why, capture->model, &query, &err), err);
	return why;
}

static void test_samples_name_the_code_of_a_cause_and_change_no_duration(void **state)
{
	struct capture capture;
	struct stack_names *names;
	struct why *why = sampled(&capture, &names, 50);
	const struct why_part *part = &why->parts.data[why->instances.data[0].part];
	const struct sample_place *code, *call;

	(void)state;
	assert_int_equal(part->cause, WHY_RUNNING);
	assert_int_equal(part->ns, 100000);
	assert_int_equal(why->instances.data[0].running_ns, 100000);
	code = place(why, part, 0, 35);
	assert_string_equal(strtab_get(why->texts, code->text), "gemm_kernel (app.py)");
	assert_false(code->kernel);
	call = place(why, part, 1, 15);
	assert_true(call->kernel && call->syscall == NR_WRITE && !call->text);
	assert_int_equal(part->place_count, 2);
	check_text(
		why, part,
		"  running: 70 % gemm_kernel (app.py), user; 30 % kernel, write() (50 samples)\n");
	end(&capture, names, why);
}

/* Of 100 samples, 60 are in page faults. The record says that these took the first 60 us, but they
 * were all over the time. */
static void test_samples_in_page_faults_belong_to_the_faults(void **state)
{
	const char *const fault[] = {"clear_page_erms", "handle_mm_fault", "exc_page_fault"};
	struct waffle_rec_fault rec = {.rec = {100500, 10, WAFFLE_REC_FAULT, 1},
				       .from_ts = 1000,
				       .total_ns = 58000,
				       .count = 4};
	struct stack_names *names;
	const struct why_part *part;
	struct capture capture;
	struct why *why;
	uint64_t stack[2];

	(void)state;
	capture_begin(&capture, true);
	stack[0] = function_add(&capture, 1, "fill");
	stack[1] = function_add(&capture, 2, "run_query");
	stack_add(&capture, stack, 2);
	kernel_stack_of(&capture, 0xffffffff81000000, fault, 3);
	gets(&capture, 1000, 1, 0, 10, 0, 0, 0);
	capture_span(&capture, 1000, 10, 1);
	for (int i = 0; i < 100; i++)
		sample(&capture, 1100 + (uint64_t)i * 990, 10, i % 5 < 3 ? 2 : 0, 1, -1);
	capture_add(&capture, &rec);
	capture_end(&capture, 101000, 10, 1);
	why = ask_with_names(&capture, 102000, &names);
	part = &why->parts.data[why->instances.data[0].part];
	assert_int_equal(part[0].cause, WHY_PAGE_FAULT_MINOR);
	assert_int_equal(part[0].ns, 60000);
	check_text(
		why, &part[0],
		"  running: 100 % kernel, page fault; 100 % within fill (app.py) (60 samples)\n");
	assert_int_equal(part[1].cause, WHY_RUNNING);
	check_text(why, &part[1], "  running: 100 % fill (app.py), user (40 samples)\n");
	end(&capture, names, why);
}

static void test_places_that_a_line_has_no_room_for_are_left_out(void **state)
{
	static const char name[] =
		"a_function_whose_name_is_as_long_as_those_of_templates_often_are";
	struct capture capture;
	struct stack_names *names;
	struct why *why = sampled_in(name, &capture, &names, 50);
	const struct why_part *part = &why->parts.data[why->instances.data[0].part];
	char expected[200];

	(void)state;
	snprintf(expected, sizeof(expected), "  running: 70 %% %.59s… (50 samples)\n", name);
	check_text(why, part, expected);
	end(&capture, names, why);
}

#define PACKAGES "/srv/venv/lib/python3.11/site-packages/"

/* Python's own library works for a package. `main` is the source of the program's main(). */
static void check_from(const char *main, const char *expected)
{
	struct stack_names *names;
	struct capture capture;
	struct why *why;
	uint64_t stack[4];

	capture_begin(&capture, true);
	stack[0] = function_of(&capture, 1, "realpath", "<frozen posixpath>");
	stack[1] = function_of(&capture, 2, "scan", PACKAGES "web/reload.py");
	stack[2] = function_of(&capture, 3, "serve", PACKAGES "web/server.py");
	stack[3] = function_of(&capture, 4, "main", main);
	stack_add(&capture, stack, 4);
	why = ask_sampled(&capture, &names, 50, 1);
	check_text(why, &why->parts.data[why->instances.data[0].part], expected);
	end(&capture, names, why);
}

static void test_without_own_functions_that_of_a_package_is_named(void **state)
{
	(void)state;
	check_from("/srv/venv/bin/web", "  running: 100 % realpath (<frozen posixpath>), user; "
					"from scan (reload.py) (50 samples)\n");
	check_from("/srv/app.py", "  running: 100 % realpath (<frozen posixpath>), user; "
				  "from main (app.py) (50 samples)\n");
}

/* One of `leaves` functions runs at a time. serve() calls parse() for `parses` of them, render()
 * for `renders`, and calls the others itself. */
static void check_within(int leaves, int parses, int renders, const char *expected, uint32_t within)
{
	struct stack_names *names;
	struct capture capture;
	struct why *why;
	const struct why_part *part;
	const struct sample_count *found;
	uint64_t serve, parse, render;

	capture_begin(&capture, true);
	serve = function_add(&capture, 101, "serve");
	parse = function_add(&capture, 102, "parse");
	render = function_add(&capture, 103, "render");
	for (int i = 0; i < leaves; i++) {
		char name[24];
		uint64_t stack[4] = {0,
				     i < parses             ? parse
				     : i < parses + renders ? render
							    : serve,
				     serve, serve};

		snprintf(name, sizeof(name), "leaf_%d", i);
		stack[0] = function_add(&capture, (uint64_t)i + 1, name);
		stack_add(&capture, stack, 4);
	}
	why = ask_sampled(&capture, &names, 100, leaves);
	part = &why->parts.data[why->instances.data[0].part];
	check_text(why, part, expected);
	found = sample_counts_within(why->sample_places, why_part_places(why, part),
				     part->place_count);
	assert_int_equal(found ? found->within : 0, within);
	end(&capture, names, why);
}

static void test_samples_of_many_places_name_the_function_that_they_are_within(void **state)
{
	(void)state;
	check_within(4, 3, 1,
		     "  running: 25 % leaf_0 (app.py), user; "
		     "75 % within parse (app.py) (100 samples)\n",
		     75);
	check_within(5, 2, 3,
		     "  running: 20 % leaf_0 (app.py), user; "
		     "60 % within render (app.py) (100 samples)\n",
		     60);
	/* No place has a share that is worth a line. */
	check_within(50, 24, 26, "  running: 50 % within render (app.py) (100 samples)\n", 52);
	/* The first place is that function. */
	check_within(1, 1, 0, "  running: 100 % leaf_0 (app.py), user (100 samples)\n", 0);
}

/* All is within serve(), which says little. */
static void test_of_scattered_samples_a_part_is_named_too(void **state)
{
	(void)state;
	check_within(10, 3, 4,
		     "  running: 10 % leaf_0 (app.py), user; 100 % within serve (app.py), "
		     "40 % within render (app.py) (100 samples)\n",
		     100);
	/* Too few of them. */
	check_within(10, 2, 2,
		     "  running: 10 % leaf_0 (app.py), user; "
		     "100 % within serve (app.py) (100 samples)\n",
		     100);
	/* A place shows it already. */
	check_within(3, 0, 0,
		     "  running: 35 % leaf_0 (app.py), user; "
		     "100 % within serve (app.py) (100 samples)\n",
		     100);
}

/* `collects` of 10 samples have a function of a collector on their stacks, below others. */
static void check_collected(int collects, const char *collector, const char *expected)
{
	struct stack_names *names;
	struct capture capture;
	struct why *why;
	const struct why_part *part;
	uint64_t leaf, other, stack[2];

	capture_begin(&capture, true);
	leaf = function_add(&capture, 1, "mark");
	other = function_add(&capture, 2, "work");
	stack[0] = leaf;
	stack[1] = function_add(&capture, 3, collector);
	stack_add(&capture, stack, 2);
	stack_add(&capture, &other, 1);
	gets(&capture, 1000, 1, 0, 10, 0, 0, 0);
	capture_span(&capture, 1000, 10, 1);
	for (int i = 0; i < 100; i++)
		sample(&capture, 2000 + (uint64_t)i * 100, 10, 0, i % 10 < collects ? 1 : 2, -1);
	capture_end(&capture, 101000, 10, 1);
	why = ask_named(&capture, &names, (struct why_query){.span_id = 1});
	part = &why->parts.data[why->instances.data[0].part];
	check_text(why, part, expected);
	end(&capture, names, why);
}

static void test_the_share_of_garbage_collection_is_told(void **state)
{
	(void)state;
	check_collected(4, "runtime.gcAssistAlloc1",
			"  running: 60 % work (app.py), user; 40 % in the garbage collection of Go "
			"(100 samples)\n");
	check_collected(3, "v8::internal::Scavenger::Process(v8::JobDelegate*)",
			"  running: 70 % work (app.py), user; 30 % in the garbage collection of V8 "
			"(100 samples)\n");
	/* It allocates, or waits until the world has stopped. */
	check_collected(
		4, "runtime.mallocgc",
		"  running: 60 % work (app.py), user; 40 % mark (app.py), user (100 samples)\n");
	check_collected(
		4, "runtime.gcstopm",
		"  running: 60 % work (app.py), user; 40 % mark (app.py), user (100 samples)\n");
}

static void test_the_memory_that_tracemalloc_takes_notes_of_is_told(void **state)
{
	(void)state;
	check_collected(9, "tracemalloc_alloc",
			"  running: 90 % mark (app.py), user; 10 % work (app.py), user; "
			"90 % in tracemalloc (100 samples)\n");
}

/* Functions of a stack, innermost first, and what they are of; NULL: of nothing known. */
static void check_phase(const char *module, const char *inner, const char *outer,
			const char *expected)
{
	const struct stack_frame frames[] = {{.function = inner, .module = module},
					     {.function = outer, .module = module}};
	const char *phase = NULL;

	phase_add(&phase, &frames[0]);
	phase_add(&phase, &frames[1]);
	if (expected)
		assert_string_equal(phase, expected);
	else
		assert_null(phase);
}

static void test_phases_of_the_jvm_are_told_by_what_they_are_for(void **state)
{
	static const char jvm[] = "/usr/lib/jvm/lib/server/libjvm.so";

	(void)state;
	check_phase(jvm, "ClassFileParser::parse_methods(ClassFileStream const*, bool)",
		    "JavaCalls::call_helper(JavaValue*)", "the loading of classes by the JVM");
	check_phase(jvm, "GenMarkSweep::mark_sweep_phase1(bool)", "VM_GenCollectFull::doit()",
		    "the garbage collection of the JVM");
	check_phase(jvm, "GenMarkSweep::mark_sweep_phase1(bool)", "VM_GC_HeapInspection::doit()",
		    "a heap histogram of the JVM, as jcmd and jmap ask for");
	/* Other programs have a class of that name. */
	check_phase("/usr/lib/libclang.so", "Rewriter::rewrite()", "main", NULL);
	check_phase(NULL, "Rewriter::rewrite()", "main", NULL);
}

static void test_phases_of_the_libraries_of_cxx_are_told_by_their_functions(void **state)
{
	(void)state;
	check_phase(NULL, "_Unwind_RaiseException", "__cxa_throw", "the throwing of exceptions");
	check_phase("/lib/libgcc_s.so.1", "_Unwind_Find_FDE", "_Unwind_Resume",
		    "the throwing of exceptions");
	check_phase("/lib/libgcc_s.so.1", "_Unwind_Find_FDE", "_Unwind_Backtrace", NULL);
	check_phase(NULL, "__dynamic_cast",
		    "bool std::__detail::_Compiler<std::__cxx11::regex_traits<char> >::"
		    "_M_expression_term<false, false>()",
		    "the construction of std::regex");
	check_phase(NULL, "__dynamic_cast", "bool std::__detail::__regex_algo_search<char>()",
		    NULL);
}

/* The main function of a program calls the loop of a library, or serves as a package does, and that
 * calls job() or wait() in half of the samples. */
static void check_called(const char *main_source, const char *job_source, const char *expected)
{
	static const char loop_source[] = "/usr/lib/python3.12/asyncio/events.py";
	struct stack_names *names;
	struct capture capture;
	struct why *why;
	uint64_t job, wait, loop, begin;

	capture_begin(&capture, true);
	begin = function_of(&capture, 101, "serve", main_source);
	loop = function_of(&capture, 102, "_run", loop_source);
	job = function_of(&capture, 103, "job", job_source);
	wait = function_of(&capture, 104, "wait", loop_source);
	for (uint64_t i = 0; i < 10; i++) {
		char name[24];
		uint64_t leaf;

		snprintf(name, sizeof(name), "leaf_%d", (int)i);
		leaf = function_of(&capture, i + 1, name, loop_source);
		if (i < 4)
			stack_add(&capture, (const uint64_t[]){leaf, wait, job, loop, begin}, 5);
		else
			stack_add(&capture, (const uint64_t[]){leaf, loop, begin}, 3);
	}
	why = ask_sampled(&capture, &names, 100, 10);
	check_text(why, &why->parts.data[why->instances.data[0].part], expected);
	end(&capture, names, why);
}

static void test_of_a_library_that_calls_the_program_the_programs_function_is_named(void **state)
{
	(void)state;
	check_called("/srv/main.py", "/srv/jobs/job.py",
		     "  running: 10 % leaf_0 (events.py), user; 100 % within _run (events.py), "
		     "from serve (main.py), 40 % within job (job.py) (100 samples)\n");
	/* It is below the program's folder, but no part of the program. */
	check_called("/srv/main.py", "/srv/venv/lib/site-packages/jobs/job.py",
		     "  running: 10 % leaf_0 (events.py), user; 100 % within _run (events.py), "
		     "from serve (main.py), 40 % within wait (events.py) (100 samples)\n");
}

static void test_a_program_that_is_an_installed_package_is_named(void **state)
{
	(void)state;
	check_called("/srv/venv/lib/python3.12/site-packages/web/main.py",
		     "/usr/lib/python3.12/json.py",
		     "  running: 10 % leaf_0 (events.py), user; 100 % within _run (events.py), "
		     "from serve (main.py), 40 % within wait (events.py) (100 samples)\n");
	check_called("/usr/lib/python3.12/http.py", "/usr/lib/python3.12/json.py",
		     "  running: 10 % leaf_0 (events.py), user; 100 % within _run (events.py), "
		     "40 % within wait (events.py) (100 samples)\n");
}

/* The place of the samples has the name of the function already. */
static void test_the_function_of_the_first_place_is_not_named_again(void **state)
{
	struct capture capture;
	struct stack_names *names;
	struct why *why = sampled_in("spin_lock", &capture, &names, 50);
	const struct why_part *part = &why->parts.data[why->instances.data[0].part];

	(void)state;
	check_text(why, part,
		   "  running: 70 % spin_lock (app.py), user, spins for a lock; "
		   "30 % kernel, write() (50 samples)\n");
	end(&capture, names, why);
}

static void test_few_samples_say_nothing(void **state)
{
	struct capture capture;
	struct stack_names *names;
	struct why *why = sampled(&capture, &names, SAMPLE_COUNT_MIN - 1);
	const struct why_part *part = &why->parts.data[why->instances.data[0].part];

	(void)state;
	assert_int_equal(part->place_count, 2);
	check_text(why, part, "");
	end(&capture, names, why);
}

static void test_without_samples_there_are_none(void **state)
{
	struct capture capture;
	struct stack_names *names;
	struct why *why = sampled(&capture, &names, 0);

	(void)state;
	assert_int_equal(why->parts.data[0].place_count, 0);
	assert_null(why->sample_places);
	check_text(why, &why->parts.data[0], "");
	end(&capture, names, why);
}

/* The code of a lock's holder, which runs while the span waits. */
static void test_the_holder_of_a_lock_has_the_samples_of_its_own_running(void **state)
{
	struct stack_names *names;
	struct capture capture;
	const struct why_part *part;
	struct why *why;

	(void)state;
	capture_begin(&capture, true);
	user_stack(&capture, 1, "decode");
	gets(&capture, 1000, 1, 0, 10, 0, 0, 0);
	gets(&capture, 1000, 2, 0, 11, 0, 0, 0);
	capture_span(&capture, 1000, 10, 1);
	waits(&capture, 1000, 1, 10, 0, S, NR_FUTEX, 0x7000, FUTEX_MUTEX, 2);
	for (int i = 0; i < 20; i++)
		sample(&capture, 2000 + (uint64_t)i * 1000, 11, 0, 1, -1);
	gets(&capture, 31000, 1, 0, 10, 11, 31000, 0);
	for (int i = 0; i < 5; i++) /* after the wait */
		sample(&capture, 32000 + (uint64_t)i * 1000, 11, 0, 1, -1);
	capture_end(&capture, 41000, 10, 1);
	why = ask_with_names(&capture, 42000, &names);
	part = &why->parts.data[0];
	assert_int_equal(part->cause, WHY_LOCK);
	place(why, part, 0, 20);
	assert_int_equal(part->place_count, 1);
	assert_int_equal(why->parts.data[1].cause, WHY_RUNNING);
	assert_int_equal(why->parts.data[1].place_count, 0);
	end(&capture, names, why);
}

/* The code of a thread that has the CPU for which the span waits. */
static void test_who_has_the_cpu_has_the_samples_of_its_own_running(void **state)
{
	struct stack_names *names;
	struct capture capture;
	const struct why_part *part;
	struct why *why;

	(void)state;
	capture_begin(&capture, true);
	user_stack(&capture, 1, "decode");
	gets(&capture, 1000, 1, 0, 10, 0, 0, 0);
	capture_span(&capture, 1500, 10, 1);
	gets(&capture, 2000, 1, 10, 11, 0, 0, 0);
	for (int i = 0; i < 20; i++)
		sample(&capture, 3000 + (uint64_t)i * 1000, 11, 0, 1, -1);
	gets(&capture, 31000, 1, 11, 10, 0, 0, 0);
	sample(&capture, 32000, 11, 0, 1, -1); /* the span does not wait then */
	capture_end(&capture, 41000, 10, 1);
	why = ask_with_names(&capture, 42000, &names);
	part = &why->parts.data[0];
	assert_int_equal(part->cause, WHY_CPU_CONTENTION);
	place(why, part, 0, 20);
	assert_int_equal(part->place_count, 1);
	end(&capture, names, why);
}

static void test_the_causes_of_all_spans_of_a_name_have_the_samples_of_all(void **state)
{
	struct why_aggregate_options options = {0};
	const struct why_group_cause *cause;
	struct why_aggregate *aggregate;
	struct error err = ERROR_INIT;
	struct capture capture;

	(void)state;
	capture_begin(&capture, true);
	gets(&capture, 1000, 1, 0, 10, 0, 0, 0);
	for (uint64_t i = 0; i < 4; i++) {
		capture_span(&capture, 1000 + i * 20000, 10, i + 1);
		for (uint64_t k = 0; k < 3; k++)
			sample(&capture, 2000 + i * 20000 + k * 1000, 10, 0, 0, -1);
		capture_end(&capture, 11000 + i * 20000, 10, i + 1);
	}
	capture_load(&capture, 102000);
	options.names = stack_names_open(capture.reader, false);
	capture_must(why_aggregate_new(&aggregate, capture.model, &options, &err), err);
	cause = &why_aggregate_group(aggregate, SITE_STEP)->causes.data[0];
	assert_int_equal(cause->total_ns, 40000);
	assert_int_equal(sample_counts_total(cause->places.data, cause->places.len), 12);
	assert_int_equal(cause->places.len, 1);
	why_aggregate_free(aggregate);
	stack_names_close(options.names);
	capture_free(&capture);
}

/* ---- generated code ---- */

/* `generator` NULL: the JSON has none. */
static void check_generator(const struct why *why, const struct why_part *part,
			    const char *generator)
{
	char *text = NULL, field[64];
	size_t len;
	FILE *out = open_memstream(&text, &len);
	struct json *json = json_new(out, false);

	json_object_begin(json);
	samples_json(json, why, why_part_places(why, part), part->place_count);
	json_object_end(json);
	assert_int_equal(json_close(json), 0);
	fclose(out);
	snprintf(field, sizeof(field), "\"generator\":\"%s\"", generator ?: "");
	assert_int_equal(strstr(text, generator ? field : "generator") != NULL, generator != NULL);
	free(text);
}

static void check_unnamed(const char *path, uint64_t address, const char *generator,
			  const char *expected)
{
	const struct why_query query = {.tid = 10, .from_ts = 1000, .to_ts = 101000};
	struct stack_names *names;
	struct capture capture;
	struct why *why;

	capture_begin(&capture, true);
	stack_add(&capture, &address, 1);
	mapping(&capture, 0x7f0000100000, 0x7f0000200000, path);
	mapping(&capture, 0x7f0000800000, 0x7f0000900000, "/lib/ld-linux-x86-64.so.2");
	gets(&capture, 1000, 1, 0, 10, 0, 0, 0);
	for (unsigned i = 0; i < 100; i++)
		sample(&capture, 2000 + (uint64_t)i * 100, 10, 0, 1, -1);
	why = ask_named(&capture, &names, query);
	check_text(why, part_of(why, 0), expected);
	check_generator(why, part_of(why, 0), generator);
	end(&capture, names, why);
}

static void test_code_in_no_file_may_be_that_of_a_run_time(void **state)
{
	static const char jvm[] = "  running: 100 % code in no known file, as the JVM generates, "
				  "user (100 samples)\n";
	static const char node[] = "  running: 100 % code in no known file, as Node.js generates, "
				   "user (100 samples)\n";
	static const char unknown[] = "  running: 100 % unknown code, user (100 samples)\n";

	(void)state;
	check_unnamed("/usr/lib/jvm/lib/server/libjvm.so", 0x7f0000050000, "the JVM", jvm);
	check_unnamed("/usr/lib/x86_64-linux-gnu/libnode.so.108", 0x7f0000050000, "Node.js", node);
	check_unnamed("/usr/bin/node_exporter", 0x7f0000050000, NULL, unknown);
	check_unnamed("/usr/lib/libfoo.so", 0x7f0000050000, NULL, unknown);
	/* Above all files, where the vDSO is. */
	check_unnamed("/usr/lib/jvm/lib/server/libjvm.so", 0x7fff00001000, NULL, unknown);
	check_unnamed("/usr/lib/jvm/lib/server/libjvm.so", 0x7f0000180000, NULL,
		      "  running: 100 % libjvm.so without names, user (100 samples)\n");
}

static void check_jvm(const char *path, bool expected)
{
	struct stack_names *names;
	struct capture capture;

	capture_begin(&capture, true);
	mapping(&capture, 0x7f0000000000, 0x7f0000100000, "/usr/bin/node");
	mapping(&capture, 0x7f0000100000, 0x7f0000200000, path);
	capture_load(&capture, 102000);
	names = stack_names_open(capture.reader, false);
	assert_int_equal(stack_names_has_jvm(names, CAPTURE_PID), expected);
	assert_false(stack_names_has_jvm(names, CAPTURE_PID + 1));
	assert_false(stack_names_has_jvm(NULL, CAPTURE_PID));
	stack_names_close(names);
	capture_free(&capture);
}

static void test_the_jvm_is_known_by_its_library(void **state)
{
	(void)state;
	check_jvm("/usr/lib/jvm/lib/server/libjvm.so", true);
	check_jvm("/usr/lib/libjvmtools.so", false);
}

/* ---- signals ---- */

/* Thread 10 runs from 1000 to 101000, and a timer or thread 60 sends it `count` signals. */
static struct why_signals signals_of(uint32_t count, int32_t code, bool alone)
{
	struct why_signals signals;
	struct error err = ERROR_INIT;
	struct capture capture;
	struct why *why;

	capture_begin(&capture, true);
	if (!alone)
		capture_task(&capture, 1000, 11, 10, "other");
	capture_task(&capture, 1000, 10, 10, "worker");
	gets(&capture, 1000, 1, 0, 10, 0, 0, 0);
	capture_span(&capture, 1000, 10, 1);
	for (uint32_t i = 0; i < count; i++) {
		struct waffle_rec_signal rec = {
			.rec = {2000 + i, i ? 10 : 60, WAFFLE_REC_SIGNAL, 1},
			.target_tid = 10,
			.target_tgid = 10,
			.signo = i == 3 ? 10 : 14,
			.code = code,
		};

		capture_add(&capture, &rec);
	}
	capture_end(&capture, 101000, 10, 1);
	capture_load(&capture, 102000);
	capture_must(why_new(&why, capture.model, &(struct why_query){.span_id = 1}, &err), err);
	signals = why->parts.data[why->instances.data[0].part].signals;
	why_free(why);
	capture_free(&capture);
	return signals;
}

static void test_many_signals_are_counted_if_it_is_known_who_got_them(void **state)
{
	struct why_signals signals = signals_of(109, -2 /* SI_TIMER */, true);

	(void)state;
	assert_true(signals.count == 108 && signals.signo == 14 && signals.timer);
	signals = signals_of(109, 0, true);
	assert_true(signals.count == 108 && !signals.timer);
	assert_int_equal(signals_of(9, -2, true).count, 0);
	assert_int_equal(signals_of(109, -2, false).count, 0);
}

/* ---- spinning ---- */

/* The first stack: the functions of the list, innermost first. */
static void user_stacks(struct capture *capture, const char *list)
{
	char text[128], *state = NULL, *word;
	uint64_t addresses[4];
	uint32_t count = 0;

	snprintf(text, sizeof(text), "%s", list);
	for (word = strtok_r(text, " ", &state); word; word = strtok_r(NULL, " ", &state)) {
		addresses[count] = function_add(capture, count + 1, word);
		count++;
	}
	stack_add(capture, addresses, count);
}

static void check_spin(const char *kernel, const char *user, uint8_t spin, int syscall)
{
	struct stack_names *names;
	struct sample_places *places;
	struct strtab *texts = strtab_new();
	sample_counts counts = {0};
	struct capture capture;

	capture_begin(&capture, true);
	user_stacks(&capture, user);
	kernel_stack(&capture, 0xffffffff81000000, kernel ? kernel : "none");
	capture_task(&capture, 1000, 10, 1, "worker");
	sample(&capture, 2000, 10, kernel ? 2 : 0, 1, syscall);
	capture_load(&capture, 102000);
	names = stack_names_open(capture.reader, false);
	strtab_add(texts, "", 0);
	places = sample_places_new(capture.model, names, texts);
	sample_counts_add_samples(&counts, places, 0, 1);
	if (sample_places_get(places, counts.data[0].place)->spin != spin)
		fail_msg("%s", kernel ? kernel : user);
	vec_free(&counts);
	sample_places_free(places);
	strtab_free(texts);
	stack_names_close(names);
	capture_free(&capture);
}

static void test_spinning_is_what_a_function_shows(void **state)
{
	(void)state;
	check_spin(NULL, "pthread_spin_lock", SAMPLE_SPIN_USER, -1);
	check_spin(NULL, "my_spinlock_acquire", SAMPLE_SPIN_USER, -1);
	check_spin(NULL, "absl::base_internal::SpinLock::SpinLoop", SAMPLE_SPIN_USER, -1);
	check_spin(NULL, "runtime.procyield", SAMPLE_SPIN_USER, -1);
	check_spin(NULL, "pthread_spin_unlock", SAMPLE_SPIN_NONE, -1);
	check_spin(NULL, "pthread_mutex_lock", SAMPLE_SPIN_NONE, -1);
	check_spin(NULL, "spin", SAMPLE_SPIN_NONE, -1);
	check_spin("rtmutex_spin_on_owner", "main", SAMPLE_SPIN_PI, NR_FUTEX);
	check_spin("rt_mutex_slowlock_block.constprop.0", "main", SAMPLE_SPIN_PI, NR_FUTEX);
	check_spin("osq_lock", "main", SAMPLE_SPIN_KERNEL, NR_WRITE);
	check_spin("rwsem_spin_on_owner", "main", SAMPLE_SPIN_KERNEL, -1);
	check_spin("native_queued_spin_lock_slowpath", "main", SAMPLE_SPIN_KERNEL_SPIN, NR_WRITE);
	check_spin("mutex_lock", "main", SAMPLE_SPIN_NONE, NR_WRITE);
	/* In the kernel the program's function does not count. */
	check_spin("vfs_write", "pthread_spin_lock", SAMPLE_SPIN_NONE, NR_WRITE);
}

static void check_kernel(const char *function, const char *text)
{
	struct stack_names *names;
	struct sample_places *places;
	struct strtab *texts = strtab_new();
	sample_counts counts = {0};
	struct capture capture;
	char *found;

	capture_begin(&capture, true);
	user_stacks(&capture, "work");
	kernel_stack(&capture, 0xffffffff81000000, function);
	capture_task(&capture, 1000, 10, 1, "worker");
	sample(&capture, 2000, 10, 2, 1, -1);
	capture_load(&capture, 102000);
	names = stack_names_open(capture.reader, false);
	strtab_add(texts, "", 0);
	places = sample_places_new(capture.model, names, texts);
	sample_counts_add_samples(&counts, places, 0, 1);
	found = sample_place_text(places, counts.data[0].place);
	assert_string_equal(found, text);
	free(found);
	vec_free(&counts);
	sample_places_free(places);
	strtab_free(texts);
	stack_names_close(names);
	capture_free(&capture);
}

static void test_the_kernel_outside_of_system_calls_is_told_by_its_functions(void **state)
{
	(void)state;
	check_kernel("asm_exc_page_fault", "kernel, page fault");
	check_kernel("sysvec_apic_timer_interrupt", "kernel, interrupt");
	check_kernel("arch_do_signal_or_restart", "kernel, signals");
	check_kernel("get_signal", "kernel, signals");
	check_kernel("__do_sys_rt_sigreturn", "kernel, signals");
	check_kernel("schedule", "kernel, schedule");
}

static void test_futexes_of_the_allocator_are_what_the_functions_around_them_show(void **state)
{
	(void)state;
	check_spin("futex_wake", "malloc", SAMPLE_SPIN_ALLOCATOR, NR_FUTEX);
	check_spin("futex_wait", "_int_free.part.0", SAMPLE_SPIN_ALLOCATOR, NR_FUTEX);
	check_spin("futex_wait", "__GI___libc_free", SAMPLE_SPIN_ALLOCATOR, NR_FUTEX);
	check_spin("futex_wait", "__GI___lll_lock_wait_private malloc parse", SAMPLE_SPIN_ALLOCATOR,
		   NR_FUTEX);
	check_spin("futex_wait", "__lll_lock_wait_private fputs malloc", SAMPLE_SPIN_NONE,
		   NR_FUTEX);
	check_spin("futex_wait", "pool_malloc", SAMPLE_SPIN_NONE, NR_FUTEX);
	check_spin("futex_wait", "pthread_mutex_lock", SAMPLE_SPIN_NONE, NR_FUTEX);
	check_spin("vfs_write", "malloc", SAMPLE_SPIN_NONE, NR_WRITE);
	check_spin(NULL, "malloc", SAMPLE_SPIN_NONE, -1);
}

static void test_percentages_are_as_exact_as_their_samples(void **state)
{
	(void)state;
	assert_int_equal(sample_percent(7, 10), 70);
	assert_int_equal(sample_percent(37, 99), 40);
	assert_int_equal(sample_percent(38, 100), 40);
	assert_int_equal(sample_percent(37, 100), 35);
	assert_int_equal(sample_percent(714, 1000), 71);
	assert_int_equal(sample_percent(1, 1000), 0);
	assert_int_equal(sample_percent(1000, 1000), 100);
	assert_int_equal(sample_percent(0, 0), 0);
	assert_int_equal(sample_percent(UINT32_MAX, UINT32_MAX), 100);
}

/* More places than a list joins at once. */
static void test_counts_of_many_places_add_up(void **state)
{
	sample_counts counts = {0};

	(void)state;
	for (uint32_t i = 0; i < 100000; i++)
		sample_counts_add(&counts, &(struct sample_count){.place = i * 7919 % 1000,
								  .count = 1 + i * 7919 % 1000});
	assert_true(counts.len < 10000);
	sample_counts_finish(&counts);
	assert_int_equal(counts.len, 1000);
	for (uint32_t i = 0; i < counts.len; i++) {
		assert_int_equal(counts.data[i].place, 999 - i);
		assert_int_equal(counts.data[i].count, 100 * (1000 - i));
	}
	vec_free(&counts);
}

/* The caller of CUDA's functions, some of which may be in the program's own file, is the program's.
 * Names of Java need no file that has them, and no source. */
static void test_caller_of_cuda_is_named_in_a_program_without_python(void **state)
{
	static const char *const functions[] = {
		STORE_JVM "cuMem.alloc", STORE_JVM "libcudart_static_4d.x",
		STORE_JVM "cudaHost.alloc", STORE_JVM "tallow.frame", STORE_JVM "tallow.produce"};
	struct error err = ERROR_INIT;
	struct stack_names *names;
	struct capture capture;
	uint64_t stack[5];
	struct why *why;

	(void)state;
	capture_begin(&capture, true);
	for (uint32_t i = 0; i < 5; i++) {
		struct store_name name = {
			.pid = CAPTURE_PID, .value = STORE_NAMED | (i + 1), .name = functions[i]};

		capture_must(store_writer_add_name(capture.writer, &name, &err), err);
		stack[i] = name.value;
	}
	stack_add(&capture, stack, 5);
	kernel_stack(&capture, 0xffffffff81000000, "vfs_ioctl");
	gets(&capture, 1000, 1, 0, 10, 0, 0, 0);
	capture_span(&capture, 1000, 10, 1);
	for (int i = 0; i < 50; i++)
		sample(&capture, 2000 + (uint64_t)i * 100, 10, 2, 1, NR_IOCTL);
	capture_end(&capture, 101000, 10, 1);
	why = ask_with_names(&capture, 102000, &names);
	check_text(why, &why->parts.data[why->instances.data[0].part],
		   "  running: 100 % kernel, ioctl(); 100 % within cuMem.alloc, from tallow.frame "
		   "(50 samples)\n");
	end(&capture, names, why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_caller_of_cuda_is_named_in_a_program_without_python),
		cmocka_unit_test(test_samples_name_the_code_of_a_cause_and_change_no_duration),
		cmocka_unit_test(test_samples_in_page_faults_belong_to_the_faults),
		cmocka_unit_test(test_places_that_a_line_has_no_room_for_are_left_out),
		cmocka_unit_test(
			test_samples_of_many_places_name_the_function_that_they_are_within),
		cmocka_unit_test(test_without_own_functions_that_of_a_package_is_named),
		cmocka_unit_test(test_of_scattered_samples_a_part_is_named_too),
		cmocka_unit_test(test_the_share_of_garbage_collection_is_told),
		cmocka_unit_test(test_the_memory_that_tracemalloc_takes_notes_of_is_told),
		cmocka_unit_test(test_phases_of_the_jvm_are_told_by_what_they_are_for),
		cmocka_unit_test(test_phases_of_the_libraries_of_cxx_are_told_by_their_functions),
		cmocka_unit_test(
			test_of_a_library_that_calls_the_program_the_programs_function_is_named),
		cmocka_unit_test(test_a_program_that_is_an_installed_package_is_named),
		cmocka_unit_test(test_the_function_of_the_first_place_is_not_named_again),
		cmocka_unit_test(test_few_samples_say_nothing),
		cmocka_unit_test(test_without_samples_there_are_none),
		cmocka_unit_test(test_the_holder_of_a_lock_has_the_samples_of_its_own_running),
		cmocka_unit_test(test_who_has_the_cpu_has_the_samples_of_its_own_running),
		cmocka_unit_test(test_the_causes_of_all_spans_of_a_name_have_the_samples_of_all),
		cmocka_unit_test(test_code_in_no_file_may_be_that_of_a_run_time),
		cmocka_unit_test(test_the_jvm_is_known_by_its_library),
		cmocka_unit_test(test_many_signals_are_counted_if_it_is_known_who_got_them),
		cmocka_unit_test(test_spinning_is_what_a_function_shows),
		cmocka_unit_test(test_the_kernel_outside_of_system_calls_is_told_by_its_functions),
		cmocka_unit_test(
			test_futexes_of_the_allocator_are_what_the_functions_around_them_show),
		cmocka_unit_test(test_percentages_are_as_exact_as_their_samples),
		cmocka_unit_test(test_counts_of_many_places_add_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
