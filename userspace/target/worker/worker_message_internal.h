/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between waffle-bpf and its workers, over a socket that keeps message boundaries. */
#ifndef WAFFLE_TARGET_WORKER_WORKER_MESSAGE_INTERNAL_H
#define WAFFLE_TARGET_WORKER_WORKER_MESSAGE_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

enum message_kind {
	MESSAGE_REQUEST, /* value: enum worker_op */
	MESSAGE_MORE,    /* continues a request or reply that exceeds one message */
	MESSAGE_OPEN,    /* from a worker; the bytes are the name */
	MESSAGE_OPENED,  /* value: 0 or a negative errno; the bytes are the resolved path */
	MESSAGE_REPLY,   /* value: the handler's result */
};

struct message {
	uint32_t kind;
	int32_t value;
	uint64_t size; /* total of all parts */
	uint32_t part; /* bytes that follow in this message */
	uint32_t unused;
};

#define MESSAGE_PART_MAX (96u << 10)
/* Limit of a request or reply, all parts together. Larger ones are rejected. */
#define MESSAGE_SIZE_MAX (1ull << 30)

/* `fd` -1: none. Returns 0 or a negative errno. */
int message_send(int socket, const struct message *message, const void *bytes, int fd);
/* The same without waiting for room: -EAGAIN. */
int message_send_now(int socket, const struct message *message, const void *bytes, int fd);
/* Receives a message into `bytes`, of `room` bytes. The caller owns *fd (-1: none). -EPIPE: the
 * other end is closed; -EBADMSG: malformed. */
int message_take(int socket, struct message *message, void *bytes, size_t room, int *fd);

#endif
