// SPDX-License-Identifier: Apache-2.0
#include "analyze/wait_names.h"

#include <stddef.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

static bool begins(const char *text, const char *begin)
{
	return !strncmp(text, begin, strlen(begin));
}

/* ---- system calls ---- */

#define FD(name_, write_)                                                                          \
	{                                                                                          \
		.name = name_, .file = true, .write = write_                                       \
	}
#define OF(name_, kind_)                                                                           \
	{                                                                                          \
		.name = name_, .kind = kind_                                                       \
	}
#define SOCKET(name_)                                                                              \
	{                                                                                          \
		.name = name_, .kind = WAIT_SOCKET, .file = true                                   \
	}
#define DISK(name_)                                                                                \
	{                                                                                          \
		.name = name_, .kind = WAIT_DISK, .file = true, .write = true                      \
	}
#define PATH(name_, write_)                                                                        \
	{                                                                                          \
		.name = name_, .metadata = true, .write = write_                                   \
	}
#define POLL(name_, count_)                                                                        \
	{                                                                                          \
		.name = name_, .kind = WAIT_POLL, .count = count_                                  \
	}

static const struct wait_syscall syscalls[] = {
	OF("futex", WAIT_CONDITION),
	OF("futex_wait", WAIT_CONDITION),
	OF("futex_waitv", WAIT_CONDITION),
	FD("read", false),
	FD("readv", false),
	FD("pread64", false),
	FD("preadv", false),
	FD("preadv2", false),
	FD("write", true),
	FD("writev", true),
	FD("pwrite64", true),
	FD("pwritev", true),
	FD("pwritev2", true),
	FD("sendfile", false),
	FD("splice", false),
	FD("tee", false),
	FD("vmsplice", false),
	FD("copy_file_range", false),
	FD("readahead", false),
	FD("getdents64", false),
	FD("getdents", false),
	FD("ioctl", false),
	FD("close", true),
	FD("lseek", false),
	FD("fstat", false),
	OF("flock", WAIT_KERNEL_LOCK),
	OF("fcntl", WAIT_KERNEL_LOCK),
	DISK("fsync"),
	DISK("fdatasync"),
	DISK("syncfs"),
	DISK("sync_file_range"),
	DISK("fallocate"),
	DISK("ftruncate"),
	{.name = "sync", .kind = WAIT_DISK, .write = true},
	{.name = "msync", .kind = WAIT_DISK, .write = true},
	PATH("open", false),
	PATH("openat", false),
	PATH("openat2", false),
	PATH("creat", true),
	PATH("stat", false),
	PATH("lstat", false),
	PATH("newfstatat", false),
	PATH("statx", false),
	PATH("access", false),
	PATH("faccessat", false),
	PATH("faccessat2", false),
	PATH("readlink", false),
	PATH("readlinkat", false),
	PATH("execve", false),
	PATH("execveat", false),
	PATH("truncate", true),
	PATH("rename", true),
	PATH("renameat", true),
	PATH("renameat2", true),
	PATH("link", true),
	PATH("linkat", true),
	PATH("symlink", true),
	PATH("symlinkat", true),
	PATH("unlink", true),
	PATH("unlinkat", true),
	PATH("mkdir", true),
	PATH("mkdirat", true),
	PATH("rmdir", true),
	PATH("madvise", false),
	PATH("mlock", false),
	PATH("mlock2", false),
	PATH("mlockall", false),
	OF("mmap", WAIT_KERNEL_LOCK),
	OF("munmap", WAIT_KERNEL_LOCK),
	OF("mremap", WAIT_KERNEL_LOCK),
	OF("mprotect", WAIT_KERNEL_LOCK),
	OF("brk", WAIT_KERNEL_LOCK),
	POLL("poll", 2),
	POLL("ppoll", 2),
	POLL("select", 1),
	POLL("pselect6", 1),
	POLL("epoll_wait", 0),
	POLL("epoll_pwait", 0),
	POLL("epoll_pwait2", 0),
	POLL("io_getevents", 0),
	POLL("io_pgetevents", 0),
	POLL("io_uring_enter", 0),
	OF("nanosleep", WAIT_SLEEP),
	OF("clock_nanosleep", WAIT_SLEEP),
	SOCKET("connect"),
	SOCKET("accept"),
	SOCKET("accept4"),
	SOCKET("recvfrom"),
	SOCKET("recvmsg"),
	SOCKET("recvmmsg"),
	SOCKET("sendto"),
	SOCKET("sendmsg"),
	SOCKET("sendmmsg"),
	SOCKET("shutdown"),
	OF("wait4", WAIT_EXIT),
	OF("waitid", WAIT_EXIT),
	OF("vfork", WAIT_EXIT),
	OF("clone", WAIT_EXIT),
	OF("clone3", WAIT_EXIT),
	OF("msgsnd", WAIT_EVENT),
	OF("msgrcv", WAIT_EVENT),
	OF("semop", WAIT_EVENT),
	OF("semtimedop", WAIT_EVENT),
	OF("mq_timedsend", WAIT_EVENT),
	OF("mq_timedreceive", WAIT_EVENT),
	OF("pause", WAIT_SIGNAL),
	OF("rt_sigsuspend", WAIT_SIGNAL),
	OF("rt_sigtimedwait", WAIT_SIGNAL),
};

const struct wait_syscall *wait_syscall_of(const char *name)
{
	static const struct wait_syscall unknown = {.name = ""};

	for (size_t i = 0; name && i < COUNT(syscalls); i++)
		if (!strcmp(syscalls[i].name, name))
			return &syscalls[i];
	return &unknown;
}

/* linux/futex.h */
#define FUTEX_COMMAND 0x7fu
#define FUTEX_WAIT 0
#define FUTEX_LOCK_PI 6
#define FUTEX_WAIT_REQUEUE_PI 11
#define FUTEX_LOCK_PI2 13
/* The value of a mutex that others wait for, in glibc (lowlevellock.h), musl's and Rust's. */
#define MUTEX_CONTENDED 2

enum wait_kind wait_futex_kind(uint64_t op, uint64_t value, bool *certain)
{
	unsigned command = op & FUTEX_COMMAND;

	*certain = command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2 ||
		   command == FUTEX_WAIT_REQUEUE_PI;
	if (command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2)
		return WAIT_LOCK;
	if (command == FUTEX_WAIT && (uint32_t)value == MUTEX_CONTENDED)
		return WAIT_LOCK;
	return WAIT_CONDITION;
}

/* ---- functions ---- */

/* In the stack of a thread that waits in the kernel. */
static const struct wait_function kernel_functions[] = {
	{"nvidia", WAIT_GPU, "GPU"},
	{"nv_", WAIT_GPU, "GPU"},
	{"_nv0", WAIT_GPU, "GPU"},
	{"uvm_", WAIT_GPU, "GPU"},
	{"amdgpu_", WAIT_GPU, "GPU"},
	{"dma_fence_", WAIT_GPU, "GPU"},
	{"drm_syncobj", WAIT_GPU, "GPU"},
	{"pipe_", WAIT_PIPE, NULL},
	{"fifo_open", WAIT_PIPE, NULL},
	{"wait_for_partner", WAIT_PIPE, NULL},
	{"anon_pipe_", WAIT_PIPE, NULL},
	{"unix_", WAIT_SOCKET, NULL},
	{"tcp_", WAIT_SOCKET, NULL},
	{"udp_", WAIT_SOCKET, NULL},
	{"inet_csk_accept", WAIT_SOCKET, NULL},
	{"inet_stream_connect", WAIT_SOCKET, NULL},
	{"sk_wait_data", WAIT_SOCKET, NULL},
	{"sk_stream_wait", WAIT_SOCKET, NULL},
	{"__skb_wait_for", WAIT_SOCKET, NULL},
	{"netlink_", WAIT_SOCKET, NULL},
	{"timerfd_read", WAIT_TIMER, NULL},
	{"eventfd_read", WAIT_EVENT, NULL},
	{"eventfd_write", WAIT_EVENT, NULL},
	{"hrtimer_nanosleep", WAIT_SLEEP, NULL},
	{"do_wait", WAIT_EXIT, NULL},
	{"kernel_wait4", WAIT_EXIT, NULL},
	{"wait_for_vfork_done", WAIT_EXIT, NULL},
	{"reclaim_throttle", WAIT_DISK, "memory reclaim"},
	{"shrink_", WAIT_DISK, "memory reclaim"},
	{"try_to_free_pages", WAIT_DISK, "memory reclaim"},
	{"__alloc_pages_direct_compact", WAIT_DISK, "memory compaction"},
	{"mem_cgroup_handle_over_high", WAIT_DISK, "memory limit of the cgroup"},
	{"swap_read", WAIT_DISK, "swap"},
	{"do_swap_page", WAIT_DISK, "swap"},
	{"balance_dirty_pages", WAIT_DISK, "too many pages to be written"},
	{"jbd2_log_wait_commit", WAIT_DISK, "journal"},
	{"jbd2_", WAIT_DISK, "journal"},
	{"wait_transaction_locked", WAIT_DISK, "journal"},
	{"add_transaction_credits", WAIT_DISK, "journal"},
	{"xlog_", WAIT_DISK, "journal of xfs"},
	{"request_wait_answer", WAIT_DISK, "FUSE"},
	{"fuse_", WAIT_DISK, "FUSE"},
	{"rpc_wait_bit", WAIT_DISK, "NFS"},
	{"nfs_", WAIT_DISK, "NFS"},
	{"nfs4_", WAIT_DISK, "NFS"},
	{"cifs_", WAIT_DISK, "SMB"},
	{"ceph_", WAIT_DISK, "Ceph"},
	{"p9_client_rpc", WAIT_DISK, "9p"},
	{"v9fs_", WAIT_DISK, "9p"},
	{"ll_", WAIT_DISK, "Lustre"},
	{"rwsem_down_", WAIT_KERNEL_LOCK, "lock in the kernel"},
	{"__mutex_lock", WAIT_KERNEL_LOCK, "lock in the kernel"},
	{"down_read", WAIT_KERNEL_LOCK, "lock in the kernel"},
	{"down_write", WAIT_KERNEL_LOCK, "lock in the kernel"},
	{"percpu_down_", WAIT_KERNEL_LOCK, "lock in the kernel"},
	{"__percpu_down", WAIT_KERNEL_LOCK, "lock in the kernel"},
	{"posix_lock_inode_wait", WAIT_KERNEL_LOCK, "lock of a file"},
	{"flock_lock_inode_wait", WAIT_KERNEL_LOCK, "lock of a file"},
	{"io_schedule", WAIT_DISK, NULL},
	{"folio_wait_", WAIT_DISK, NULL},
	{"__folio_lock", WAIT_DISK, NULL},
	{"__lock_page", WAIT_DISK, NULL},
	{"wait_on_page_", WAIT_DISK, NULL},
	{"wait_on_buffer", WAIT_DISK, NULL},
	{"__wait_on_buffer", WAIT_DISK, NULL},
	{"filemap_fdatawait", WAIT_DISK, NULL},
	{"submit_bio_wait", WAIT_DISK, NULL},
	{"blkdev_", WAIT_DISK, "block device"},
	{"blk_mq_get_tag", WAIT_DISK, "queue of the block device"},
	{"rq_qos_wait", WAIT_DISK, "limit of the block device"},
	{"wbt_wait", WAIT_DISK, "limit of the block device"},
	{"ext4_", WAIT_DISK, "ext4"},
	{"xfs_", WAIT_DISK, "xfs"},
	{"btrfs_", WAIT_DISK, "btrfs"},
	{"f2fs_", WAIT_DISK, "f2fs"},
	{"zfs_", WAIT_DISK, "zfs"},
	{"zpl_", WAIT_DISK, "zfs"},
	{"zio_wait", WAIT_DISK, "zfs"},
	{"fat_", WAIT_DISK, "fat"},
	{"ovl_", WAIT_OTHER, "overlayfs"},
};

/* In the stack of whoever woke a thread, interrupts too. */
static const struct wait_function wake_functions[] = {
	{"hrtimer_", WAIT_TIMER, NULL},
	{"__hrtimer_", WAIT_TIMER, NULL},
	{"process_timeout", WAIT_TIMER, NULL},
	{"timerfd_", WAIT_TIMER, NULL},
	{"it_real_fn", WAIT_TIMER, NULL},
	{"posix_timer_fn", WAIT_TIMER, NULL},
	{"call_timer_fn", WAIT_TIMER, NULL},
	{"pipe_", WAIT_PIPE, NULL},
	{"anon_pipe_", WAIT_PIPE, NULL},
	{"eventfd_", WAIT_EVENT, NULL},
	{"do_notify_parent", WAIT_EXIT, NULL},
	{"exit_notify", WAIT_EXIT, NULL},
	{"futex_wake", WAIT_CONDITION, NULL},
	{"sock_def_readable", WAIT_SOCKET, NULL},
	{"sock_def_write_space", WAIT_SOCKET, NULL},
	{"sk_stream_write_space", WAIT_SOCKET, NULL},
	{"unix_", WAIT_SOCKET, NULL},
	{"tcp_", WAIT_SOCKET, NULL},
	{"udp_", WAIT_SOCKET, NULL},
	{"__netif_receive_skb", WAIT_SOCKET, NULL},
	{"net_rx_action", WAIT_SOCKET, NULL},
	{"bio_endio", WAIT_DISK, NULL},
	{"blk_mq_", WAIT_DISK, NULL},
	{"blk_update_request", WAIT_DISK, NULL},
	{"end_bio_bh_io_sync", WAIT_DISK, NULL},
	{"mpage_read_end_io", WAIT_DISK, NULL},
	{"folio_end_", WAIT_DISK, NULL},
	{"end_page_", WAIT_DISK, NULL},
	{"iomap_", WAIT_DISK, NULL},
	{"nvme_", WAIT_DISK, NULL},
	{"scsi_", WAIT_DISK, NULL},
	{"virtblk_done", WAIT_DISK, NULL},
	{"nvidia", WAIT_GPU, NULL},
	{"_nv0", WAIT_GPU, NULL},
	{"dma_fence_", WAIT_GPU, NULL},
};

/* In a program. Those that tell more come from further out: the first row that a stack has wins. */
static const struct wait_function user_functions[] = {
	{"take_gil", WAIT_GIL, "GIL"},
	{"PyEval_RestoreThread", WAIT_GIL, "GIL"},
	{"PyEval_AcquireThread", WAIT_GIL, "GIL"},
	{"PyEval_AcquireLock", WAIT_GIL, "GIL"},
	{"PyGILState_Ensure", WAIT_GIL, "GIL"},
	{"_PyThreadState_Attach", WAIT_GIL, "GIL"},
	{"nccl", WAIT_COLLECTIVE, NULL},
	{"pnccl", WAIT_COLLECTIVE, NULL},
	{"MPI_", WAIT_COLLECTIVE, NULL},
	{"cuStreamSynchronize", WAIT_GPU, NULL},
	{"cuEventSynchronize", WAIT_GPU, NULL},
	{"cuCtxSynchronize", WAIT_GPU, NULL},
	{"cudaStreamSynchronize", WAIT_GPU, NULL},
	{"cudaEventSynchronize", WAIT_GPU, NULL},
	{"cudaDeviceSynchronize", WAIT_GPU, NULL},
	{"cudaMemcpy", WAIT_GPU, NULL},
	{"pthread_cond_", WAIT_CONDITION, NULL},
	{"__pthread_cond_", WAIT_CONDITION, NULL},
	{"__pthread_clockjoin", WAIT_CONDITION, NULL},
	{"pthread_join", WAIT_CONDITION, NULL},
	{"pthread_barrier_wait", WAIT_CONDITION, NULL},
	{"sem_", WAIT_CONDITION, NULL},
	{"__new_sem_wait", WAIT_CONDITION, NULL},
	{"pthread_mutex_", WAIT_LOCK, NULL},
	{"__pthread_mutex_", WAIT_LOCK, NULL},
	{"___pthread_mutex_", WAIT_LOCK, NULL},
	{"__lll_lock_wait", WAIT_LOCK, NULL},
	{"pthread_rwlock_", WAIT_LOCK, NULL},
	{"__pthread_rwlock_", WAIT_LOCK, NULL},
	{"___pthread_rwlock_", WAIT_LOCK, NULL},
};

static const struct wait_function *find(const struct wait_function *table, size_t count,
					const char *name)
{
	for (size_t i = 0; name && i < count; i++)
		if (begins(name, table[i].begin))
			return &table[i];
	return NULL;
}

const struct wait_function *wait_kernel_function(const char *name)
{
	return find(kernel_functions, COUNT(kernel_functions), name);
}

const struct wait_function *wait_wake_function(const char *name)
{
	return find(wake_functions, COUNT(wake_functions), name);
}

const struct wait_function *wait_user_function(const char *name)
{
	return find(user_functions, COUNT(user_functions), name);
}

bool wait_is_network_call(const char *name)
{
	static const char *const calls[] = {
		"tcp_sendmsg",    "tcp_recvmsg",         "tcp_v4_connect", "tcp_v6_connect",
		"tcp_close",      "__tcp_close",         "udp_sendmsg",    "udpv6_sendmsg",
		"inet_shutdown",  "inet_release",        "sock_sendmsg",   "sock_write_iter",
		"sock_read_iter", "inet_stream_connect",
	};

	for (size_t i = 0; i < COUNT(calls); i++)
		if (begins(name, calls[i]))
			return true;
	return false;
}

/* ---- files ---- */

static const struct {
	const char *begin;
	uint8_t kind;
	bool uninterruptible; /* only if it is waited for so */
} objects[] = {
	{"pipe:", WAIT_PIPE, false},
	{"socket:", WAIT_SOCKET, false},
	{"anon_inode:[timerfd]", WAIT_TIMER, false},
	{"anon_inode:[eventfd]", WAIT_EVENT, false},
	{"anon_inode:[eventpoll]", WAIT_POLL, false},
	{"anon_inode:[io_uring]", WAIT_POLL, false},
	{"/dev/nvidia", WAIT_GPU, false},
	{"/dev/dri/", WAIT_GPU, false},
	{"/dev/kfd", WAIT_GPU, false},
	{"/dev/shm/", WAIT_DISK, false},
	{"/dev/mapper/", WAIT_DISK, false},
	{"/dev/", WAIT_DISK, true},
	{"/proc/", WAIT_OTHER, false},
	{"/sys/", WAIT_OTHER, false},
	{"/", WAIT_DISK, false},
};

enum wait_kind wait_object_kind(const struct store_object *object, bool uninterruptible)
{
	for (size_t i = 0; object && i < COUNT(objects); i++)
		if (begins(object->name, objects[i].begin))
			return objects[i].uninterruptible && !uninterruptible ? WAIT_OTHER
									      : objects[i].kind;
	return WAIT_OTHER;
}

bool wait_socket_is_local(const struct store_object *object)
{
	const char *arrow;

	if (!object)
		return false;
	arrow = strstr(object->detail, "-> ");
	return begins(object->detail, "unix") ||
	       (arrow && (begins(arrow + 3, "127.") || begins(arrow + 3, "[::1]") ||
			  begins(arrow + 3, "::1")));
}

/* ---- threads ---- */

/* '#' stands for a digit. */
static const char *const kernel_threads[] = {
	"kworker/", "ksoftirqd/", "jbd2/",    "irq/",       "migration/", "rcu_",
	"rcuc/",    "rcuop/",     "kswapd#",  "kcompactd#", "khugepaged", "kthreadd",
	"xfsaild/", "xfs-",       "btrfs-",   "loop#",      "md#",        "dmcrypt_write",
	"kcryptd",  "scsi_eh_#",  "txg_sync", "z_rd_",      "z_wr_",      "nfsiod",
	"rpciod",   "ktimers/",   "swapper/",
};

bool wait_is_kernel_thread(const char *comm)
{
	for (size_t i = 0; i < COUNT(kernel_threads); i++) {
		const char *begin = kernel_threads[i], *at = comm;

		while (*begin && (*begin == '#' ? *at >= '0' && *at <= '9' : *at == *begin)) {
			begin++;
			at++;
		}
		if (!*begin)
			return true;
	}
	return false;
}
