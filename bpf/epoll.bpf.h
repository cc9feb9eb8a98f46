/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Finds the file that epoll_wait() waited for. */
#ifndef WAFFLE_BPF_EPOLL_BPF_H
#define WAFFLE_BPF_EPOLL_BPF_H

#include "socket.bpf.h"
#include "wait.h"

/* An uninterruptible wait in epoll_wait() is for a lock. */
static __always_inline bool is_epoll(const struct thread_wait *wait)
{
	return (wait->syscall == NR_EPOLL_WAIT || wait->syscall == NR_EPOLL_PWAIT ||
		wait->syscall == NR_EPOLL_PWAIT2) &&
	       !wait->uninterruptible;
}

/* The file of an item of an epoll, and its descriptor. NULL: the item is of another epoll. */
static __always_inline struct file *epoll_file(struct epitem *item, struct eventpoll *of,
					       __u32 *descriptor)
{
	if (BPF_CORE_READ(item, ep) != of)
		return NULL;
	*descriptor = BPF_CORE_READ(item, ffd.fd);
	return BPF_CORE_READ(item, ffd.file);
}

/*
 * Returns the file that has become ready in an epoll, and its descriptor. NULL: none is ready, as
 * after a timeout, or several are. Then each of the threads that wait with this epoll may have
 * waited for a different one. The list of ready files was empty when the thread began to wait, and
 * what wakes the thread is put into the list first. Other CPUs may change the list meanwhile, so
 * each entry has to name the epoll that it belongs to. `none`: whether none is ready.
 */
static __always_inline struct file *epoll_ready(struct eventpoll *of, __u32 *descriptor, bool *none)
{
	struct list_head *head, *first, *second = NULL;

	head = (void *)of + bpf_core_field_offset(struct eventpoll, rdllist);
	first = BPF_CORE_READ(of, rdllist.next);
	*none = first == head;
	if (*none || bpf_probe_read_kernel(&second, sizeof(second), first) || second != head)
		return NULL;
	return epoll_file((void *)first - bpf_core_field_offset(struct epitem, rdllink), of,
			  descriptor);
}

/*
 * A walk through the tree of all files of an epoll. It goes along one edge in each step: to the
 * left child, to the right one, and back to the parent. Other CPUs may change the tree meanwhile,
 * so that some files are missed. The memory that is read stays valid or the read fails.
 */
struct epoll_walk {
	struct eventpoll *of;
	struct rb_node *at, *from;
	struct file *connecting; /* the first socket that is being connected; NULL: none so far */
	__u32 descriptor;        /* of `connecting` */
	bool others;             /* it has other sockets of a network */
};

/* Limits of the steps, of which a file takes two, and of the waits that are worth a walk of 20 us:
 * nobody gives up so early. */
#define EPOLL_WALK_STEPS 128
#define EPOLL_WALK_MIN_NS 10000000ull

/* include/linux/rbtree.h: the bits of __rb_parent_color that are no address. */
#define RB_COLOR 3ul

static __always_inline void epoll_walk_look(struct epoll_walk *walk)
{
	struct epitem *item = (void *)walk->at - bpf_core_field_offset(struct epitem, rbn);
	__u32 descriptor;
	struct file *file = epoll_file(item, walk->of, &descriptor);
	struct sock *sock = file ? socket_of(file) : NULL;

	if (!sock || !socket_is_of_network(sock))
		return;
	if (BPF_CORE_READ(sock, sk_protocol) != IPPROTO_TCP || !socket_connects(sock)) {
		walk->others = true;
	} else if (!walk->connecting) {
		walk->connecting = file;
		walk->descriptor = descriptor;
	}
}

/* Returns 1 to end the loop. */
static long epoll_walk_step(__u32 step, void *context)
{
	struct epoll_walk *walk = context;
	struct rb_node *at = walk->at, *parent, *left, *right, *next;

	if (!at || (walk->connecting && walk->others))
		return 1;
	parent = (struct rb_node *)(BPF_CORE_READ(at, __rb_parent_color) & ~RB_COLOR);
	left = BPF_CORE_READ(at, rb_left);
	right = BPF_CORE_READ(at, rb_right);
	next = parent;
	if (walk->from == parent) {
		epoll_walk_look(walk);
		next = left ?: right ?: parent;
	} else if (walk->from == left) {
		next = right ?: parent;
	}
	walk->from = at;
	walk->at = next;
	return 0;
}

/* Looks for a socket of an epoll that is being connected, and for other sockets. */
static __always_inline struct epoll_walk epoll_connecting(struct eventpoll *of)
{
	struct epoll_walk walk = {.of = of};

	if (!bpf_core_field_exists(of->rbr) || !bpf_core_field_exists(struct epitem, rbn))
		return walk;
	walk.at = BPF_CORE_READ(of, rbr.rb_root.rb_node);
	bpf_loop(EPOLL_WALK_STEPS, epoll_walk_step, &walk, 0);
	walk.others |= walk.at != NULL; /* perhaps: not all were seen */
	return walk;
}

/* What a wait in epoll_wait() was for, and its descriptor: the file that has become ready, or if
 * none is, a socket whose SYN nobody has answered. Otherwise the epoll itself. `resent`: what is
 * known of such a socket, as in waffle_rec_endpoints.resent. */
static __always_inline struct file *epoll_awaited(const struct thread_wait *wait,
						  struct file *epoll, __u32 *descriptor, __u64 now,
						  __u16 *resent)
{
	struct eventpoll *of = BPF_CORE_READ(epoll, private_data);
	struct epoll_walk walk;
	struct file *found;
	bool none;

	if (!of || !bpf_core_field_exists(of->rdllist) || !bpf_core_type_exists(struct epitem))
		return epoll;
	found = epoll_ready(of, descriptor, &none);
	if (found)
		return found;
	if (!none || now - wait->from_ts < EPOLL_WALK_MIN_NS)
		return epoll;
	walk = epoll_connecting(of);
	if (!walk.connecting)
		return epoll;
	*descriptor = walk.descriptor;
	*resent = walk.others ? WAFFLE_RESENT_AMONG : 0;
	return walk.connecting;
}

#endif
