// SPDX-License-Identifier: Apache-2.0
#include "util/fd_message.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

union control_message {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

int fd_message_send(int socket, const struct iovec *parts, size_t count, int fd, int flags)
{
	struct msghdr all = {.msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = count};
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

/* There is room for one descriptor. The kernel closes any further ones. */
static int fd_find(struct msghdr *all)
{
	int fd = -1;

	for (struct cmsghdr *header = CMSG_FIRSTHDR(all); header; header = CMSG_NXTHDR(all, header))
		if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
		    header->cmsg_len == CMSG_LEN(sizeof(int)) && fd < 0)
			memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

ssize_t fd_message_take(int socket, struct iovec *parts, size_t count, int *fd, int *flags)
{
	union control_message control;
	struct msghdr all = {.msg_iov = parts,
			     .msg_iovlen = count,
			     .msg_control = control.bytes,
			     /* Not CMSG_SPACE(), which has room for two: the second descriptor
			      * would stay open. */
			     .msg_controllen = CMSG_LEN(sizeof(int))};
	ssize_t got;

	memset(&control, 0, sizeof(control));
	*fd = -1;
	do
		got = recvmsg(socket, &all, MSG_CMSG_CLOEXEC | *flags);
	while (got < 0 && errno == EINTR);
	if (got <= 0)
		return got ? -errno : -EPIPE;
	*fd = fd_find(&all);
	*flags = all.msg_flags;
	return got;
}
