// SPDX-License-Identifier: Apache-2.0
/*
 * The table of what stacks of the kernel mean, on made-up stacks.
 *
 * test_why_meaning print: the table for people, which is docs/why-meanings.md.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/why/lookup/why_meaning.h"
#include "analyze/why/lookup/why_worker.h"
#include "docs_page.h"

/* The meaning of a stack. `stack` names its functions with blanks between them, innermost first; ?
 * is unknown. */
static struct meaning meaning_of_text(const char *stack)
{
	static char names[1024];
	const char *functions[64];
	size_t count = 0;

	assert_true(strlen(stack) < sizeof(names));
	memcpy(names, stack, strlen(stack) + 1);
	for (char *name = strtok(names, " "); name; name = strtok(NULL, " "))
		functions[count++] = strcmp(name, "?") ? name : NULL;
	return meaning_of(functions, count);
}

static void check(const char *stack, enum meaning_rule rule, const char *want)
{
	struct meaning meaning = meaning_of_text(stack);
	char text[MEANING_TEXT];

	assert_string_equal(meaning_text(text, &meaning), want);
	assert_int_equal(meaning.rule, rule);
}

static void test_file_systems_are_named_with_what_they_wait_for(void **state)
{
	(void)state;
	check("__schedule schedule jbd2_log_wait_commit jbd2_complete_transaction "
	      "ext4_fsync_journal ext4_sync_file vfs_fsync_range",
	      MEANING_WRITE, "waits for a commit of the journal (jbd2), ext4");
	check("__schedule schedule io_schedule folio_wait_bit_common folio_wait_writeback "
	      "__filemap_fdatawait_range file_write_and_wait_range xfs_file_fsync",
	      MEANING_WRITE, "waits for dirty pages to be written, xfs");
	check("schedule io_schedule folio_wait_bit_common filemap_update_page filemap_get_pages "
	      "filemap_read ext4_file_read_iter vfs_read",
	      MEANING_READ, "waits for pages of a file to be read, ext4");
	check("schedule io_schedule folio_wait_bit_common __folio_lock_or_retry filemap_fault "
	      "__do_fault handle_mm_fault do_user_addr_fault exc_page_fault",
	      MEANING_READ, "waits for pages of a file to be read, page fault");
	check("schedule rpc_wait_bit_killable __wait_on_bit nfs4_do_open nfs4_file_open "
	      "do_dentry_open",
	      MEANING_SERVER, "waits for the answer of the NFS server, NFS");
	check("schedule request_wait_answer __fuse_simple_request fuse_lookup_name path_openat",
	      MEANING_THREAD, "waits for the answer of the FUSE daemon, FUSE");
	check("schedule btrfs_commit_transaction btrfs_sync_file", MEANING_WRITE,
	      "waits for a commit of a transaction (btrfs), btrfs");
	check("schedule p9_client_rpc p9_client_read v9fs_issue_read", MEANING_SERVER,
	      "waits for the answer of the 9p server, 9p");
	check("schedule io_schedule f2fs_get_read_data_folio ovl_read_iter", MEANING_TELLS,
	      "waits for block I/O, f2fs");
}

static void test_memory_is_distinguished_from_files(void **state)
{
	(void)state;
	check("schedule schedule_timeout io_schedule_timeout balance_dirty_pages "
	      "balance_dirty_pages_ratelimited_flags generic_perform_write "
	      "ext4_buffered_write_iter",
	      MEANING_DIRTY, "waits for dirty pages to be written: writers are throttled, ext4");
	check("schedule schedule_timeout reclaim_throttle shrink_node do_try_to_free_pages "
	      "try_to_free_pages __alloc_pages_slowpath handle_mm_fault exc_page_fault",
	      MEANING_RECLAIM, "waits for memory to be freed by others, memory reclaim");
	check("schedule io_schedule folio_wait_writeback shrink_folio_list shrink_lruvec "
	      "try_to_free_mem_cgroup_pages try_charge_memcg handle_mm_fault",
	      MEANING_WRITE,
	      "waits for dirty pages to be written, to free memory, "
	      "its cgroup's memory limit");
	check("schedule compact_zone_order try_to_compact_pages", MEANING_RECLAIM,
	      "memory compaction");
	check("schedule io_schedule folio_wait_bit_common __folio_lock_or_retry do_swap_page "
	      "handle_mm_fault exc_page_fault",
	      MEANING_SWAP, "waits for a page to be read from swap, page fault");
	check("schedule handle_userfault do_anonymous_page handle_mm_fault exc_page_fault",
	      MEANING_THREAD, "waits for a page that userfaultfd's owner has to fill, page fault");
}

static void test_who_called_for_a_lock_says_which_one_it_is(void **state)
{
	(void)state;
	check("schedule schedule_preempt_disabled rwsem_down_read_slowpath down_read_killable "
	      "lock_mm_and_find_vma exc_page_fault asm_exc_page_fault",
	      MEANING_LOCK, "waits for the lock of the address space (mmap_lock), page fault");
	check("schedule rwsem_down_write_slowpath down_write_killable vm_mmap_pgoff do_syscall_64",
	      MEANING_LOCK, "waits for the lock of the address space (mmap_lock)");
	check("schedule rwsem_down_write_slowpath.constprop.0 down_write __x64_sys_brk",
	      MEANING_LOCK, "waits for the lock of the address space (mmap_lock)");
	/* A lock of the file system, in a page fault. */
	check("schedule rwsem_down_read_slowpath down_read ext4_map_blocks ext4_mpage_readpages "
	      "filemap_fault do_user_addr_fault exc_page_fault",
	      MEANING_LOCK, "waits for a lock of the kernel (rwsem), page fault, ext4");
	check("schedule rwsem_down_write_slowpath down_write ext4_buffered_write_iter vfs_write",
	      MEANING_LOCK, "waits for the lock of a file or folder (inode), ext4");
	check("schedule __mutex_lock.constprop.0 __mutex_lock_slowpath mutex_lock tty_write_lock "
	      "tty_ioctl",
	      MEANING_LOCK, "waits for a lock of the kernel (mutex), terminal");
	check("schedule rt_mutex_slowlock_block.isra.0 futex_lock_pi do_futex", MEANING_TELLS,
	      "waits for a priority-inheriting lock");
}

static void test_processes_and_the_block_layer_are_named(void **state)
{
	(void)state;
	check("schedule schedule_timeout __wait_for_common wait_for_completion_state kernel_clone "
	      "__x64_sys_vfork",
	      MEANING_CHILD, "waits for the child of vfork() to run a program or to end");
	/* Not the vfork's wait: it still copies. */
	check("schedule rwsem_down_write_slowpath down_write_killable dup_mmap dup_mm copy_process "
	      "kernel_clone",
	      MEANING_LOCK, "waits for the lock of the address space (mmap_lock)");
	check("__schedule schedule get_signal arch_do_signal_or_restart", MEANING_FROZEN,
	      "waits for its cgroup to be thawed");
	check("schedule coredump_task_exit do_exit", MEANING_TELLS,
	      "waits for a core dump to be written, end of a thread");
	check("schedule __wait_rcu_gp synchronize_rcu_normal synchronize_rcu", MEANING_TELLS,
	      "waits for every CPU to be seen idle or in a program (RCU)");
	check("schedule wait_for_completion synchronize_rcu_normal percpu_down_write",
	      MEANING_TELLS, "waits for every CPU to be seen idle or in a program (RCU)");
	check("schedule io_schedule blk_mq_get_tag __blk_mq_alloc_requests submit_bio",
	      MEANING_TELLS, "waits for a free place in the queue of a device");
	check("schedule io_schedule rq_qos_wait wbt_wait __rq_qos_throttle", MEANING_TELLS,
	      "waits for the block layer, which throttles writes");
	check("schedule idempotent_init_module __do_sys_finit_module", MEANING_TELLS,
	      "waits for a module of the kernel to be loaded");
}

static void test_gpus_are_named_by_their_drivers(void **state)
{
	(void)state;
	check("schedule ? nvidia_unlocked_ioctl __x64_sys_ioctl", MEANING_GPU, "NVIDIA's driver");
	check("schedule _nv045678rm nvidia_ioctl", MEANING_GPU, "NVIDIA's driver");
	check("schedule dma_fence_default_wait amdgpu_cs_wait_ioctl drm_ioctl", MEANING_GPU,
	      "waits for work of a GPU (fence), amdgpu");
	/* The holder of the driver's lock is to blame, not the GPU. */
	check("schedule __mutex_lock.constprop.0 nvidia_ioctl", MEANING_LOCK,
	      "waits for a lock of the kernel (mutex), NVIDIA's driver");
	check("schedule ib_uverbs_event_read vfs_read", MEANING_TELLS, "InfiniBand");
}

static void test_unknown_stacks_mean_nothing(void **state)
{
	(void)state;
	check("", MEANING_TELLS, "");
	check("? ? ?", MEANING_TELLS, "");
	check("__schedule schedule do_nanosleep hrtimer_nanosleep", MEANING_TELLS, "");
	check("ext4", MEANING_TELLS, "");
	check("rwsem_down_reader", MEANING_TELLS, "");
}

static const struct worker_row *worker_of(const char *comm, const char *stack)
{
	char text[256];
	const char *functions[32], *word;
	char *state = NULL;
	size_t count = 0;

	snprintf(text, sizeof(text), "%s", stack);
	for (word = strtok_r(text, " ", &state); word; word = strtok_r(NULL, " ", &state))
		functions[count++] = strcmp(word, "?") ? word : NULL;
	return worker_find(comm, functions, count);
}

static void check_worker(const char *comm, const char *stack, const char *text,
			 enum worker_for what)
{
	const struct worker_row *row = worker_of(comm, stack);

	assert_non_null(row);
	assert_string_equal(row->text, text);
	assert_int_equal(row->what, what);
}

static void test_threads_of_the_kernel_are_named_by_their_work(void **state)
{
	(void)state;
	check_worker("rcu_preempt", "", "RCU grace periods", WORKER_OTHER);
	check_worker("jbd2/vda1-8", "", "commits of the journal (jbd2)", WORKER_WRITES);
	check_worker("kswapd0", "", "memory reclaim", WORKER_OTHER);
	check_worker("kworker/u8:2",
		     "try_to_wake_up finish_writeback wb_workfn process_one_work "
		     "worker_thread kthread",
		     "write-back of dirty pages", WORKER_WRITES);
	check_worker("kworker/1:0", "wake_up ? wait_rcu_exp_gp process_one_work.isra.0",
		     "RCU grace periods", WORKER_OTHER);
	/* A worker's name does not show its work, and a program's functions are none of it. */
	assert_null(worker_of("kworker/u8:2", ""));
	assert_null(worker_of("kworker/u8:2", "complete ? process_one_work"));
	assert_null(worker_of("writer", "wb_workfn process_one_work worker_thread"));
	assert_null(worker_of("rcu_preempted", ""));
}

static bool ends_with_blank(const char *list)
{
	return !list || (*list && list[strlen(list) - 1] == ' ' && !strstr(list, "  "));
}

static void test_rows_are_well_formed(void **state)
{
	(void)state;
	for (size_t i = 0; i < meaning_row_count; i++) {
		const struct meaning_row *row = &meaning_rows[i];

		assert_true(*row->text && *row->functions);
		assert_true(ends_with_blank(row->functions));
		assert_true(ends_with_blank(row->caller) && ends_with_blank(row->with));
		assert_true(row->class < MEANING_CLASS_COUNT && row->rule < MEANING_RULE_COUNT);
		assert_true(strlen(row->text) < MEANING_TEXT / MEANING_CLASS_COUNT);
	}
	for (unsigned i = 0; i < MEANING_RULE_COUNT; i++)
		assert_non_null(meaning_rule_texts[i]);
	for (size_t i = 0; i < worker_row_count; i++) {
		const struct worker_row *row = &worker_rows[i];

		assert_true(*row->text && !row->comms != !row->functions);
		assert_true(ends_with_blank(row->comms) && ends_with_blank(row->functions));
	}
}

/* ---- the table for people ---- */

static void print_list(FILE *out, const char *before, const char *list)
{
	if (!list)
		return;
	fprintf(out, "%s", before);
	for (const char *at = list, *end; *at; at = end + 1) {
		end = strchr(at, ' ');
		fprintf(out, "%s`%.*s`", at == list ? "" : " ", (int)(end - at), at);
	}
}

static void print_workers(FILE *out)
{
	fputs("\n## What threads of the kernel do\n\n"
	      "If a thread of the kernel ended a wait or had the CPU, `why` says what it does: "
	      "`rcu_preempt (15), kernel: RCU grace periods`.\n"
	      "The work of a `kworker` is known if the stack of the wake-up was recorded. Work "
	      "that is not in the table is shown by its\nfunction.\n\n"
	      "| Work | Threads, or functions of `kworker` | Cause of a wait for it |\n"
	      "|---|---|---|\n",
	      out);
	for (size_t i = 0; i < worker_row_count; i++) {
		const struct worker_row *row = &worker_rows[i];

		fprintf(out, "| %s | ", row->text);
		print_list(out, "threads ", row->comms);
		print_list(out, "functions ", row->functions);
		fprintf(out, " | %s |\n",
			row->what == WORKER_WRITES ? "`disk-write`"
			: row->what == WORKER_ENDS ? "`disk-read` or `disk-write`"
						   : "`not-recorded`");
	}
}

static void print_table(FILE *out)
{
	static const char *const heads[] = {
		[MEANING_WAIT] = "What is waited for",
		[MEANING_WORK] = "What the kernel was doing",
		[MEANING_SYSTEM] = "Whose code it is",
	};

	fputs("# What stacks of the kernel mean\n\n"
	      "To understand a phrase such as \"waits for dirty pages to be written, ext4\" in the "
	      "output of `waffle-bpf why`, look for it\nin these tables. [why.md](why.md) says how "
	      "`why` uses them.\n\n"
	      "From each of the first three tables, `why` takes the first row with a function on "
	      "the stack of the "
	      "blocked thread. `*` stands\nfor any rest of a name. The last table says what "
	      "threads of "
	      "the kernel do.\n\n"
	      "This page is made from why_meaning.c and why_worker.c in userspace/analyze/why by "
	      "`make docs`.\n",
	      out);
	for (unsigned class = 0; class < MEANING_CLASS_COUNT; class ++) {
		fprintf(out, "\n| %s | Cause that the row decides | Functions |\n|---|---|---|\n",
			heads[class]);
		for (size_t i = 0; i < meaning_row_count; i++) {
			const struct meaning_row *row = &meaning_rows[i];

			if (row->class != class)
				continue;
			fprintf(out, "| %s | %s | ", row->text, meaning_rule_texts[row->rule]);
			print_list(out, "", row->functions);
			print_list(out, ", called by ", row->caller);
			print_list(out, ", below ", row->with);
			fputs(" |\n", out);
		}
	}
	print_workers(out);
}

static void test_documented_table_is_that_of_the_code(void **state)
{
	(void)state;
	assert_page("docs/why-meanings.md", print_table);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file_systems_are_named_with_what_they_wait_for),
		cmocka_unit_test(test_memory_is_distinguished_from_files),
		cmocka_unit_test(test_who_called_for_a_lock_says_which_one_it_is),
		cmocka_unit_test(test_processes_and_the_block_layer_are_named),
		cmocka_unit_test(test_gpus_are_named_by_their_drivers),
		cmocka_unit_test(test_unknown_stacks_mean_nothing),
		cmocka_unit_test(test_threads_of_the_kernel_are_named_by_their_work),
		cmocka_unit_test(test_rows_are_well_formed),
		cmocka_unit_test(test_documented_table_is_that_of_the_code),
	};

	if (argc > 1 && !strcmp(argv[1], "print")) {
		print_table(stdout);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
