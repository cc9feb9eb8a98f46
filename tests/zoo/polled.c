// SPDX-License-Identifier: Apache-2.0
/*
 * polled WAY SEED: the victim waits in poll(2) for a name server that does not answer (WAY dns), or
 * in select(2) or epoll_wait(2) for the one of two pipes that another process writes to (WAY select
 * or epoll).
 */
#include "zoo.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>

#define ROUNDS 6

static int request[2], answer[2], silent[2], epoll;
static char name[64];

/* Makes the calls of a resolver: sends a query, and waits for an answer, which does not come. */
static void ask_server(int fd, int i)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};

	zoo_need(send(fd, "query", 5, 0) == 5, "send");
	zoo_need(!poll(&wait, 1, (int)zoo_vary(i, 60, 120)), "poll");
}

static int server_connect(void)
{
	int server = socket(AF_INET, SOCK_DGRAM, 0), fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(53)};

	/* An address of its own, since other servers may listen to this port. */
	to.sin_addr.s_addr = htonl(0x7f400000u + (uint32_t)getpid() % 0x3ffffu);
	zoo_need(!bind(server, (struct sockaddr *)&to, sizeof(to)), "bind");
	zoo_need(!connect(fd, (struct sockaddr *)&to, sizeof(to)), "connect");
	snprintf(name, sizeof(name), "%s:53", inet_ntoa(to.sin_addr));
	return fd;
}

static void victim_asks(void)
{
	int fd = server_connect();
	struct zoo_time t;

	for (int i = 0; i < ROUNDS; i++) {
		zoo_time_begin(&t);
		{
			SPAN("victim", KV_I64("i", i));
			ask_server(fd, i);
		}
		zoo_time_end(&t);
		zoo_say_victim(i, &t);
		zoo_say_cause(i, "timer", zoo_blocked(&t), zoo_self(), "victim", name);
	}
}

static void writer(void)
{
	char byte;

	close(request[1]);
	while (read(request[0], &byte, 1) == 1) {
		struct zoo_time t;

		zoo_time_begin(&t);
		zoo_burn(zoo_vary(byte, 40, 80));
		zoo_time_end(&t);
		zoo_say_cause(byte, "pipe", t.running, zoo_self(), NULL,
			      zoo_object(answer[1], name, sizeof(name)));
		zoo_need(write(answer[1], &byte, 1) == 1, "write");
	}
}

static void epoll_make(void)
{
	struct epoll_event event = {.events = EPOLLIN};

	epoll = epoll_create1(0);
	zoo_need(!epoll_ctl(epoll, EPOLL_CTL_ADD, silent[0], &event) &&
			 !epoll_ctl(epoll, EPOLL_CTL_ADD, answer[0], &event),
		 "epoll");
}

static void wait_for_answer(void)
{
	int high = answer[0] > silent[0] ? answer[0] : silent[0];
	struct epoll_event event;
	fd_set set;

	if (epoll) {
		zoo_need(epoll_wait(epoll, &event, 1, -1) == 1, "epoll_wait");
		return;
	}
	FD_ZERO(&set);
	FD_SET(answer[0], &set);
	FD_SET(silent[0], &set);
	zoo_need(select(high + 1, &set, NULL, NULL, NULL) == 1, "select");
}

static void victim_polls(void)
{
	struct zoo_time t;
	char byte;

	close(request[0]);
	for (int i = 0; i < ROUNDS; i++) {
		byte = (char)i;
		zoo_time_begin(&t);
		{
			SPAN("victim", KV_I64("i", i));
			zoo_need(write(request[1], &byte, 1) == 1, "write");
			wait_for_answer();
			zoo_need(read(answer[0], &byte, 1) == 1, "read");
		}
		zoo_time_end(&t);
		zoo_say_victim(i, &t);
		sleep_ms(2);
	}
}

int main(int argc, char **argv)
{
	bool dns = argc > 2 && !strcmp(argv[1], "dns");

	zoo_begin(argc, argv);
	zoo_need(!pipe(request) && !pipe(answer) && !pipe(silent), "pipe");
	if (argc > 2 && !strcmp(argv[1], "epoll"))
		epoll_make();
	if (!dns)
		zoo_fork("writer", writer);
	zoo_go();
	if (dns) {
		ZOO_RUN({"victim", victim_asks}, {"innocent", zoo_innocent});
	} else {
		ZOO_RUN({"victim", victim_polls}, {"innocent", zoo_innocent});
		close(request[1]);
		wait(NULL);
	}
	return 0;
}
