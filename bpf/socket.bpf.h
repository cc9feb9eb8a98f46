/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Sockets behind files. */
#ifndef WAFFLE_BPF_SOCKET_BPF_H
#define WAFFLE_BPF_SOCKET_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#define SOCKFS_MAGIC 0x534f434b /* include/uapi/linux/magic.h */
enum { IPPROTO_TCP = 6, IPPROTO_UDP = 17 };
enum { AF_INET = 2, AF_INET6 = 10 }; /* include/linux/socket.h */
enum { TCP_SYN_SENT = 2 };           /* include/net/tcp_states.h */

/* The socket of a file; NULL: it is none. */
static __always_inline struct sock *socket_of(struct file *file)
{
	struct socket *socket;

	if (BPF_CORE_READ(file, f_inode, i_sb, s_magic) != SOCKFS_MAGIC)
		return NULL;
	socket = BPF_CORE_READ(file, private_data);
	return BPF_CORE_READ(socket, sk);
}

/* The file of a socket; NULL: it has none, since accept() has not returned it yet, or it is closed.
 */
static __always_inline struct file *file_of(struct sock *sock)
{
	return BPF_CORE_READ(sock, sk_socket, file);
}

/* Records the addresses of a socket of IPv4 or IPv6, if they are new. `file`: its struct file.
 * `who`: tgid and tid of the thread that uses it. Global, so that the verifier checks it once; in
 * wait.bpf.c. */
int addresses_emit(__u64 file, __u64 who, __u64 now);

/* Whether it is a socket of a network. Those of AF_UNIX are mostly pairs by which threads of a
 * process wake each other. */
static __always_inline bool socket_is_of_network(struct sock *sock)
{
	__u16 family = BPF_CORE_READ(sock, __sk_common.skc_family);

	return family == AF_INET || family == AF_INET6;
}

/* Whether nobody has answered the SYN of a socket of TCP. */
static __always_inline bool socket_connects(struct sock *sock)
{
	return BPF_CORE_READ(sock, __sk_common.skc_state) == TCP_SYN_SENT;
}

#endif
