// SPDX-License-Identifier: Apache-2.0
#include "usdt/gpu/control.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "usdt/gpu/nccl.h"
#include "usdt/gpu/nvtx.h"
#include "usdt/gpu/operations.h"
#include "usdt/gpu/session.h"
#include "usdt/gpu/tracer_wait.h"
#include "usdt/name/names.h"
#include "usdt/ring/rings.h"
#include "usdt/say/say.h"
#include "util/clock.h"
#include "util/own_thread.h"

#define API __attribute__((visibility("default")))
#define POLL_NS 100000000
/* A tracer may arm names before it opens the gate, which wakes nobody. One that was killed leaves
 * them armed, so the thread does not look for ever: 10 s. */
#define GATE_POLLS 100
/* Without futex_waitv(), which Linux has since 5.16. */
#define DORMANT_NS 250000000
/* An exiting process waits so long for the last records. */
#define EXIT_NS 2000000000ull

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
/* struct futex_waitv of linux/futex.h, which older headers don't have. */
struct waiter {
	uint64_t expected;
	uint64_t address;
	uint32_t flags;
	uint32_t reserved;
};
#define WATCHED_MAX (GPU_NAMES + 1 + NCCL_NAMES_MAX) /* of operations, NVTX and NCCL */
#define WAITER_32_BITS 2u                            /* and shared with other processes */

static struct {
	pid_t starter; /* the process that has begun to start, whose child has no thread; 0: none */
	pid_t pid;     /* of the process that has the thread; 0: none */
	bool listed;   /* `watched` is complete */
	const waffle_name_t *watched[WATCHED_MAX];
	unsigned watched_count;
	bool armed;     /* session_begin() and nvtx_arm() were called */
	uint32_t bell;  /* a futex: exit() rings */
	uint32_t ended; /* a futex: the thread has taken the last records */
} control;

static bool is_any_armed(void)
{
	for (unsigned i = 0; i < control.watched_count; i++)
		if (waffle_name_armed(control.watched[i]))
			return true;
	return false;
}

static bool is_wanted(void)
{
	bool open =
		__atomic_load_n(&rings_gate.collector, __ATOMIC_RELAXED) || tracer_reads_rings();

	return open && is_any_armed();
}

/* ---- waiting ---- */

static void wait_for(uint64_t ns)
{
	struct timespec time = {.tv_sec = (time_t)(ns / 1000000000u),
				.tv_nsec = (long)(ns % 1000000000u)};

	syscall(SYS_futex, &control.bell, FUTEX_WAIT, 0, &time, NULL, 0);
}

/* Until a name may have been armed, or the bell was rung. False: that is not known. */
static bool wait_dormant(void)
{
	struct waiter waiters[WATCHED_MAX + 1] = {0};
	unsigned count = 0;

	waiters[count++].address = (uintptr_t)&control.bell;
	for (unsigned i = 0; i < control.watched_count; i++) {
		const struct name_site *name = (const struct name_site *)control.watched[i];

		/* Names that were armed by a tracer that was killed stay so until they are used. */
		waiters[count].expected = __atomic_load_n(&name->entry.armed, __ATOMIC_RELAXED);
		waiters[count++].address = (uintptr_t)&name->entry.armed;
	}
	for (unsigned i = 0; i < count; i++)
		waiters[i].flags = WAITER_32_BITS;
	if (is_wanted() || syscall(SYS_futex_waitv, waiters, count, 0, NULL, 0) >= 0 ||
	    errno == EAGAIN || errno == EINTR)
		return true;
	wait_for(DORMANT_NS);
	return false;
}

static void wake_all(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* ---- the thread ---- */

enum phase { STARTS, RUNS, EXITS };

/* Follows what is wanted. Returns whether to look again soon. */
static bool step(enum phase phase)
{
	bool wanted = phase != EXITS && is_wanted(), again = wanted;

	if (wanted && !control.armed) {
		control.armed = true;
		session_begin(phase == STARTS && getenv("CUDA_INJECTION64_PATH"));
		nvtx_arm();
	} else if (wanted) {
		session_poll();
	} else if (control.armed) {
		session_end(phase == EXITS);
		nvtx_disarm();
	}
	control.armed = wanted;
	again |= nccl_follow(wanted);
	again |= nvtx_poll();
	return again;
}

static void *control_main(void *arg)
{
	unsigned polls = GATE_POLLS;

	(void)arg;
	prctl(PR_SET_NAME, "waffle-gpu");
	while (!__atomic_load_n(&control.bell, __ATOMIC_ACQUIRE)) {
		if (step(RUNS)) {
			wait_for(POLL_NS);
		} else if (polls && is_any_armed()) {
			polls--;
			wait_for(POLL_NS);
		} else if (wait_dormant() || !is_any_armed()) {
			polls = GATE_POLLS;
		}
	}
	step(EXITS);
	tracer_wait_mapped(clock_monotonic_ns() + EXIT_NS);
	__atomic_store_n(&control.ended, 1, __ATOMIC_RELEASE);
	wake_all(&control.ended);
	return NULL;
}

/* In exit(), before the libraries that are still needed end. */
static void control_end(void)
{
	struct timespec time = {.tv_sec = EXIT_NS / 1000000000u};

	if (control.pid != getpid())
		return;
	__atomic_store_n(&control.bell, 1, __ATOMIC_RELEASE);
	wake_all(&control.bell);
	if (!__atomic_load_n(&control.ended, __ATOMIC_ACQUIRE))
		syscall(SYS_futex, &control.ended, FUTEX_WAIT, 0, &time, NULL, 0);
}

/* ---- the start ---- */

static void watch(waffle_name_t *name)
{
	names_wake((struct name_site *)name);
	control.watched[control.watched_count++] = name;
}

/* The program is linked with a libwaffle of its own, which was first and records this process. What
 * is in ours does not reach it. A tracer reads both. */
static bool is_recorded_by_another(void)
{
	const struct waffle_process_ *process = waffle_process_get_();

	return __atomic_load_n(&process->ring_, __ATOMIC_RELAXED) != rings_hit &&
	       __atomic_load_n(&process->loaded_, __ATOMIC_RELAXED);
}

static void names_watch(void)
{
	waffle_name_t *const *names = operations_names();
	unsigned count;

	for (unsigned i = 0; i < GPU_NAMES; i++)
		watch(names[i]);
	watch(nvtx_watch());
	count = nccl_watch(&names);
	for (unsigned i = 0; i < count; i++)
		watch(names[i]);
	__atomic_store_n(&control.listed, true, __ATOMIC_RELEASE);
}

static void start(void)
{
	int code;

	tracer_wait_armed();
	if (!control.listed) {
		names_watch();
		pthread_atfork(NULL, NULL, nccl_fork_child);
	}
	if (is_recorded_by_another())
		say_line("the GPU's own times are not recorded: this program records itself with a "
			 "libwaffle of its own; waffle-bpf attach records both");
	step(STARTS);
	code = own_thread_start(NULL, control_main, NULL);
	if (code) {
		say_line("the GPU's own times are not recorded: starting a thread: %s",
			 strerror(code));
		step(EXITS);
		return;
	}
	if (!control.pid) /* the handler of exit() is there in a child, too */
		atexit(control_end);
	control.pid = getpid();
}

/* In a child that has no thread. False: its parent was using CUDA, which no child can after it, or
 * was just about to. */
static bool child_restart(void)
{
	if (!control.listed || !session_leave())
		return false;
	control.armed = false;
	control.bell = control.ended = 0;
	return true;
}

/*
 * There is no lock: CUPTI may initialise the driver, which calls InitializeInjection() on this
 * thread, or waits for another thread that does it in cuInit(). Who comes meanwhile does not wait.
 */
void gpu_control_start(void)
{
	pid_t own = getpid(), before = __atomic_load_n(&control.starter, __ATOMIC_ACQUIRE);
	int code = errno;

	if (before != own && !getauxval(AT_SECURE) &&
	    __atomic_compare_exchange_n(&control.starter, &before, own, false, __ATOMIC_ACQ_REL,
					__ATOMIC_RELAXED) &&
	    (!before || child_restart()))
		start();
	errno = code;
}

/* The driver calls it in cuInit() (CUDA_INJECTION64_PATH), `attach --gpu` after it has loaded the
 * library. */
API int InitializeInjection(void);
API int InitializeInjection(void)
{
	gpu_control_start();
	return 1;
}
