/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tracer's side of the gate (gate.c), its process (gate_process.c), and the choice of
 * file systems (gate_marks.c). */
#ifndef WAFFLE_KERNEL_GATE_INTERNAL_H
#define WAFFLE_KERNEL_GATE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "kernel/gate.h"
#include "util/fd_message.h"

struct gate {
	pid_t pid; /* of the gate's process; 0: it has ended */
	int socket;
	int group; /* number of its fanotify descriptor */
};

/* A message of the gate. GATE_EXEC and GATE_PASSED carry a descriptor (SCM_RIGHTS). */
struct gate_message {
	uint32_t kind; /* enum gate_event_kind */
	int32_t pid;
	uint64_t id, begin_ts;
};

/* A message to the gate: allow the exec `id`, or, with a descriptor, watch its file system. */
struct gate_answer {
	uint64_t id;
};

/* Sends a message, with a descriptor unless that is -1. Does not wait; false: it was not sent. */
static inline bool gate_send(int socket, const void *message, size_t size, int fd)
{
	const struct iovec part = {(void *)(uintptr_t)message, size};

	return !fd_message_send(socket, &part, 1, fd, MSG_DONTWAIT);
}

/* Receives a message as fd_message_take() does. Does not wait. */
static inline ssize_t gate_receive(int socket, void *message, size_t size, int *fd)
{
	struct iovec part = {message, size};
	int flags = MSG_DONTWAIT;

	return fd_message_take(socket, &part, 1, fd, &flags);
}

/* The gate's process. It ends when the other end of `socket` is closed. */
__attribute__((noreturn)) void gate_process(int group, int socket,
					    const struct gate_options *options);

#endif
