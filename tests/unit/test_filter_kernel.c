// SPDX-License-Identifier: Apache-2.0
/*
 * The compiled filter against its definition: random expressions are made into programs that the
 * kernel verifies, translates and runs on random frames of this process; filter_eval() has to say
 * the same of each. Needs root. WAFFLE_SEED and WAFFLE_PAIRS, or the first argument, choose the
 * pseudo-random numbers and how many pairs of expression and record there are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include "filter/codegen/codegen.h"
#include "filter/eval.h"
#include "filter/filter.h"
#include "filter_machine.h"
#include "filter_random_expression.h"

#define PAIRS_DEFAULT 120000
#define PAIRS_ENOUGH 100000 /* for each field and operator to be there */
#define RECORDS 24          /* of one expression */
#define DURATIONS 3
#define DEFERRED_KEY 77ull

static const char *pairs_argument;

/* ---- one expression ---- */

struct totals {
	uint64_t pairs, known, programs, insns, load_ns, verdicts[3];
	uint64_t answers[2]; /* of filter_eval() when all is known */
	/* For each field and operator: numbers of records that made it false and true. */
	uint64_t asked[FILTER_FIELD_COUNT][FILTER_OP_COUNT][2];
};

struct trial {
	struct world world;
	struct machine machine;
	bool loads; /* the machine may load programs */
	struct filter_expr *filter;
	struct residual residual;
	struct filter_code hit_code, end_code;
	int hit, end; /* programs; -1: all is known at the site, or there is no duration in it */
	bool rest;    /* the end asks only what the hit has left open, as plan.c has it */
	struct waffle_open parents[PARENTS];
	const char *parent_names[PARENTS];
	struct random_frame frame;
	struct totals totals;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void parents_make(struct trial *trial)
{
	struct world *world = &trial->world;

	for (unsigned i = 0; i < PARENTS; i++) {
		struct site_info site = world->site;
		uint64_t id = PARENT_ID(i);

		site.name = trial->parent_names[i] = random_names[below(world, NAME_COUNT)];
		trial->parents[i] = (struct waffle_open){
			.name_bits = codegen_name_bits(trial->filter, &site),
			.depth = percent(world, 15) ? WAFFLE_DEPTH_UNKNOWN : below(world, 4),
		};
		assert_int_equal(
			bpf_map_update_elem(trial->machine.open, &id, &trial->parents[i], 0), 0);
	}
}

static void expression_parse(struct trial *trial)
{
	struct error err = ERROR_INIT;

	if (filter_parse(&trial->filter, "random", trial->world.source, &err))
		fail_msg("%s\n%s", trial->world.source, err.message);
}

static int code_make(struct trial *trial, struct filter_code *code, const struct residual *residual,
		     const struct codegen_options *options)
{
	uint64_t begin;
	int fd;

	assert_int_equal(codegen(code, trial->filter, residual, &trial->world.site, options), 0);
	begin = now_ns();
	fd = program_load(&trial->machine, BPF_PROG_TYPE_RAW_TRACEPOINT, code, trial->world.source);
	trial->totals.load_ns += now_ns() - begin;
	trial->totals.insns += code->insns.len;
	trial->totals.programs++;
	return fd;
}

static void trial_begin(struct trial *trial)
{
	enum filter_node_type root;
	struct residual rest;

	world_make(&trial->world);
	site_make(&trial->world);
	expression_make(&trial->world);
	expression_parse(trial);
	parents_make(trial);
	assert_true(residual_make(&trial->residual, trial->filter, &trial->world.site));
	root = trial->residual.nodes.data[trial->residual.nodes.len - 1].type;
	trial->hit = trial->end = -1;
	trial->hit_code = trial->end_code = (struct filter_code){0};
	if (root == FILTER_TRUE || root == FILTER_FALSE)
		return;
	trial->hit = code_make(trial, &trial->hit_code, &trial->residual, &trial->machine.hit);
	if (!residual_uses(trial->filter, &trial->residual, FILTER_DUR))
		return;
	trial->rest = percent(&trial->world, 30);
	if (!trial->rest) {
		trial->end =
			code_make(trial, &trial->end_code, &trial->residual, &trial->machine.end);
		return;
	}
	assert_true(residual_rest(&rest, trial->filter, &trial->residual));
	trial->end = code_make(trial, &trial->end_code, &rest, &trial->machine.end);
	residual_free(&rest);
}

static void trial_end(struct trial *trial)
{
	if (trial->hit >= 0)
		close(trial->hit);
	if (trial->end >= 0)
		close(trial->end);
	filter_code_free(&trial->hit_code);
	filter_code_free(&trial->end_code);
	residual_free(&trial->residual);
	filter_free(trial->filter);
}

/* ---- one record ---- */

static void mismatch(struct trial *trial, const struct filter_subject *subject, const char *what,
		     int verdict, enum filter_truth truth, const struct filter_code *code)
{
	const struct site_info *site = &trial->world.site;

	print_message("%s\nsite %s kind %u:", trial->world.source, site->name, site->kind);
	for (unsigned i = 0; i < site->key_count; i++)
		print_message(" %s/%c", site->keys[i].name, site->keys[i].type);
	print_message("\npid %u tid %u cpu %u comm '%s' depth %lld parent %s dur %llu\nframe of %u "
		      "bytes:",
		      subject->pid, subject->tid, subject->cpu, subject->comm,
		      (long long)subject->depth, subject->parent_name ?: "-",
		      (unsigned long long)subject->dur_ns, trial->frame.size);
	for (uint32_t i = 0; subject->frame && i < subject->frame_bytes; i++)
		print_message("%s%02x",
			      i % 8    ? ""
			      : i % 32 ? " "
				       : "\n  ",
			      ((const unsigned char *)subject->frame)[i]);
	print_message("\n");
	if (code)
		code_print(code);
	fail_msg("%s: the kernel says %d, the definition %d", what, verdict, truth);
}

/* The facts about the record, without its thread and its end. */
static struct filter_subject subject_make(struct trial *trial)
{
	const struct random_frame *frame = &trial->frame;
	struct filter_subject subject = {.site = &trial->world.site};
	struct waffle_frame head = {0};

	if (!frame->unreadable && frame->size <= WAFFLE_FRAME_MAX) {
		subject.frame = trial->machine.guard - frame->size;
		subject.frame_bytes = frame->size;
		if (frame->size >= sizeof(head))
			memcpy(&head, subject.frame, sizeof(head));
	}
	if (!head.parent)
		return subject;
	subject.depth = -1;
	if (head.parent >= PARENT_ID(PARENTS))
		return subject;
	subject.parent_name = trial->parent_names[head.parent - PARENT_ID(0)];
	if (trial->parents[head.parent - PARENT_ID(0)].depth != WAFFLE_DEPTH_UNKNOWN)
		subject.depth = trial->parents[head.parent - PARENT_ID(0)].depth + 1;
	return subject;
}

static void count_answers(struct trial *trial, const struct filter_subject *subject)
{
	for (size_t i = 0; i < trial->filter->predicates.len; i++) {
		const struct filter_predicate *predicate = &trial->filter->predicates.data[i];
		bool yes = filter_eval_predicate(trial->filter, predicate, subject) == FILTER_YES;

		trial->totals.asked[predicate->field][predicate->op][yes]++;
	}
}

static int verdict_known(const struct trial *trial)
{
	const struct residual *residual = &trial->residual;

	return residual->nodes.data[residual->nodes.len - 1].type == FILTER_TRUE ? CODEGEN_ACCEPT
										 : CODEGEN_REJECT;
}

static void deferred_put(struct trial *trial, const struct filter_subject *subject)
{
	struct {
		struct waffle_deferred deferred;
		unsigned char frame[WAFFLE_FRAME_MAX];
	} value = {0};
	uint64_t key = DEFERRED_KEY;
	unsigned parent;

	value.deferred.ts = rnd(&trial->world) >> below(&trial->world, 64);
	value.deferred.end_ts = value.deferred.ts + subject->dur_ns;
	value.deferred.tgid = subject->pid;
	value.deferred.tid = subject->tid;
	value.deferred.cpu = subject->cpu;
	value.deferred.depth = (uint32_t)subject->depth;
	strncpy(value.deferred.comm, subject->comm, sizeof(value.deferred.comm) - 1);
	for (parent = 0; subject->parent_name && parent < PARENTS; parent++)
		if (trial->parent_names[parent] == subject->parent_name)
			break;
	value.deferred.has_parent = subject->parent_name != NULL;
	value.deferred.parent_bits =
		subject->parent_name ? trial->parents[parent].name_bits : rnd(&trial->world);
	value.deferred.frame_bytes = subject->frame_bytes;
	if (subject->frame)
		memcpy(value.frame, subject->frame, subject->frame_bytes);
	assert_int_equal(bpf_map_update_elem(trial->machine.deferred, &key, &value, 0), 0);
}

/* The same record with some durations: what the program at the end says, and whether what was said
 * at the hit holds for all of them. */
static void record_ends(struct trial *trial, struct filter_subject subject, int verdict)
{
	struct world *world = &trial->world;
	enum filter_truth truth;
	int at_end = verdict;

	subject.ended = true;
	for (unsigned i = 0; i < DURATIONS; i++) {
		subject.dur_ns = world->durations[below(world, POOL)] + below(world, 3) - 1;
		truth = filter_eval(trial->filter, &subject);
		trial->totals.answers[truth == FILTER_YES]++;
		count_answers(trial, &subject);
		if (verdict != CODEGEN_DEFER &&
		    (verdict == CODEGEN_ACCEPT) != (truth == FILTER_YES))
			mismatch(trial, &subject, "hit, then its end", verdict, truth,
				 &trial->hit_code);
		if (trial->end < 0 || (trial->rest && verdict != CODEGEN_DEFER))
			continue;
		deferred_put(trial, &subject);
		at_end = program_run(trial->end, DEFERRED_KEY, NULL, 0);
		trial->totals.pairs++;
		trial->totals.verdicts[at_end]++;
		if ((at_end == CODEGEN_ACCEPT) != (truth == FILTER_YES))
			mismatch(trial, &subject, "end", at_end, truth, &trial->end_code);
	}
}

static void record_try(struct trial *trial)
{
	struct world *world = &trial->world;
	struct random_frame *frame = &trial->frame;
	char comm[WAFFLE_COMM_BYTES] = "";
	const struct random_text *text = &world->comms[below(world, POOL)];
	struct filter_subject subject;
	enum filter_truth truth;
	int verdict;

	frame_make(world, frame);
	if (frame->size <= WAFFLE_FRAME_MAX)
		memcpy(trial->machine.guard - frame->size, frame->bytes, frame->size);
	memcpy(comm, text->bytes, text->len);
	assert_int_equal(prctl(PR_SET_NAME, comm), 0);
	subject = subject_make(trial);
	subject.pid = world->pid;
	subject.tid = world->tid;
	subject.cpu = world->cpu;
	subject.comm = comm;
	truth = filter_eval(trial->filter, &subject);
	verdict = trial->hit < 0
			  ? verdict_known(trial)
			  : program_run(trial->hit, 1,
					frame->unreadable ? trial->machine.guard
							  : trial->machine.guard - frame->size,
					frame->size);
	if (trial->hit < 0)
		trial->totals.known++;
	else
		trial->totals.pairs++;
	trial->totals.verdicts[verdict]++;
	if (truth != FILTER_UNKNOWN &&
	    verdict != (truth == FILTER_YES ? CODEGEN_ACCEPT : CODEGEN_REJECT))
		mismatch(trial, &subject, "hit", verdict, truth, &trial->hit_code);
	if (trial->world.site.kind == WAFFLE_SITE_SPAN) {
		/* The program at the end alone: what it has not seen at the hit. */
		if (verdict == CODEGEN_DEFER && !trial->rest) {
			subject.pid += below(world, 3) - 1;
			subject.tid += below(world, 3) - 1;
		}
		record_ends(trial, subject, verdict);
	} else {
		trial->totals.answers[truth == FILTER_YES]++;
		count_answers(trial, &subject);
	}
}

/* ---- all ---- */

static uint64_t environment(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

/* To a CPU of those that this thread may run on. */
static void cpu_choose(struct world *world, const cpu_set_t *allowed)
{
	cpu_set_t one;
	int cpu;

	do
		cpu = (int)below(world, CPU_SETSIZE < 256 ? CPU_SETSIZE : 256);
	while (!CPU_ISSET(cpu, allowed));
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	world->cpu = (uint32_t)cpu;
}

static void totals_print(const struct totals *totals, double seconds)
{
	uint64_t all = totals->answers[0] + totals->answers[1];

	print_message("%llu pairs in the kernel in %.1f s, %.0f/s, and %llu known at the site; "
		      "%llu programs of %.0f instructions, loaded in %.2f ms; "
		      "true: %.0f %%; reject %llu accept %llu hold %llu\n",
		      (unsigned long long)totals->pairs, seconds, (double)totals->pairs / seconds,
		      (unsigned long long)totals->known, (unsigned long long)totals->programs,
		      (double)totals->insns / (double)totals->programs,
		      (double)totals->load_ns / 1e6 / (double)totals->programs,
		      100.0 * (double)totals->answers[1] / (double)all,
		      (unsigned long long)totals->verdicts[CODEGEN_REJECT],
		      (unsigned long long)totals->verdicts[CODEGEN_ACCEPT],
		      (unsigned long long)totals->verdicts[CODEGEN_DEFER]);
}

/* Texts can be compared with patterns, and numbers by their order. */
static bool op_allowed(enum filter_field field, enum filter_op op)
{
	bool pattern = op == FILTER_MATCH || op == FILTER_NOT_MATCH;
	bool order = op >= FILTER_LT && op <= FILTER_GE;

	switch (filter_fields[field].type) {
	case FILTER_TYPE_KIND:
		return op == FILTER_EQ || op == FILTER_NE;
	case FILTER_TYPE_TEXT:
		return !order;
	case FILTER_TYPE_ANY:
		return true;
	default:
		return !pattern;
	}
}

/* No case was left out, and none had only one result. */
static void totals_check(const struct totals *totals)
{
	uint64_t all = totals->answers[0] + totals->answers[1];
	uint64_t least = 0;

	assert_in_range(100 * totals->answers[1] / all, 20, 80);
	if (totals->pairs < PAIRS_ENOUGH)
		return;
	for (unsigned field = 0; field < FILTER_FIELD_COUNT; field++) {
		for (unsigned op = 0; op < FILTER_OP_COUNT; op++) {
			const uint64_t *asked = totals->asked[field][op];

			/* The kernel does not test what the site alone decides. */
			least = filter_fields[field].at_site ? 1 : totals->pairs / 4000;
			if (op_allowed(field, op) && (asked[0] < least || asked[1] < least))
				fail_msg("%s %s: false %llu times, true %llu times: expected %llu",
					 filter_fields[field].name, filter_ops[op],
					 (unsigned long long)asked[0], (unsigned long long)asked[1],
					 (unsigned long long)least);
		}
	}
}

static void trials_run(struct trial *trial)
{
	uint64_t seed = environment("WAFFLE_SEED", 20240607);
	uint64_t pairs = environment("WAFFLE_PAIRS", PAIRS_DEFAULT);
	uint64_t begin = now_ns();
	cpu_set_t allowed;

	pairs = pairs_argument ? strtoull(pairs_argument, NULL, 0) : pairs;
	assert_int_equal(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	trial->world.random = seed;
	trial->world.pid = (uint32_t)kernel_pid_tgid(32);
	trial->world.tid = (uint32_t)kernel_pid_tgid(0);
	assert_int_not_equal(trial->world.pid, trial->world.tid);
	print_message("seed %llu\n", (unsigned long long)seed);
	while (trial->totals.pairs < pairs) {
		cpu_choose(&trial->world, &allowed);
		trial_begin(trial);
		for (unsigned i = 0; i < (trial->hit < 0 ? 2 : RECORDS); i++)
			record_try(trial);
		trial_end(trial);
	}
	totals_print(&trial->totals, (double)(now_ns() - begin) / 1e9);
	totals_check(&trial->totals);
}

/* The kernel's side is opened before, and closed behind each test. */
static int machine_setup(void **state)
{
	struct trial *trial = calloc(1, sizeof(*trial));

	if (!trial)
		return -1;
	trial->loads = machine_open(&trial->machine);
	*state = trial;
	return 0;
}

static int machine_teardown(void **state)
{
	struct trial *trial = *state;

	machine_close(&trial->machine);
	free(trial);
	return 0;
}

static void test_kernel_and_definition_agree_on_random_pairs(void **state)
{
	struct trial *trial = *state;

	if (!trial->loads)
		skip();
	trials_run(trial);
}

/* Not the first thread, whose id is that of the process. */
static void *tests_run(void *failed)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_kernel_and_definition_agree_on_random_pairs,
						machine_setup, machine_teardown),
	};

	*(int *)failed = cmocka_run_group_tests(tests, NULL, NULL);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int failed = 1;

	pairs_argument = argc > 1 ? argv[1] : NULL;
	if (pthread_create(&thread, NULL, tests_run, &failed) || pthread_join(thread, NULL))
		return 1;
	return failed;
}
