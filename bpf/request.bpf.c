// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Requests of servers. When a traced thread has received bytes of a connection that look like the
 * begin of a request, the connection is noted, and from then on its sends and its end are recorded,
 * too. capture/requests.c makes spans of these records.
 *
 * The programs are at tracepoints of sockets (Linux 6.3 and later), because every way to a socket
 * leads there: read(), recvmsg(), and a program without a C library. The tracepoints do not say
 * where the bytes are in the program's memory, so that is taken from the arguments of the system
 * call. In a system call that is not listed here, nothing is read.
 */
#include "vmlinux.h"
#include "emit.bpf.h"

#if defined(__TARGET_ARCH_x86)
enum { CALL_READ = 0, CALL_READV = 19, CALL_RECVFROM = 45, CALL_RECVMSG = 47 };
#elif defined(__TARGET_ARCH_arm64)
enum { CALL_READ = 63, CALL_READV = 65, CALL_RECVFROM = 207, CALL_RECVMSG = 212 };
#endif

/* include/linux/socket.h, include/linux/net.h, include/uapi/linux/in.h */
#define MSG_PEEK 2
enum { AF_UNIX = 1, AF_INET = 2, AF_INET6 = 10 };
enum { SOCK_STREAM = 1, IPPROTO_TCP = 6 };
/* include/net/tcp_states.h */
enum { TCP_FIN_WAIT1 = 4, TCP_CLOSE = 7, TCP_LAST_ACK = 9 };

/* Sockets on which a request has come, by cookie. The size is set before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, __u32);
} request_sockets SEC(".maps");

/* struct iovec, and the head of struct user_msghdr, as programs lay them out. */
struct receive_buffer {
	__u64 at, bytes;
};
struct receive_message {
	__u64 name, name_len;
	__u64 buffers, buffer_count;
};

/* The address to which the current system call writes the first bytes that it receives, and the
 * number of bytes that it may write there. False: it is none of those that are known. */
static __always_inline bool buffer_find(struct task_struct *task, struct receive_buffer *buffer)
{
	__u64 args[WAFFLE_SYSCALL_ARGS];
	struct receive_message message;

	switch (task_syscall(task, args)) {
	case CALL_READ:
	case CALL_RECVFROM:
		*buffer = (struct receive_buffer){args[1], args[2]};
		return true;
	case CALL_READV:
		return !bpf_probe_read_user(buffer, sizeof(*buffer), (void *)args[1]);
	case CALL_RECVMSG:
		return !bpf_probe_read_user(&message, sizeof(message), (void *)args[1]) &&
		       !bpf_probe_read_user(buffer, sizeof(*buffer), (void *)message.buffers);
	default:
		return false;
	}
}

#define FOUR(a, b, c, d) ((__u32)(a) | (__u32)(b) << 8 | (__u32)(c) << 16 | (__u32)(d) << 24)

/* Whether these four bytes can begin a request of HTTP/1 or RESP. */
static __always_inline bool looks_like_request(__u32 begin)
{
	__u32 digit = (begin >> 8 & 0xff) - '1';

	switch (begin) {
	case FOUR('G', 'E', 'T', ' '):
	case FOUR('P', 'U', 'T', ' '):
	case FOUR('P', 'O', 'S', 'T'):
	case FOUR('H', 'E', 'A', 'D'):
	case FOUR('D', 'E', 'L', 'E'):
	case FOUR('O', 'P', 'T', 'I'):
	case FOUR('P', 'A', 'T', 'C'):
	case FOUR('C', 'O', 'N', 'N'):
	case FOUR('T', 'R', 'A', 'C'):
	case FOUR('P', 'U', 'R', 'G'):
	case FOUR('P', 'R', 'O', 'P'):
	case FOUR('R', 'E', 'P', 'O'):
		return true;
	default:
		return (begin & 0xff) == '*' && digit < 9;
	}
}

static __always_inline void socket_fill(struct waffle_rec_socket *rec, struct task_struct *task,
					struct sock *sock, __u64 cookie,
					enum waffle_socket_event event)
{
	record_begin(&rec->rec, WAFFLE_REC_SOCKET, task->pid, bpf_get_smp_processor_id());
	rec->cookie = cookie;
	rec->tgid = task->tgid;
	rec->frame_bytes = 0;
	rec->event = event;
	rec->local_port = BPF_CORE_READ(sock, __sk_common.skc_num);
	rec->flags = 0;
}

enum stream { STREAM_NONE, STREAM_TCP, STREAM_UNIX };

static __always_inline enum stream stream_of(struct sock *sock)
{
	__u16 family = BPF_CORE_READ(sock, __sk_common.skc_family);

	if (family == AF_INET || family == AF_INET6)
		return BPF_CORE_READ(sock, sk_protocol) == IPPROTO_TCP ? STREAM_TCP : STREAM_NONE;
	return family == AF_UNIX && BPF_CORE_READ(sock, sk_type) == SOCK_STREAM ? STREAM_UNIX
										: STREAM_NONE;
}

/* Whether the socket is known to be the server's end. A Unix socket that accept() returned has the
 * address of the listening socket; the client's end has no address. */
static __always_inline bool is_server(struct sock *sock, enum stream stream)
{
	if (stream == STREAM_UNIX)
		return BPF_CORE_READ((struct unix_sock *)sock, addr);
	return !BPF_CORE_READ((struct tcp_sock *)sock, bytes_sent);
}

/* Records what was received, of which at most `room` bytes. */
static __always_inline int received_emit(struct task_struct *task, struct sock *sock,
					 enum stream stream, const struct receive_buffer *buffer,
					 __u64 bytes, __u32 room)
{
	struct waffle_rec_socket *rec =
		record_reserve(bpf_get_smp_processor_id(), sizeof(*rec) + room);
	__u64 cookie = bpf_get_socket_cookie(sock);
	__u32 tgid = task->tgid;

	if (!rec)
		return 0;
	socket_fill(rec, task, sock, cookie, WAFFLE_SOCKET_RECEIVED);
	if (is_server(sock, stream))
		rec->flags = WAFFLE_SOCKET_SERVER;
	barrier_var(bytes); /* checked next to its use, for the verifier of 6.1 */
	if (bytes > room)
		bytes = room;
	if (bpf_probe_read_user(rec + 1, bytes, (void *)buffer->at))
		bytes = 0;
	rec->frame_bytes = bytes;
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	bpf_map_update_elem(&request_sockets, &cookie, &tgid, BPF_ANY);
	return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(on_received, struct sock *sock, int got, int flags)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct receive_buffer buffer;
	enum stream stream;
	__u64 bytes;
	__u32 begin;

	if (finished || !target_is_whole(task->tgid) || flags & MSG_PEEK ||
	    got < (int)sizeof(begin))
		return 0;
	if ((privileged_seen && program_is_privileged(task->tgid)) || !buffer_find(task, &buffer) ||
	    buffer.bytes < sizeof(begin) ||
	    bpf_probe_read_user(&begin, sizeof(begin), (void *)buffer.at) ||
	    !looks_like_request(begin))
		return 0;
	stream = stream_of(sock);
	if (stream == STREAM_NONE)
		return 0;
	bytes = (__u64)got < buffer.bytes ? (__u64)got : buffer.bytes;
	if ((begin & 0xff) == '*' && bytes > WAFFLE_SOCKET_HEAD_BYTES)
		return received_emit(task, sock, stream, &buffer, bytes, WAFFLE_SOCKET_BATCH_BYTES);
	return received_emit(task, sock, stream, &buffer, bytes, WAFFLE_SOCKET_HEAD_BYTES);
}

static __always_inline int socket_emit(struct sock *sock, enum waffle_socket_event event)
{
	__u64 cookie = bpf_get_socket_cookie(sock);
	__u32 *tgid = bpf_map_lookup_elem(&request_sockets, &cookie), owner;
	struct waffle_rec_socket *rec;

	if (!tgid)
		return 0;
	owner = *tgid;
	if (event == WAFFLE_SOCKET_CLOSED)
		bpf_map_delete_elem(&request_sockets, &cookie);
	rec = record_reserve(bpf_get_smp_processor_id(), sizeof(*rec));
	if (!rec)
		return 0;
	socket_fill(rec, bpf_get_current_task_btf(), sock, cookie, event);
	rec->tgid = owner;
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(on_sent, struct sock *sock, int sent)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (finished || sent <= 0 || !target_is_whole(task->tgid))
		return 0;
	return socket_emit(sock, WAFFLE_SOCKET_SENT);
}

/* A connection of TCP ends on this side, or is reset, perhaps in an interrupt on any thread. */
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(on_closed, struct sock *sock, int old, int state)
{
	if (finished || (state != TCP_FIN_WAIT1 && state != TCP_LAST_ACK && state != TCP_CLOSE))
		return 0;
	return socket_emit(sock, WAFFLE_SOCKET_CLOSED);
}
