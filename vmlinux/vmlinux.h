/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The kernel types that the BPF programs use, with the members that they use: libbpf finds the real
 * offsets in the running kernel's BTF when it loads them (CO-RE), so neither order nor completeness
 * matters here, and a build needs no kernel BTF. Written by hand from the BTF of Linux 6.1 to 7.2.
 */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

enum { false = 0, true = 1 };

/* include/uapi/linux/bpf.h */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_STACK_TRACE = 7,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1, BPF_EXIST = 2 };
enum { BPF_F_NO_PREALLOC = 1, BPF_F_MMAPABLE = 1024 };
enum { BPF_F_USER_STACK = 256 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };
enum { BPF_LOCAL_STORAGE_GET_F_CREATE = 1 };

/*
 * These have one layout in all kernels, so that libbpf need not search the kernel's BTF for them,
 * which takes it a millisecond each.
 */
#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8;
	unsigned long ax, cx, dx, si, di, orig_ax, ip;
	unsigned long cs, flags, sp, ss;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	__u64 regs[31], sp, pc, pstate;
};
struct pt_regs {
	union {
		struct user_pt_regs user_regs;
		struct {
			__u64 regs[31], sp, pc, pstate;
		};
	};
	__u64 orig_x0;
	__s32 syscallno;
};
#endif

struct task_struct;
struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
	__u64 session_id;
	__u64 seq_num;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

struct rq {
	__u64 prev_steal_time;    /* CONFIG_PARAVIRT */
	__u64 prev_steal_time_rq; /* CONFIG_PARAVIRT_TIME_ACCOUNTING */
};

struct cfs_rq {
	struct rq *rq; /* CONFIG_FAIR_GROUP_SCHED */
};

struct sched_entity {
	__u64 sum_exec_runtime;
	struct cfs_rq *cfs_rq; /* CONFIG_FAIR_GROUP_SCHED */
};

struct sched_info {
	unsigned long long run_delay;
};

struct signal_struct {
	atomic_t live;
	int group_exit_code;
};

struct thread_info {
	__u32 status; /* x86 only */
	__u32 cpu;
};

struct cfs_bandwidth {
	__s64 period; /* ktime_t */
	__u64 quota;
	__u64 throttled_time;
};

struct kernfs_node {
	__u64 id;
};

struct cgroup_root {
	int hierarchy_id; /* 0: cgroup v2 */
};

struct cgroup {
	struct kernfs_node *kn;
	struct cgroup_root *root;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
};

typedef struct {
	__s64 counter;
} atomic_long_t;

struct page_counter {
	atomic_long_t usage;
	unsigned long high, max;
	struct page_counter *parent;
};

struct mem_cgroup {
	struct cgroup_subsys_state css;
	struct page_counter memory;
};

/* Which of them exist, and their numbers, depends on the configuration. */
enum cgroup_subsys_id { memory_cgrp_id = 4 };

struct css_set {
	struct cgroup_subsys_state *subsys[1];
};

struct task_group {
	struct cgroup_subsys_state css;
	struct task_group *parent;
	struct cfs_bandwidth cfs_bandwidth;
};

struct files_struct;

struct thread_struct {
	unsigned long fsbase; /* x86-64 */
};

struct upid {
	int nr;
	void *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

/* A return probe that has not been hit yet. */
struct return_instance {
	unsigned long stack; /* stack pointer at the function's entry */
	unsigned long orig_ret_vaddr;
	struct return_instance *next;
};

struct uprobe_task {
	struct return_instance *return_instances;
};

struct xol_area {
	unsigned long vaddr;
};

struct uprobes_state {
	struct xol_area *xol_area;
};

/* Kernels with PREEMPT_RT have other members. */
struct rw_semaphore {
	atomic_long_t count, owner;
};

struct mm_struct {
	struct uprobes_state uprobes_state;
	struct rw_semaphore mmap_lock;
};

struct task_struct {
	struct thread_info thread_info;
	void *stack;
	unsigned int __state;
	unsigned int flags;
	/* int up to 6.18, a byte in 7.2: CO-RE adapts the size of unsigned members only */
	unsigned int on_cpu;
	unsigned int on_rq;
	int exit_state;
	int exit_code;
	int pid;
	int tgid;
	struct task_struct *real_parent;
	__u64 start_time;
	struct sched_entity se;
	struct sched_info sched_info;
	struct signal_struct *signal;
	struct task_group *sched_task_group;
	struct files_struct *files;
	struct css_set *cgroups;
	unsigned int in_memstall : 1; /* CONFIG_PSI */
	int pagefault_disabled;
	struct mm_struct *mm;
	struct uprobe_task *utask;
	struct thread_struct thread;
	struct pid *thread_pid;
	unsigned long sas_ss_sp, sas_ss_size;
	unsigned long min_flt, maj_flt;
	unsigned long nvcsw, nivcsw;
	void *worker_private;
	__u64 timer_slack_ns;
	char comm[16];
};

typedef __u32 dev_t;

struct super_block {
	dev_t s_dev;
	unsigned long s_magic;
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct qstr d_name;
};

struct path {
	struct dentry *dentry;
};

struct file_lock_context;

struct inode {
	unsigned short i_mode;
	unsigned long i_ino;
	struct super_block *i_sb;
	struct file_lock_context *i_flctx;
};

struct file {
	struct inode *f_inode;
	struct path f_path;
	void *private_data;
};

struct list_head {
	struct list_head *next;
};

struct file_lock_context {
	struct list_head flc_flock, flc_posix;
};

/* Since 6.9. */
struct file_lock_core {
	struct list_head flc_list;
	void *flc_owner;
	unsigned char flc_type;
	int flc_pid;
	struct file *flc_file;
};

struct file_lock {
	struct file_lock_core c;
	__s64 fl_start, fl_end;
};

/* Before 6.9. */
struct file_lock___old {
	struct list_head fl_list;
	void *fl_owner;
	unsigned char fl_type;
	unsigned int fl_pid;
	struct file *fl_file;
	__s64 fl_start, fl_end;
};

struct epoll_filefd {
	struct file *file;
	int fd;
};

struct rb_node {
	unsigned long __rb_parent_color;
	struct rb_node *rb_right, *rb_left;
};

struct rb_root {
	struct rb_node *rb_node;
};

struct rb_root_cached {
	struct rb_root rb_root;
};

struct eventpoll {
	struct list_head rdllist;
	struct rb_root_cached rbr;
};

struct epitem {
	struct rb_node rbn;
	struct list_head rdllink;
	struct epoll_filefd ffd;
	struct eventpoll *ep;
};

struct io_wq_work {
	unsigned int cancel_seq;
};

struct io_worker {
	struct io_wq_work *cur_work;
};

struct io_kiocb {
	struct file *file;
	struct io_wq_work work;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct block_device {
	dev_t bd_dev;
};

struct in6_addr {
	__u8 bytes[16];
};

struct sock_common {
	unsigned short skc_num; /* the local port */
	unsigned short skc_dport;
	unsigned short skc_family;
	unsigned char skc_state;
	__u32 skc_rcv_saddr, skc_daddr;
	struct in6_addr skc_v6_rcv_saddr, skc_v6_daddr;
};

struct socket;

struct sock {
	struct sock_common __sk_common;
	__u16 sk_type;
	__u16 sk_protocol;
	struct socket *sk_socket;
	int sk_err;
};

struct socket {
	struct file *file;
	struct sock *sk;
};

struct tcp_sock {
	__u64 bytes_sent;
};

struct sk_buff {
	unsigned int len;
};

/* Kernels that have `err` also report attempts that failed. */
struct trace_event_raw_tcp_retransmit_skb {
	int err;
};

struct unix_sock {
	void *addr;
};

struct gendisk {
	struct block_device *part0;
};

struct request_queue {
	struct gendisk *disk;
};

struct request {
	struct request_queue *q;
	unsigned int cmd_flags;
	unsigned int __data_len;
	__u64 __sector;
	struct block_device *part;
};

struct kernel_siginfo {
	int si_signo;
	int si_code;
};

struct vm_area_struct {
	unsigned long vm_start, vm_end;
	unsigned long vm_pgoff;
	struct file *vm_file;
};

struct linux_binprm {
	struct file *file;
	unsigned int secureexec : 1;
};

#pragma clang attribute pop

#endif
