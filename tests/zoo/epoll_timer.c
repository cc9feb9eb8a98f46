// SPDX-License-Identifier: Apache-2.0
/* The victim waits in epoll_wait(2) for a timer that is set late and for an event that never is. */
#include "zoo.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#define ROUNDS 8

static void victim(void)
{
	int poll = epoll_create1(0), never = eventfd(0, 0),
	    timer = timerfd_create(CLOCK_MONOTONIC, 0);
	struct epoll_event event = {.events = EPOLLIN, .data.fd = never}, got;
	struct itimerspec late = {0};
	uint64_t expired;
	struct zoo_time t;
	char object[64];

	zoo_need(!epoll_ctl(poll, EPOLL_CTL_ADD, never, &event), "epoll");
	event.data.fd = timer;
	zoo_need(!epoll_ctl(poll, EPOLL_CTL_ADD, timer, &event), "epoll");
	for (int i = 0; i < ROUNDS; i++) {
		late.it_value.tv_nsec = zoo_vary(i, 100, 250) * ZOO_MS;
		zoo_need(!timerfd_settime(timer, 0, &late, NULL), "timerfd");
		zoo_time_begin(&t);
		{
			SPAN("victim", KV_I64("i", i), KV_I64("fd", poll));
			zoo_need(epoll_wait(poll, &got, 1, -1) == 1 && got.data.fd == timer &&
					 read(timer, &expired, 8) == 8,
				 "epoll_wait");
		}
		zoo_time_end(&t);
		zoo_say_victim(i, &t);
		zoo_say_cause(i, "timer", zoo_blocked(&t), zoo_self(), "victim",
			      zoo_object(timer, object, sizeof(object)));
	}
}

int main(int argc, char **argv)
{
	zoo_begin(argc, argv);
	zoo_go();
	ZOO_RUN({"victim", victim}, {"innocent", zoo_innocent});
	return 0;
}
