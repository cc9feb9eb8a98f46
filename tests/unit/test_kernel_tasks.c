// SPDX-License-Identifier: Apache-2.0
/*
 * The state that the BPF programs keep of processes and threads: it exists before they run and is
 * freed with them, and whatever does not fit is counted. The test traces itself and its children.
 * Needs root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "kernel/kernel_internal.h"
#include "util/vec.h"
#include "waffle.skel.h"

#define THREADS 4              /* 7 at most */
#define WAIT_NS 20000000000ull /* for what comes at once on a machine that is not busy */

struct seen {
	uint32_t tid, tgid;
	uint16_t kind;
};

struct rig {
	struct kernel *kernel;
	VEC(struct seen) seen;
};

/* Skips where BPF programs may not be loaded. */
static void rig_open(struct rig *rig, uint32_t targets_max)
{
	struct kernel_options options = {.ring_bytes = 1 << 20,
					 .config.sched_slots = 1 << 18, /* nobody reads them here */
					 .sched = true,
					 .config.follow_children = true,
					 .targets_max = targets_max};
	struct error err = ERROR_INIT;

	*rig = (struct rig){0};
	if (kernel_open(&rig->kernel, &options, &err)) {
		print_message("%s\n", err.message);
		skip();
	}
	assert_int_equal(kernel_target_add(rig->kernel, getpid(), &err), 0);
	assert_int_equal(kernel_attach(rig->kernel, &err), 0);
}

static void rig_close(struct rig *rig)
{
	kernel_close(rig->kernel);
	vec_free(&rig->seen);
}

static void record_take(const void *data, size_t bytes, void *arg)
{
	const struct waffle_rec *rec = data;
	struct rig *rig = arg;
	struct seen seen = {.tid = rec->tid, .kind = rec->kind};

	(void)bytes;
	if (rec->kind == WAFFLE_REC_EXIT)
		seen.tgid = ((const struct waffle_rec_exit *)rec)->tgid;
	else if (rec->kind == WAFFLE_REC_TASK)
		seen.tgid = ((const struct waffle_rec_task *)rec)->tgid;
	else if (rec->kind == WAFFLE_REC_FORK)
		seen.tgid = ((const struct waffle_rec_fork *)rec)->tgid;
	assert_true(vec_push(&rig->seen, seen));
}

/* Records of a kind that a process's threads have. */
static unsigned seen_count(struct rig *rig, uint16_t kind, pid_t pid)
{
	unsigned count = 0;

	kernel_take(rig->kernel, record_take, rig);
	for (size_t i = 0; i < rig->seen.len; i++)
		count += rig->seen.data[i].kind == kind && rig->seen.data[i].tgid == (uint32_t)pid;
	return count;
}

static uint64_t lost(const struct rig *rig, enum waffle_source source)
{
	uint64_t count = 0;

	for (uint32_t cpu = 0; cpu < kernel_cpu_count(rig->kernel); cpu++)
		count += kernel_cpu(rig->kernel, cpu)->dropped[source];
	return count;
}

static bool bit_is_set(const struct rig *rig, pid_t pid)
{
	uint32_t tgid = (uint32_t)pid;

	return __atomic_load_n(
		       &rig->kernel->bpf->bss->tgid_bits[(tgid >> 6) & (WAFFLE_TGID_WORDS - 1)],
		       __ATOMIC_SEQ_CST) >>
		       (tgid & 63) &
	       1;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void sleep_ms(long ms)
{
	struct timespec time = {.tv_nsec = ms * 1000000};

	nanosleep(&time, NULL);
}

static bool bit_clears(const struct rig *rig, pid_t pid)
{
	for (uint64_t end = now_ns() + WAIT_NS; now_ns() < end; sleep_ms(5))
		if (!bit_is_set(rig, pid))
			return true;
	return false;
}

/* ---- children ---- */

/* A child with some threads, each of which stays until it has read a byte. */
static void *thread_wait(void *arg)
{
	const int *ends = arg;
	char byte;

	while (read(ends[0], &byte, 1) < 0)
		;
	return NULL;
}

static pid_t child_start(int ends[2], unsigned threads)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		pthread_t list[THREADS];

		for (unsigned i = 0; i < threads; i++)
			pthread_create(&list[i], NULL, thread_wait, ends);
		if (write(ready[1], "", 1) == 1)
			thread_wait(ends);
		for (unsigned i = 0; i < threads; i++)
			pthread_join(list[i], NULL);
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ends[0]);
	return pid;
}

static void child_end(pid_t pid, int ends[2])
{
	int status;

	assert_int_equal(write(ends[1], "12345678", 1 + THREADS), 1 + THREADS);
	close(ends[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void child_sleeps(pid_t pid)
{
	char path[64], process_state;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	do {
		sleep_ms(1);
		file = fopen(path, "r");
		assert_non_null(file);
		assert_int_equal(fscanf(file, "%*d %*s %c", &process_state), 1);
		fclose(file);
	} while (process_state != 'S');
}

/* ---- tests ---- */

static void test_bit_of_a_process_goes_with_it(void **state)
{
	struct rig rig;
	int ends[2];
	pid_t pid;

	(void)state;
	rig_open(&rig, 0);
	pid = child_start(ends, 0);
	assert_true(bit_is_set(&rig, pid));
	child_end(pid, ends);
	assert_true(bit_clears(&rig, pid));
	assert_true(bit_is_set(&rig, getpid()));
	rig_close(&rig);
}

static void test_bit_that_another_target_has_too_stays(void **state)
{
	struct error err = ERROR_INIT;
	int ends[2], later_ends[2];
	pid_t pid, later;
	struct rig rig;

	(void)state;
	rig_open(&rig, 0);
	pid = child_start(ends, 0);
	later = child_start(later_ends, 0);
	assert_int_equal(kernel_target_add(rig.kernel, pid ^ 64 * WAFFLE_TGID_WORDS, &err), 0);
	child_end(pid, ends);
	/* The kernel has cleaned up for this task, as it does when a task is freed. */
	for (int i = 0; i < 3; i++)
		assert_int_equal(syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0), 0);
	child_end(later, later_ends);
	assert_true(bit_clears(&rig, later));
	assert_true(bit_is_set(&rig, pid));
	rig_close(&rig);
}

static void test_children_that_find_no_room_are_counted(void **state)
{
	int first_ends[2], second_ends[2];
	pid_t first, second;
	uint64_t before;
	struct rig rig;

	(void)state;
	rig_open(&rig, 2); /* this process and one child */
	first = child_start(first_ends, 0);
	assert_int_equal(kernel_targets_refused(rig.kernel), 0);
	before = lost(&rig, WAFFLE_SOURCE_SPANS);
	second = child_start(second_ends, 0);
	assert_int_equal(kernel_targets_refused(rig.kernel), 1);
	assert_int_equal(lost(&rig, WAFFLE_SOURCE_SPANS), before + 1);
	assert_int_equal(kernel_fork_count(rig.kernel), 1);
	assert_int_equal(seen_count(&rig, WAFFLE_REC_FORK, getpid()), 1);
	child_end(second, second_ends);
	child_end(first, first_ends);
	assert_int_equal(seen_count(&rig, WAFFLE_REC_EXIT, first), 1);
	assert_int_equal(seen_count(&rig, WAFFLE_REC_EXIT, second), 0);
	rig_close(&rig);
}

static void test_threads_are_told_of_once_when_they_begin_and_end(void **state)
{
	struct rig rig;
	int ends[2];
	pid_t pid;

	(void)state;
	rig_open(&rig, 0);
	pid = child_start(ends, THREADS);
	assert_int_equal(seen_count(&rig, WAFFLE_REC_TASK, pid), 1 + THREADS);
	child_end(pid, ends);
	assert_int_equal(seen_count(&rig, WAFFLE_REC_EXIT, pid), 1 + THREADS);
	assert_int_equal(lost(&rig, WAFFLE_SOURCE_SPANS) + lost(&rig, WAFFLE_SOURCE_SCHED), 0);
	rig_close(&rig);
}

/* On a kernel before 6.4, the scheduler's programs create no task storage. */
static void test_threads_are_known_where_the_scheduler_may_not_allocate(void **state)
{
	setenv("WAFFLE_STORAGE_OLD", "1", 1);
	test_threads_are_told_of_once_when_they_begin_and_end(state);
	unsetenv("WAFFLE_STORAGE_OLD");
}

/* Threads of a process that leave together: the first one takes it off the targets. */
static void test_threads_that_leave_behind_their_process_are_told_of(void **state)
{
	struct rig rig;
	int ends[2];
	pid_t pid;

	(void)state;
	rig_open(&rig, 0);
	pid = child_start(ends, THREADS);
	assert_int_equal(bpf_map_delete_elem(bpf_map__fd(rig.kernel->bpf->maps.targets), &pid), 0);
	child_end(pid, ends);
	assert_int_equal(seen_count(&rig, WAFFLE_REC_EXIT, pid), 1 + THREADS);
	rig_close(&rig);
}

/* There was no memory for its state, or task storage was refused for a moment. */
static void test_switches_of_a_thread_without_state_are_counted_as_lost(void **state)
{
	int ends[2], pidfd;
	struct rig rig;
	pid_t pid;

	(void)state;
	setenv("WAFFLE_STORAGE_OLD", "1", 1);
	rig_open(&rig, 0);
	unsetenv("WAFFLE_STORAGE_OLD");
	pid = child_start(ends, 0);
	child_sleeps(pid);
	assert_int_equal(lost(&rig, WAFFLE_SOURCE_SCHED), 0);
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	assert_true(pidfd >= 0);
	assert_int_equal(bpf_map_delete_elem(bpf_map__fd(rig.kernel->bpf->maps.threads), &pidfd),
			 0);
	child_end(pid, ends); /* it comes onto a CPU */
	assert_true(lost(&rig, WAFFLE_SOURCE_SCHED) >= 1);
	close(pidfd);
	rig_close(&rig);
}

static void test_names_of_strangers_never_end(void **state)
{
	struct rig rig;
	int map;

	(void)state;
	rig_open(&rig, 0);
	map = bpf_map__fd(rig.kernel->bpf->maps.named);
	for (uint32_t tid = 1; tid <= 2 * WAFFLE_MAX_NAMED; tid++) {
		uint64_t start = tid;

		assert_int_equal(bpf_map_update_elem(map, &tid, &start, BPF_ANY), 0);
	}
	rig_close(&rig);
}

/* Children whose exits are not reported: their state would never be freed. */
static void test_nothing_is_kept_of_children_that_are_not_followed(void **state)
{
	struct kernel_options options = {.ring_bytes = 1 << 20, .config.sched_slots = 16};
	struct waffle_stack_process process = {.python.runtime = 4096}, found;
	struct error err = ERROR_INIT;
	struct kernel *kernel;
	int ends[2], map;
	pid_t own = getpid(), pid;

	(void)state;
	if (kernel_open(&kernel, &options, &err))
		skip();
	map = bpf_map__fd(kernel->bpf->maps.stack_processes);
	assert_int_equal(kernel_target_add(kernel, own, &err), 0);
	assert_int_equal(bpf_map_update_elem(map, &own, &process, BPF_ANY), 0);
	assert_int_equal(kernel_attach(kernel, &err), 0);
	pid = child_start(ends, 0);
	assert_int_equal(bpf_map_lookup_elem(map, &own, &found), 0);
	assert_int_not_equal(bpf_map_lookup_elem(map, &pid, &found), 0);
	child_end(pid, ends);
	kernel_close(kernel);
}

static void test_merged_request_is_forgotten(void **state)
{
	uint64_t requests[] = {0xffff888000001000, 0xffff888000002000}, value[2] = {1, 1};
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = requests, .ctx_size_in = sizeof(requests[0]));
	struct kernel_options options = {.ring_bytes = 1 << 20,
					 .config.sched_slots = 16,
					 .sched = true,
					 .config.wait_sources = WAFFLE_WAIT_IO};
	struct error err = ERROR_INIT;
	struct kernel *kernel;
	int map;

	(void)state;
	if (kernel_open(&kernel, &options, &err))
		skip();
	map = bpf_map__fd(kernel->bpf->maps.requests);
	for (int i = 0; i < 2; i++)
		assert_int_equal(bpf_map_update_elem(map, &requests[i], value, BPF_ANY), 0);
	assert_int_equal(
		bpf_prog_test_run_opts(bpf_program__fd(kernel->bpf->progs.on_io_merge), &run), 0);
	assert_int_not_equal(bpf_map_lookup_elem(map, &requests[0], value), 0);
	assert_int_equal(bpf_map_lookup_elem(map, &requests[1], value), 0);
	kernel_close(kernel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bit_of_a_process_goes_with_it),
		cmocka_unit_test(test_bit_that_another_target_has_too_stays),
		cmocka_unit_test(test_children_that_find_no_room_are_counted),
		cmocka_unit_test(test_threads_are_told_of_once_when_they_begin_and_end),
		cmocka_unit_test(test_threads_are_known_where_the_scheduler_may_not_allocate),
		cmocka_unit_test(test_threads_that_leave_behind_their_process_are_told_of),
		cmocka_unit_test(test_switches_of_a_thread_without_state_are_counted_as_lost),
		cmocka_unit_test(test_names_of_strangers_never_end),
		cmocka_unit_test(test_nothing_is_kept_of_children_that_are_not_followed),
		cmocka_unit_test(test_merged_request_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
