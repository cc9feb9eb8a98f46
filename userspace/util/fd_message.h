/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between processes of waffle over a socket that keeps message boundaries. Each may carry
 * one descriptor. */
#ifndef WAFFLE_UTIL_FD_MESSAGE_H
#define WAFFLE_UTIL_FD_MESSAGE_H

#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Sends all parts as one message. fd -1: no descriptor. `flags` are those of sendmsg(), such as
 * MSG_DONTWAIT. Returns 0 or a negative errno. */
int fd_message_send(int socket, const struct iovec *parts, size_t count, int fd, int flags);

/* Receives one message. Returns its bytes, or a negative errno; -EPIPE: the other end is closed.
 * The caller owns *fd; -1: none. *flags are those of recvmsg(), and on return those of the message:
 * MSG_TRUNC if it was larger than the parts, MSG_CTRUNC if a descriptor could not be taken. */
ssize_t fd_message_take(int socket, struct iovec *parts, size_t count, int *fd, int *flags);

#endif
