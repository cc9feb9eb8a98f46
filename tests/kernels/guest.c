// SPDX-License-Identifier: Apache-2.0
// clang-format off
/*
 * The program that the kernel matrix traces in the guest. It prints what it did.
 *	work N		N steps: an event, a counter, a wait for another thread's answer, some work;
 *			then it competes with a thread that never sleeps (the guest has one CPU)
 *	stay		three sites every 10 ms until its input ends, on a new thread every other
 *			time; prints how many are armed whenever that changes
 *	confined N	N calls of a function under a seccomp filter that kills for any other system
 *			call than these two
 */
// clang-format on
#include "../integration/programs/log.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "waffle.h"

#define WAIT_MS 5
#define SPIN_MS 2
#define RIVALS_MS 400
#define LATE_STEP 10 /* the filters of guest.sh ask for steps from here on */

static long evaluations;

static long evaluate(long value)
{
	evaluations++;
	return value;
}

struct helper {
	int request, answer; /* ends of pipes */
	int tid;
};

/* Answers each byte after WAIT_MS; its thread ends with its input. */
static void *helper_main(void *arg)
{
	struct helper *helper = arg;
	char byte;

	helper->tid = thread_id();
	while (read(helper->request, &byte, 1) == 1) {
		sleep_ms(WAIT_MS);
		if (write(helper->answer, &byte, 1) != 1)
			break;
	}
	return NULL;
}

static void *rival_main(void *stop)
{
	while (!atomic_load((atomic_bool *)stop))
		;
	return NULL;
}

static int compete(void)
{
	atomic_bool stop = false;
	pthread_t rival;

	WAFFLE_SPAN("guest rivals");
	if (pthread_create(&rival, NULL, rival_main, &stop))
		return 1;
	spin_ms(RIVALS_MS);
	atomic_store(&stop, true);
	return pthread_join(rival, NULL);
}

/* CPU time and time in the run queue of this thread, after the kernel has brought both up to date:
 * it does so when the thread leaves the CPU. */
static void schedstat_read(long long *run_ns, long long *delay_ns)
{
	FILE *file;

	sleep_ms(1);
	file = fopen("/proc/thread-self/schedstat", "r");
	*run_ns = *delay_ns = -1;
	if (file && fscanf(file, "%lld %lld", run_ns, delay_ns) != 2)
		*run_ns = *delay_ns = -1;
	if (file)
		fclose(file);
}

static long long step(long i, int request, int answer)
{
	long long waited;
	char byte = 0;

	WAFFLE_SPAN("guest step", KV_I64("i", i), KV_STR("text", "as written"));
	WAFFLE_EVENT("guest event", KV_I64("n", i * i), KV_F64("half", (double)i / 2),
		     KV_STR("text", "as written"));
	WAFFLE_COUNTER("guest counter", i);
	waited = now_ns();
	if (write(request, &byte, 1) != 1 || read(answer, &byte, 1) != 1)
		abort();
	waited = now_ns() - waited;
	spin_ms(SPIN_MS);
	return waited;
}

static int work(long n)
{
	long long run_ns[2], delay_ns[2], waited = 0;
	int request[2], answer[2];
	struct helper helper;
	pthread_t thread;
	long sum = 0;

	if (pipe(request) || pipe(answer))
		return 1;
	helper = (struct helper){.request = request[0], .answer = answer[1]};
	if (pthread_create(&thread, NULL, helper_main, &helper))
		return 1;
	schedstat_read(&run_ns[0], &delay_ns[0]);
	{
		WAFFLE_SPAN("guest work");
		for (long i = 0; i < n; i++) {
			waited += step(i, request[1], answer[0]);
			sum += i * i;
		}
		if (compete())
			return 1;
		schedstat_read(&run_ns[1], &delay_ns[1]);
	}
	close(request[1]);
	pthread_join(thread, NULL);
	printf("did steps=%ld late=%ld sum=%ld last=%ld half=%.1f waited_ns=%lld least_ns=%ld "
	       "tid=%d "
	       "helper=%d "
	       "run_ns=%lld delay_ns=%lld\n",
	       n, n - LATE_STEP, sum, n - 1, (double)(n - 1) / 2, waited, WAIT_MS * 1000000l,
	       thread_id(), helper.tid, run_ns[1] - run_ns[0], delay_ns[1] - delay_ns[0]);
	return 0;
}

/* Counts the armed ones of three sites: only these evaluate their argument. */
static long beat(long n)
{
	long before = evaluations;

	WAFFLE_EVENT("guest beat", KV_I64("n", evaluate(n)));
	{
		WAFFLE_SPAN("guest beat span", KV_I64("n", evaluate(n)));
	}
	WAFFLE_COUNTER("guest beats", evaluate(n));
	return evaluations - before;
}

static void *beat_main(void *n)
{
	return (void *)beat((long)n);
}

/* Some kernels' links for a process see its main thread only. */
static long beat_elsewhere(long n)
{
	pthread_t thread;
	void *armed;

	if (pthread_create(&thread, NULL, beat_main, (void *)n) || pthread_join(thread, &armed))
		abort();
	return (long)armed;
}

static int stay(void)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	long armed = -1;

	for (long n = 0; !poll(&input, 1, 10); n++) {
		long now = n % 2 ? beat_elsewhere(n) : beat(n);

		if (now != armed)
			printf("n=%ld armed=%ld evaluated=%ld\n", n, now, evaluations);
		armed = now;
	}
	return 0;
}

long guest_confined(long n);

__attribute__((noipa)) long guest_confined(long n)
{
	return n * 3 + 1;
}

/* As in a container, whose filter knows no system call that is newer than itself. */
static int confined(long n)
{
	struct sock_filter only[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	const struct sock_fprog filter = {sizeof(only) / sizeof(only[0]), only};
	long sum = 0;

	printf("calls=%ld\n", n); /* makes the buffer, with other system calls */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		return 1;
	for (long i = 0; i < n; i++)
		sum += guest_confined(i);
	printf("sum=%ld\n", sum);
	return 0;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 3 && !strcmp(argv[1], "work"))
		return work(atol(argv[2]));
	if (argc == 2 && !strcmp(argv[1], "stay"))
		return stay();
	if (argc == 3 && !strcmp(argv[1], "confined"))
		return confined(atol(argv[2]));
	return 2;
}
