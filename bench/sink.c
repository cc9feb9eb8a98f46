// SPDX-License-Identifier: Apache-2.0
/*
 * A server that takes any request and only answers: the least that a backend can cost. Prints its
 * port, and serves until its input ends.
 *
 *	sink
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUFFER ((size_t)1 << 20)
#define CLIENTS 64

struct client {
	int fd;
	size_t head;    /* bytes of the header so far */
	long long rest; /* bytes of the body that are missing; -1: within the header */
	char header[8192];
};

static long long body_length(const char *header)
{
	const char *at = strcasestr(header, "\ncontent-length:");

	return at ? atoll(at + strlen("\ncontent-length:")) : 0;
}

/* False: the connection ends. */
static int answer(struct client *client)
{
	static const char done[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

	client->head = 0;
	client->rest = -1;
	return write(client->fd, done, sizeof(done) - 1) == (ssize_t)sizeof(done) - 1;
}

static int header_take(struct client *client, const char *data, size_t bytes, size_t *used)
{
	static const char proceed[] = "HTTP/1.1 100 Continue\r\n\r\n";

	for (*used = 0; *used < bytes;) {
		if (client->head + 1 == sizeof(client->header))
			return 0;
		client->header[client->head++] = data[(*used)++];
		if (client->head < 4 ||
		    memcmp(client->header + client->head - 4, "\r\n\r\n", 4) != 0)
			continue;
		client->header[client->head] = '\0';
		client->rest = body_length(client->header);
		if (strcasestr(client->header, "\nexpect:") &&
		    write(client->fd, proceed, sizeof(proceed) - 1) < 0)
			return 0;
		break;
	}
	return 1;
}

static int bytes_take(struct client *client, const char *data, size_t bytes)
{
	for (size_t at = 0; at < bytes;) {
		size_t used = bytes - at;

		if (client->rest < 0) {
			if (!header_take(client, data + at, bytes - at, &used))
				return 0;
		} else {
			if ((long long)used > client->rest)
				used = (size_t)client->rest;
			client->rest -= (long long)used;
		}
		at += used;
		if (!client->rest && !answer(client))
			return 0;
	}
	return 1;
}

static int listen_anywhere(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) || listen(fd, CLIENTS) ||
	    getsockname(fd, (struct sockaddr *)&address, &length))
		return -1;
	printf("%d\n", ntohs(address.sin_port));
	fflush(stdout);
	return fd;
}

static struct client clients[CLIENTS];
static struct pollfd polled[CLIENTS + 2];

static void client_add(int listener, nfds_t *count)
{
	int fd = accept(listener, NULL, NULL);

	if (fd < 0 || *count == CLIENTS + 2) {
		close(fd);
		return;
	}
	clients[*count - 2] = (struct client){.fd = fd, .rest = -1};
	polled[(*count)++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

static void client_remove(nfds_t number, nfds_t *count)
{
	close(polled[number].fd);
	polled[number] = polled[--*count];
	clients[number - 2] = clients[*count - 2];
}

int main(void)
{
	char *buffer = malloc(BUFFER);
	int listener = listen_anywhere();
	nfds_t count = 2;

	if (!buffer || listener < 0) {
		perror("sink");
		return 1;
	}
	polled[0] = (struct pollfd){.fd = 0, .events = POLLIN};
	polled[1] = (struct pollfd){.fd = listener, .events = POLLIN};
	while (poll(polled, count, -1) > 0 && !polled[0].revents) {
		for (nfds_t i = count; i-- > 2;) {
			ssize_t n = polled[i].revents ? read(polled[i].fd, buffer, BUFFER) : -2;

			if (n != -2 && (n <= 0 || !bytes_take(&clients[i - 2], buffer, (size_t)n)))
				client_remove(i, &count);
		}
		if (polled[1].revents)
			client_add(listener, &count);
	}
	free(buffer);
	return 0;
}
