// SPDX-License-Identifier: Apache-2.0
/*
 * Waits that end by a timeout, or by what another process does. Recorded with --no-follow the other
 * process is not seen, and what ended the waits is known from system calls only.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "waffle_macros.h"

#define MS 5

enum { PIPE, TCP, POLLED, SHARED, STOP, SIGNAL, ROUNDS };

static int there[2], pipes[2], sockets[2];
static sem_t *shared;
static pid_t child;

static void pause_ms(long ms)
{
	struct timespec time = {0, ms * 1000000};

	nanosleep(&time, NULL);
}

static struct timespec deadline(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	time.tv_nsec += MS * 1000000;
	if (time.tv_nsec >= 1000000000) {
		time.tv_nsec -= 1000000000;
		time.tv_sec++;
	}
	return time;
}

static void act(char what, pid_t parent)
{
	pause_ms(MS);
	if (what == PIPE)
		(void)!write(pipes[1], "x", 1);
	if (what == TCP || what == POLLED)
		(void)!write(sockets[1], "x", 1);
	if (what == SHARED)
		sem_post(shared);
	if (what == SIGNAL)
		kill(parent, SIGUSR1);
	if (what != STOP)
		return;
	kill(parent, SIGSTOP);
	pause_ms(MS);
	kill(parent, SIGCONT);
}

static void serve(pid_t parent)
{
	char what;

	while (read(there[0], &what, 1) == 1 && what != ROUNDS)
		act(what, parent);
	pause_ms(MS);
	_exit(3);
}

static void ask(char what)
{
	(void)!write(there[1], &what, 1);
}

static void connect_sockets(void)
{
	struct sockaddr_in here = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(here);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	sockets[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&here, size) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&here, &size) ||
	    connect(sockets[0], (struct sockaddr *)&here, size))
		exit(1);
	sockets[1] = accept(listener, NULL, NULL);
}

static void others(void)
{
	struct pollfd polled = {.fd = sockets[0], .events = POLLIN};
	sigset_t signals;
	char byte;

	{
		SPAN("pipe");
		ask(PIPE);
		(void)!read(pipes[0], &byte, 1);
	}
	{
		SPAN("socket");
		ask(TCP);
		(void)!read(sockets[0], &byte, 1);
	}
	{
		SPAN("poll of a socket");
		ask(POLLED);
		poll(&polled, 1, -1);
		(void)!read(sockets[0], &byte, 1);
	}
	{
		SPAN("shared semaphore");
		ask(SHARED);
		sem_wait(shared);
	}
	{
		SPAN("stopped");
		ask(STOP);
		pause_ms(MS * 3);
	}
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	{
		SPAN("signal");
		ask(SIGNAL);
		sigwaitinfo(&signals, NULL);
	}
}

static void descriptors_timeout(void)
{
	struct itimerspec time = {.it_value.tv_nsec = MS * 1000000};
	struct timeval wait = {0, MS * 1000};
	int timer = timerfd_create(CLOCK_MONOTONIC, 0), epoll = epoll_create1(0);
	struct pollfd polled = {.fd = timer, .events = POLLIN};
	struct epoll_event event = {.events = EPOLLIN};
	char byte;

	{
		SPAN("poll with a timeout");
		poll(NULL, 0, MS);
	}
	{
		SPAN("poll of a timer");
		timerfd_settime(timer, 0, &time, NULL);
		poll(&polled, 1, -1);
	}
	{
		SPAN("epoll with a timeout");
		epoll_wait(epoll, &event, 1, MS);
	}
	{
		SPAN("select with a timeout");
		select(0, NULL, NULL, NULL, &wait);
	}
	{
		SPAN("receive with a timeout");
		wait = (struct timeval){0, MS * 1000};
		setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
		(void)!read(sockets[0], &byte, 1);
	}
}

static void locks_timeout(void)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
	struct timespec until, wait = {0, MS * 1000000};
	sigset_t signals;

	pthread_mutex_lock(&mutex);
	until = deadline(CLOCK_REALTIME);
	{
		SPAN("mutex with a timeout");
		pthread_mutex_timedlock(&mutex, &until);
	}
	until = deadline(CLOCK_REALTIME);
	{
		SPAN("condition with a timeout");
		pthread_cond_timedwait(&cond, &mutex, &until);
	}
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR2);
	{
		SPAN("signal with a timeout");
		sigtimedwait(&signals, NULL, &wait);
	}
}

int main(void)
{
	pid_t parent = getpid();
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigaddset(&signals, SIGUSR2);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (pipe(there) || pipe(pipes) || sem_init(shared, 1, 0))
		return 1;
	connect_sockets();
	child = fork();
	if (!child)
		serve(parent);
	others();
	descriptors_timeout();
	locks_timeout();
	{
		SPAN("child");
		ask(ROUNDS);
		waitpid(child, NULL, 0);
	}
	return 0;
}
