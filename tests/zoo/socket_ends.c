// SPDX-License-Identifier: Apache-2.0
/*
 * socket_ends WAY SEED: answers over TCP that are not written by write(2). A connection per
 * request:
 *
 *	closes	the peer computes and closes the connection
 *	exits	the peer, one for each request, computes and exits
 *	splices	the peer computes and answers by splice(2)
 *	sends	the same by sendfile(2)
 *	nagle	the victim sends its request in two pieces, and the kernel holds the second one back
 *		until the first one is acknowledged, which the other kernel delays: nobody computes
 *	silent	the peer does not answer, and the victim's receive timeout expires
 */
#include "zoo.h"

#include <arpa/inet.h>
#include <sys/sendfile.h>

#define ROUNDS 6
#define WARM_UP 20

static const char *way;
static int listening[ROUNDS], turn;
static pid_t peers[ROUNDS];

static bool is(const char *name)
{
	return !strcmp(way, name);
}

static void splice_answer(int fd)
{
	int ends[2];

	zoo_need(!pipe(ends) && write(ends[1], "a", 1) == 1, "pipe");
	zoo_need(splice(ends[0], NULL, fd, NULL, 1, 0) == 1, "splice");
	close(ends[0]);
	close(ends[1]);
}

static void sendfile_answer(int fd)
{
	int file = memfd_create("answer", 0);

	zoo_need(file >= 0 && write(file, "a", 1) == 1, "memfd_create");
	zoo_need(sendfile(fd, file, &(off_t){0}, 1) == 1, "sendfile");
	close(file);
}

static void answer(int fd, int i)
{
	char byte;

	zoo_need(read(fd, &byte, 1) == 1, "read");
	zoo_burn(zoo_vary(i, 80, 200));
	if (is("splices"))
		splice_answer(fd);
	else if (is("sends"))
		sendfile_answer(fd);
}

/* Answers after two bytes each. */
static void answer_pairs(int fd)
{
	char byte;

	while (read(fd, &byte, 1) == 1 && read(fd, &byte, 1) == 1)
		zoo_need(write(fd, &byte, 1) == 1, "write");
}

static void serve(int i)
{
	int fd = accept(listening[i], NULL, NULL);

	zoo_need(fd >= 0, "accept");
	if (is("nagle")) {
		answer_pairs(fd);
		return;
	}
	if (is("silent"))
		sleep_ms(300);
	else
		answer(fd, i);
	if (is("exits"))
		_exit(0);
	close(fd);
}

/* All connections, or that of one turn. */
static void peer(void)
{
	for (int i = turn; i < (is("nagle") ? 1 : ROUNDS); i++)
		serve(i);
}

static int dial(const struct sockaddr_in *address)
{
	struct timeval limit = {0, 100000};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	zoo_need(fd >= 0 && !connect(fd, (const void *)address, sizeof(*address)), "connect");
	if (is("silent"))
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return fd;
}

static int dial_to(int i)
{
	struct sockaddr_in address;
	socklen_t size = sizeof(address);

	getsockname(listening[i], (void *)&address, &size);
	return dial(&address);
}

static void ask(int fd)
{
	char byte = 'q';

	zoo_need(write(fd, &byte, 1) == 1, "write");
	if (is("nagle"))
		zoo_need(write(fd, &byte, 1) == 1, "write");
	zoo_need(read(fd, &byte, 1) >= (is("silent") ? -1 : 0), "read");
}

static void victim(void)
{
	int fd = is("nagle") ? dial_to(0) : -1;
	struct zoo_time t;

	/* The kernel acknowledges the first packets of a connection at once. */
	for (int i = 0; is("nagle") && i < WARM_UP; i++)
		ask(fd);
	for (int i = 0; i < ROUNDS; i++) {
		struct zoo_who who = {peers[i], peers[i], "peer"}, nobody = {0, 0, "-"};

		if (!is("nagle"))
			fd = dial_to(i);
		zoo_time_begin(&t);
		{
			SPAN("victim", KV_I64("i", i));
			ask(fd);
		}
		zoo_time_end(&t);
		if (!is("nagle"))
			close(fd);
		zoo_say_victim(i, &t);
		zoo_say_cause(i, is("silent") ? "timer" : "socket", zoo_blocked(&t),
			      is("silent")  ? zoo_self()
			      : is("nagle") ? nobody
					    : who,
			      NULL, NULL);
	}
	close(fd);
}

static void listen_for(int i)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};

	listening[i] = socket(AF_INET, SOCK_STREAM, 0);
	zoo_need(!bind(listening[i], (const void *)&any, sizeof(any)) && !listen(listening[i], 1),
		 "listen");
}

int main(int argc, char **argv)
{
	zoo_begin(argc, argv);
	way = argc > 2 ? argv[1] : "closes";
	for (int i = 0; i < ROUNDS; i++)
		listen_for(i);
	peers[0] = zoo_fork("peer", peer);
	for (turn = 1; turn < ROUNDS; turn++)
		peers[turn] = is("exits") ? zoo_fork("peer", peer) : peers[0];
	zoo_go();
	ZOO_RUN({"victim", victim}, {"innocent", zoo_innocent});
	return 0;
}
