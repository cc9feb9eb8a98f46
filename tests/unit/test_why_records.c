// SPDX-License-Identifier: Apache-2.0
/* The records that a step rests on, the CPU on which it waited, and causes that stacks of the
 * kernel decide. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "render/text/why_text.h"
#include "store/record_schema.h"
#include "why_capture.h"

#define RUNNING WAFFLE_THREAD_RUNNING
#define RUNNABLE WAFFLE_THREAD_RUNNABLE
#define BLOCKED WAFFLE_THREAD_BLOCKED

/* Thread 11 runs on CPU 1 and begins a span at 1010. */
static void begin(struct capture *capture)
{
	capture_begin(capture, true);
	gets(capture, 1005, 1, 0, 11, 0, 0, 0);
	capture_span(capture, 1010, 11, 1);
}

static const struct why_step *step_of(const struct why *why, uint32_t part, uint32_t number)
{
	assert_true(number < part_of(why, part)->step_count);
	return &why->steps.data[part_of(why, part)->step + number];
}

/* ---- records ---- */

/* The record of a number, as it is in the file: "switch@1020". */
static void record_text(const struct why *why, uint64_t number, char text[64])
{
	struct store_reader *reader = why->model->reader;
	struct error err = ERROR_INIT;
	const struct waffle_rec *rec;
	uint64_t at = 0;

	capture_must(store_reader_seek(reader, STORE_ALL, &err), err);
	while (at < number) {
		assert_int_equal(store_reader_next(reader, &rec, &err), 1);
		at++;
		assert_int_equal(store_reader_number(reader), at);
	}
	snprintf(text, 64, "%s@%llu", record_kinds[rec->kind].name, (unsigned long long)rec->ts);
}

/* The records that a step rests on, as "span begin hit@1010, switch-out switch@1020, …". */
static void check_records(struct why *why, uint32_t part, uint32_t number, const char *want)
{
	const struct why_step *step = step_of(why, part, number);
	char text[512] = "", record[64];
	size_t len = 0;

	for (uint32_t i = 0; i < step->count; i++) {
		const struct why_record *found = &why->records.data[step->record + i];

		assert_true(found->number);
		record_text(why, found->number, record);
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s %s", i ? ", " : "",
					why_role_names[found->role], record);
	}
	assert_string_equal(text, want);
}

static void find_records(struct why *why)
{
	struct error err = ERROR_INIT;

	capture_must(why_records_find(why, &err), err);
}

static bool has_role(const struct why *why, uint32_t part, uint32_t number, enum why_role role)
{
	const struct why_step *step = step_of(why, part, number);

	for (uint32_t i = 0; i < step->count; i++)
		if (why->records.data[step->record + i].role == role)
			return true;
	return false;
}

#define FUTEX_PI 0x86 /* FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG */

static void test_steps_name_the_records_that_they_rest_on(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	gets(&capture, 1006, 2, 0, 12, 0, 0, 0);
	waits(&capture, 1020, 1, 11, 0, S, NR_FUTEX, 0x7f00, FUTEX_PI, 0);
	waits(&capture, 1030, 2, 12, 0, D, NR_FSYNC, 4, 0, 0);
	io_done(&capture, 1031, 1090, 12, WAFFLE_IO_WRITE);
	io_done(&capture, 1032, 1095, 12, WAFFLE_IO_WRITE);
	wake_details(&capture, 1100, 77, 12, 0, HARD);
	gets(&capture, 1110, 2, 98, 12, 77, 1100, HARD);
	wait_details(&capture, 1030, 1110, 12, 0, 0, 0);
	gets(&capture, 1205, 1, 0, 11, 12, 1200, 0);
	capture_end(&capture, 1210, 11, 1);
	why = ask_span(&capture, 1300);
	find_records(why);
	check_part(why, 1, "disk-write", 70, 12, "certain", "");
	check_records(why, 1, 0,
		      "span begin hit@1010, switch-out switch@1020, switch-in switch@1205");
	check_records(why, 1, 1,
		      "switch-out switch@1030, io io@1090, io io@1095, wake wake@1100, "
		      "switch-in switch@1110, wait wait@1110");
	check_part(why, 0, "lock", 10 + 90, 12, "certain", "futex 0x7f00");
	check_records(why, 0, 1, "switch-in switch@1110");
	done(&capture, why);
}

static void test_stop_names_its_signal_and_throttling_its_records(void **state)
{
	struct waffle_rec_signal stop = {.rec = {1015, 77, WAFFLE_REC_SIGNAL, 0},
					 .target_tid = 11,
					 .target_tgid = CAPTURE_PID,
					 .signo = 19};
	struct waffle_rec_quota quota = {.rec = {1300, 11, WAFFLE_REC_QUOTA, 1},
					 .throttled_ns = 80};
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	capture_add(&capture, &stop);
	waits(&capture, 1020, 1, 11, 0, WAFFLE_TASK_STOPPED, NR_NONE, 0, 0, 0);
	gets(&capture, 1180, 1, 0, 11, 77, 1180, 0);
	gets(&capture, 1200, 1, 11, 0, 0, 0, 0);
	gets(&capture, 1300, 1, 0, 11, 0, 0, 0);
	capture_add(&capture, &quota);
	capture_end(&capture, 1310, 11, 1);
	why = ask_span(&capture, 1400);
	find_records(why);
	check_part(why, 0, "stopped", 160, 77, "certain", "");
	check_records(why, 0, 0,
		      "span begin hit@1010, signal signal@1015, switch-out switch@1020, switch-in "
		      "switch@1180");
	check_part(why, 1, "cpu-quota", 80, 11, "certain", "cgroup 0");
	check_records(why, 1, 0,
		      "span begin hit@1010, switch-out switch@1200, switch-in switch@1300, quota "
		      "quota@1300");
	done(&capture, why);
}

static void test_lost_time_names_the_loss(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	waits(&capture, 1020, 1, 11, 0, S, NR_NANOSLEEP, 0, 0, 0);
	capture_loss(&capture, 1030, 1100, WAFFLE_SOURCE_SCHED, 3);
	gets(&capture, 1130, 1, 0, 11, 0, 1130, HARD);
	capture_end(&capture, 1140, 11, 1);
	why = ask_span(&capture, 1200);
	find_records(why);
	check_part(why, 0, "unknown", 100, 11, "unknown", "");
	check_records(why, 0, 0, "span begin hit@1010, loss loss@1100");
	done(&capture, why);
}

static void test_stolen_time_names_its_record_and_the_frequency(void **state)
{
	struct waffle_rec_frequency slow = {
		.rec = {1007, 0, WAFFLE_REC_FREQUENCY, 1}, .khz = 1000000, .max_khz = 3000000};
	struct waffle_rec_stolen stolen = {
		.rec = {1200, 11, WAFFLE_REC_STOLEN, 1}, .from_ts = 1005, .stolen_ns = 150};
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	capture_add(&capture, &slow);
	waits(&capture, 1200, 1, 11, 0, S, NR_NANOSLEEP, 0, 0, 0);
	capture_add(&capture, &stolen);
	gets(&capture, 1210, 1, 0, 11, 0, 1210, HARD);
	capture_end(&capture, 1220, 11, 1);
	why = ask_span(&capture, 1300);
	find_records(why);
	check_part(why, 0, "cpu-contention", 146, 0, "likely", "stolen by the hypervisor");
	check_records(why, 0, 0,
		      "switch-in switch@1005, span begin hit@1010, switch-out switch@1200, "
		      "stolen stolen@1200");
	check_part(why, 1, "running", 54, 11, "certain", "");
	check_records(why, 1, 0,
		      "switch-in switch@1005, span begin hit@1010, frequency frequency@1007, "
		      "switch-out switch@1200");
	done(&capture, why);
}

/* ---- CPUs ---- */

static void check_cpus(const struct why_step *step, const struct model *model, uint16_t cpu,
		       uint16_t from_cpu, uint32_t preemptor, uint32_t by)
{
	assert_int_equal(step->state, RUNNABLE);
	assert_int_equal(step->cpu, cpu);
	assert_int_equal(step->from_cpu, from_cpu);
	assert_int_equal(step->preemptor == MODEL_NONE ? 0
						       : model->threads.data[step->preemptor].tid,
			 preemptor);
	assert_int_equal(step->by == MODEL_NONE ? 0 : model->threads.data[step->by].tid, by);
}

static void check_text(const struct why *why, const char *want)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	why_print_text(why, &(struct why_view){.evidence = true}, out);
	fclose(out);
	if (!strstr(text, want))
		fail_msg("no '%s' in %s", want, text);
	free(text);
}

static void test_preemptor_is_named_where_the_thread_lost_its_cpu(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	gets(&capture, 1020, 1, 11, 99, 0, 0, 0);
	gets(&capture, 1120, 1, 99, 98, 0, 0, 0);
	gets(&capture, 1150, 1, 98, 11, 0, 0, 0);
	capture_end(&capture, 1160, 11, 1);
	why = ask_span(&capture, 1300);
	find_records(why);
	check_part(why, 0, "cpu-contention", 100, 99, "certain", "");
	check_cpus(step_of(why, 0, 0), why->model, 1, MODEL_CPU_NONE, 99, 99);
	check_records(why, 0, 0,
		      "span begin hit@1010, switch-out switch@1020, switch-in switch@1150");
	check_text(why, "100 ns runnable, preempted by ? (99) on cpu 1 [1]\n");
	check_text(why, "30 ns runnable behind ? (98) on cpu 1 [2]\n");
	check_part(why, 1, "cpu-contention", 30, 98, "certain", "");
	check_cpus(step_of(why, 1, 0), why->model, 1, MODEL_CPU_NONE, 0, 98);
	check_records(
		why, 1, 0,
		"span begin hit@1010, switch-out switch@1020, switch-in of the other switch@1120, "
		"switch-in switch@1150");
	done(&capture, why);
}

static void test_thread_that_moved_knows_both_cpus(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	gets(&capture, 1011, 2, 0, 98, 0, 0, 0);
	gets(&capture, 1020, 1, 11, 99, 0, 0, 0);
	gets(&capture, 1120, 2, 98, 11, 0, 0, 0);
	waits(&capture, 1130, 2, 11, 97, S, NR_NANOSLEEP, 0, 0, 0);
	gets(&capture, 1300, 3, 96, 11, 0, 1250, HARD);
	capture_end(&capture, 1310, 11, 1);
	why = ask_span(&capture, 1400);
	find_records(why);
	/* No record says when it was moved to the second CPU. */
	check_part(why, 1, "cpu-contention", 100, 98, "likely", "");
	check_cpus(step_of(why, 1, 0), why->model, 2, 1, 99, 98);
	check_records(
		why, 1, 0,
		"span begin hit@1010, switch-in of the other switch@1011, switch-out switch@1020, "
		"switch-in switch@1120");
	check_text(why, "runnable, preempted by ? (99) on cpu 1, behind ? (98) on cpu 2, moved "
			"there from cpu 1 [2]\n");
	check_text(why, "50 ns runnable behind ? (96) on cpu 3, moved there from cpu 2 [3]\n");
	check_text(why, " (switch-in of the other), ");
	/* The switch shows who had the third CPU until then, but not since when. */
	check_part(why, 2, "cpu-contention", 50, 96, "likely", "");
	check_cpus(step_of(why, 2, 0), why->model, 3, 2, 0, 96);
	done(&capture, why);
}

static void test_thread_that_was_preempted_and_moved_was_not_woken_late(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	gets(&capture, 1011, 2, 0, 98, 0, 0, 0);
	gets(&capture, 1012, 2, 98, 0, 0, 0, 0);
	gets(&capture, 1020, 1, 11, 99, 0, 0, 0);
	gets(&capture, 1120, 2, 0, 11, 0, 0, 0);
	capture_end(&capture, 1130, 11, 1);
	why = ask_span(&capture, 1400);
	check_part(why, 0, "cpu-contention", 100, 0, "likely", "the CPU was idle: woken late");
	check_text(why, "100 ns runnable, preempted by ? (99) on cpu 1, moved to cpu 2: that CPU "
			"was idle [1]\n");
	done(&capture, why);
}

/* While no traced thread waits for a CPU, its switches are not recorded. So the last one before the
 * wait is old, and the first one in it shows who had the CPU. */
static void test_who_had_the_cpu_is_who_gave_it_up(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	for (uint32_t next = 98; next < 100; next++) {
		begin(&capture);
		waits(&capture, 1020, 1, 11, 98, S, NR_NANOSLEEP, 0, 0, 0);
		gets(&capture, 1150, 1, 97, next, 0, 0, 0);
		gets(&capture, 1180, 1, next, 11, 0, 1050, HARD);
		capture_end(&capture, 1190, 11, 1);
		why = ask_span(&capture, 1400);
		check_part(why, 0, "cpu-contention", 100, 97, "likely", "");
		check_part(why, 1, "cpu-contention", 30, next, "certain", "");
		done(&capture, why);
	}
}

/* The last CPU says nothing of the one on which it waited before. */
static void test_who_ran_where_a_thread_was_moved_to_is_likely(void **state)
{
	static const struct {
		unsigned flags;
		const char *grade;
	} rows[] = {{0, "certain"}, {MOVED, "likely"}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why;

		/* Woken on CPU 1, on which 98 ran until it got it. */
		begin(&capture);
		waits(&capture, 1020, 1, 11, 98, S, NR_NANOSLEEP, 0, 0, 0);
		gets(&capture, 1250, 1, 98, 11, 0, 1050, HARD | rows[i].flags);
		capture_end(&capture, 1260, 11, 1);
		why = ask_span(&capture, 1400);
		check_part(why, 0, "cpu-contention", 200, 98, rows[i].grade, "");
		done(&capture, why);
		/* Preempted there, and back there. */
		begin(&capture);
		gets(&capture, 1020, 1, 11, 98, 0, 0, 0);
		gets(&capture, 1250, 1, 98, 11, 0, 0, rows[i].flags);
		capture_end(&capture, 1260, 11, 1);
		why = ask_span(&capture, 1400);
		check_part(why, 0, "cpu-contention", 230, 98, rows[i].grade, "");
		done(&capture, why);
	}
}

/* ---- stacks ---- */

/* Adds a stack of the kernel, the innermost function first; the first one is number 1. */
static void stack_at(struct capture *capture, uint64_t address, const char *functions)
{
	struct error err = ERROR_INIT;
	uint64_t addresses[16];
	struct store_stack stack = {.addresses = addresses};
	char names[512];

	assert_true(strlen(functions) < sizeof(names));
	memcpy(names, functions, strlen(functions) + 1);
	for (char *name = strtok(names, " "); name; name = strtok(NULL, " ")) {
		struct store_symbol symbol = {.address = address + stack.count, .name = name};

		addresses[stack.count++] = symbol.address;
		capture_must(store_writer_add_symbol(capture->writer, &symbol, &err), err);
	}
	capture_must(store_writer_add_stack(capture->writer, &stack, &err), err);
}

static void stack_of(struct capture *capture, const char *functions)
{
	stack_at(capture, 0xffff0000, functions);
}

/* Thread 11 waits with a stack from 1020 until 1200, when `waker` wakes it; 0: an interrupt. */
static struct why *stack_wait(struct capture *capture, const char *functions, int syscall,
			      uint64_t fault_address, uint32_t waker)
{
	begin(capture);
	named(capture, 12, CAPTURE_PID, "holder");
	stack_of(capture, functions);
	gets(capture, 1012, 2, 0, 12, 0, 0, 0);
	waits(capture, 1020, 1, 11, 0, D, syscall, 0, 0, 0);
	gets(capture, 1200, 1, 0, 11, waker, 1200, waker ? 0 : HARD);
	wait_details(capture, 1020, 1200, 11, 0, 1, fault_address);
	capture_end(capture, 1210, 11, 1);
	return ask_span(capture, 1300);
}

static void test_stacks_decide_what_calls_and_files_do_not_tell(void **state)
{
	static const struct {
		const char *functions;
		int syscall;
		uint64_t fault_address;
		uint32_t waker, culprit;
		const char *cause, *grade, *object, *meaning;
	} rows[] = {
		{"schedule rwsem_down_read_slowpath down_read_killable lock_mm_and_find_vma "
		 "exc_page_fault",
		 NR_NONE, 0x7f00, 12, 12, "lock", "certain",
		 "the lock of the address space (mmap_lock)",
		 "waits for the lock of the address space (mmap_lock), page fault"},
		{"schedule rwsem_down_write_slowpath down_write_killable __vm_munmap", 11, 0, 12,
		 12, "lock", "likely", "the lock of the address space (mmap_lock)",
		 "waits for the lock of the address space (mmap_lock), unmapping"},
		/* It waits for readers, of which the last one wakes it. */
		{"schedule __vma_start_write vma_start_write", 11, 0, 12, 12, "lock", "likely",
		 "the lock of a part of the address space (VMA)",
		 "waits for the lock of a part of the address space (VMA)"},
		{"schedule __wait_for_common wait_for_completion_state kernel_clone", 58, 0, 12, 12,
		 "process-exit", "certain", "",
		 "waits for the child of vfork() to run a program or to end"},
		{"schedule handle_userfault handle_mm_fault", NR_NONE, 0x7f00, 12, 12, "user-work",
		 "certain", "",
		 "waits for a page that userfaultfd's owner has to fill, page fault"},
		{"schedule io_schedule_timeout balance_dirty_pages generic_perform_write", NR_WRITE,
		 0, 0, 11, "disk-write", "likely", "",
		 "waits for dirty pages to be written: writers are throttled"},
		{"schedule jbd2_log_wait_commit ext4_sync_file", NR_NONE, 0, 88, 11, "disk-write",
		 "likely", "", "waits for a commit of the journal (jbd2), ext4"},
		{"schedule io_schedule folio_wait_bit_common do_swap_page handle_mm_fault", NR_NONE,
		 0x7f00, 0, 11, "page-fault-major", "certain", "swap",
		 "waits for a page to be read from swap, page fault"},
		/* A thread that unlocks the page need not have read it. */
		{"schedule io_schedule folio_wait_bit_common do_swap_page handle_mm_fault", NR_NONE,
		 0x7f00, 12, 11, "page-fault-major", "likely", "swap",
		 "waits for a page to be read from swap, page fault"},
		{"schedule reclaim_throttle shrink_node try_to_free_pages handle_mm_fault", NR_NONE,
		 0x7f00, 0, 11, "page-fault-minor", "likely", "",
		 "waits for memory to be freed by others, memory reclaim"},
		{"schedule nvidia_ioctl", NR_IOCTL, 0, 0, 11, "gpu", "likely", "",
		 "NVIDIA's driver"},
		/* The thread that thaws it may not be the one that froze it. */
		{"schedule get_signal", NR_NONE, 0, 12, 12, "stopped", "likely",
		 "thawed ? (10), whose cgroup was frozen", "waits for its cgroup to be thawed"},
		{"schedule rpc_wait_bit_killable nfs_file_read", NR_READ, 0, 0, 0, "socket",
		 "likely", "", "waits for the answer of the NFS server, NFS"},
		/* A lock that an interrupt let go says nothing. */
		{"schedule __mutex_lock.constprop.0 some_driver", NR_IOCTL, 0, 0, 0, "interrupt",
		 "likely", "", "waits for a lock of the kernel (mutex)"},
		{"schedule some_function", NR_NONE, 0, 0, 0, "interrupt", "likely", "", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why = stack_wait(&capture, rows[i].functions, rows[i].syscall,
					     rows[i].fault_address, rows[i].waker);
		const struct why_step *first = step_of(why, 0, 0);

		check_part(why, 0, rows[i].cause, 180, rows[i].culprit, rows[i].grade,
			   rows[i].object);
		assert_string_equal(strtab_get(why->texts, first->meaning), rows[i].meaning);
		done(&capture, why);
	}
}

/* Only the last of several readers wakes a writer. The stack of the waker says who it is. */
static void test_a_lock_that_a_reader_let_go_is_likely(void **state)
{
	static const struct {
		const char *release, *grade;
	} rows[] = {
		{"wake_up_q rwsem_wake up_write inode_unlock", "certain"},
		{"wake_up_q rwsem_wake up_read inode_unlock_shared", "likely"},
	};
	const char *wait = "schedule rwsem_down_write_slowpath down_write ext4_file_write_iter";

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why;

		begin(&capture);
		named(&capture, 12, CAPTURE_PID, "holder");
		stack_of(&capture, wait);
		stack_at(&capture, 0xffff1000, rows[i].release);
		gets(&capture, 1012, 2, 0, 12, 0, 0, 0);
		waits(&capture, 1020, 1, 11, 0, D, NR_WRITE, 3, 0, 0);
		wake_details(&capture, 1200, 12, 11, 2, 0);
		gets(&capture, 1200, 1, 0, 11, 12, 1200, 0);
		wait_details(&capture, 1020, 1200, 11, 0, 1, 0);
		capture_end(&capture, 1210, 11, 1);
		why = ask_span(&capture, 1300);
		check_part(why, 0, "lock", 180, 12, rows[i].grade,
			   "the lock of a file or folder (inode)");
		done(&capture, why);
	}
}

/* A request to the file's device must be in flight: NFS also has dirty pages. */
static void test_a_writer_held_back_waits_for_the_disk_if_that_writes(void **state)
{
	static const struct {
		uint32_t dev;
		const char *grade;
	} rows[] = {{8, "certain"}, {9, "likely"}, {0, "likely"}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why;

		begin(&capture);
		file_on(&capture, "/data/log", rows[i].dev);
		stack_of(&capture, "schedule io_schedule_timeout balance_dirty_pages");
		waits(&capture, 1020, 1, 11, 0, D, NR_WRITE, 3, 0, 0);
		io_done(&capture, 1030, 1190, 77, WAFFLE_IO_WRITE);
		gets(&capture, 1200, 1, 0, 11, 0, 1200, HARD);
		wait_details(&capture, 1020, 1200, 11, 1, 1, 0);
		capture_end(&capture, 1210, 11, 1);
		why = ask_span(&capture, 1300);
		check_part(why, 0, "disk-write", 180, 11, rows[i].grade, "/data/log (ext4)");
		done(&capture, why);
	}
}

/* The thread may have asked another device for something that it does not wait for. */
static void test_a_request_to_another_device_is_not_what_a_file_waits_for(void **state)
{
	static const struct {
		uint32_t dev;
		uint64_t done_ts;
		uint32_t issuer;
		const char *stack, *waker, *grade;
		bool evidence;
	} rows[] = {{8, 1190, 11, NULL, NULL, "certain", true},
		    {9, 1190, 11, NULL, NULL, "likely", false},
		    /* It was still in flight when the wait ended. */
		    {8, 1205, 11, NULL, NULL, "likely", true},
		    {8, 1190, 77, "folio_wait_bit_common filemap_read", NULL, "certain", true},
		    {9, 1190, 77, "folio_wait_bit_common filemap_read", NULL, "likely", false},
		    {0, 1190, 77, "folio_wait_bit_common filemap_read", NULL, "likely", true},
		    /* The wake-up comes from a device, perhaps one below that of the file. */
		    {9, 1190, 77, NULL, "folio_end_read bio_endio blk_update_request", "certain",
		     false}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why;

		begin(&capture);
		file_on(&capture, "/data/shard-7", rows[i].dev);
		if (rows[i].stack || rows[i].waker)
			stack_of(&capture, rows[i].stack ? rows[i].stack : rows[i].waker);
		waits(&capture, 1020, 1, 11, 0, D, NR_READ, 3, 0, 0);
		if (rows[i].done_ts < 1200)
			io_done(&capture, 1030, rows[i].done_ts, rows[i].issuer, 0);
		if (rows[i].waker)
			wake_details(&capture, 1200, 0, 11, 1, HARD);
		gets(&capture, 1200, 1, 0, 11, 0, 1200, HARD);
		wait_details(&capture, 1020, 1200, 11, 1, !!rows[i].stack, 0);
		if (rows[i].done_ts > 1200)
			io_done(&capture, 1030, rows[i].done_ts, rows[i].issuer, 0);
		capture_end(&capture, 1210, 11, 1);
		why = ask_span(&capture, 1300);
		check_part(why, 0, "disk-read", 180, 11, rows[i].grade, "/data/shard-7 (ext4)");
		find_records(why);
		assert_int_equal(has_role(why, 0, 0, WHY_ROLE_IO), rows[i].evidence);
		done(&capture, why);
	}
}

/* While thread 12 sends something, the answer of another machine arrives. */
static void test_a_packet_from_the_network_is_not_the_doing_of_a_sender(void **state)
{
	static const struct {
		const char *detail, *release, *cause, *grade;
		uint32_t culprit;
	} rows[] = {
		{"tcp 10.0.0.1:80 <-> 10.0.0.2:5000", "sock_def_readable tcp_sendmsg", "socket",
		 "likely", 12},
		{"tcp 10.0.0.1:80 <-> 10.0.0.1:5000", "sock_def_readable tcp_sendmsg", "socket",
		 "certain", 12},
		{"tcp 10.0.0.1:80 <-> 10.0.0.1:5000, data sent again once",
		 "sock_def_readable tcp_sendmsg", "socket", "certain", 12},
		{"tcp 10.0.0.1:80 <-> 10.0.0.2:5000, data sent again 3 times",
		 "sock_def_readable tcp_sendmsg", "socket", "likely", 12},
		{"tcp [::1]:80 <-> [::1]:5000", "sock_def_readable process_backlog net_rx_action",
		 "socket", "certain", 12},
		{"tcp 10.0.0.1:80 <-> 10.0.0.2:5000",
		 "sock_def_readable napi_complete_done net_rx_action", "socket", "likely", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why;

		begin(&capture);
		named(&capture, 12, CAPTURE_PID, "sender");
		object(&capture, "socket:[1]", rows[i].detail);
		stack_of(&capture, rows[i].release);
		gets(&capture, 1012, 2, 0, 12, 0, 0, 0);
		waits(&capture, 1020, 1, 11, 0, S, NR_RECVFROM, 3, 0, 0);
		wake_details(&capture, 1200, 12, 11, 1, 0);
		gets(&capture, 1200, 1, 0, 11, 12, 1200, 0);
		wait_details(&capture, 1020, 1200, 11, 1, 0, 0);
		capture_end(&capture, 1210, 11, 1);
		why = ask_span(&capture, 1300);
		assert_string_equal(why_causes[part_of(why, 0)->cause].name, rows[i].cause);
		assert_string_equal(why_grade_names[part_of(why, 0)->grade], rows[i].grade);
		assert_int_equal(part_of(why, 0)->thread == MODEL_NONE
					 ? 0
					 : why->model->threads.data[part_of(why, 0)->thread].tid,
				 rows[i].culprit);
		done(&capture, why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps_name_the_records_that_they_rest_on),
		cmocka_unit_test(test_stop_names_its_signal_and_throttling_its_records),
		cmocka_unit_test(test_lost_time_names_the_loss),
		cmocka_unit_test(test_stolen_time_names_its_record_and_the_frequency),
		cmocka_unit_test(test_preemptor_is_named_where_the_thread_lost_its_cpu),
		cmocka_unit_test(test_thread_that_moved_knows_both_cpus),
		cmocka_unit_test(test_thread_that_was_preempted_and_moved_was_not_woken_late),
		cmocka_unit_test(test_who_had_the_cpu_is_who_gave_it_up),
		cmocka_unit_test(test_who_ran_where_a_thread_was_moved_to_is_likely),
		cmocka_unit_test(test_stacks_decide_what_calls_and_files_do_not_tell),
		cmocka_unit_test(test_a_lock_that_a_reader_let_go_is_likely),
		cmocka_unit_test(test_a_writer_held_back_waits_for_the_disk_if_that_writes),
		cmocka_unit_test(test_a_request_to_another_device_is_not_what_a_file_waits_for),
		cmocka_unit_test(test_a_packet_from_the_network_is_not_the_doing_of_a_sender),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
