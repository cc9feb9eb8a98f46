// SPDX-License-Identifier: Apache-2.0
#include "usdt/record/request.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SLICE_NS 1000000ull /* of a wait whose end is counted */
#define STUCK_SLICES 1000
#define IDLE_TURNS 3       /* of STUCK_SLICES */
#define THREAD_CPU_CLOCK 6 /* with the inverted tid it is the clock of a thread */
#define SLICE_WAKES 4      /* wakes that count as much as a slice, such as signals */

static struct {
	uint32_t asked; /* number of requests; the collector sleeps on it (futex) */
	uint32_t done;  /* requests up to this number were served */
	uint32_t news;  /* changes of `done` and `serving`; those who wait sleep on it (futex) */
	uint32_t tid;   /* of the thread that serves */
	bool serving;
} request;

static void futex_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* Returns true if nothing has woken it. */
static bool futex_wait(uint32_t *word, uint32_t seen, uint64_t ns)
{
	struct timespec time = {.tv_sec = (time_t)(ns / 1000000000ull),
				.tv_nsec = (long)(ns % 1000000000ull)};

	return syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, &time, NULL, 0) &&
	       errno == ETIMEDOUT;
}

/* ---- for all threads ---- */

void request_wake(void)
{
	__atomic_add_fetch(&request.asked, 1, __ATOMIC_SEQ_CST);
	futex_wake(&request.asked);
}

/*
 * request_end() first says that nobody serves, and then looks for requests. Here the order is the
 * other one, so that one of both sees the other.
 *
 * No clock is read: in a thread without the counter (PR_SET_TSC) that could fault, and a sandbox
 * may forbid the system call.
 */
bool request_wait(uint64_t wait_ns)
{
	uint32_t mine = __atomic_add_fetch(&request.asked, 1, __ATOMIC_SEQ_CST);
	uint64_t rest = wait_ns / SLICE_NS * SLICE_WAKES;

	futex_wake(&request.asked);
	for (;;) {
		uint32_t news = __atomic_load_n(&request.news, __ATOMIC_SEQ_CST);

		if ((int32_t)(__atomic_load_n(&request.done, __ATOMIC_SEQ_CST) - mine) >= 0)
			return true;
		if (!request_is_served() || rest < SLICE_WAKES)
			return false;
		rest -= futex_wait(&request.news, news, SLICE_NS) ? SLICE_WAKES : 1;
	}
}

/* What the thread that serves has used of its CPU. 0: unknown. By a system call of its own, since
 * the libc's function may want a lock. */
static uint64_t cpu_used_ns(void)
{
	uint32_t tid = __atomic_load_n(&request.tid, __ATOMIC_ACQUIRE);
	struct timespec used;

	if (!tid || syscall(SYS_clock_gettime, (int)(~tid << 3 | THREAD_CPU_CLOCK), &used))
		return 0;
	return (uint64_t)used.tv_sec * 1000000000ull + (uint64_t)used.tv_nsec;
}

bool request_wait_end(bool (*is_stuck)(void), bool patient)
{
	uint64_t stuck = 0, slices = 0, used = 0;
	unsigned idle = 0;

	while (stuck < STUCK_SLICES && idle < IDLE_TURNS) {
		uint32_t news = __atomic_load_n(&request.news, __ATOMIC_SEQ_CST);

		if (!request_is_served())
			return true;
		slices += futex_wait(&request.news, news, SLICE_NS);
		stuck = is_stuck() ? stuck + 1 : 0;
		if (!patient && slices >= STUCK_SLICES) {
			uint64_t now = cpu_used_ns();

			idle = now && now == used ? idle + 1 : 0;
			used = now;
			slices = 0;
		}
	}
	return false;
}

bool request_is_served(void)
{
	return __atomic_load_n(&request.serving, __ATOMIC_SEQ_CST);
}

bool request_is_self(void)
{
	return __atomic_load_n(&request.tid, __ATOMIC_ACQUIRE) == (uint32_t)syscall(SYS_gettid);
}

void request_forget(void)
{
	__atomic_store_n(&request.serving, false, __ATOMIC_SEQ_CST);
	__atomic_store_n(&request.tid, 0, __ATOMIC_RELEASE);
}

/* ---- for the collector ---- */

static void news_tell(void)
{
	__atomic_add_fetch(&request.news, 1, __ATOMIC_SEQ_CST);
	futex_wake(&request.news);
}

uint32_t request_begin(void)
{
	uint32_t asked = request_asked();

	__atomic_store_n(&request.tid, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&request.serving, true, __ATOMIC_SEQ_CST);
	return asked;
}

void request_begin_self(void)
{
	__atomic_store_n(&request.tid, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
}

uint32_t request_asked(void)
{
	return __atomic_load_n(&request.asked, __ATOMIC_SEQ_CST);
}

void request_serve(uint32_t asked)
{
	__atomic_store_n(&request.done, asked, __ATOMIC_SEQ_CST);
	news_tell();
}

void request_pause(uint32_t asked, uint64_t ns)
{
	futex_wait(&request.asked, asked, ns);
}

void request_end(bool done)
{
	__atomic_store_n(&request.serving, false, __ATOMIC_SEQ_CST);
	if (done)
		__atomic_store_n(&request.done, request_asked(), __ATOMIC_SEQ_CST);
	news_tell();
}
