// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/lookup/why_meaning.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *const meaning_rule_texts[MEANING_RULE_COUNT] = {
	[MEANING_TELLS] = "",
	[MEANING_LOCK] = "`lock`: what the waker did",
	[MEANING_THREAD] = "what the waker did",
	[MEANING_CHILD] = "`process-exit`: what the child did",
	[MEANING_PIPE] = "`pipe`: what the waker did",
	[MEANING_STOPPED] = "`stopped`",
	[MEANING_FROZEN] = "`stopped`",
	[MEANING_GPU] = "`gpu`",
	[MEANING_SERVER] = "`socket`",
	[MEANING_READ] = "`disk-read`",
	[MEANING_WRITE] = "`disk-write`",
	[MEANING_DIRTY] = "`disk-write`",
	[MEANING_SWAP] = "`page-fault-major`",
	[MEANING_RECLAIM] = "`page-fault-minor`, if it is a page fault",
};

#define WAIT(rule, text, functions, ...)                                                           \
	{                                                                                          \
		MEANING_WAIT, MEANING_##rule, text, functions, __VA_ARGS__                         \
	}
#define WORK(rule, text, functions)                                                                \
	{                                                                                          \
		MEANING_WORK, MEANING_##rule, text, functions, NULL, NULL                          \
	}
#define SYSTEM(rule, text, functions)                                                              \
	{                                                                                          \
		MEANING_SYSTEM, MEANING_##rule, text, functions, NULL, NULL                        \
	}

#define RWSEM "rwsem_down_read_slowpath rwsem_down_write_slowpath rwsem_down_*_failed* "
#define PAGE_WAIT                                                                                  \
	"folio_wait_bit_common folio_wait_bit* __folio_lock* folio_put_wait_locked "               \
	"wait_on_page_bit* __lock_page* put_and_wait_on_page_locked "

/* Names are those of Linux 5.15 to 6.18. The first matching row counts, so special rows come before
 * general ones. */
const struct meaning_row meaning_rows[] = {
	WAIT(TELLS, "every CPU to be seen idle or in a program (RCU)",
	     "synchronize_rcu* __wait_rcu_gp synchronize_srcu* __synchronize_srcu "
	     "synchronize_sched* synchronize_net rcu_barrier* ",
	     NULL, NULL),
	WAIT(LOCK, "the lock of the address space (mmap_lock)", RWSEM,
	     "lock_mm_and_find_vma do_user_addr_fault exc_page_fault asm_exc_page_fault "
	     "do_page_fault fixup_user_fault vm_mmap_pgoff vm_munmap __vm_munmap "
	     "__*_sys_munmap vm_brk_flags __*_sys_brk __*_sys_mremap do_mprotect_pkey "
	     "do_madvise* madvise_* __mm_populate mlock_* apply_* do_mlock __get_user_pages* "
	     "get_user_pages* gup_* internal_get_user_pages_fast pin_user_pages* "
	     "__access_remote_vm access_remote_vm exit_mmap __mmput dup_mm* m_start smaps_* "
	     "process_vm_* userfaultfd_* exit_mm* acct_collect task_numa_work ",
	     NULL),
	WAIT(LOCK, "the lock of a part of the address space (VMA)",
	     "__vma_start_write __vma_enter_locked vma_start_write ", NULL, NULL),
	WAIT(LOCK, "the lock of a file or folder (inode)", RWSEM,
	     "inode_lock* ext4_file_* ext4_buffered_write_iter ext4_dio_* ext4_sync_file "
	     "generic_file_write_iter xfs_ilock* btrfs_inode_lock* btrfs_buffered_write "
	     "f2fs_file_write_iter fuse_*write_iter nfs_file_write nfs_start_io_* "
	     "open_last_lookups path_openat lookup_slow walk_component iterate_dir "
	     "lock_rename* filename_create do_unlinkat do_rmdir vfs_* do_truncate chown_common "
	     "chmod_common notify_change shmem_file_* ovl_* ",
	     NULL),
	WAIT(LOCK, "a lock of the kernel (rwsem)", RWSEM, NULL, NULL),
	WAIT(LOCK, "a lock of the kernel (mutex)", "__mutex_lock* mutex_lock* ww_mutex_lock* ",
	     NULL, NULL),
	WAIT(TELLS, "a priority-inheriting lock",
	     "futex_lock_pi* rt_mutex_* __rt_mutex_* rtlock_* ", NULL, NULL),
	WAIT(TELLS, "a frozen file system", "percpu_rwsem_wait __percpu_down_read ", NULL,
	     "mnt_want_write* sb_start_* __sb_start_* "),
	WAIT(TELLS, "a lock of the kernel (per-CPU)", "percpu_rwsem_wait percpu_down_* ", NULL,
	     NULL),

	WAIT(THREAD, "a page that userfaultfd's owner has to fill", "handle_userfault ", NULL,
	     NULL),
	WAIT(THREAD, "the answer of seccomp's supervisor", "seccomp_do_user_notification* ", NULL,
	     NULL),
	WAIT(THREAD, "the answer of the FUSE daemon",
	     "request_wait_answer __fuse_request_send fuse_simple_request "
	     "__fuse_simple_request ",
	     NULL, NULL),
	WAIT(PIPE, "somebody to open the other end of a named pipe", "wait_for_partner fifo_open ",
	     NULL, NULL),
	WAIT(CHILD, "the child of vfork() to run a program or to end",
	     "wait_for_completion* wait_for_vfork_done __wait_for_common wait_for_common ",
	     "kernel_clone _do_fork ", NULL),
	WAIT(FROZEN, "its cgroup to be thawed", "do_freezer_trap __refrigerator cgroup_freezer_* ",
	     NULL, NULL),
	WAIT(FROZEN, "its cgroup to be thawed", "schedule ", "get_signal ", NULL),
	WAIT(STOPPED, "its tracer", "ptrace_stop ptrace_notify ptrace_do_notify ", NULL, NULL),
	WAIT(TELLS, "a core dump to be written",
	     "do_coredump vfs_coredump coredump_wait coredump_task_exit ", NULL, NULL),
	WAIT(TELLS, "a module of the kernel to be loaded",
	     "__request_module load_module init_module_from_file idempotent_init_module "
	     "do_init_module ",
	     NULL, NULL),
	WAIT(GPU, "work of a GPU (fence)",
	     "dma_fence_* drm_syncobj_* drm_sched_* amdgpu_*wait* amdgpu_fence_* "
	     "kfd_wait_on_events i915_*wait* xe_*wait* ",
	     NULL, NULL),

	WAIT(WRITE, "dirty pages to be written, to free memory",
	     "folio_wait_writeback* "
	     "wait_on_page_writeback* ",
	     NULL, "shrink_* "),
	WAIT(RECLAIM, "memory to be freed by others",
	     "throttle_direct_reclaim reclaim_throttle congestion_wait wait_iff_congested ", NULL,
	     NULL),
	WAIT(SWAP, "a page to be read from swap", PAGE_WAIT "io_schedule* swap_read* ", NULL,
	     "do_swap_page shmem_swapin* swap_read* swapin_* read_swap_cache* "),
	WAIT(DIRTY, "dirty pages to be written: writers are throttled", "balance_dirty_pages* ",
	     NULL, NULL),
	WAIT(WRITE, "a commit of the journal (jbd2)",
	     "jbd2_log_wait_commit jbd2_complete_transaction jbd2_journal_stop "
	     "__jbd2_log_wait_for_space jbd2_log_do_checkpoint wait_transaction_* "
	     "start_this_handle add_transaction_credits do_get_write_access "
	     "jbd2_fc_wait_bufs ext4_fc_commit ",
	     NULL, NULL),
	WAIT(WRITE, "the log (xfs)",
	     "xlog_wait* xlog_force_* xfs_log_force* xlog_cil_* xlog_grant_head_* "
	     "xlog_state_get_iclog_space ",
	     NULL, NULL),
	WAIT(WRITE, "a commit of a transaction (btrfs)",
	     "btrfs_sync_log btrfs_commit_transaction btrfs_wait_for_commit wait_for_commit "
	     "wait_current_trans wait_log_commit ",
	     NULL, NULL),
	WAIT(WRITE, "dirty pages to be written",
	     "folio_wait_writeback* wait_on_page_writeback* folio_wait_stable "
	     "wait_for_stable_page __filemap_fdatawait_range filemap_fdatawait_range "
	     "wb_wait_for_completion sync_inodes_sb ",
	     NULL, NULL),

	WAIT(TELLS, "its cgroup's limit of I/O",
	     "__blk_throtl_bio blk_throtl_bio throtl_* ioc_rqos_throttle iocg_* "
	     "blkcg_maybe_throttle_* __blkcg_* blkcg_iolatency_throttle ",
	     NULL, NULL),
	WAIT(TELLS, "the block layer, which throttles writes",
	     "rq_qos_wait wbt_wait __rq_qos_throttle ", NULL, NULL),
	WAIT(TELLS, "a free place in the queue of a device",
	     "blk_mq_get_tag __blk_mq_get_tag sbitmap_* ", NULL, NULL),
	WAIT(TELLS, "a frozen queue of a device",
	     "blk_mq_freeze_queue_wait* blk_queue_enter __bio_queue_enter ", NULL, NULL),
	WAIT(SERVER, "the answer of the NFS server",
	     "rpc_wait_bit_killable __rpc_execute rpc_execute nfs_wait_bit_killable "
	     "nfs_wait_on_request ",
	     NULL, NULL),
	WAIT(SERVER, "the answer of the SMB server",
	     "wait_for_response cifs_send_recv compound_send_recv smb2_wait_* ", NULL, NULL),
	WAIT(SERVER, "the answer of the 9p server", "p9_client_rpc p9_client_zc_rpc ", NULL, NULL),
	WAIT(READ, "pages of a file to be read", PAGE_WAIT "io_schedule* ", NULL,
	     "filemap_read filemap_get_pages filemap_update_page filemap_fault "
	     "filemap_read_folio filemap_splice_read generic_file_read_iter "
	     "generic_file_buffered_read do_read_cache_folio* do_read_cache_page* "),
	WAIT(TELLS, "direct I/O",
	     "__iomap_dio_rw iomap_dio_rw iomap_dio_complete dio_await_completion "
	     "__blkdev_direct_IO* blkdev_direct_IO* do_blockdev_direct_IO ",
	     NULL, NULL),
	WAIT(TELLS, "a request to a device",
	     "submit_bio_wait blk_execute_rq blkdev_issue_flush __sync_dirty_buffer "
	     "__wait_on_buffer __bread_gfp bh_read* ",
	     NULL, NULL),
	WAIT(TELLS, "its move to another CPU", "affine_move_task stop_one_cpu ", NULL, NULL),
	WAIT(TELLS, "a pause of a driver", "msleep* usleep_range* fsleep ", NULL, NULL),
	WAIT(TELLS, "work of a kernel thread",
	     "__flush_work flush_work flush_workqueue* "
	     "__flush_workqueue kthread_stop ",
	     NULL, NULL),
	WAIT(TELLS, "block I/O", "io_schedule* ", NULL, NULL),

	WORK(RECLAIM, "its cgroup's memory limit",
	     "__mem_cgroup_handle_over_high mem_cgroup_handle_over_high try_charge_memcg "
	     "try_charge mem_cgroup_out_of_memory mem_cgroup_oom* try_to_free_mem_cgroup_pages "),
	WORK(RECLAIM, "memory compaction",
	     "compact_zone* try_to_compact_pages __alloc_pages_direct_compact "),
	WORK(RECLAIM, "memory reclaim",
	     "try_to_free_pages do_try_to_free_pages shrink_* __perform_reclaim "
	     "__alloc_pages_direct_reclaim node_reclaim "),
	WORK(TELLS, "first write to a page of a file", "do_page_mkwrite *_page_mkwrite "),
	WORK(TELLS, "page fault",
	     "handle_mm_fault do_user_addr_fault exc_page_fault do_page_fault "),
	WORK(TELLS, "end of a thread", "do_exit "),
	WORK(TELLS, "unmapping", "exit_mmap unmap_region __vm_munmap do_vmi_munmap "),

	SYSTEM(TELLS, "ext4", "ext4_* "),
	SYSTEM(TELLS, "xfs", "xfs_* xlog_* "),
	SYSTEM(TELLS, "btrfs", "btrfs_* "),
	SYSTEM(TELLS, "f2fs", "f2fs_* "),
	SYSTEM(TELLS, "zfs", "zfs_* zpl_* zio_* txg_* dmu_* "),
	SYSTEM(TELLS, "NFS", "nfs_* nfs3_* nfs4_* rpc_* "),
	SYSTEM(TELLS, "SMB", "cifs_* smb2_* "),
	SYSTEM(TELLS, "9p", "v9fs_* p9_* "),
	SYSTEM(TELLS, "virtiofs", "virtio_fs_* "),
	SYSTEM(TELLS, "FUSE", "fuse_* "),
	SYSTEM(TELLS, "Ceph", "ceph_* "),
	SYSTEM(TELLS, "Lustre", "ll_* ptlrpc_* "),
	SYSTEM(TELLS, "erofs", "erofs_* "),
	SYSTEM(TELLS, "squashfs", "squashfs_* "),
	SYSTEM(TELLS, "overlayfs", "ovl_* "),
	SYSTEM(GPU, "NVIDIA's driver", "nvidia_* uvm_* _nv0* nvkms_* nvswitch_* "),
	SYSTEM(GPU, "amdgpu", "amdgpu_* kfd_* amdkfd_* "),
	SYSTEM(GPU, "Intel's GPU driver", "i915_* xe_* "),
	SYSTEM(TELLS, "InfiniBand", "ib_* mlx5_ib_* uverbs_* rdma_* "),
	SYSTEM(TELLS, "terminal", "n_tty_* tty_* "),
	SYSTEM(TELLS, "device mapper", "dm_* "),
	SYSTEM(TELLS, "software RAID", "md_* raid* "),
};
const size_t meaning_row_count = sizeof(meaning_rows) / sizeof(meaning_rows[0]);

/* Functions between a lock or completion and the function that uses it. */
static const char wrappers[] =
	"down_* __down_* rwsem_* mmap_read_lock* mmap_write_lock* mutex_lock* __mutex_lock* "
	"wait_for_* __wait_for_* ";

/* Length of the name without a compiler's suffix. */
static size_t plain_length(const char *function)
{
	const char *dot = strchr(function, '.');

	return dot && dot != function ? (size_t)(dot - function) : strlen(function);
}

/* Whether a name matches a pattern with at most two *. */
static bool fits(const char *name, size_t len, const char *pattern, size_t pattern_len)
{
	const char *star = memchr(pattern, '*', pattern_len), *rest;
	size_t head, tail;

	if (!star)
		return len == pattern_len && !memcmp(name, pattern, len);
	head = (size_t)(star - pattern);
	tail = pattern_len - head - 1;
	if (len < head || memcmp(name, pattern, head))
		return false;
	/* With a second * at the end, as in amdgpu_*wait*, the part in between must occur. */
	if (tail && star[tail] == '*') {
		rest = memmem(name + head, len - head, star + 1, tail - 1);
		return rest != NULL;
	}
	return len >= head + tail && !memcmp(name + len - tail, star + 1, tail);
}

bool meaning_is_listed(const char *function, const char *list)
{
	size_t len;

	if (!function)
		return false;
	len = plain_length(function);
	for (const char *at = list, *end; *at; at = end + 1) {
		end = strchr(at, ' ');
		if (fits(function, len, at, (size_t)(end - at)))
			return true;
	}
	return false;
}

/* The caller of the function at `at`, past the wrappers; NULL: unknown. */
static const char *caller_of(const char *const *functions, size_t count, size_t at)
{
	for (at++; at < count; at++)
		if (!meaning_is_listed(functions[at], wrappers))
			return functions[at];
	return NULL;
}

static bool any_listed(const char *const *functions, size_t count, size_t at, const char *list)
{
	for (; at < count; at++)
		if (meaning_is_listed(functions[at], list))
			return true;
	return false;
}

static bool row_fits(const struct meaning_row *row, const char *const *functions, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (meaning_is_listed(functions[i], row->functions) &&
		    (!row->caller ||
		     meaning_is_listed(caller_of(functions, count, i), row->caller)) &&
		    (!row->with || any_listed(functions, count, i, row->with)))
			return true;
	return false;
}

struct meaning meaning_of(const char *const *functions, size_t count)
{
	struct meaning meaning = {.rule = MEANING_TELLS};

	for (size_t i = 0; i < meaning_row_count; i++) {
		const struct meaning_row *row = &meaning_rows[i];

		if (meaning.rows[row->class] || !row_fits(row, functions, count))
			continue;
		meaning.rows[row->class] = row;
		if (meaning.rule == MEANING_TELLS)
			meaning.rule = row->rule;
	}
	return meaning;
}

const char *meaning_text(char text[MEANING_TEXT], const struct meaning *meaning)
{
	static const char *const begins[] = {
		[MEANING_WAIT] = "waits for ", [MEANING_WORK] = "", [MEANING_SYSTEM] = ""};
	size_t len = 0;

	*text = '\0';
	for (unsigned i = 0; i < MEANING_CLASS_COUNT; i++)
		if (meaning->rows[i])
			len += (size_t)snprintf(text + len, MEANING_TEXT - len, "%s%s",
						len ? ", " : begins[i], meaning->rows[i]->text);
	return text;
}
