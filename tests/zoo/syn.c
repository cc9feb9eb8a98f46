// SPDX-License-Identifier: Apache-2.0
/* The victim connects to sockets that drop what comes for some time, so that its kernel sends the
 * SYN again. */
#include "zoo.h"

#include <arpa/inet.h>
#include <linux/filter.h>

#define ROUNDS 4
#define TURN_MS 1000 /* the kernel sends the first SYN again after it: TCP_TIMEOUT_INIT */

static pthread_barrier_t asked;
static int listening[ROUNDS];
static struct sockaddr_in addresses[ROUNDS];

static void listen_for(int i)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct sock_filter none = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = {1, &none};
	socklen_t size = sizeof(addresses[i]);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	zoo_need(!bind(fd, (const void *)&any, sizeof(any)) && !listen(fd, 1), "listen");
	zoo_need(!setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)),
		 "SO_ATTACH_FILTER");
	getsockname(fd, (void *)&addresses[i], &size);
	listening[i] = fd;
}

static void opener(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&asked);
		sleep_ms(zoo_vary(i, TURN_MS / 4, TURN_MS / 2));
		setsockopt(listening[i], SOL_SOCKET, SO_DETACH_FILTER, &(int){0}, sizeof(int));
	}
}

static void victim(void)
{
	const struct zoo_who nobody = {0, 0, "-"};
	struct zoo_time t;
	char name[64];

	for (int i = 0; i < ROUNDS; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		pthread_barrier_wait(&asked);
		zoo_time_begin(&t);
		{
			SPAN("victim", KV_I64("i", i));
			zoo_need(!connect(fd, (const void *)&addresses[i], sizeof(addresses[i])),
				 "connect");
		}
		zoo_time_end(&t);
		close(fd);
		snprintf(name, sizeof(name), "127.0.0.1:%u", ntohs(addresses[i].sin_port));
		zoo_say_victim(i, &t);
		zoo_say_cause(i, "socket", zoo_blocked(&t), nobody, NULL, name);
	}
}

int main(int argc, char **argv)
{
	zoo_begin(argc, argv);
	for (int i = 0; i < ROUNDS; i++)
		listen_for(i);
	pthread_barrier_init(&asked, NULL, 2);
	zoo_go();
	ZOO_RUN({"victim", victim}, {"opener", opener}, {"innocent", zoo_innocent});
	return 0;
}
