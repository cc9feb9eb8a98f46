/* SPDX-License-Identifier: Apache-2.0 */
/* The process at the other end of a TCP connection within one machine. The kernel does not link the
 * ends, so the tables of the network are searched, and then the descriptors of all processes. */
#ifndef WAFFLE_TARGET_PROCESS_TCP_PEER_H
#define WAFFLE_TARGET_PROCESS_TCP_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Turns "tcp A <-> B" into "tcp B <-> A". False: it is too long, or it has one end only. */
bool tcp_connection_turn(char *turned, size_t size, const char *detail);

/*
 * The only process that holds the other end of the connection that a thread has open as `fd`. 0 if
 *
 * - it is no connection of TCP;
 * - the other end is in another network namespace;
 * - several processes hold the other end;
 * - the descriptors of some process may not be read: without root, this is always so;
 * - the time was too short;
 * - the thread reads (`writes` false) and has not the client's end: a server may wait for its
 *   clients for long. At the port of the server's end, and not at the client's, a socket listens.
 */
pid_t tcp_peer_process(pid_t tid, int fd, bool writes, uint64_t until_ns);

#endif
