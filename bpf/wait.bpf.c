// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Details of waits. The scheduler's programs call these functions to record what a wait was for.
 * Programs at other tracepoints record page faults, block devices, signals and CPU frequency. */
#include "vmlinux.h"
#include "epoll.bpf.h"
#include "socket.bpf.h"
#include "wait.h"

#define SI_KERNEL 0x80 /* include/uapi/asm-generic/siginfo.h */
#define EIO 5

/* ---- what poll(), select() and io_submit() wait for ---- */

static __always_inline void polled_add(struct polled *polled, __s32 descriptor)
{
	__u32 at = polled->count;

	barrier_var(at); /* else clang checks another register than it uses */
	if (descriptor < 0)
		return;
	if (at < WAFFLE_POLLED_MAX)
		polled->descriptors[at] = descriptor;
	polled->count++;
}

/* The number of the lowest bit that is set: how many bits are below it. Without branches, which the
 * verifier would follow one by one. */
static __always_inline __u32 lowest_bit(__u64 bits)
{
	__u64 below = (bits & -bits) - 1;

	below -= below >> 1 & 0x5555555555555555ull;
	below = (below & 0x3333333333333333ull) + (below >> 2 & 0x3333333333333333ull);
	below = (below + (below >> 4)) & 0x0f0f0f0f0f0f0f0full;
	return below * 0x0101010101010101ull >> 56;
}

#define SELECT_WORDS 16 /* FD_SETSIZE */

/* The sets to read and to write, which may be 0, and how many descriptors they have. */
struct selected {
	struct polled *polled;
	__u64 count, to_read, to_write;
};

/* Adds the descriptors from 64 * `word` on that are in a set. False: they can't be read. */
static __always_inline bool selected_add(__u64 set, __u32 word, __u64 *all)
{
	__u64 one = 0;

	if (set && bpf_probe_read_user(&one, sizeof(one), (__u64 *)set + word))
		return false;
	*all |= one;
	return true;
}

/* Adds the descriptors of one word of the sets. If some of them can't be read, none are named:
 * awaited descriptors could be missing. Returns 1 to end the loop. */
static long selected_word(__u32 word, void *context)
{
	const struct selected *selected = context;
	struct polled *polled = selected->polled;
	__u64 before = (__u64)word * 64, all = 0;

	if (before >= selected->count)
		return 1;
	if (!selected_add(selected->to_read, word, &all) ||
	    !selected_add(selected->to_write, word, &all)) {
		polled->count = 0;
		return 1;
	}
	if (selected->count - before < 64)
		all &= (1ull << (selected->count - before)) - 1;
	for (int i = 0; i <= WAFFLE_POLLED_MAX && all; i++) {
		polled_add(polled, (__s32)(before + lowest_bit(all)));
		all &= all - 1;
	}
	return 0;
}

/* include/uapi/linux/aio_abi.h: struct iocb.aio_fildes */
#define IOCB_DESCRIPTOR 20
#define SUBMITTED_MAX 8

/* io_submit() waits for one of its requests, so all of them have to be for one descriptor. */
static __always_inline void submitted_read(struct polled *polled, __u64 count, __u64 list)
{
	__u32 descriptor = 0, first = 0;
	__u64 request = 0;

	if (!count || count > SUBMITTED_MAX)
		return;
	for (__u32 i = 0; i < SUBMITTED_MAX && i < count; i++) {
		if (bpf_probe_read_user(&request, sizeof(request), (const void *)(list + i * 8)) ||
		    bpf_probe_read_user(&descriptor, sizeof(descriptor),
					(const void *)(request + IOCB_DESCRIPTOR)))
			return;
		if (i && descriptor != first)
			return;
		first = descriptor;
	}
	polled_add(polled, (__s32)first);
}

__noinline int polled_read(struct polled *polled)
{
	__u64 args[WAFFLE_SYSCALL_ARGS], entry;
	__s32 syscall = task_syscall(bpf_get_current_task_btf(), args);

	if (!polled)
		return 0;
	__builtin_memset(polled->descriptors, 0xff, sizeof(polled->descriptors));
	if (syscall == NR_IO_SUBMIT) {
		submitted_read(polled, args[1], args[2]);
		return 0;
	}
	if (syscall == NR_SELECT || syscall == NR_PSELECT6) {
		struct selected selected = {polled, args[0], args[1], args[2]};

		if (args[0] <= SELECT_WORDS * 64)
			bpf_loop(SELECT_WORDS, selected_word, &selected, 0);
		return 0;
	}
	for (__u32 i = 0; i <= WAFFLE_POLLED_MAX && i < args[1]; i++) {
		/* struct pollfd: the descriptor, then the events */
		if (bpf_probe_read_user(&entry, sizeof(entry), (const void *)(args[0] + i * 8))) {
			polled->count = 0;
			return 0;
		}
		polled_add(polled, (__s32)entry);
	}
	if (args[1] > WAFFLE_POLLED_MAX + 1)
		polled->count = WAFFLE_POLLED_MAX + 1;
	return 0;
}

/* ---- sleeps that the timer slack makes longer ---- */

#define TIMER_ABSTIME 1 /* include/uapi/linux/time.h */
#define CLOCK_MONOTONIC 1
#define CLOCK_PROCESS_CPUTIME_ID 2
#define CLOCK_THREAD_CPUTIME_ID 3
#define ASKED_SECONDS_MAX (1ll << 30)

/* struct __kernel_timespec */
struct asked_time {
	__s64 seconds, ns;
};

/* Points in time of other clocks than CLOCK_MONOTONIC are not compared with `now`, and times of a
 * CPU with none. */
__noinline int asked_read(__u64 *asked_ns, __u64 now)
{
	__u64 args[WAFFLE_SYSCALL_ARGS], at, ns;
	struct asked_time asked;
	bool absolute = false;

	if (!asked_ns)
		return 0;
	if (task_syscall(bpf_get_current_task_btf(), args) == NR_CLOCK_NANOSLEEP) {
		absolute = args[1] & TIMER_ABSTIME;
		if ((absolute && args[0] != CLOCK_MONOTONIC) || (__s32)args[0] < 0 ||
		    args[0] == CLOCK_PROCESS_CPUTIME_ID || args[0] == CLOCK_THREAD_CPUTIME_ID)
			return 0;
		at = args[2];
	} else {
		at = args[0];
	}
	if (bpf_probe_read_user(&asked, sizeof(asked), (const void *)at) || asked.seconds < 0 ||
	    asked.seconds > ASKED_SECONDS_MAX)
		return 0;
	ns = asked.seconds * 1000000000ull + asked.ns;
	if (!absolute)
		*asked_ns = ns;
	else if (ns > now)
		*asked_ns = ns - now;
	return 0;
}

__noinline int late_sleep_emit(__u64 from_ts, __u64 asked_ns, __u64 slack_ns, __u32 tid, __u64 now)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct waffle_rec_late_sleep *rec =
		record_reserve_of(WAFFLE_SOURCE_WAITS, cpu, sizeof(*rec));

	if (!rec)
		return 0;
	record_begin(&rec->rec, WAFFLE_REC_LATE_SLEEP, tid, cpu);
	rec->rec.ts = now;
	rec->from_ts = from_ts;
	rec->asked_ns = asked_ns;
	rec->slack_ns = slack_ns;
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return 0;
}

/* ---- memory limits of cgroups ---- */

#define MEMORY_LEVELS 8
/* The kernel frees some pages at once, so that less than the limit is used. */
#define MEMORY_NEAR 16
#define MEMORY_PAGES_MAX (1ull << 50) /* there is no limit */

/* A cgroup and its limit. */
struct memory_level {
	__u64 counter; /* the address of its struct page_counter; 0: the search is over */
	__u64 used;    /* in pages */
	__u64 limit;   /* the lower one of its limits in pages; 0: it uses less */
	__u64 flags;
};

/* Goes on to the parent if the cgroup uses less than its limit. Global, so that the verifier checks
 * it once, not for each level. */
__noinline int memory_level_next(struct memory_level *level)
{
	struct page_counter *counter;
	__u64 max, high;

	if (!level)
		return 0;
	counter = (struct page_counter *)level->counter;
	max = BPF_CORE_READ(counter, max);
	high = BPF_CORE_READ(counter, high);
	level->used = BPF_CORE_READ(counter, usage.counter);
	level->flags = high < max ? WAFFLE_MEMORY_HIGH : 0;
	if (high < max)
		max = high;
	if (max && max < MEMORY_PAGES_MAX && level->used + level->used / MEMORY_NEAR >= max)
		level->limit = max;
	else
		level->counter = (__u64)BPF_CORE_READ(counter, parent);
	return 0;
}

__noinline int memory_emit(__u64 cgroups, __u32 tid, __u64 now, __u32 flags)
{
	struct cgroup_subsys_state **states, *state = NULL;
	__u32 cpu = bpf_get_smp_processor_id();
	struct memory_level level = {};
	struct waffle_rec_memory *rec;
	struct mem_cgroup *group;

	if (!bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id))
		return 0;
	states = (void *)cgroups + bpf_core_field_offset(struct css_set, subsys);
	bpf_probe_read_kernel(&state, sizeof(state),
			      states + bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id));
	if (!state)
		return 0;
	/* The state is the first member of struct mem_cgroup. */
	level.counter = (__u64)state + bpf_core_field_offset(struct mem_cgroup, memory);
	for (int i = 0; i < MEMORY_LEVELS && level.counter && !level.limit; i++)
		memory_level_next(&level);
	if (!level.limit)
		return 0;
	rec = record_reserve_of(WAFFLE_SOURCE_WAITS, cpu, sizeof(*rec));
	if (!rec)
		return 0;
	record_begin(&rec->rec, WAFFLE_REC_MEMORY, tid, cpu);
	rec->rec.ts = now;
	group = (void *)level.counter - bpf_core_field_offset(struct mem_cgroup, memory);
	rec->cgroup = BPF_CORE_READ(group, css.cgroup, kn, id);
	rec->limit_bytes = level.limit * config.page_bytes;
	rec->used_bytes = level.used * config.page_bytes;
	rec->user_bytes = 0;
	rec->user_pid = 0;
	__builtin_memset(rec->user_comm, 0, sizeof(rec->user_comm));
	rec->flags = flags | level.flags;
	if (BPF_CORE_READ(group, css.cgroup, root, hierarchy_id))
		rec->flags |= WAFFLE_MEMORY_OLD;
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return 0;
}

/* ---- quotas of cgroups ---- */

#define QUOTA_NONE (~0ull) /* RUNTIME_INF of kernel/sched/sched.h */

/* The nearest of a group and its parents that has a quota: that of a parent throttles it, too. */
static struct task_group *group_with_quota(struct task_group *group)
{
	struct task_group *at = group;

	for (int level = 0; level < QUOTA_LEVELS && at; level++) {
		if (BPF_CORE_READ(at, cfs_bandwidth.quota) != QUOTA_NONE)
			return at;
		at = BPF_CORE_READ(at, parent);
	}
	return group;
}

__noinline int quota_emit(__u64 group, __u32 tid, __u64 ns, __u64 now)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct task_group *throttled = group_with_quota((struct task_group *)group);
	struct waffle_rec_quota *rec = record_reserve_of(WAFFLE_SOURCE_WAITS, cpu, sizeof(*rec));

	if (!rec)
		return 0;
	record_begin(&rec->rec, WAFFLE_REC_QUOTA, tid, cpu);
	rec->rec.ts = now;
	rec->throttled_ns = ns;
	rec->cgroup = BPF_CORE_READ(throttled, css.cgroup, kn, id);
	rec->quota_ns = BPF_CORE_READ(throttled, cfs_bandwidth.quota);
	rec->period_ns = BPF_CORE_READ(throttled, cfs_bandwidth.period);
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return 0;
}

/* ---- addresses of sockets ---- */

enum { ENDPOINTS_MAX = 8192 };

/* To whom an unconnected socket has sent; key: the inode of the socket. If that is more than one,
 * as of a server, none is its peer. */
struct sent_to {
	__u32 address[4];
	__u16 port, several;
	__u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, ENDPOINTS_MAX);
	__type(key, __u64);
	__type(value, struct sent_to);
} sent_to SEC(".maps");

/* When a socket of TCP has last sent something again, and what; key: the inode of the socket. By
 * default, TCP gives up before its time-outs fill the array. */
struct resent {
	__u64 ts[WAFFLE_RESENT_MAX];
	__u32 count;
	__u32 what; /* WAFFLE_RESENT_SYN or 0 */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, ENDPOINTS_MAX);
	__type(key, __u64);
	__type(value, struct resent);
} resent SEC(".maps");

/* Sockets whose addresses are recorded already; key: the inode of the socket. The value is a hash
 * of its last waffle_rec_endpoints. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, ENDPOINTS_MAX);
	__type(key, __u64);
	__type(value, __u64);
} endpoints SEC(".maps");

static __always_inline __u16 from_network(__u16 port)
{
	return __builtin_bswap16(port);
}

/* Fills in all but the header. False: it is no socket of IPv4 or IPv6. */
static __always_inline bool endpoints_read(struct waffle_rec_endpoints *to, struct file *file)
{
	struct sock *sock = socket_of(file);
	__u16 family = BPF_CORE_READ(sock, __sk_common.skc_family);
	struct sent_to *sent;

	if (family == AF_INET) {
		bpf_core_read(to->local, 4, &sock->__sk_common.skc_rcv_saddr);
		bpf_core_read(to->remote, 4, &sock->__sk_common.skc_daddr);
	} else if (family == AF_INET6) {
		bpf_core_read(to->local, 16, &sock->__sk_common.skc_v6_rcv_saddr);
		bpf_core_read(to->remote, 16, &sock->__sk_common.skc_v6_daddr);
	} else {
		return false;
	}
	to->version = family == AF_INET ? 4 : 6;
	to->protocol = BPF_CORE_READ(sock, sk_protocol);
	to->local_port = BPF_CORE_READ(sock, __sk_common.skc_num);
	to->remote_port = from_network(BPF_CORE_READ(sock, __sk_common.skc_dport));
	to->ino = BPF_CORE_READ(file, f_inode, i_ino);
	to->dev = BPF_CORE_READ(file, f_inode, i_sb, s_dev);
	sent = to->remote_port ? NULL : bpf_map_lookup_elem(&sent_to, &to->ino);
	if (!sent || sent->several)
		return true;
	__builtin_memcpy(to->remote, sent->address, sizeof(to->remote));
	to->remote_port = sent->port;
	return true;
}

/* Returns waffle_rec_endpoints.resent: the socket's retransmissions after `since`. */
static __always_inline __u16 resent_since(__u64 ino, __u64 since)
{
	struct resent *times = bpf_map_lookup_elem(&resent, &ino);
	__u16 count = 0;

	if (!times)
		return 0;
	/* The sign of the difference, because the verifier would follow each comparison. */
	for (__u32 i = 0; i < WAFFLE_RESENT_MAX; i++)
		count += (since - times->ts[i]) >> 63;
	return count ? times->what | count : 0;
}

/* Records what endpoints_read() has filled in, and `resent`, if that is new. */
static __noinline int endpoints_write(const struct waffle_rec_endpoints *read, __u64 who, __u64 now)
{
	struct waffle_rec_endpoints *rec;
	__u32 cpu = bpf_get_smp_processor_id();
	__u64 hash = 0, ino = read->ino, *known;

	for (__u32 i = 0; i < 32; i += 8)
		hash = (hash ^ *(__u64 *)(read->local + i)) * 0x9e3779b97f4a7c15ull;
	hash ^= (__u64)read->resent << 32 | (__u64)read->local_port << 16 | read->remote_port;
	known = bpf_map_lookup_elem(&endpoints, &ino);
	if (known && *known == hash)
		return 0;
	rec = record_reserve_of(WAFFLE_SOURCE_WAITS, cpu, sizeof(*rec));
	if (!rec)
		return 0;
	__builtin_memcpy(rec, read, sizeof(*rec));
	record_begin(&rec->rec, WAFFLE_REC_ENDPOINTS, (__u32)who, cpu);
	rec->rec.ts = now - TRACE_AHEAD_NS;
	rec->tgid = who >> 32;
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	bpf_map_update_elem(&endpoints, &ino, &hash, BPF_ANY);
	return 0;
}

__noinline int addresses_emit(__u64 file, __u64 who, __u64 now)
{
	struct waffle_rec_endpoints read = {};

	return endpoints_read(&read, (struct file *)file) ? endpoints_write(&read, who, now) : 0;
}

/* Records the addresses of a socket of IPv4 or IPv6, if it is one, and if they are new. `who`: tgid
 * and tid of the thread that waited. Returns what the socket has sent again after `since`, as
 * waffle_rec_endpoints.resent has it; `connecting` is added to that while nobody has answered its
 * SYN. Global, so that the verifier checks it once. */
__noinline int endpoints_emit(__u64 address, __u64 who, __u64 since, __u64 now, __u64 connecting)
{
	struct file *file = (struct file *)address;
	struct waffle_rec_endpoints read = {};

	if (!endpoints_read(&read, file))
		return 0;
	read.resent = resent_since(read.ino, since);
	if (read.protocol == IPPROTO_TCP && socket_connects(socket_of(file)))
		read.resent |= WAFFLE_RESENT_SYN | (__u16)connecting;
	endpoints_write(&read, who, now);
	return read.resent;
}

/* ---- details of waits ---- */

/* Several descriptors: user space looks up their names. */
static __always_inline void wait_polled(const struct thread_wait *wait, struct waffle_rec_wait *rec)
{
	rec->dev = WAFFLE_WAIT_POLLED;
	rec->object = wait->polled.descriptors[0];
	rec->ino = (__u64)wait->polled.descriptors[2] << 32 | wait->polled.descriptors[1];
	rec->address = (__u64)wait->polled.descriptors[3] << 32 | wait->polled.count;
}

/* The file behind a descriptor: the first argument of a system call like read(), or what poll()
 * waits for. */
static __always_inline void wait_file(struct file *file, __u32 descriptor, __u16 resent,
				      struct waffle_rec_wait *rec)
{
	rec->object = descriptor;
	rec->ino = BPF_CORE_READ(file, f_inode, i_ino);
	rec->dev = BPF_CORE_READ(file, f_inode, i_sb, s_dev);
	if (resent)
		rec->address = WAFFLE_WAIT_RESENT | resent;
	/* One inode serves eventfds, epolls, timers, …: the beginning of the name distinguishes
	 * them. */
	if (BPF_CORE_READ(file, f_inode, i_sb, s_magic) == ANON_INODE_FS_MAGIC)
		bpf_probe_read_kernel(&rec->address, sizeof(rec->address),
				      BPF_CORE_READ(file, f_path.dentry, d_name.name));
}

__noinline int details_emit(struct thread_wait *wait, __u64 who, __u64 files, __u32 descriptor,
			    __u64 now)
{
	__u32 cpu = bpf_get_smp_processor_id(), polled;
	struct fdtable *table = (struct fdtable *)files;
	struct waffle_rec_wait *rec;
	struct file *file = NULL;
	__u16 resent = 0, connecting = 0;
	__u64 address;

	if (!wait)
		return 0;
	polled = wait->polled.count;
	address = wait->fault_ts && wait->fault_ts <= wait->from_ts ? wait->fault_address : 0;
	if (address)
		table = NULL;
	if (!address && !table && !wait->kernel_stack && !wait->user_stack)
		return 0;
	if (polled)
		descriptor = wait->polled.descriptors[0];
	if (wait->request_file && !address) {
		file = (struct file *)wait->request_file;
		descriptor = -1;
	} else if (polled <= 1) {
		file = file_in(table, descriptor);
	}
	if (file && is_epoll(wait))
		file = epoll_awaited(wait, file, &descriptor, now, &connecting);
	if (file)
		resent = endpoints_emit((__u64)file, who, wait->from_ts, now, connecting);
	for (__u32 i = 0; table && polled > 1 && i < WAFFLE_POLLED_MAX && i < polled; i++)
		endpoints_emit((__u64)file_in(table, wait->polled.descriptors[i]), who, now, now,
			       0);
	rec = record_reserve_of(WAFFLE_SOURCE_WAITS, cpu, sizeof(*rec));
	if (!rec)
		return 0;
	record_begin(&rec->rec, WAFFLE_REC_WAIT, (__u32)who, cpu);
	rec->rec.ts = now;
	rec->from_ts = wait->from_ts;
	rec->kernel_stack = wait->kernel_stack;
	rec->user_stack = wait->user_stack;
	rec->object = 0;
	rec->dev = 0;
	rec->ino = 0;
	rec->address = address;
	if (table && polled > 1)
		wait_polled(wait, rec);
	else if (file)
		wait_file(file, descriptor, resent, rec);
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return 0;
}

/* ---- what sockets send ---- */

/* TCP retransmits a segment. The socket may belong to any process: the current one is arbitrary. */
SEC("tp_btf/tcp_retransmit_skb")
int on_resent(__u64 *ctx)
{
	struct sock *sock = (struct sock *)ctx[0];
	struct sk_buff *segment = (struct sk_buff *)ctx[1];
	bool syn = socket_connects(sock);
	__u64 ino = BPF_CORE_READ(sock, sk_socket, file, f_inode, i_ino);
	struct resent first = {.what = syn ? WAFFLE_RESENT_SYN : 0}, *times;

	if (bpf_core_field_exists(struct trace_event_raw_tcp_retransmit_skb, err) && (__s32)ctx[2])
		return 0;
	/* A segment without data is a FIN. */
	if (finished || !ino || (!syn && !BPF_CORE_READ(segment, len)))
		return 0;
	times = bpf_map_lookup_elem(&resent, &ino);
	if (!times || times->what != first.what) {
		first.ts[0] = bpf_ktime_get_ns();
		first.count = 1;
		bpf_map_update_elem(&resent, &ino, &first, BPF_ANY);
		return 0;
	}
	times->ts[times->count % WAFFLE_RESENT_MAX] = bpf_ktime_get_ns();
	times->count++;
	return 0;
}

#if defined(__TARGET_ARCH_x86)
enum { CALL_SENDTO = 44, CALL_SENDMSG = 46 };
#elif defined(__TARGET_ARCH_arm64)
enum { CALL_SENDTO = 206, CALL_SENDMSG = 211 };
#endif

/* The begin of struct sockaddr_in, and of struct sockaddr_in6 except for `address`. */
struct socket_address {
	__u16 family, port; /* the port is in network byte order */
	__u32 address;      /* struct sockaddr_in has its IPv4 address here */
};
#define ADDRESS6_OFFSET 8 /* struct sockaddr_in6 has its address (sin6_addr) here */

/* Returns the user address of the destination that the current system call sends to; 0: unknown. */
static __always_inline __u64 address_find(struct task_struct *task)
{
	__u64 args[WAFFLE_SYSCALL_ARGS], address = 0, fifth = task_syscall_fifth(task);
	__s32 syscall = task_syscall(task, args);

	barrier_var(fifth); /* else clang merges two loads that the verifier tells apart */
	if (syscall == CALL_SENDTO)
		return fifth;
	if (syscall == CALL_SENDMSG) /* the first member of struct user_msghdr */
		bpf_probe_read_user(&address, sizeof(address), (void *)args[1]);
	return address;
}

/* A socket has sent. Only datagrams of sockets that are not connected matter, as some programs send
 * them to name servers: no other record says to whom. */
SEC("tp_btf/sock_send_length")
int BPF_PROG(on_datagram, struct sock *sock, int sent)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct socket_address address = {};
	struct sent_to to = {}, *known;
	__u64 at, ino;

	if (finished || sent <= 0 || BPF_CORE_READ(sock, sk_protocol) != IPPROTO_UDP ||
	    BPF_CORE_READ(sock, __sk_common.skc_dport) || !target_has(task->tgid))
		return 0;
	at = address_find(task);
	if (!at || bpf_probe_read_user(&address, sizeof(address), (void *)at))
		return 0;
	if (address.family == AF_INET)
		__builtin_memcpy(to.address, &address.address, 4);
	else if (address.family != AF_INET6 || bpf_probe_read_user(to.address, sizeof(to.address),
								   (void *)(at + ADDRESS6_OFFSET)))
		return 0;
	to.port = from_network(address.port);
	ino = BPF_CORE_READ(sock, sk_socket, file, f_inode, i_ino);
	known = bpf_map_lookup_elem(&sent_to, &ino);
	if (known)
		to.several =
			known->several || known->port != to.port ||
			known->address[0] != to.address[0] || known->address[1] != to.address[1] ||
			known->address[2] != to.address[2] || known->address[3] != to.address[3];
	bpf_map_update_elem(&sent_to, &ino, &to, BPF_ANY);
	return 0;
}

/* ---- page faults ---- */

static __always_inline void fault_add(struct thread_wait *wait, __u64 from_ts, __u64 took)
{
	if (!wait->faults)
		wait->faults_from_ts = from_ts;
	wait->faults++;
	wait->faults_ns += took;
}

/*
 * Handles a fault whose end was not reported. A kernel that preempts a thread within a bpf() system
 * call skips the programs of perf events on that CPU meanwhile (bpf_prog_active). A minor fault is
 * then counted without its time. A fault that became a signal has no end, and the kernel does not
 * count it.
 */
static __always_inline void fault_missed(struct thread_wait *wait, struct task_struct *task)
{
	if (task->maj_flt != wait->major_flt)
		loss_count_of(WAFFLE_SOURCE_WAITS, 1);
	else if (task->min_flt != wait->minor_flt)
		fault_add(wait, wait->fault_ts, 0);
}

/* A page fault begins … */
static __always_inline int fault_begin(unsigned long address, struct pt_regs *regs)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread_state *state;

	if (finished || !target_maybe(task->tgid) || !faults_are_counted())
		return 0;
	state = thread_get(task);
	if (!state)
		return 0;
	if (state->wait.fault_ts)
		fault_missed(&state->wait, task);
	state->wait.minor_flt = task->min_flt;
	state->wait.major_flt = task->maj_flt;
	state->wait.fault_ts = bpf_ktime_get_ns();
	state->wait.fault_address = address;
	state->wait.fault_ip = PT_REGS_IP(regs);
	return 0;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(on_fault, unsigned long address, struct pt_regs *regs)
{
	return fault_begin(address, regs);
}

/* Faults of system calls, if they access the program's own memory. */
SEC("tp_btf/page_fault_kernel")
int BPF_PROG(on_fault_kernel, unsigned long address, struct pt_regs *regs)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if ((long)address < 0 || task->pagefault_disabled)
		return 0;
	return fault_begin(address, regs);
}

/* The last step of the kernel is to count the fault as a major or a minor one. */
static __always_inline int fault_done(__u32 flags)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread_state *state;
	struct thread_wait *wait;
	__u64 now, from_ts;

	if (finished || !target_maybe(task->tgid) || task->flags & PF_EXITING)
		return 0;
	state = thread_get(task);
	if (!state)
		return 0;
	wait = &state->wait;
	now = bpf_ktime_get_ns();
	from_ts = wait->fault_ts ?: now; /* its begin may be missing, too */
	if (flags && !wait->fault_ts)
		return 0;          /* it began before the thread was traced */
	if (flags && wait->faults) /* a major fault is a record of its own */
		faults_emit(wait, task, from_ts, 0);
	fault_add(wait, from_ts, now - from_ts);
	wait->fault_ts = 0;
	if (flags || now - wait->faults_from_ts >= FAULTS_GAP_NS)
		faults_emit(wait, task, now, flags);
	return 0;
}

SEC("perf_event")
int on_fault_minor(void *ctx)
{
	return fault_done(0);
}

SEC("perf_event")
int on_fault_major(void *ctx)
{
	return fault_done(WAFFLE_FAULT_MAJOR);
}

/* Requests in flight; key: address of the request. */
struct io_begin {
	__u64 ts;
	__u32 tid;
	__u32 flags; /* WAFFLE_IO_NEIGHBOUR, IO_OF_TARGET, or 0: of a thread of the kernel */
};
#define IO_OF_TARGET 0x80000000u

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct io_begin);
} requests SEC(".maps");

/*
 * Disks that targets use; key: address of the request queue. Other processes' requests are noted
 * only if a target has used the disk within a second, and recorded only if they end while a target
 * has a request there. So other disks, and a target that only computes, cost nothing.
 */
struct disk {
	__u64 used_ts; /* the begin of a target's last request */
	__u64 window;  /* the current tenth of a second, of that time */
	__s32 in_flight;
	__u32 recorded; /* neighbours' requests in the window */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 256);
	__type(key, __u64);
	__type(value, struct disk);
} disks SEC(".maps");

#define DISK_USED_NS 1000000000ull
#define DISK_WINDOW_NS 100000000ull
#define DISK_WINDOW_RECORDS 1000

static __always_inline struct disk *disk_of(struct request *request)
{
	__u64 queue = (__u64)BPF_CORE_READ(request, q);

	return bpf_map_lookup_elem(&disks, &queue);
}

static __always_inline void disk_use(struct request *request, __u64 now)
{
	__u64 queue = (__u64)BPF_CORE_READ(request, q);
	struct disk none = {}, *disk;

	bpf_map_update_elem(&disks, &queue, &none, BPF_NOEXIST);
	disk = bpf_map_lookup_elem(&disks, &queue);
	if (!disk)
		return;
	disk->used_ts = now;
	__sync_fetch_and_add(&disk->in_flight, 1);
}

/* A target's request is over. An end may be missing, so the count may be too large, and is taken
 * as 0 if the disk was not used for a second. */
static __always_inline void disk_release(struct request *request)
{
	struct disk *disk = disk_of(request);

	if (disk && disk->in_flight > 0)
		__sync_fetch_and_add(&disk->in_flight, -1);
}

static __always_inline bool disk_is_used(const struct disk *disk, __u64 now)
{
	return disk && now - disk->used_ts < DISK_USED_NS;
}

/* A neighbour's request ends: it is recorded if a target has a request on that disk now, and if the
 * window has room. */
static __always_inline bool neighbour_counts(struct request *request, __u64 now)
{
	struct disk *disk = disk_of(request);

	if (!disk_is_used(disk, now) || disk->in_flight <= 0)
		return false;
	if (now / DISK_WINDOW_NS != disk->window) {
		disk->window = now / DISK_WINDOW_NS;
		disk->recorded = 0;
	}
	return disk->recorded++ < DISK_WINDOW_RECORDS;
}

/* A request begins, by a target's thread, by a kernel thread on behalf of another, or by a
 * neighbour. */
static __always_inline int io_begin(struct request *request, __u64 flags)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct io_begin begin = {.ts = bpf_ktime_get_ns(), .tid = task->pid};
	__u64 key = (__u64)request;

	if (finished)
		return 0;
	if (target_maybe(task->tgid))
		begin.flags = IO_OF_TARGET;
	else if (!(task->flags & PF_KTHREAD))
		begin.flags = WAFFLE_IO_NEIGHBOUR;
	if (begin.flags == WAFFLE_IO_NEIGHBOUR && !disk_is_used(disk_of(request), begin.ts))
		return 0;
	if (begin.flags != IO_OF_TARGET)
		name_stranger(task);
	if (!bpf_map_update_elem(&requests, &key, &begin, flags) && begin.flags == IO_OF_TARGET)
		disk_use(request, begin.ts);
	return 0;
}

/* The thread that submits the request, which a kernel worker may issue. Since Linux 6.5. */
SEC("tp_btf/block_io_start")
int BPF_PROG(on_io_start, struct request *request)
{
	return io_begin(request, BPF_ANY);
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(on_io_issue, struct request *request)
{
	return io_begin(request, BPF_NOEXIST);
}

/* Removes a request that is over. False: it was not noted. */
static __always_inline bool io_take(struct request *request, struct io_begin *was)
{
	__u64 key = (__u64)request;
	struct io_begin *begin = bpf_map_lookup_elem(&requests, &key);

	if (!begin)
		return false;
	*was = *begin;
	bpf_map_delete_elem(&requests, &key);
	if (was->flags == IO_OF_TARGET)
		disk_release(request);
	return true;
}

/* A request was merged into another one: it never completes, and its address is reused. A raw
 * tracepoint, so that a test can run it. */
SEC("raw_tp/block_rq_merge")
int on_io_merge(__u64 *args)
{
	struct io_begin was;

	io_take((struct request *)args[0], &was);
	return 0;
}

/* include/linux/blk_types.h: the operation in the low byte, odd ones write; flags above. */
static __always_inline __u32 io_flags(__u32 cmd_flags)
{
	__u32 operation = cmd_flags & 0xff, flags = 0;

	if (operation & 1)
		flags |= WAFFLE_IO_WRITE;
	if (operation == 2) /* REQ_OP_FLUSH */
		flags |= WAFFLE_IO_FLUSH;
	if (cmd_flags & 1 << 11) /* REQ_SYNC */
		flags |= WAFFLE_IO_SYNC;
	return flags;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_io_complete, struct request *request, __u8 error, unsigned int bytes)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct waffle_rec_io *rec;
	struct io_begin was;

	if (!io_take(request, &was) || finished)
		return 0;
	if (was.flags == WAFFLE_IO_NEIGHBOUR && !neighbour_counts(request, bpf_ktime_get_ns()))
		return 0;
	rec = record_reserve_of(WAFFLE_SOURCE_WAITS, cpu, sizeof(*rec));
	if (!rec)
		return 0;
	record_begin(&rec->rec, WAFFLE_REC_IO, was.tid, cpu);
	rec->issue_ts = was.ts;
	rec->sector = request->__sector;
	rec->bytes = bytes;
	rec->dev = BPF_CORE_READ(request, part, bd_dev);
	if (!rec->dev) /* a disk that keeps no statistics */
		rec->dev = BPF_CORE_READ(request, q, disk, part0, bd_dev);
	rec->disk = BPF_CORE_READ(request, q, disk, part0, bd_dev);
	rec->reserved = 0;
	rec->flags = io_flags(request->cmd_flags) | (was.flags & WAFFLE_IO_NEIGHBOUR);
	rec->error = error ? -EIO : 0; /* a blk_status_t; an int before 5.16 */
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return 0;
}

/* TRACE_SIGNAL_ALREADY_PENDING of include/trace/events/signal.h: nothing was sent, as the signal
 * had been sent before. A timer that expires again does so. */
#define SIGNAL_PENDING 2

SEC("tp_btf/signal_generate")
int BPF_PROG(on_signal, int signo, struct kernel_siginfo *info, struct task_struct *task, int group,
	     int result)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct task_struct *sender = bpf_get_current_task_btf();
	struct waffle_rec_signal *rec;

	if (finished || result == SIGNAL_PENDING || !target_has(task->tgid))
		return 0;
	rec = record_reserve_of(WAFFLE_SOURCE_WAITS, cpu, sizeof(*rec));
	if (!rec)
		return 0;
	record_begin(&rec->rec, WAFFLE_REC_SIGNAL, sender->pid, cpu);
	rec->target_tid = task->pid;
	rec->target_tgid = task->tgid;
	rec->signo = signo;
	rec->code = (__u64)info == 1 ? SI_KERNEL : 0; /* SEND_SIG_PRIV, SEND_SIG_NOINFO */
	if ((__u64)info > 1)
		bpf_core_read(&rec->code, sizeof(rec->code), &info->si_code);
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return 0;
}

/* Indexed by CPU. Userspace sets the number of entries and max_khz. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct waffle_frequency);
} frequencies SEC(".maps");

#define FREQUENCY_PARTS 20 /* a change by 1/20 of the last frequency is recorded */

/* A raw tracepoint, so that userspace can run it with the frequency that it reads at the begin. */
SEC("raw_tp/cpu_frequency")
int on_frequency(__u64 *args)
{
	__u32 khz = args[0], which = args[1], cpu = bpf_get_smp_processor_id(), change;
	struct waffle_frequency *last = bpf_map_lookup_elem(&frequencies, &which);
	struct waffle_rec_frequency *rec;

	if (finished || !last)
		return 0;
	change = khz > last->khz ? khz - last->khz : last->khz - khz;
	if ((__u64)change * FREQUENCY_PARTS < last->khz || !change)
		return 0;
	rec = record_reserve_of(WAFFLE_SOURCE_WAITS, cpu, sizeof(*rec));
	if (!rec)
		return 0;
	record_begin(&rec->rec, WAFFLE_REC_FREQUENCY, 0, which);
	rec->khz = khz;
	rec->max_khz = last->max_khz;
	rec->flags = last->flags;
	rec->reserved = 0;
	last->khz = khz;
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return 0;
}
