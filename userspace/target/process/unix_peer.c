// SPDX-License-Identifier: Apache-2.0
#include "target/process/unix_peer_internal.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* What the kernel tells of a socket. */
struct unix_socket {
	uint32_t peer; /* inode; 0: none */
	uint32_t unread;
};

static bool socket_ask(int netlink, uint32_t ino)
{
	const struct {
		struct nlmsghdr header;
		struct unix_diag_req wanted;
	} request = {
		.header = {.nlmsg_len = sizeof(request),
			   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			   .nlmsg_flags = NLM_F_REQUEST},
		.wanted = {.sdiag_family = AF_UNIX,
			   .udiag_states = UINT32_MAX,
			   .udiag_ino = ino,
			   .udiag_show = UDIAG_SHOW_PEER | UDIAG_SHOW_RQLEN,
			   .udiag_cookie = {UINT32_MAX, UINT32_MAX}}, /* any */
	};

	return send(netlink, &request, sizeof(request), 0) == (ssize_t)sizeof(request);
}

static void attributes_take(struct unix_socket *found, const struct rtattr *attribute, int len)
{
	for (; RTA_OK(attribute, len); attribute = RTA_NEXT(attribute, len)) {
		struct unix_diag_rqlen queue;

		if (attribute->rta_type == UNIX_DIAG_PEER &&
		    RTA_PAYLOAD(attribute) >= sizeof(found->peer)) {
			memcpy(&found->peer, RTA_DATA(attribute), sizeof(found->peer));
		} else if (attribute->rta_type == UNIX_DIAG_RQLEN &&
			   RTA_PAYLOAD(attribute) >= sizeof(queue)) {
			memcpy(&queue, RTA_DATA(attribute), sizeof(queue));
			found->unread = queue.udiag_rqueue;
		}
	}
}

/* In the queue of a datagram socket, anybody may have put what is there. */
static bool is_from_peer(const struct unix_diag_msg *message)
{
	return message->udiag_type == SOCK_STREAM || message->udiag_type == SOCK_SEQPACKET;
}

/* The kernel answers while it takes the request. */
static bool socket_read(struct unix_socket *found, int netlink, uint32_t ino)
{
	union {
		struct nlmsghdr header;
		char bytes[1024];
	} answer;
	const struct unix_diag_msg *message = NLMSG_DATA(&answer.header);
	size_t begin = NLMSG_LENGTH(sizeof(*message));
	ssize_t len;

	*found = (struct unix_socket){0};
	if (!ino || !socket_ask(netlink, ino))
		return false;
	len = recv(netlink, &answer, sizeof(answer), MSG_DONTWAIT);
	if (len < (ssize_t)begin || !NLMSG_OK(&answer.header, (size_t)len) ||
	    answer.header.nlmsg_type != SOCK_DIAG_BY_FAMILY || answer.header.nlmsg_len < begin ||
	    message->udiag_ino != ino)
		return false;
	attributes_take(found, (const struct rtattr *)(message + 1),
			(int)(answer.header.nlmsg_len - begin));
	if (!is_from_peer(message))
		found->unread = 0;
	return true;
}

bool unix_peer_find(struct unix_peer *peer, uint64_t ino)
{
	int netlink = ino <= UINT32_MAX
			      ? socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)
			      : -1;
	struct unix_socket near, far;
	bool found;

	if (netlink < 0)
		return false;
	found = socket_read(&near, netlink, (uint32_t)ino) && socket_read(&far, netlink, near.peer);
	close(netlink);
	if (found)
		*peer = (struct unix_peer){.ino = near.peer, .unread = far.unread};
	return found;
}
