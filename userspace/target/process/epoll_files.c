// SPDX-License-Identifier: Apache-2.0
#include "target/process/epoll_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target/process/process.h"

/* A file that an epoll watches. */
struct watched {
	pid_t pid;
	int descriptor;
	uint64_t ino; /* 0: unknown, before Linux 4.13 */
};

/* Calls `found` with each file that an epoll watches, until it returns false. Format, see
 * proc_pid_fdinfo(5): one line "tfd:        5 events:       19 data: … pos:0 ino:a4f sdev:8" per
 * file. */
static void watched_each(pid_t pid, int fd, bool (*found)(const struct watched *watched, void *arg),
			 void *arg)
{
	char path[64], line[256];
	bool more = true;
	FILE *info;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", pid, fd);
	info = fopen(path, "re");
	while (more && info && fgets(line, sizeof(line), info)) {
		struct watched watched = {.pid = pid};
		const char *ino = strstr(line, " ino:");

		if (sscanf(line, "tfd: %d", &watched.descriptor) != 1)
			continue;
		if (ino)
			watched.ino = strtoull(ino + strlen(" ino:"), NULL, 16);
		more = found(&watched, arg);
	}
	if (info)
		fclose(info);
}

/* The inode in a name such as "socket:[4711]"; 0: the name has none. */
static uint64_t inode_in(const char *name)
{
	const char *number = strstr(name, ":[");

	return number ? strtoull(number + strlen(":["), NULL, 10) : 0;
}

/* Reads the name of the file. False: its descriptor is closed, or is known to be another file's. */
static bool watched_name(const struct watched *watched, char *name, size_t size)
{
	char path[64];
	ssize_t len;
	uint64_t ino;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", watched->pid, watched->descriptor);
	len = readlink(path, name, size - 1);
	if (len <= 0)
		return false;
	name[len] = '\0';
	ino = inode_in(name);
	return !ino || !watched->ino || ino == watched->ino;
}

struct watched_list {
	char *text;
	size_t size, len;
};

static bool watched_add(const struct watched *watched, void *arg)
{
	struct watched_list *list = arg;
	char name[200];

	if (!watched_name(watched, name, sizeof(name)) ||
	    list->len + strlen(name) + sizeof(", ") > list->size)
		return true;
	list->len += (size_t)snprintf(list->text + list->len, list->size - list->len, "%s%s",
				      list->len ? ", " : "", name);
	return true;
}

void epoll_watched(char *text, size_t size, pid_t pid, int fd)
{
	struct watched_list list = {.text = text, .size = size};

	text[0] = '\0';
	watched_each(pid, fd, watched_add, &list);
}

/* ---- sockets that are being connected ---- */

void epoll_networks_free(struct epoll_networks *networks)
{
	map_free(&networks->read);
	map_free(&networks->sockets);
}

struct network_reading {
	struct map *sockets;
	bool connects; /* one of them has no answer */
};

static bool socket_note(const struct inet_socket *socket, void *arg)
{
	struct network_reading *reading = arg;
	bool connects = descriptor_is_connecting(socket->detail);

	reading->connects |= connects;
	return map_set(reading->sockets, socket->ino, connects);
}

static void network_read(struct epoll_networks *networks, pid_t pid)
{
	struct network_reading reading = {.sockets = &networks->sockets};
	uint64_t network = process_network(pid);

	if (map_get(&networks->read, network) != MAP_NONE || !map_set(&networks->read, network, 1))
		return;
	(void)tcp_sockets_each(pid, socket_note, &reading);
	if (reading.connects)
		(void)udp_sockets_each(pid, socket_note, &reading);
	networks->any_connects |= reading.connects;
}

/* Limit of the files of an epoll that are looked at. */
#define LOOKED_MAX 4096

struct connecting_search {
	const struct epoll_networks *networks;
	uint64_t ino; /* of the socket that was found; 0: none so far */
	int descriptor;
	bool others;
	uint32_t looked;
};

static bool connecting_look(const struct watched *watched, void *arg)
{
	struct connecting_search *search = arg;
	char name[64];
	uint32_t connects;

	if (search->looked++ == LOOKED_MAX || !watched_name(watched, name, sizeof(name))) {
		search->others = true; /* perhaps */
		return search->looked <= LOOKED_MAX && !search->ino;
	}
	if (!descriptor_is_socket(name))
		return true;
	connects = map_get(&search->networks->sockets, inode_in(name));
	if (connects == MAP_NONE) /* of another kind */
		return true;
	if (!connects) {
		search->others = true;
	} else if (!search->ino) {
		search->ino = inode_in(name);
		search->descriptor = watched->descriptor;
	}
	return !search->ino || !search->others;
}

bool epoll_connecting(struct epoll_connecting *found, struct epoll_networks *networks, pid_t pid,
		      int fd)
{
	struct connecting_search search = {.networks = networks};
	struct file_key key;
	char kind[64];

	network_read(networks, pid);
	if (!networks->any_connects)
		return false;
	watched_each(pid, fd, connecting_look, &search);
	if (!search.ino || !descriptor_key(&key, kind, sizeof(kind), pid, search.descriptor) ||
	    key.ino != search.ino)
		return false;
	*found = (struct epoll_connecting){
		.key = key, .descriptor = search.descriptor, .among = search.others};
	return true;
}
