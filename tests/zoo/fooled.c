// SPDX-License-Identifier: Apache-2.0
/*
 * fooled WAY SEED: what the records show is not what the victim waited for. The doer computes that.
 *	near	the helper writes into the same pipe 20 µs before the doer does
 *	late	the helper broadcasts the condition variable and keeps its lock; the doer makes the
 *		item while the victim is awake and waits for that
 *	requeue	the doer moves the victim from one futex to another, at which the helper wakes all
 *	own	the program's own futex looks like a mutex, and the helper wakes its waiters
 *	robust	a thread that ends while it holds a robust mutex
 *	doze	the doer ends a long nanosleep(2) by a signal, and a short one follows
 *	handler	the first byte comes in a signal's handler, and the victim then waits for the second
 *	tracer	another process stopped the victim once; now it is stopped by ptrace(2)
 *	pause	another process stops the program for a while, which waits for the doer at a pipe
 */
#include "zoo.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/ptrace.h>

#define ROUNDS 6
#define LONG_MS 100
#define OWN_VALUE 2

static pthread_barrier_t begun, ended;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t made = PTHREAD_COND_INITIALIZER;
static atomic_int victim_tid, items, word, second;
static int ends[2], bell[2];
static atomic_llong deadline;
static const char *way;
/* The thread that did what the victim waited for. */
static struct zoo_who culprit;

static bool is(const char *name)
{
	return !strcmp(way, name);
}

static long futex(atomic_int *at, int op, int value, long limit, atomic_int *to, int compare)
{
	return syscall(SYS_futex, at, op, value, limit, to, compare);
}

static void put(int fd, const char *byte)
{
	zoo_need(write(fd, byte, 1) == 1, "write");
}

static char get(int fd)
{
	char byte;

	zoo_need(read(fd, &byte, 1) == 1, "read");
	return byte;
}

static void poke(void)
{
	syscall(SYS_tgkill, getpid(), victim_tid, SIGUSR1);
}

static void on_signal(int signo)
{
	(void)signo;
	if (is("handler"))
		zoo_burn(5);
}

static void spin_until(long long ns)
{
	while (now_ns() < ns)
		;
}

static void housekeeping(long ms)
{
	SPAN("housekeeping");
	sleep_ms(ms);
}

static const char *cause(void)
{
	if (is("near") || is("handler") || is("pause"))
		return "pipe";
	if (is("robust"))
		return "lock";
	return is("tracer") ? "stopped" : "user-work";
}

static const char *span(void)
{
	return is("tracer") ? NULL : "compute";
}

/* ---- the victim ---- */

static void await_item(int i)
{
	pthread_mutex_lock(&lock);
	while (items <= i)
		pthread_cond_wait(&made, &lock);
	pthread_mutex_unlock(&lock);
}

static void await(int i)
{
	struct timespec left = {10, 0};

	if (is("near")) {
		while (get(ends[0]) != 'x')
			;
	} else if (is("late")) {
		await_item(i);
	} else if (is("requeue")) {
		while (items <= i)
			futex(&word, FUTEX_WAIT_PRIVATE, 0, 0, NULL, 0);
	} else if (is("own")) {
		while (items <= i)
			futex(&word, FUTEX_WAIT_PRIVATE, OWN_VALUE, 0, NULL, 0);
	} else if (is("robust")) {
		zoo_need(pthread_mutex_lock(&lock) == EOWNERDEAD, "robust");
		pthread_mutex_consistent(&lock);
		pthread_mutex_unlock(&lock);
	} else if (is("doze")) {
		nanosleep(&left, &left);
		sleep_ms(5);
	} else if (is("handler")) {
		get(ends[0]);
		get(ends[0]);
	} else if (is("pause")) {
		put(bell[1], "x");
		get(ends[0]);
	} else if (is("tracer")) {
		put(bell[1], "x");
		zoo_burn(20);
	}
}

static void victim(void)
{
	int tid = thread_id();
	struct zoo_time t;

	victim_tid = thread_id();
	if (is("tracer")) {
		zoo_need(write(bell[1], &tid, sizeof(tid)) == sizeof(tid), "write");
		sleep_ms(100);
	}
	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&begun);
		zoo_time_begin(&t);
		{
			SPAN("victim", KV_I64("i", i));
			await(i);
		}
		zoo_time_end(&t);
		zoo_say_victim(i, &t);
		zoo_say_cause(i, cause(), is("pause") ? LONG_MS * ZOO_MS : t.end - t.begin, culprit,
			      span(), NULL);
		pthread_barrier_wait(&ended);
	}
}

/* ---- the doer ---- */

static void *own_and_end(void *arg)
{
	zoo_introduce("owner");
	culprit = zoo_self();
	pthread_mutex_lock(&lock);
	pthread_barrier_wait(&begun);
	{
		SPAN("compute");
		zoo_burn((long)(intptr_t)arg);
	}
	return NULL;
}

static void give(void)
{
	if (is("near") || is("handler") || is("pause")) {
		put(ends[1], "x");
	} else if (is("late")) {
		items++;
		pthread_mutex_lock(&lock);
		pthread_cond_broadcast(&made);
		pthread_mutex_unlock(&lock);
	} else if (is("requeue")) {
		items++;
		futex(&word, FUTEX_CMP_REQUEUE_PRIVATE, 0, 1, &second, 0);
	} else if (is("own")) {
		items++;
		futex(&word, FUTEX_WAKE_PRIVATE, 1, 0, NULL, 0);
	} else if (is("doze")) {
		poke();
	}
}

static void compute(int i)
{
	SPAN("compute", KV_I64("i", i));
	if (is("near"))
		spin_until(deadline + 20000);
	else
		zoo_burn(is("late") ? 75 : LONG_MS);
}

static void doer(void)
{
	pthread_t owner;

	if (!is("tracer"))
		culprit = zoo_self();
	for (int i = 0; i < ROUNDS; i++) {
		if (is("near"))
			deadline = now_ns() + zoo_vary(i, 80, 120) * ZOO_MS;
		if (is("robust")) {
			zoo_need(!pthread_create(&owner, NULL, own_and_end,
						 (void *)(intptr_t)LONG_MS),
				 "pthread_create");
			pthread_join(owner, NULL);
		} else {
			pthread_barrier_wait(&begun);
			if (!is("tracer")) {
				compute(i);
				give();
			}
		}
		pthread_barrier_wait(&ended);
	}
}

/* ---- the helper ---- */

static void help_once(int i)
{
	if (is("near")) {
		housekeeping((deadline - now_ns()) / ZOO_MS - 1);
		spin_until(deadline);
		put(ends[1], "-");
	} else if (is("late")) {
		housekeeping(60);
		pthread_mutex_lock(&lock);
		pthread_cond_broadcast(&made);
		zoo_burn(40);
		pthread_mutex_unlock(&lock);
	} else if (is("requeue") || is("own")) {
		while (items <= i) {
			housekeeping(4);
			futex(is("own") ? &word : &second, FUTEX_WAKE_PRIVATE, 1, 0, NULL, 0);
		}
		housekeeping(4);
		futex(is("own") ? &word : &second, FUTEX_WAKE_PRIVATE, 1, 0, NULL, 0);
	} else if (is("handler")) {
		housekeeping(40);
		poke();
		sleep_ms(1);
		put(ends[1], "x");
	}
}

static void helper(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&begun);
		help_once(i);
		pthread_barrier_wait(&ended);
	}
}

/* ---- other processes ---- */

static void tracer(void)
{
	int tid = 0, status;

	zoo_need(read(bell[0], &tid, sizeof(tid)) == sizeof(tid), "read");
	for (int i = 0; i < ROUNDS; i++) {
		get(bell[0]);
		zoo_need(!ptrace(PTRACE_SEIZE, tid, 0, 0), "seize");
		zoo_need(!ptrace(PTRACE_INTERRUPT, tid, 0, 0), "interrupt");
		zoo_need(waitpid(tid, &status, __WALL) == tid, "waitpid");
		housekeeping(LONG_MS);
		zoo_need(!ptrace(PTRACE_DETACH, tid, 0, 0), "detach");
	}
}

static void stopper(void)
{
	sleep_ms(20);
	kill(getppid(), SIGSTOP);
	sleep_ms(20);
	kill(getppid(), SIGCONT);
	sleep_ms(20);
}

static void pauser(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		get(bell[0]);
		sleep_ms(20);
		kill(getppid(), SIGSTOP);
		sleep_ms(30);
		kill(getppid(), SIGCONT);
	}
}

static void set_up(void)
{
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	if (is("robust"))
		pthread_mutex_init(&lock, &attributes);
	zoo_need(!pipe(ends) && !pipe(bell), "set up");
	word = is("own") ? OWN_VALUE : 0;
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	zoo_begin(argc, argv);
	way = argc > 2 ? argv[1] : "near";
	sigaction(SIGUSR1, &action, NULL);
	set_up();
	pthread_barrier_init(&begun, NULL, 3);
	pthread_barrier_init(&ended, NULL, 3);
	if (is("tracer")) {
		culprit = (struct zoo_who){0, 0, "tracer"};
		culprit.pid = culprit.tid = zoo_fork("tracer", tracer);
		zoo_fork("stopper", stopper);
	}
	if (is("pause"))
		zoo_fork("pauser", pauser);
	zoo_go();
	ZOO_RUN({"victim", victim}, {"doer", doer}, {"helper", helper});
	return 0;
}
