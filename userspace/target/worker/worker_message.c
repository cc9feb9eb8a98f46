// SPDX-License-Identifier: Apache-2.0
#include "target/worker/worker_message_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

union control_message {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

static int send_whole(int socket, const struct message *message, const void *bytes, int fd,
		      int flags)
{
	struct iovec parts[2] = {{(void *)(uintptr_t)message, sizeof(*message)},
				 {(void *)(uintptr_t)bytes, message->part}};
	struct msghdr all = {.msg_iov = parts, .msg_iovlen = message->part ? 2 : 1};
	union control_message control;
	ssize_t sent;

	memset(&control, 0, sizeof(control));
	if (fd >= 0) {
		all.msg_control = control.bytes;
		all.msg_controllen = sizeof(control.bytes);
		control.header = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
						  .cmsg_type = SCM_RIGHTS,
						  .cmsg_len = CMSG_LEN(sizeof(int))};
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	}
	do
		sent = sendmsg(socket, &all, MSG_NOSIGNAL | flags);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

int message_send(int socket, const struct message *message, const void *bytes, int fd)
{
	return send_whole(socket, message, bytes, fd, 0);
}

int message_send_now(int socket, const struct message *message, const void *bytes, int fd)
{
	return send_whole(socket, message, bytes, fd, MSG_DONTWAIT);
}

/* There is room for one descriptor. The kernel closes any further ones. */
static int fd_take(struct msghdr *all)
{
	int fd = -1;

	for (struct cmsghdr *header = CMSG_FIRSTHDR(all); header; header = CMSG_NXTHDR(all, header))
		if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
		    header->cmsg_len == CMSG_LEN(sizeof(int)) && fd < 0)
			memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

int message_take(int socket, struct message *message, void *bytes, size_t room, int *fd)
{
	struct iovec parts[2] = {{message, sizeof(*message)}, {bytes, room}};
	union control_message control;
	struct msghdr all = {.msg_iov = parts,
			     .msg_iovlen = room ? 2 : 1,
			     .msg_control = control.bytes,
			     /* Not CMSG_SPACE(), which has room for two: the second descriptor
			      * would stay open. */
			     .msg_controllen = CMSG_LEN(sizeof(int))};
	ssize_t got;

	memset(&control, 0, sizeof(control));
	*fd = -1;
	do
		got = recvmsg(socket, &all, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got <= 0)
		return got ? -errno : -EPIPE;
	*fd = fd_take(&all);
	if ((size_t)got >= sizeof(*message) && !(all.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) &&
	    message->part == (size_t)got - sizeof(*message) && message->part <= message->size &&
	    message->size <= MESSAGE_SIZE_MAX)
		return 0;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return -EBADMSG;
}
