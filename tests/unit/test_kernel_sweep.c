// SPDX-License-Identifier: Apache-2.0
/*
 * Which unfinished spans and pairs are removed from the kernel's tables, and which stay. The
 * tables are filled by hand; needs root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bpf/call.h"
#include "bpf/filter.h"
#include "kernel/kernel_internal.h"
#include "waffle.skel.h"

#define STACK 0x7fff00000000ull
#define SECOND 1000000000ull

struct rig {
	struct kernel *kernel;
	uint64_t now, next_id;
};

static void rig_open(struct rig *rig)
{
	struct kernel_options options = {.ring_bytes = 1 << 20,
					 .config.sched_slots = 16,
					 .filtered = true,
					 .defers = true,
					 .calls = true};
	struct error err = ERROR_INIT;

	*rig = (struct rig){.now = 10 * SECOND, .next_id = 1};
	if (kernel_open(&rig->kernel, &options, &err)) {
		print_message("%s\n", err.message);
		skip();
	}
}

static void sweep(struct rig *rig)
{
	rig->now += 2 * SECOND;
	kernel_sweep(rig->kernel, rig->now);
}

static int map_of(const struct bpf_map *map)
{
	return bpf_map__fd(map);
}

/* ---- spans ---- */

static uint64_t span_add(struct rig *rig, pid_t tgid, pid_t tid, uint64_t ts, uint64_t sp,
			 enum waffle_open_state state)
{
	struct waffle_open open = {.tgid = (uint32_t)tgid,
				   .tid = (uint32_t)tid,
				   .ts = ts,
				   .sp = sp,
				   .state = (uint8_t)state,
				   .deferred = WAFFLE_DEFERRED_SMALL};
	struct {
		struct waffle_deferred deferred;
		char frame[WAFFLE_DEFERRED_SMALL_BYTES];
	} deferred = {.deferred = {.ts = ts, .tgid = (uint32_t)tgid, .tid = (uint32_t)tid}};
	struct waffle_bpf *bpf = rig->kernel->bpf;
	uint64_t id = rig->next_id++;

	assert_int_equal(
		bpf_map_update_elem(map_of(bpf->maps.filter_open), &id, &open, BPF_NOEXIST), 0);
	if (state == WAFFLE_OPEN_DEFERRED)
		assert_int_equal(bpf_map_update_elem(map_of(bpf->maps.filter_deferred_small), &id,
						     &deferred, BPF_NOEXIST),
				 0);
	return id;
}

static bool span_is_there(const struct rig *rig, uint64_t id)
{
	struct waffle_open open;

	return !bpf_map_lookup_elem(map_of(rig->kernel->bpf->maps.filter_open), &id, &open);
}

static bool span_is_deferred(const struct rig *rig, uint64_t id)
{
	char deferred[sizeof(struct waffle_deferred) + WAFFLE_DEFERRED_SMALL_BYTES];

	return !bpf_map_lookup_elem(map_of(rig->kernel->bpf->maps.filter_deferred_small), &id,
				    deferred);
}

static unsigned spans_there(const struct rig *rig, uint64_t first, unsigned count)
{
	unsigned there = 0;

	for (uint64_t id = first; id < first + count; id++)
		there += span_is_there(rig, id);
	return there;
}

static uint64_t lost(const struct rig *rig)
{
	const struct waffle_cpu *cpu = kernel_cpu(rig->kernel, 0);

	assert_int_equal(cpu->produced[WAFFLE_SOURCE_SPANS], cpu->dropped[WAFFLE_SOURCE_SPANS]);
	return cpu->dropped[WAFFLE_SOURCE_SPANS];
}

/* The number of a process that has ended. */
static pid_t pid_of_before(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

static void test_spans_of_a_process_go_with_it(void **state)
{
	pid_t gone = pid_of_before(), own = getpid();
	uint64_t kept, deferred, other;
	struct rig rig;

	(void)state;
	rig_open(&rig);
	kept = span_add(&rig, gone, gone, 1, STACK, WAFFLE_OPEN_KEPT);
	deferred = span_add(&rig, gone, gone, 2, STACK, WAFFLE_OPEN_DEFERRED);
	other = span_add(&rig, own, own, 1, STACK, WAFFLE_OPEN_DEFERRED);
	sweep(&rig);
	assert_int_equal(spans_there(&rig, kept, 3), 3); /* nobody has said that it is gone */
	kernel_forget(rig.kernel, gone);
	sweep(&rig);
	assert_false(span_is_there(&rig, kept) || span_is_there(&rig, deferred));
	assert_false(span_is_deferred(&rig, deferred));
	assert_true(span_is_there(&rig, other) && span_is_deferred(&rig, other));
	assert_int_equal(lost(&rig), 0);
	kernel_close(rig.kernel);
}

static void test_spans_of_a_new_process_with_its_number_stay(void **state)
{
	struct error err = ERROR_INIT;
	pid_t own = getpid();
	struct rig rig;
	uint64_t id;

	(void)state;
	rig_open(&rig);
	assert_int_equal(kernel_target_add(rig.kernel, own, &err), 0);
	id = span_add(&rig, own, own, 1, STACK, WAFFLE_OPEN_KEPT);
	kernel_forget(rig.kernel, own);
	sweep(&rig);
	assert_true(span_is_there(&rig, id));
	kernel_close(rig.kernel);
}

/* longjmp() in a loop: each span begins where the one before did. */
static void test_spans_that_a_thread_has_left_make_room(void **state)
{
	const unsigned many = 20000; /* more than half of the table's 32,768 */
	uint64_t outer, first, inner;
	pid_t own = getpid();
	unsigned there;
	struct rig rig;

	(void)state;
	rig_open(&rig);
	outer = span_add(&rig, own, own, 1, STACK, WAFFLE_OPEN_DEFERRED);
	first = rig.next_id;
	for (unsigned i = 0; i < many; i++)
		span_add(&rig, own, own, 2 + i, STACK - 512, WAFFLE_OPEN_DEFERRED);
	inner = span_add(&rig, own, own, 2 + many, STACK - 1024, WAFFLE_OPEN_DEFERRED);
	sweep(&rig);
	there = spans_there(&rig, first, many);
	assert_in_range(there, 16384 - 2, 16384);
	assert_int_equal(lost(&rig), many - there);
	assert_int_equal(spans_there(&rig, first + many - there, there), there); /* the youngest */
	assert_true(span_is_deferred(&rig, outer) && span_is_deferred(&rig, inner));
	assert_false(span_is_deferred(&rig, first));
	kernel_close(rig.kernel);
}

/* Spans of coroutines seem to be left, since they are not where the stack pointer suggests. */
static void test_spans_that_seem_to_be_left_stay_while_there_is_room(void **state)
{
	const unsigned many = 10000;
	pid_t own = getpid();
	struct rig rig;

	(void)state;
	rig_open(&rig);
	for (unsigned i = 0; i < many; i++)
		span_add(&rig, own, own, 1 + i, STACK, WAFFLE_OPEN_DEFERRED);
	sweep(&rig);
	assert_int_equal(spans_there(&rig, 1, many), many);
	assert_int_equal(lost(&rig), 0);
	kernel_close(rig.kernel);
}

static void test_young_spans_that_seem_to_be_left_stay(void **state)
{
	const unsigned many = 20000;
	pid_t own = getpid();
	struct rig rig;

	(void)state;
	rig_open(&rig);
	for (unsigned i = 0; i < many; i++)
		span_add(&rig, own, own, rig.now + i, STACK, WAFFLE_OPEN_DEFERRED);
	sweep(&rig);
	assert_int_equal(spans_there(&rig, 1, many), many);
	assert_int_equal(lost(&rig), 0);
	kernel_close(rig.kernel);
}

static void test_spans_of_threads_that_are_gone_make_room(void **state)
{
	const unsigned many = 40000; /* more than half of 65,536 */
	pid_t own = getpid(), gone = pid_of_before();
	struct rig rig;
	unsigned there;
	uint64_t alive;

	(void)state;
	rig_open(&rig);
	alive = span_add(&rig, own, own, 1, STACK, WAFFLE_OPEN_KEPT);
	for (unsigned i = 0; i < many; i++)
		span_add(&rig, own, gone, 2, STACK - i,
			 i % 2 ? WAFFLE_OPEN_KEPT : WAFFLE_OPEN_REJECTED);
	sweep(&rig);
	there = spans_there(&rig, 1, many + 1);
	assert_int_equal(there, 32768);
	assert_true(span_is_there(&rig, alive));
	/* A span that the filter rejects does not count as lost. */
	assert_in_range(lost(&rig), 1, many + 1 - there - 1);
	kernel_close(rig.kernel);
}

static void test_full_table_is_swept_at_once(void **state)
{
	pid_t gone = pid_of_before();
	struct rig rig;
	uint64_t id;

	(void)state;
	rig_open(&rig);
	sweep(&rig);
	id = span_add(&rig, gone, gone, 1, STACK, WAFFLE_OPEN_KEPT);
	kernel_forget(rig.kernel, gone);
	kernel_sweep(rig.kernel, rig.now + SECOND / 2);
	assert_true(span_is_there(&rig, id));
	rig.kernel->bpf->bss->sweep_wanted = true;
	kernel_sweep(rig.kernel, rig.now + SECOND / 2 + 1);
	assert_false(span_is_there(&rig, id));
	assert_false(rig.kernel->bpf->bss->sweep_wanted);
	kernel_close(rig.kernel);
}

/* ---- pairs ---- */

static struct waffle_pair_key pair_add(const struct rig *rig, pid_t tgid, uint64_t value,
				       uint64_t ts)
{
	struct waffle_pair_key key = {.value = value, .tgid = (uint32_t)tgid, .pair = 3};
	struct waffle_pair pair = {.id = 100 + value, .ts = ts};

	assert_int_equal(bpf_map_update_elem(map_of(rig->kernel->bpf->maps.call_pairs), &key, &pair,
					     BPF_NOEXIST),
			 0);
	return key;
}

static bool pair_is_there(const struct rig *rig, const struct waffle_pair_key *key)
{
	struct waffle_pair pair;

	return !bpf_map_lookup_elem(map_of(rig->kernel->bpf->maps.call_pairs), key, &pair);
}

static void test_pairs_of_a_process_go_with_it(void **state)
{
	pid_t gone = pid_of_before(), own = getpid();
	struct waffle_pair_key left, other;
	struct rig rig;

	(void)state;
	rig_open(&rig);
	left = pair_add(&rig, gone, 1, 1);
	other = pair_add(&rig, own, 1, 1);
	kernel_forget(rig.kernel, gone);
	sweep(&rig);
	assert_false(pair_is_there(&rig, &left));
	assert_true(pair_is_there(&rig, &other));
	assert_int_equal(lost(&rig), 0);
	kernel_close(rig.kernel);
}

static void test_oldest_pairs_make_room(void **state)
{
	const unsigned many = 60000; /* of 65,536 */
	struct waffle_pair_key first, last = {0};
	struct rig rig;

	(void)state;
	rig_open(&rig);
	first = pair_add(&rig, getpid(), 0, 1);
	for (unsigned i = 1; i < many; i++)
		last = pair_add(&rig, getpid(), i, 1 + i);
	sweep(&rig);
	assert_false(pair_is_there(&rig, &first));
	assert_true(pair_is_there(&rig, &last));
	assert_int_equal(lost(&rig), many - 32768);
	kernel_close(rig.kernel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spans_of_a_process_go_with_it),
		cmocka_unit_test(test_spans_of_a_new_process_with_its_number_stay),
		cmocka_unit_test(test_spans_that_a_thread_has_left_make_room),
		cmocka_unit_test(test_spans_that_seem_to_be_left_stay_while_there_is_room),
		cmocka_unit_test(test_young_spans_that_seem_to_be_left_stay),
		cmocka_unit_test(test_spans_of_threads_that_are_gone_make_room),
		cmocka_unit_test(test_full_table_is_swept_at_once),
		cmocka_unit_test(test_pairs_of_a_process_go_with_it),
		cmocka_unit_test(test_oldest_pairs_make_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
