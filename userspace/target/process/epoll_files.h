/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that an epoll watches, as /proc/PID/fdinfo shows them. It names a file by the
 * descriptor that the file had when it was added. By now that may be closed, or be another file's.
 */
#ifndef WAFFLE_TARGET_PROCESS_EPOLL_FILES_H
#define WAFFLE_TARGET_PROCESS_EPOLL_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "target/process/descriptors.h"
#include "util/map.h"

/* Lists what an epoll descriptor watches, "anon_inode:[timerfd], socket:[4712]", as far as it fits.
 * Empty: it watches nothing, or it cannot be read. */
void epoll_watched(char *text, size_t size, pid_t pid, int fd);

/* The sockets of TCP and UDP in the network namespaces that were read so far: each of them once,
 * since a host may have very many sockets. Zero-initialised, it is empty. */
struct epoll_networks {
	struct map read;    /* inodes of the namespaces */
	struct map sockets; /* inodes of the sockets → 1: nobody has answered its SYN; 0: other */
	bool any_connects;  /* one of them has no answer */
};
void epoll_networks_free(struct epoll_networks *networks);

struct epoll_connecting {
	struct file_key key;
	int descriptor;
	bool among; /* the epoll has, or may have, other sockets of a network as well */
};

/* Finds a socket among those that an epoll descriptor watches whose SYN nobody has answered. False:
 * there is none, or it cannot be read. */
bool epoll_connecting(struct epoll_connecting *found, struct epoll_networks *networks, pid_t pid,
		      int fd);

#endif
