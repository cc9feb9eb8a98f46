// SPDX-License-Identifier: Apache-2.0
/* Files that are refused while some process keeps its mmap_lock, or may do so. The Makefile links
 * this program with --wrap of the functions of userspace/kernel that are here. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/arming/arming_internal.h"
#include "kernel/kernel_internal.h"

#define ARMED ((struct armed *)&calls)
#define HOLDER 77

static int kernel_result;
static unsigned calls, released;
static pid_t last_pid;

int __wrap_kernel_arm(struct kernel *kernel, struct armed **armed,
		      const struct arm_request *request, struct error *err);
void __wrap_armed_release(struct armed *armed);

int __wrap_kernel_arm(struct kernel *kernel, struct armed **armed,
		      const struct arm_request *request, struct error *err)
{
	(void)kernel;
	calls++;
	last_pid = request->pid;
	*armed = kernel_result ? NULL : ARMED;
	return kernel_result ? error_set(err, -kernel_result, "refused") : 0;
}

void __wrap_armed_release(struct armed *armed)
{
	assert_ptr_equal(armed, ARMED);
	released++;
}

void __wrap_kernel_probes_widen(struct kernel *kernel);
size_t __wrap_armed_refused(const struct armed *armed);
struct armed_unsupported __wrap_armed_unsupported(const struct armed *armed);

void __wrap_kernel_probes_widen(struct kernel *kernel)
{
	(void)kernel;
}

size_t __wrap_armed_refused(const struct armed *armed)
{
	(void)armed;
	return 0;
}

struct armed_unsupported __wrap_armed_unsupported(const struct armed *armed)
{
	(void)armed;
	return (struct armed_unsupported){0};
}

static struct kernel kernel;
static const struct session_options options;

/* Two files that can be armed. The answer about locks stays what a test sets. */
static struct arming begin(void)
{
	static struct object object = {.path = "file"};
	struct arming arming = {.kernel = &kernel, .options = &options};

	calls = released = 0;
	kernel = (struct kernel){.locks.until_ts = UINT64_MAX};
	for (ino_t ino = 1; ino <= 2; ino++) {
		const struct armed_file file = {.fd = open("/dev/null", O_RDONLY | O_CLOEXEC),
						.ino = ino,
						.object = &object,
						.path = ino == 1 ? "first" : "second"};

		assert_true(file.fd >= 0);
		assert_true(vec_push(&arming.files, file));
	}
	return arming;
}

static void end(struct arming *arming)
{
	for (size_t i = 0; i < arming->files.len; i++)
		if (arming->files.data[i].fd >= 0)
			close(arming->files.data[i].fd);
	for (size_t i = 0; i < arming->notices.len; i++)
		free(arming->notices.data[i]);
	vec_free(&arming->notices);
	vec_free(&arming->files);
	vec_free(&arming->loading);
	vec_free(&arming->arms);
}

static void arm(struct arming *arming, uint32_t file, pid_t pid, int result)
{
	struct error err = ERROR_INIT;

	kernel_result = result;
	assert_int_equal(file_arm(arming, file, pid, &err), 0);
}

/* Tries again what is refused, although it is not time yet. */
static void retry(struct arming *arming, uint64_t until_ns, int result)
{
	kernel_result = result;
	for (size_t i = 0; i < arming->loading.len; i++)
		arming->loading.data[i].next_ns = 0;
	arming_retry(arming, until_ns);
}

static void test_a_refused_file_is_armed_when_it_is_not_refused_any_more(void **state)
{
	struct arming arming = begin();

	(void)state;
	arm(&arming, 0, getpid(), -EAGAIN);
	assert_int_equal(arming.loading.len, 1);
	arming_retry(&arming, UINT64_MAX);
	assert_int_equal(calls, 1); /* it is not time yet */
	retry(&arming, UINT64_MAX, -EBUSY);
	assert_int_equal(calls, 2);
	assert_int_equal(arming.loading.len, 1);
	assert_int_equal(arming.files.data[0].arm_count, 1);
	assert_true(arming.files.data[0].fd >= 0);
	retry(&arming, UINT64_MAX, 0);
	assert_int_equal(arming.loading.len, 0);
	assert_true(file_is_armed(&arming, getpid(), 0));
	assert_int_equal(arming.files.data[0].arm_count, 1);
	end(&arming);
}

static void test_a_file_that_fails_for_another_reason_is_not_tried_again(void **state)
{
	struct arming arming = begin();

	(void)state;
	arm(&arming, 0, getpid(), -EMFILE);
	assert_int_equal(arming.loading.len, 0);
	assert_string_equal(arming.warning, "refused");
	end(&arming);
}

static void test_one_refusal_counts_for_all_files(void **state)
{
	struct arming arming = begin();

	(void)state;
	arm(&arming, 0, getpid(), -EAGAIN);
	arm(&arming, 1, getpid(), -EAGAIN);
	retry(&arming, UINT64_MAX, -EAGAIN);
	assert_int_equal(calls, 3);
	assert_int_equal(arming.loading.len, 2);
	assert_int_equal(arming_loading_ms(&arming, 50), 50);
	end(&arming);
}

static void test_only_one_file_is_armed_if_there_is_no_time(void **state)
{
	struct arming arming = begin();

	(void)state;
	arm(&arming, 0, getpid(), -EAGAIN);
	arm(&arming, 1, getpid(), -EAGAIN);
	retry(&arming, 0, 0);
	assert_int_equal(arming.loading.len, 1);
	assert_int_equal(arming_loading_ms(&arming, 50), 0);
	retry(&arming, 0, 0);
	assert_int_equal(arming.loading.len, 0);
	end(&arming);
}

/* Also after another warning. */
static void test_each_thread_that_keeps_a_lock_is_reported_once(void **state)
{
	struct arming arming = begin();

	(void)state;
	strcpy(arming.warning, "of another file");
	kernel.locks.tid = HOLDER;
	arm(&arming, 0, getpid(), -EBUSY);
	arm(&arming, 1, getpid(), -EBUSY);
	assert_int_equal(arming.notices.len, 1);
	kernel.locks.tid = HOLDER + 1;
	retry(&arming, UINT64_MAX, -EBUSY);
	assert_int_equal(arming.notices.len, 2);
	retry(&arming, UINT64_MAX, 0);
	arm(&arming, 0, getppid(), -EBUSY); /* again, after it was free */
	assert_int_equal(arming.notices.len, 3);
	end(&arming);
}

static void *wait_for_ever(void *arg)
{
	(void)arg;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (true)
		pause();
	return NULL;
}

/* Returns a process whose main thread has exited. */
static pid_t headless_begin(void)
{
	pthread_t thread;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		pthread_create(&thread, NULL, wait_for_ever, NULL);
		pthread_exit(NULL);
	}
	while (process_live_task(pid) == pid)
		usleep(1000);
	return pid;
}

static void test_no_probe_is_removed_to_arm_all_processes_while_a_lock_is_kept(void **state)
{
	struct arming arming = begin();
	pid_t pid = headless_begin();

	(void)state;
	arm(&arming, 0, getpid(), 0);
	kernel.locks.pid = kernel.locks.tid = HOLDER;
	arm(&arming, 0, pid, 0);
	assert_int_equal(released, 0);
	assert_true(file_is_armed(&arming, getpid(), 0));
	assert_int_equal(arming.loading.len, 1);
	kernel.locks.pid = kernel.locks.tid = 0;
	retry(&arming, UINT64_MAX, 0);
	assert_int_equal(released, 1);
	assert_int_equal(last_pid, -1);
	assert_true(file_is_armed(&arming, pid, 0));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	end(&arming);
}

/* The process for which all were to be armed ends before that is possible. */
static void test_processes_that_lost_their_probes_get_them_again(void **state)
{
	struct arming arming = begin();
	pid_t pid = headless_begin();

	(void)state;
	arm(&arming, 0, getpid(), 0);
	arm(&arming, 0, pid, -EAGAIN);
	assert_int_equal(released, 1);
	assert_false(file_is_armed(&arming, getpid(), 0));
	loading_forget(&arming, pid);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	retry(&arming, UINT64_MAX, 0);
	assert_int_equal(last_pid, getpid());
	assert_true(file_is_armed(&arming, getpid(), 0));
	end(&arming);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_refused_file_is_armed_when_it_is_not_refused_any_more),
		cmocka_unit_test(test_a_file_that_fails_for_another_reason_is_not_tried_again),
		cmocka_unit_test(test_one_refusal_counts_for_all_files),
		cmocka_unit_test(test_only_one_file_is_armed_if_there_is_no_time),
		cmocka_unit_test(test_each_thread_that_keeps_a_lock_is_reported_once),
		cmocka_unit_test(
			test_no_probe_is_removed_to_arm_all_processes_while_a_lock_is_kept),
		cmocka_unit_test(test_processes_that_lost_their_probes_get_them_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
