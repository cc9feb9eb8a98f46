// SPDX-License-Identifier: Apache-2.0
#include "target/process/tcp_peer.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "target/process/descriptors.h"
#include "target/process/pipe_ends.h"
#include "util/clock.h"

bool tcp_connection_turn(char *turned, size_t size, const char *detail)
{
	const char *local = detail + strlen("tcp ");
	const char *between = strstr(local, DESCRIPTOR_BETWEEN);

	return between && (size_t)snprintf(turned, size, "tcp %s" DESCRIPTOR_BETWEEN "%.*s",
					   between + strlen(DESCRIPTOR_BETWEEN),
					   (int)(between - local), local) < size;
}

#define PORTS 65536

struct ends_search {
	uint64_t ino;      /* of one end */
	uint16_t port;     /* the same */
	char turned[256];  /* how the other end is described; "": not known yet */
	uint64_t peer_ino; /* of the other end; 0: not found */
	bool writes;
	uint64_t until_ns;
	bool listens[PORTS]; /* whether a socket does at that port */
};

/* Of the first end in a text: "tcp A" or "tcp A <-> B". */
static uint16_t port_of(const char *detail)
{
	const char *between = strstr(detail, DESCRIPTOR_BETWEEN);
	const char *colon =
		memrchr(detail, ':', between ? (size_t)(between - detail) : strlen(detail));

	return colon ? (uint16_t)strtoul(colon + 1, NULL, 10) : 0;
}

static void listener_note(struct ends_search *search, const char *detail)
{
	if (!strstr(detail, DESCRIPTOR_BETWEEN))
		search->listens[port_of(detail)] = true;
}

/* Once all sockets are read. False as well if it may be either. */
static bool is_clients_end(const struct ends_search *search)
{
	return search->listens[port_of(search->turned)] && !search->listens[search->port];
}

static bool is_late(const struct ends_search *search)
{
	return clock_monotonic_ns() >= search->until_ns;
}

static bool near_see(const struct inet_socket *socket, void *arg)
{
	struct ends_search *search = arg;

	listener_note(search, socket->detail);
	if (socket->ino != search->ino)
		return !is_late(search);
	search->port = port_of(socket->detail);
	if (!tcp_connection_turn(search->turned, sizeof(search->turned), socket->detail))
		search->turned[0] = '\0';
	return false;
}

static bool far_see(const struct inet_socket *socket, void *arg)
{
	struct ends_search *search = arg;

	listener_note(search, socket->detail);
	if (!strcmp(socket->detail, search->turned))
		search->peer_ino = socket->ino;
	return !is_late(search) && !(search->peer_ino && search->writes);
}

/* Whether a descriptor is a socket, which then has this key. */
static bool is_socket(struct file_key *key, pid_t tid, int fd)
{
	struct statx file;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", tid, fd);
	if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE | STATX_INO,
		  &file) ||
	    !S_ISSOCK(file.stx_mode))
		return false;
	*key = (struct file_key){.ino = file.stx_ino,
				 .dev = file.stx_dev_major << 20 | file.stx_dev_minor};
	return true;
}

pid_t tcp_peer_process(pid_t tid, int fd, bool writes, uint64_t until_ns)
{
	struct ends_search search = {.writes = writes, .until_ns = until_ns};
	struct pipe_end end = {.socket = true};
	struct file_key key;

	if (!is_socket(&key, tid, fd))
		return 0;
	search.ino = key.ino;
	(void)tcp_sockets_each(tid, near_see, &search);
	if (search.turned[0] && (writes || !search.listens[search.port]))
		(void)tcp_sockets_each(tid, far_see, &search);
	if (!search.peer_ino || (!writes && !is_clients_end(&search)))
		return 0;
	end.key = (struct file_key){.ino = search.peer_ino, .dev = key.dev};
	return !pipe_ends_find(&end, 1, until_ns) && end.count == 1 ? end.holders[0].pid : 0;
}
