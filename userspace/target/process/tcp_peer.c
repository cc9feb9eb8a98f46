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

/* Ports that Linux gives to clients begin here, unless it is told otherwise. */
#define CLIENT_PORTS 32768ul

static unsigned long port_of(const char *end, size_t len)
{
	const char *colon = memrchr(end, ':', len);

	return colon ? strtoul(colon + 1, NULL, 10) : 0;
}

/* Whether "tcp A <-> B" has a client as B. */
static bool is_servers_end(const char *detail)
{
	const char *between = strstr(detail, DESCRIPTOR_BETWEEN);
	const char *remote = between ? between + strlen(DESCRIPTOR_BETWEEN) : "";

	return between && port_of(detail, (size_t)(between - detail)) < CLIENT_PORTS &&
	       port_of(remote, strlen(remote)) >= CLIENT_PORTS;
}

struct ends_search {
	uint64_t ino;      /* of one end */
	char turned[256];  /* how the other end is described; "": not known yet */
	uint64_t peer_ino; /* of the other end; 0: not found */
	uint64_t until_ns;
};

static bool is_late(const struct ends_search *search)
{
	return clock_monotonic_ns() >= search->until_ns;
}

static bool near_see(const struct inet_socket *socket, void *arg)
{
	struct ends_search *search = arg;

	if (socket->ino != search->ino)
		return !is_late(search);
	if (!tcp_connection_turn(search->turned, sizeof(search->turned), socket->detail))
		search->turned[0] = '\0';
	return false;
}

static bool far_see(const struct inet_socket *socket, void *arg)
{
	struct ends_search *search = arg;

	if (strcmp(socket->detail, search->turned) != 0)
		return !is_late(search);
	search->peer_ino = socket->ino;
	return false;
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
	struct ends_search search = {.until_ns = until_ns};
	struct pipe_end end = {.socket = true};
	struct file_key key;

	if (!is_socket(&key, tid, fd))
		return 0;
	search.ino = key.ino;
	(void)tcp_sockets_each(tid, near_see, &search);
	if (search.turned[0] && (writes || is_servers_end(search.turned)))
		(void)tcp_sockets_each(tid, far_see, &search);
	if (!search.peer_ino)
		return 0;
	end.key = (struct file_key){.ino = search.peer_ino, .dev = key.dev};
	return !pipe_ends_find(&end, 1, until_ns) && end.count == 1 ? end.holders[0].pid : 0;
}
