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

/* The only process that holds the other end of the connection that a thread has open as `fd`. 0:
 * that is none of TCP, or the other end is in another network namespace, or it has several holders,
 * or the time was too short to know. A thread that reads (`writes` false) waits for an answer only
 * at a client's end, as its port shows; 0 otherwise. */
pid_t tcp_peer_process(pid_t tid, int fd, bool writes, uint64_t until_ns);

#endif
