// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Requests of servers. When a traced thread has received bytes of a connection that look like the
 * begin of a request, the connection is noted, and from then on its sends and its end are recorded,
 * too. capture/requests.c makes spans of these records. Requests of clients are recorded if they
 * fail: by the status of an answer of HTTP/1, or since nobody listens where the client connects.
 *
 * The programs are at tracepoints of sockets (Linux 6.3 and later), because every way to a socket
 * leads there: read(), recvmsg(), and a program without a C library. The tracepoints do not say
 * where the bytes are in the program's memory, so that is taken from the arguments of the system
 * call. In a system call that is not listed here, nothing is read.
 */
#include "vmlinux.h"
#include "emit.bpf.h"
#include "socket.bpf.h"
#include "wait.h"

#if defined(__TARGET_ARCH_x86)
enum { CALL_READ = 0, CALL_READV = 19, CALL_RECVFROM = 45, CALL_RECVMSG = 47 };
#elif defined(__TARGET_ARCH_arm64)
enum { CALL_READ = 63, CALL_READV = 65, CALL_RECVFROM = 207, CALL_RECVMSG = 212 };
#endif

/* include/linux/socket.h, include/linux/net.h */
#define MSG_PEEK 2
enum { AF_UNIX = 1 };
enum { SOCK_STREAM = 1 };
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

	if (socket_is_of_network(sock))
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

/* Records that a request of a thread failed. `who`: its tgid and tid. `descriptor`: that of the
 * socket, or -1. */
static __always_inline int failure_emit(struct sock *sock, __u64 who, __u32 descriptor,
					__u32 status)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct waffle_rec_request_failure *rec;
	struct file *file = file_of(sock);

	if (!file)
		return 0;
	addresses_emit((__u64)file, who, bpf_ktime_get_ns());
	rec = record_reserve_of(WAFFLE_SOURCE_WAITS, cpu, sizeof(*rec));
	if (!rec)
		return 0;
	record_begin(&rec->rec, WAFFLE_REC_REQUEST_FAILURE, (__u32)who, cpu);
	rec->ino = BPF_CORE_READ(file, f_inode, i_ino);
	rec->dev = BPF_CORE_READ(file, f_inode, i_sb, s_dev);
	rec->object = descriptor;
	rec->status = status;
	rec->reserved = 0;
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return 0;
}

#define STATUS_FAILED 400 /* from here on, the client or the server has failed */

/* The status of "HTTP/1.1 503 Service Unavailable"; 0: it is none. */
static __always_inline __u32 status_read(const struct receive_buffer *buffer, __u64 bytes)
{
	char line[sizeof("HTTP/1.1 503") - 1];
	__u32 hundreds, tens, ones;

	if (bytes < sizeof(line) || buffer->bytes < sizeof(line) ||
	    bpf_probe_read_user(line, sizeof(line), (void *)buffer->at) || line[4] != '/' ||
	    line[5] != '1' || line[8] != ' ')
		return 0;
	hundreds = (__u32)line[9] - '0';
	tens = (__u32)line[10] - '0';
	ones = (__u32)line[11] - '0';
	return hundreds > 9 || tens > 9 || ones > 9 ? 0 : hundreds * 100 + tens * 10 + ones;
}

/* The current thread has received the begin of an answer. Most of them are no failures. */
static __always_inline int answered(struct task_struct *task, struct sock *sock,
				    const struct receive_buffer *buffer, __u64 bytes)
{
	__u64 args[WAFFLE_SYSCALL_ARGS];
	struct thread_state *state;
	__u32 status;

	if (!(config.wait_sources & WAFFLE_WAIT_FILES))
		return 0;
	status = status_read(buffer, bytes);
	if (status < STATUS_FAILED)
		return 0;
	state = thread_get(task);
	if (!state || !refusal_is_due(&state->refused_ts))
		return 0;
	task_syscall(task, args);
	return failure_emit(sock, (__u64)task->tgid << 32 | (__u32)task->pid, (__u32)args[0],
			    status);
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
	    bpf_probe_read_user(&begin, sizeof(begin), (void *)buffer.at))
		return 0;
	if (begin == FOUR('H', 'T', 'T', 'P'))
		return answered(task, sock, &buffer, got);
	if (!looks_like_request(begin))
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

/* Who connects, by the cookie of the socket. The value is tgid and tid: an interrupt on any thread
 * may tell that the connection is refused. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, __u64);
} connecting SEC(".maps");

/* The current thread sends the first SYN. */
static __always_inline int connect_begin(struct sock *sock)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 cookie, who = (__u64)task->tgid << 32 | (__u32)task->pid;
	struct thread_state *state;

	if (!(config.wait_sources & WAFFLE_WAIT_FILES) || !target_is_whole(task->tgid))
		return 0;
	state = thread_get(task);
	if (!state || !refusal_is_due(&state->connect_ts))
		return 0;
	cookie = bpf_get_socket_cookie(sock);
	bpf_map_update_elem(&connecting, &cookie, &who, BPF_ANY);
	return 0;
}

#define ECONNREFUSED 111 /* include/uapi/asm-generic/errno.h */

static __always_inline int connect_end(struct sock *sock, int state)
{
	__u64 cookie = bpf_get_socket_cookie(sock), *known, who;

	known = bpf_map_lookup_elem(&connecting, &cookie);
	if (!known)
		return 0;
	who = *known;
	bpf_map_delete_elem(&connecting, &cookie);
	if (state != TCP_CLOSE || BPF_CORE_READ(sock, sk_err) != ECONNREFUSED)
		return 0;
	return failure_emit(sock, who, -1, 0);
}

/* A connection of TCP begins or ends on this side, or is reset, perhaps in an interrupt on any
 * thread. */
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(on_state, struct sock *sock, int old, int state)
{
	if (finished)
		return 0;
	if (state == TCP_SYN_SENT)
		return connect_begin(sock);
	if (old == TCP_SYN_SENT)
		return connect_end(sock, state);
	if (state != TCP_FIN_WAIT1 && state != TCP_LAST_ACK && state != TCP_CLOSE)
		return 0;
	return socket_emit(sock, WAFFLE_SOCKET_CLOSED);
}
