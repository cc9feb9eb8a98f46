// SPDX-License-Identifier: Apache-2.0
#include "target/worker/worker_message_internal.h"

#include <errno.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/fd_message.h"

static int send_whole(int socket, const struct message *message, const void *bytes, int fd,
		      int flags)
{
	const struct iovec parts[2] = {{(void *)(uintptr_t)message, sizeof(*message)},
				       {(void *)(uintptr_t)bytes, message->part}};

	return fd_message_send(socket, parts, message->part ? 2 : 1, fd, flags);
}

int message_send(int socket, const struct message *message, const void *bytes, int fd)
{
	return send_whole(socket, message, bytes, fd, 0);
}

int message_send_now(int socket, const struct message *message, const void *bytes, int fd)
{
	return send_whole(socket, message, bytes, fd, MSG_DONTWAIT);
}

int message_take(int socket, struct message *message, void *bytes, size_t room, int *fd)
{
	struct iovec parts[2] = {{message, sizeof(*message)}, {bytes, room}};
	int flags = 0;
	ssize_t got = fd_message_take(socket, parts, room ? 2 : 1, fd, &flags);

	if (got < 0)
		return (int)got;
	if ((size_t)got >= sizeof(*message) && !(flags & (MSG_TRUNC | MSG_CTRUNC)) &&
	    message->part == (size_t)got - sizeof(*message) && message->part <= message->size &&
	    message->size <= MESSAGE_SIZE_MAX)
		return 0;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return -EBADMSG;
}
