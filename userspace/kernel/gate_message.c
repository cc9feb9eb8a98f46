// SPDX-License-Identifier: Apache-2.0
/* The messages between the tracer and the gate's process. */
#include <string.h>
#include <sys/socket.h>

#include "kernel/gate_internal.h"

bool gate_send(int socket, const void *message, size_t size, int fd)
{
	struct iovec part = {(void *)(uintptr_t)message, size};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr whole = {.msg_iov = &part, .msg_iovlen = 1};

	if (fd >= 0) {
		whole.msg_control = control.bytes;
		whole.msg_controllen = sizeof(control.bytes);
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	}
	return sendmsg(socket, &whole, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)size;
}

ssize_t gate_receive(int socket, void *message, size_t size, int *fd)
{
	struct iovec part = {message, size};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr whole = {.msg_iov = &part,
			       .msg_iovlen = 1,
			       .msg_control = control.bytes,
			       .msg_controllen = sizeof(control.bytes)};
	ssize_t len = recvmsg(socket, &whole, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	const struct cmsghdr *header = len > 0 ? CMSG_FIRSTHDR(&whole) : NULL;

	if (header && header->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(header), sizeof(*fd));
	return len;
}
