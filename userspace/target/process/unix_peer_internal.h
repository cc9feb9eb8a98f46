/* SPDX-License-Identifier: Apache-2.0 */
/* The other end of a connection of Unix sockets, which only sock_diag(7) tells. */
#ifndef WAFFLE_TARGET_PROCESS_UNIX_PEER_INTERNAL_H
#define WAFFLE_TARGET_PROCESS_UNIX_PEER_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

struct unix_peer {
	uint64_t ino;    /* of the socket at the other end */
	uint32_t unread; /* bytes that its process has got from this one and not read */
};

/* False: the socket is not connected, or not accepted yet, or it is no Unix socket of our network
 * namespace. */
bool unix_peer_find(struct unix_peer *peer, uint64_t ino);

#endif
