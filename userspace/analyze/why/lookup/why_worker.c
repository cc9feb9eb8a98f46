// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/lookup/why_worker.h"

#include <string.h>

#include "analyze/why/lookup/why_meaning.h"
#include "util/text.h"

#define THREAD(text, comms)                                                                        \
	{                                                                                          \
		text, comms, NULL, WORKER_OTHER                                                    \
	}
#define WRITER(text, comms)                                                                        \
	{                                                                                          \
		text, comms, NULL, WORKER_WRITES                                                   \
	}
#define WORK(text, functions)                                                                      \
	{                                                                                          \
		text, NULL, functions, WORKER_OTHER                                                \
	}
#define WRITE_WORK(text, functions)                                                                \
	{                                                                                          \
		text, NULL, functions, WORKER_WRITES                                               \
	}
#define ENDS_WORK(text, functions)                                                                 \
	{                                                                                          \
		text, NULL, functions, WORKER_ENDS                                                 \
	}

/* Names are those of Linux 5.15 to 6.18. Lists of threads are exact where a program may have a
 * longer name with the same beginning. */
const struct worker_row worker_rows[] = {
	THREAD("RCU grace periods",
	       "rcu_preempt rcu_sched rcu_bh rcu_gp rcu_par_gp rcu_exp_* rcu_tasks_* rcuog/* "
	       "rcuop/* rcuos/* rcuc/* rcub/* "),
	THREAD("softirqs: packets, timers, block I/O", "ksoftirqd/* "),
	THREAD("packets of a network device", "napi/* "),
	THREAD("an interrupt of a device", "irq/* "),
	THREAD("moves of threads to other CPUs", "migration/* "),
	THREAD("memory reclaim",
	       "kswapd0 kswapd1 kswapd2 kswapd3 kswapd4 kswapd5 kswapd6 kswapd7 "),
	THREAD("memory compaction", "kcompactd0 kcompactd1 kcompactd2 kcompactd3 kcompactd4 "
				    "kcompactd5 kcompactd6 kcompactd7 "),
	THREAD("huge pages", "khugepaged "),
	THREAD("merging of equal pages", "ksmd "),
	THREAD("memory of a process that was killed", "oom_reaper "),
	WRITER("commits of the journal (jbd2)", "jbd2/* "),
	WRITER("the log (xfs)", "xfsaild/* "),
	WRITER("commits of transactions (btrfs)", "btrfs-transacti* "),
	WRITER("commits of transactions (zfs)", "txg_sync txg_quiesce "),
	WRITER("encryption of a device", "dmcrypt_write dmcrypt_write/* "),
	THREAD("software RAID", "md*_raid* md*_resync md*_cluster "),
	THREAD("errors of a SCSI device", "scsi_eh_* "),
	THREAD("the NFS server", "nfsd "),
	THREAD("the audit log", "kauditd "),
	THREAD("starts of kernel threads", "kthreadd "),

	WRITE_WORK("write-back of dirty pages", "wb_workfn wb_update_bandwidth_workfn "
						"inode_switch_wbs_work_fn "),
	WRITE_WORK("the log (xfs)", "xlog_cil_push_work xlog_ioend_work xfs_log_worker "
				    "xfs_buf_ioend_work xfs_end_io "),
	WRITE_WORK("ends of writes (ext4)", "ext4_end_io_rsv_work ext4_discard_work "),
	WRITE_WORK("writes (btrfs)", "btrfs_work_helper btrfs_async_* end_workqueue_fn "),
	/* iomap_dio_complete_work() may call aio_complete_rw() instead of itself (tail call). */
	ENDS_WORK("ends of direct I/O",
		  "dio_aio_complete_work iomap_dio_complete_work aio_complete_rw "),
	WORK("requests to a loop device", "loop_workfn loop_rootcg_workfn loop_queue_work "),
	WORK("requests to block devices",
	     "blk_mq_run_work_fn blk_mq_requeue_work blk_mq_timeout_work blk_delay_work "
	     "submit_flushes md_submit_flush_data blk_timeout_work "),
	WORK("encryption of a device", "kcryptd_crypt kcryptd_async_done "),
	WORK("the device mapper", "dm_wq_work dm_wq_requeue_work dm_softirq_done "
				  "verity_work "),
	WORK("an NVMe device", "nvme_* "),
	WORK("input of a terminal", "flush_to_ldisc "),
	WORK("RCU grace periods", "wait_rcu_exp_gp sync_rcu_exp_select_node_cpus "
				  "process_srcu srcu_invoke_callbacks kfree_rcu_* rcu_core "
				  "rcu_work_rcufn "),
	WORK("its cgroup's memory limit", "high_work_func "),
	WORK("lists of pages of a CPU", "lru_add_drain_per_cpu drain_local_pages_wq "
					"vmstat_update vmstat_shepherd "),
	WORK("the end of a cgroup", "css_free_rwork_fn css_killed_work_fn css_release_work_fn "
				    "cgroup_pidlist_destroy_work_fn "),
	WORK("the end of a network namespace", "cleanup_net "),
	WORK("files to be closed", "delayed_fput delayed_mntput "),
	WORK("memory of the kernel to be freed", "delayed_vfree_work free_work "),
	WORK("the NFS client", "rpc_async_schedule xprt_autoclose xs_* nfs_* nfs4_* "),
	WORK("the SMB client", "cifs_* smb2_* "),
	WORK("the 9p client", "p9_read_work p9_write_work "),
	WORK("virtiofs", "virtio_fs_* "),
	WORK("InfiniBand", "ib_cq_poll_work ib_* cma_work_handler rdma_* "),
	WORK("a graphics driver", "drm_* amdgpu_* i915_* xe_* nv_* "),
	WORK("BPF programs and maps to be freed", "bpf_prog_free_deferred bpf_map_free_deferred "),
	WORK("io_uring", "io_ring_exit_work io_fallback_req_func "),
	WORK("the console", "fb_flashcursor console_callback "),
};
const size_t worker_row_count = sizeof(worker_rows) / sizeof(worker_rows[0]);

static bool is_worker(const char *comm)
{
	return text_begins(comm, WORKER_COMM);
}

const char *worker_function(const char *comm, const char *const *functions, size_t count)
{
	if (!is_worker(comm))
		return NULL;
	for (size_t i = 1; i < count; i++)
		if (functions[i] && meaning_is_listed(functions[i], "process_one_work "))
			return functions[i - 1];
	return NULL;
}

const struct worker_row *worker_find(const char *comm, const char *const *functions, size_t count)
{
	const char *function = worker_function(comm, functions, count);

	for (size_t i = 0; i < worker_row_count; i++) {
		const struct worker_row *row = &worker_rows[i];

		if (row->comms ? meaning_is_listed(comm, row->comms)
			       : function && meaning_is_listed(function, row->functions))
			return row;
	}
	return NULL;
}
