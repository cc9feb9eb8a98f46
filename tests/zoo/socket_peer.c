// SPDX-License-Identifier: Apache-2.0
/*
 * socket_peer WAY SEED: the victim asks a peer over TCP, a process without spans, which
 *	computes or sleeps before it answers;
 *	drains what the victim sends too slowly: it sleeps, and takes what is there without waiting
 */
#include "zoo.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>

#define ROUNDS 8
#define DRAINED (256 << 10)
#define SENT (1 << 20)
#define WARM_UP 6

static const char *way;
static int listening;
static pid_t peer_pid;

static bool is(const char *name)
{
	return !strcmp(way, name);
}

static void drain(int fd)
{
	static char buffer[DRAINED];

	for (;;) {
		sleep_ms(50);
		if (!recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT))
			return;
	}
}

static void peer(void)
{
	int fd = accept(listening, NULL, NULL);
	char byte;

	if (is("drains")) {
		drain(fd);
		return;
	}
	for (int i = 0; read(fd, &byte, 1) == 1; i++) {
		if (is("sleeps"))
			sleep_ms(zoo_vary(i, 80, 200));
		else
			zoo_burn(zoo_vary(i, 80, 200));
		zoo_need(write(fd, &byte, 1) == 1, "write");
	}
}

static int dial(const struct sockaddr_in *address)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	zoo_need(fd >= 0 && !connect(fd, (const void *)address, sizeof(*address)), "connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

static void ask(int fd)
{
	static char data[SENT];
	char byte = 'q';

	if (is("drains"))
		zoo_need(write(fd, data, sizeof(data)) == sizeof(data), "write");
	else
		zoo_need(write(fd, &byte, 1) == 1 && read(fd, &byte, 1) == 1, "ask");
}

static void victim(void)
{
	bool computes = is("computes");
	struct zoo_who who = {peer_pid, peer_pid, "peer"};
	struct sockaddr_in address;
	socklen_t size = sizeof(address);
	struct zoo_time t;
	char object[64];
	int fd;

	getsockname(listening, (void *)&address, &size);
	snprintf(object, sizeof(object), "127.0.0.1:%d", ntohs(address.sin_port));
	fd = dial(&address);
	/* The first ones fill the buffers of both ends. */
	for (int i = 0; is("drains") && i < WARM_UP; i++)
		ask(fd);
	for (int i = 0; i < ROUNDS; i++) {
		zoo_time_begin(&t);
		{
			SPAN("victim", KV_I64("i", i));
			ask(fd);
		}
		zoo_time_end(&t);
		zoo_say_victim(i, &t);
		zoo_say_cause(i, computes ? "socket" : "sleep", zoo_blocked(&t), who, NULL,
			      computes ? object : NULL);
	}
	close(fd);
}

int main(int argc, char **argv)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};

	zoo_begin(argc, argv);
	way = argc > 2 ? argv[1] : "computes";
	listening = socket(AF_INET, SOCK_STREAM, 0);
	zoo_need(!bind(listening, (const void *)&any, sizeof(any)) && !listen(listening, 1),
		 "listen");
	peer_pid = zoo_fork("peer", peer);
	zoo_go();
	ZOO_RUN({"victim", victim}, {"innocent", zoo_innocent});
	return 0;
}
