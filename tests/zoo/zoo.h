/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the programs of the zoo. Each has one thread named "victim" whose span "victim" is
 * stalled in a known way, some rounds long, and says on its standard output what it knows, as lines
 * "kind key=value …" (times in ns of CLOCK_MONOTONIC, "-" for nothing):
 *	process role= pid=		a process beside the first one
 *	thread role= pid= tid=		a thread, by its name
 *	ready pid=			everything is set up; a line (or the end) of stdin starts it
 *	victim i= pid= tid= begin= end= running= runnable=
 *					round i of the span, with the kernel's own numbers of it
 *	cause i= cause= ns= pid= tid= comm= span= object=
 *					why it took so long, as measured by whom it was done
 * PROGRAM [WAY] SEED: the seed varies times and the order in which threads start.
 */
#ifndef TESTS_ZOO_ZOO_H
#define TESTS_ZOO_ZOO_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "../integration/programs/log.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "waffle_macros.h"

#define ZOO_MS 1000000ll
#define ZOO_MAX 16

static int zoo_seed, zoo_gate[2] = {-1, -1};
static atomic_int zoo_over;

static inline void zoo_need(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

/* A number of low…high that depends on the seed and on `what` alone (splitmix64). */
static inline long zoo_vary(int what, long low, long high)
{
	uint64_t x = ((uint64_t)zoo_seed << 32 | (uint32_t)what) + 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return low + (long)((x ^ x >> 31) % (uint64_t)(high - low + 1));
}

/* ---- who ---- */

struct zoo_who {
	int pid;
	int tid;
	char comm[16];
};

static inline struct zoo_who zoo_self(void)
{
	struct zoo_who who = {getpid(), thread_id(), ""};

	prctl(PR_GET_NAME, who.comm);
	return who;
}

static inline void zoo_introduce(const char *role)
{
	prctl(PR_SET_NAME, role);
	printf("thread role=%s pid=%d tid=%d\n", role, getpid(), thread_id());
}

/* ---- what the kernel says of the calling thread ---- */

static inline long long zoo_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static inline long long zoo_runnable_ns(void)
{
	long long running, runnable = -1;
	FILE *file = fopen("/proc/thread-self/schedstat", "r");

	zoo_need(file && fscanf(file, "%lld %lld", &running, &runnable) == 2, "schedstat");
	fclose(file);
	return runnable;
}

/* A piece of a thread's time: it ran, it was runnable, and the rest of it was blocked. */
struct zoo_time {
	long long begin;
	long long end;
	long long running;
	long long runnable;
};

/* The looks at the clock are the outer ones: a CPU that is lost between two looks makes the time
 * longer than the span in it, which can be seen, and not what is said of the span wrong. */
static inline void zoo_time_begin(struct zoo_time *t)
{
	t->begin = now_ns();
	t->runnable = zoo_runnable_ns();
	t->running = zoo_cpu_ns();
}

static inline void zoo_time_end(struct zoo_time *t)
{
	t->running = zoo_cpu_ns() - t->running;
	t->runnable = zoo_runnable_ns() - t->runnable;
	t->end = now_ns();
}

static inline long long zoo_blocked(const struct zoo_time *t)
{
	return t->end - t->begin - t->running - t->runnable;
}

/* ---- what is said ---- */

static inline void zoo_say_victim(int i, const struct zoo_time *t)
{
	printf("victim i=%d pid=%d tid=%d begin=%lld end=%lld running=%lld runnable=%lld\n", i,
	       getpid(), thread_id(), t->begin, t->end, t->running, t->runnable);
}

static inline void zoo_say_cause(int i, const char *cause, long long ns, struct zoo_who who,
				 const char *span, const char *object)
{
	printf("cause i=%d cause=%s ns=%lld pid=%d tid=%d comm=%s span=%s object=%s\n", i, cause,
	       ns, who.pid, who.tid, who.comm, span ? span : "-", object ? object : "-");
}

/* Describes a file descriptor: its path, or "pipe:[…]". */
static inline const char *zoo_object(int fd, char *text, size_t size)
{
	char name[64];
	ssize_t len;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	len = readlink(name, text, size - 1);
	zoo_need(len > 0, name);
	text[len] = '\0';
	return text;
}

/* ---- what is done ---- */

/* Computes for so many ms of CPU time, however long that takes. */
static inline void zoo_burn(long ms)
{
	long long end = zoo_cpu_ns() + ms * ZOO_MS;
	volatile long sum = 0;

	while (zoo_cpu_ns() < end)
		for (int i = 0; i < 2000; i++)
			sum = sum + i;
}

static inline void zoo_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	zoo_need(!sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
}

/* One of the CPUs this process may use, by the seed. */
static inline int zoo_some_cpu(void)
{
	int cpus[CPU_SETSIZE], n = 0;
	cpu_set_t set;

	zoo_need(!sched_getaffinity(0, sizeof(set), &set), "sched_getaffinity");
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set))
			cpus[n++] = i;
	return cpus[zoo_vary(-1, 0, n - 1)];
}

/* The calling thread alone enters the cgroup that the environment names. */
static inline void zoo_enter_cgroup(const char *variable)
{
	char name[512];
	int fd;

	snprintf(name, sizeof(name), "%s/tasks", getenv(variable) ?: "");
	fd = open(name, O_WRONLY);
	zoo_need(fd >= 0 && write(fd, "0", 1) == 1, variable);
	close(fd);
}

/* A file of so many bytes on the disk, none of it in memory; its name goes into `name`. */
static inline int zoo_file(char *name, size_t name_size, long bytes, int flags)
{
	static char block[1 << 16];
	int fd;

	snprintf(name, name_size, "%s/zoo-%d.dat", getenv("ZOO_DIR") ?: "/var/tmp", getpid());
	memset(block, 'z', sizeof(block));
	fd = open(name, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	zoo_need(fd >= 0, name);
	for (long done = 0; done < bytes; done += (long)sizeof(block))
		zoo_need(write(fd, block, sizeof(block)) == sizeof(block), name);
	zoo_need(!fsync(fd) && !posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), name);
	close(fd);
	fd = open(name, flags);
	zoo_need(fd >= 0, name);
	return fd;
}

/* ---- processes and threads ---- */

/* A child of that name that waits for zoo_go(), and dies with its parent. `kind`: "process", or
 * "outsider" for one that is not to be traced. */
static inline pid_t zoo_fork_as(const char *kind, const char *role, void (*work)(void))
{
	pid_t pid;
	char byte;

	if (zoo_gate[0] < 0)
		zoo_need(!pipe(zoo_gate), "pipe");
	fflush(stdout);
	pid = fork();
	zoo_need(pid >= 0, "fork");
	if (pid) {
		printf("%s role=%s pid=%d\n", kind, role, pid);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(zoo_gate[1]);
	prctl(PR_SET_NAME, role);
	if (read(zoo_gate[0], &byte, 1) == 0)
		work();
	exit(0);
}

static inline pid_t zoo_fork(const char *role, void (*work)(void))
{
	return zoo_fork_as("process", role, work);
}

/* First thing in main(): takes the seed, the last argument. */
static inline void zoo_begin(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	zoo_seed = argc > 1 ? atoi(argv[argc - 1]) : 1;
}

static inline void zoo_go(void)
{
	char byte;

	printf("ready pid=%d\n", getpid());
	while (read(0, &byte, 1) == 1 && byte != '\n')
		;
	if (zoo_gate[1] >= 0)
		close(zoo_gate[1]);
}

struct zoo_thread {
	const char *role;
	void (*work)(void);
};

static inline void *zoo_thread_main(void *arg)
{
	const struct zoo_thread *thread = arg;

	zoo_introduce(thread->role);
	thread->work();
	if (!strcmp(thread->role, "victim"))
		zoo_over = 1;
	return NULL;
}

/* Somebody who is awake while the victim waits, and has nothing to do with it; so unimportant that
 * it takes nobody's CPU. */
static inline void zoo_innocent(void)
{
	zoo_need(!setpriority(PRIO_PROCESS, 0, 19), "setpriority");
	for (int i = 0; !zoo_over; i++) {
		{
			SPAN("innocent");
			zoo_burn(1);
		}
		sleep_ms(zoo_vary(1000 + i, 2, 6));
	}
}

/* The rounds of a victim whose own work is all that it waits for. */
static inline void zoo_work(int rounds, void (*work)(int i), const char *cause, const char *object)
{
	struct zoo_time t;

	for (int i = 0; i < rounds; i++) {
		zoo_time_begin(&t);
		{
			SPAN("victim", KV_I64("i", i));
			work(i);
		}
		zoo_time_end(&t);
		zoo_say_victim(i, &t);
		zoo_say_cause(i, cause, zoo_blocked(&t), zoo_self(), "victim", object);
	}
}

/* Runs the threads, started in an order that depends on the seed, to their end. */
static inline void zoo_run(const struct zoo_thread *threads, int count)
{
	pthread_t made[ZOO_MAX];

	for (int i = 0; i < count; i++) {
		const struct zoo_thread *t = &threads[(i + zoo_vary(-2, 0, count - 1)) % count];

		zoo_need(!pthread_create(&made[i], NULL, zoo_thread_main, (void *)t), "pthread");
	}
	for (int i = 0; i < count; i++)
		pthread_join(made[i], NULL);
}

#define ZOO_RUN(...)                                                                               \
	zoo_run((const struct zoo_thread[]){__VA_ARGS__},                                          \
		sizeof((struct zoo_thread[]){__VA_ARGS__}) / sizeof(struct zoo_thread))

#endif
