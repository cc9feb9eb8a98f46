/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between waffle-bpf and its workers, over a socket that keeps message boundaries. */
#ifndef WAFFLE_TARGET_WORKER_MESSAGE_H
#define WAFFLE_TARGET_WORKER_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

enum message_kind {
	MESSAGE_REQUEST, /* value: enum worker_op */
	MESSAGE_MORE,    /* of a request or a reply that is longer than a message */
	MESSAGE_OPEN,    /* a worker's; the bytes are the name */
	MESSAGE_OPENED,  /* value: 0 or a negative errno; the bytes are the file's own path */
	MESSAGE_REPLY,   /* value: what the handler returned */
};

struct message {
	uint32_t kind;
	int32_t value;
	uint64_t size; /* of all parts together */
	uint32_t part; /* bytes that follow in this one */
	uint32_t unused;
};

#define MESSAGE_PART_MAX (96u << 10)
/* Larger requests and replies, of all parts together, are refused. */
#define MESSAGE_SIZE_MAX (1ull << 30)

/* fd: -1: none. 0 or a negative errno. */
int message_send(int socket, const struct message *message, const void *bytes, int fd);
/* The same without waiting for room: -EAGAIN. */
int message_send_now(int socket, const struct message *message, const void *bytes, int fd);
/* Takes a message into `bytes`, of `room` bytes. *fd: -1: none; else the caller's. -EPIPE: there is
 * nobody at the other end; -EBADMSG: it is not a message. */
int message_take(int socket, struct message *message, void *bytes, size_t room, int *fd);

#endif
