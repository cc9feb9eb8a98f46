// SPDX-License-Identifier: Apache-2.0
/*
 * astray WAY SEED: wake-ups that do not end what the victim waits for. The doer computes that; the
 * ticker, which has nothing to do with it, wakes the victim every few ms meanwhile:
 *	herd	by a broadcast of the condition variable, for another item
 *	chatty	by a message on another socket that the victim's epoll has
 *	pipe, mutex, child	by a signal, while the victim reads from a pipe, waits for a mutex,
 *		or for a child
 *	lines	by other lines in the same pipe
 *	reap	by other children that end, while it waits for any child until the right one ends
 *	wanted	by other signals, while it waits for signals until the right one comes
 *	itimer	there is no ticker: a timer of the process sends the signals, at a pipe
 *	nap	there is no ticker: the doer ends a long nanosleep(2) of the victim by a signal
 */
#include "zoo.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>

#define ROUNDS 6

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t made = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t begun, ended;
static atomic_int victim_tid;
static int items, others;
static int answers[2], ticks[2], bells[ROUNDS][2], turn;
static pid_t children[ROUNDS];
static const char *way;
static sigset_t alarms, wanted;

static bool is(const char *name)
{
	return !strcmp(way, name);
}

static bool has_ticker(void)
{
	return !is("itimer") && !is("nap");
}

static void on_signal(int signo)
{
	(void)signo;
}

static void poke(int signo)
{
	syscall(SYS_tgkill, getpid(), victim_tid, signo);
}

static bool has_children(void)
{
	return is("child") || is("reap");
}

/* ---- what the victim waits for ---- */

static void await_item(int i)
{
	pthread_mutex_lock(&lock);
	while (items <= i)
		pthread_cond_wait(&made, &lock);
	pthread_mutex_unlock(&lock);
}

static void await_event(int poll)
{
	struct epoll_event event;
	char byte;

	do {
		while (epoll_wait(poll, &event, 1, -1) != 1)
			;
		zoo_need(read(event.data.fd, &byte, 1) == 1, "read");
	} while (event.data.fd != answers[0]);
}

static void await(int i, int poll)
{
	struct timespec left = {10, 0};
	int signo;
	char byte;

	if (is("herd")) {
		await_item(i);
	} else if (is("lines")) {
		do
			zoo_need(read(answers[0], &byte, 1) == 1, "read");
		while (byte != 'x');
	} else if (is("reap")) {
		while (waitpid(-1, NULL, 0) != children[i])
			;
	} else if (is("wanted")) {
		sigwait(&wanted, &signo);
		while (signo != SIGUSR2)
			sigwait(&wanted, &signo);
	} else if (is("chatty")) {
		await_event(poll);
	} else if (is("mutex")) {
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
	} else if (has_children()) {
		zoo_need(waitpid(children[i], NULL, 0) == children[i], "waitpid");
	} else if (is("nap")) {
		nanosleep(&left, &left);
	} else {
		zoo_need(read(answers[0], &byte, 1) == 1, "read");
	}
}

static int events(void)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = answers[0]};
	int poll = epoll_create1(0);

	zoo_need(!epoll_ctl(poll, EPOLL_CTL_ADD, answers[0], &event), "epoll");
	event.data.fd = ticks[0];
	zoo_need(!epoll_ctl(poll, EPOLL_CTL_ADD, ticks[0], &event), "epoll");
	return poll;
}

static void victim(void)
{
	int poll = is("chatty") ? events() : -1;
	struct zoo_time t;

	victim_tid = thread_id();
	pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		struct zoo_who who = {children[i], children[i], "doer"};

		pthread_barrier_wait(&begun);
		zoo_time_begin(&t);
		{
			SPAN("victim", KV_I64("i", i));
			if (has_children())
				zoo_need(write(bells[i][1], "x", 1) == 1, "write");
			await(i, poll);
		}
		zoo_time_end(&t);
		zoo_say_victim(i, &t);
		if (has_children())
			zoo_say_cause(i, "process-exit", zoo_blocked(&t), who, NULL, NULL);
		pthread_barrier_wait(&ended);
	}
}

/* ---- who does it ---- */

static void give(void)
{
	if (is("herd")) {
		pthread_mutex_lock(&lock);
		items++;
		pthread_cond_broadcast(&made);
		pthread_mutex_unlock(&lock);
	} else if (is("mutex")) {
		pthread_mutex_unlock(&lock);
	} else if (is("nap") || is("wanted")) {
		poke(is("nap") ? SIGUSR1 : SIGUSR2);
	} else if (!has_children()) {
		zoo_need(write(answers[1], "x", 1) == 1, "write");
	}
}

static const char *cause(void)
{
	if (is("mutex"))
		return "lock";
	if (is("chatty"))
		return "socket";
	return is("pipe") || is("lines") || is("itimer") ? "pipe" : "user-work";
}

static void compute(int i, struct zoo_time *t)
{
	SPAN("compute", KV_I64("i", i));
	zoo_burn(zoo_vary(i, 80, 200));
	zoo_time_end(t);
}

static void doer(void)
{
	struct zoo_time t;

	for (int i = 0; i < ROUNDS; i++) {
		if (is("mutex"))
			pthread_mutex_lock(&lock);
		pthread_barrier_wait(&begun);
		if (!has_children()) {
			zoo_time_begin(&t);
			compute(i, &t);
			give();
			zoo_say_cause(i, cause(), t.running, zoo_self(), "compute", NULL);
		}
		pthread_barrier_wait(&ended);
	}
}

static void child(void)
{
	char byte;

	zoo_need(read(bells[turn][0], &byte, 1) == 1, "read");
	zoo_burn(zoo_vary(turn, 80, 200));
}

/* ---- who disturbs it ---- */

static void tick(void)
{
	if (is("herd")) {
		pthread_mutex_lock(&lock);
		others++;
		pthread_cond_broadcast(&made);
		pthread_mutex_unlock(&lock);
	} else if (is("chatty")) {
		/* Bytes that are not read in time are lost, which does not matter. */
		(void)!send(ticks[1], "x", 1, MSG_DONTWAIT);
	} else if (is("lines")) {
		zoo_need(write(answers[1], "-", 1) == 1, "write");
	} else if (is("reap")) {
		/* A child that ends at once: the victim's process is its parent, too. */
		if (!fork())
			_exit(0);
	} else {
		poke(SIGUSR1);
	}
}

static void ticker(void)
{
	while (!victim_tid)
		sleep_ms(1);
	while (!zoo_over) {
		{
			SPAN("housekeeping");
			sleep_ms(4);
		}
		if (!zoo_over)
			tick();
	}
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	struct itimerval every = {{0, 5000}, {0, 5000}};

	zoo_begin(argc, argv);
	way = argc > 2 ? argv[1] : "herd";
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGALRM, &action, NULL);
	sigaddset(&wanted, SIGUSR1);
	sigaddset(&wanted, SIGUSR2);
	if (is("wanted"))
		pthread_sigmask(SIG_BLOCK, &wanted, NULL);
	pthread_barrier_init(&begun, NULL, 2);
	pthread_barrier_init(&ended, NULL, 2);
	zoo_need(!(is("chatty") ? socketpair(AF_UNIX, SOCK_STREAM, 0, answers) : pipe(answers)) &&
			 !socketpair(AF_UNIX, SOCK_STREAM, 0, ticks),
		 "pipe");
	for (; has_children() && turn < ROUNDS; turn++) {
		zoo_need(!pipe(bells[turn]), "pipe");
		children[turn] = zoo_fork("doer", child);
	}
	zoo_go();
	/* Only the victim takes them. */
	sigaddset(&alarms, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarms, NULL);
	if (is("itimer"))
		zoo_need(!setitimer(ITIMER_REAL, &every, NULL), "setitimer");
	if (has_ticker())
		ZOO_RUN({"victim", victim}, {"doer", doer}, {"ticker", ticker});
	else
		ZOO_RUN({"victim", victim}, {"doer", doer});
	return 0;
}
