// SPDX-License-Identifier: Apache-2.0
/*
 * Takes the trace of a request out of its HTTP headers and sends it on (docs/propagation.md). It is
 * a relay: each request that comes to PORT becomes a request to NEXT, on this machine.
 *
 *	build/examples/propagate_http PORT NEXT
 *
 * With PORT 0 the system chooses one; the first line of the output is the port. OTEL_PROPAGATORS
 * chooses the formats. WAFFLE_TRACE=relay.waffle records the spans.
 */
#define _GNU_SOURCE /* strncasecmp and dprintf are not of C11 */

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <waffle.h>
#include <waffle_propagate.h>

#define HEAD_MAX 32768

/* The carrier of what is received: the text of the headers. */
static const char *header_get(void *user, const char *name, size_t index, size_t *length)
{
	const char *line = user;
	size_t name_len = strlen(name);

	while ((line = strstr(line, "\r\n")) != NULL) {
		line += 2;
		if (strncasecmp(line, name, name_len) != 0 || line[name_len] != ':' || index--)
			continue;
		line += name_len + 1;
		*length = strcspn(line, "\r\n");
		return line;
	}
	return NULL;
}

/* The carrier of what is sent: a socket. */
static int header_set(void *user, const char *name, const char *value)
{
	return dprintf(*(int *)user, "%s: %s\r\n", name, value) < 0 ? -1 : 0;
}

static int connect_to(int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		perror("connect");
		exit(1);
	}
	return fd;
}

static int listen_at(int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(fd, (struct sockaddr *)&address, size) || listen(fd, 16) ||
	    getsockname(fd, (struct sockaddr *)&address, &size)) {
		perror("listen");
		exit(1);
	}
	printf("%d\n", ntohs(address.sin_port));
	fflush(stdout);
	return fd;
}

/* Reads to the end of the headers. This relay ignores bodies. */
static void head_read(int fd, char head[HEAD_MAX])
{
	size_t len = 0;
	ssize_t got;

	head[0] = '\0';
	while (len < HEAD_MAX - 1 && !strstr(head, "\r\n\r\n") &&
	       (got = read(fd, head + len, HEAD_MAX - 1 - len)) > 0) {
		len += (size_t)got;
		head[len] = '\0';
	}
}

static void send_on(int next, const struct waffle_wire_context *wire)
{
	WAFFLE_SPAN("send");
	int fd = connect_to(next);
	struct waffle_carrier sent = {.set = header_set, .user = &fd};
	char answer[HEAD_MAX];

	dprintf(fd, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
	waffle_propagate_inject(waffle_propagators(), &sent, waffle_context_extract(), wire);
	dprintf(fd, "\r\n");
	head_read(fd, answer);
	close(fd);
}

static void handle(int fd, int next)
{
	static char head[HEAD_MAX];
	struct waffle_carrier received = {.get = header_get, .user = head};
	struct waffle_wire_context wire;
	char user[64];

	head_read(fd, head);
	waffle_propagate_extract(waffle_propagators(), &received, &wire);
	WAFFLE_INJECT(wire.context);
	WAFFLE_SPAN("request");
	if (waffle_baggage_get(&wire, "user", user, sizeof(user)) >= 0)
		WAFFLE_EVENT("user", KV_STR("name", user));
	waffle_baggage_set(&wire, "relay", "C", NULL);
	send_on(next, &wire);
	dprintf(fd, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
}

int main(int argc, char **argv)
{
	int server, fd;

	if (argc != 3) {
		fprintf(stderr, "usage: propagate_http PORT NEXT\n");
		return 2;
	}
	server = listen_at(atoi(argv[1]));
	while ((fd = accept(server, NULL, NULL)) >= 0) {
		handle(fd, atoi(argv[2]));
		close(fd);
	}
	return 0;
}
