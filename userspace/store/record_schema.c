// SPDX-License-Identifier: Apache-2.0
#include "store/record_schema.h"

#include <stddef.h>

#define FIELD_ROW(type, member, form, exported, help)                                              \
	{                                                                                          \
#member, offsetof(struct type, member), sizeof(((struct type *)0)->member),        \
			RECORD_##form, exported, help                                              \
	}
#define FIELD(type, member, form, help) FIELD_ROW(type, member, form, true, help)
/* In the file, but not exported. */
#define FILE_FIELD(type, member, form, help) FIELD_ROW(type, member, form, false, help)

#define TGID(type) FIELD(type, tgid, PID, "its process")
#define STACKS(type)                                                                               \
	FIELD(type, kernel_stack, STACK, "number of the kernel stack; 0: none"),                   \
		FIELD(type, user_stack, STACK, "number of the user stack; 0: none")
#define RESERVED(type) FILE_FIELD(type, reserved, NUMBER, "0")

static const struct record_field hit_fields[] = {
	TGID(waffle_rec_hit),
	FIELD(waffle_rec_hit, site, SITE, "number of the site"),
	FIELD(waffle_rec_hit, frame_bytes, BYTES,
	      "length of the frame that follows: ids and values (`include/waffle/abi.h`)"),
	RESERVED(waffle_rec_hit),
};

static const struct record_field span_end_fields[] = {
	FIELD(waffle_rec_span_end, span_id, ID, "the span"),
	TGID(waffle_rec_span_end),
	FIELD(waffle_rec_span_end, site, SITE, "the site of its begin; 4294967295: unknown"),
	FILE_FIELD(waffle_rec_span_end, probe_addr, ADDRESS,
		   "0 in a file, since the site implies it"),
};

static const struct record_field switch_fields[] = {
	FIELD(waffle_rec_switch, next_tid, PID, "the thread that the CPU goes to"),
	FIELD(waffle_rec_switch, waker_tid, PID, "who woke that thread; valid with flag 4"),
	FIELD(waffle_rec_switch, wake_ts, TIME, "when; valid with flag 4"),
	FIELD(waffle_rec_switch, prev_state, FLAGS,
	      "state of the thread that leaves (`enum waffle_task_state`)"),
	FIELD(waffle_rec_switch, flags, FLAGS,
	      "1: the thread that leaves is traced; 2: the next one is; 4: the next one was woken "
	      "since it last left a CPU; 8: a hard interrupt woke it; 16: a soft interrupt woke "
	      "it; 32: the thread that leaves was still runnable; 64: the wake-up is the next "
	      "thread's creation; 128: the next thread was not moved to another CPU while it was "
	      "runnable"),
	RESERVED(waffle_rec_switch),
	FIELD(waffle_rec_switch, syscall, SIGNED,
	      "system call in which the thread that leaves blocks; -1: none"),
	FILE_FIELD(waffle_rec_switch, args, NUMBER, "the first three arguments of that call"),
};

static const struct record_field task_fields[] = {
	TGID(waffle_rec_task),
	FIELD(waffle_rec_task, flags, FLAGS,
	      "1: a thread of the traced processes; 2: of waffle-bpf itself or of its processes; "
	      "4: of the kernel; 8: of a process (earlier versions have neither 4 nor 8)"),
	FILE_FIELD(waffle_rec_task, start_ts, TIME, "when the thread was created"),
	FIELD(waffle_rec_task, comm, TEXT, "its name"),
};

static const struct record_field state_fields[] = {
	TGID(waffle_rec_state),
	FIELD(waffle_rec_state, state, NUMBER, "1: running; 2: runnable; 3: blocked"),
	FIELD(waffle_rec_state, task_state, FLAGS, "`enum waffle_task_state`, if it is blocked"),
	FIELD(waffle_rec_state, syscall, SIGNED, "system call in which it is blocked; -1: none"),
	FIELD(waffle_rec_state, at_end, NUMBER, "0: begin of the capture; 1: its end"),
	FILE_FIELD(waffle_rec_state, args, NUMBER, "the first three arguments of that call"),
	FILE_FIELD(waffle_rec_state, exec_ns, DURATION, "CPU time of the thread so far"),
	FILE_FIELD(waffle_rec_state, run_delay_ns, DURATION, "time as runnable so far"),
};

static const struct record_field fork_fields[] = {
	TGID(waffle_rec_fork),
	FIELD(waffle_rec_fork, child_tgid, PID, "the new process"),
};

static const struct record_field exec_fields[] = {
	TGID(waffle_rec_exit),
	FILE_FIELD(waffle_rec_exit, code, PID,
		   "the tid that the thread had before if it was not the main one, else 0"),
};

static const struct record_field exit_fields[] = {
	TGID(waffle_rec_exit),
	FIELD(waffle_rec_exit, code, SIGNED,
	      "the status as wait(2) reports it; counts only for the last thread of a process "
	      "(tid = tgid)"),
};

static const struct record_field loss_fields[] = {
	FIELD(waffle_rec_loss, source, NUMBER,
	      "of which source; 0: spans, 1: the scheduler, 2: waits"),
	RESERVED(waffle_rec_loss),
	FIELD(waffle_rec_loss, from_ts, TIME,
	      "start of the interval, which ends at the record's time"),
	FIELD(waffle_rec_loss, count, NUMBER, "how many records were lost on that CPU"),
};

static const struct record_field wait_fields[] = {
	FIELD(waffle_rec_wait, from_ts, TIME, "when it left the CPU"),
	STACKS(waffle_rec_wait),
	FILE_FIELD(waffle_rec_wait, dev, NUMBER,
		   "device of the file that the system call waits for, in the kernel's encoding"),
	FIELD(waffle_rec_wait, object, OBJECT, "number of the object; 0: unknown"),
	FIELD(waffle_rec_wait, ino, INODE, "inode number of that file; 0: none"),
	FIELD(waffle_rec_wait, address, ADDRESS, "what a page fault touched; 0: it was none"),
};

static const struct record_field wake_fields[] = {
	FIELD(waffle_rec_wake, woken_tid, PID, "the thread that was woken"),
	FIELD(waffle_rec_wake, flags, FLAGS, "8: a hard interrupt woke it; 16: a soft interrupt"),
	STACKS(waffle_rec_wake),
};

static const struct record_field fault_fields[] = {
	FIELD(waffle_rec_fault, from_ts, TIME, "of the first fault"),
	FIELD(waffle_rec_fault, total_ns, DURATION, "of all of them"),
	FIELD(waffle_rec_fault, address, ADDRESS, "what the last one touched"),
	FIELD(waffle_rec_fault, ip, ADDRESS, "instruction of the last one"),
	FIELD(waffle_rec_fault, count, NUMBER, "how many"),
	FIELD(waffle_rec_fault, flags, FLAGS, "1: had to read from a device"),
};

static const struct record_field io_fields[] = {
	FIELD(waffle_rec_io, issue_ts, TIME, "when it was issued"),
	FIELD(waffle_rec_io, sector, NUMBER, "the first sector, of 512 bytes"),
	FIELD(waffle_rec_io, bytes, BYTES, "length of the request"),
	FIELD(waffle_rec_io, dev, NUMBER, "device, in the kernel's encoding"),
	FIELD(waffle_rec_io, flags, FLAGS,
	      "1: write; 2: synchronous; 4: flush; 8: of a process that is not traced, while a "
	      "traced one had a request on that disk"),
	FIELD(waffle_rec_io, error, SIGNED, "negative errno; 0: none"),
	FIELD(waffle_rec_io, disk, NUMBER,
	      "disk that the device is on, in the kernel's encoding; 0: unknown"),
	RESERVED(waffle_rec_io),
};

static const struct record_field signal_fields[] = {
	FIELD(waffle_rec_signal, target_tid, PID, "the receiving thread"),
	FIELD(waffle_rec_signal, target_tgid, PID, "its process"),
	FIELD(waffle_rec_signal, signo, SIGNED, "number of the signal"),
	FIELD(waffle_rec_signal, code, SIGNED, "`si_code`, such as SI_USER"),
};

static const struct record_field quota_fields[] = {
	FIELD(waffle_rec_quota, throttled_ns, DURATION,
	      "how much of its time as runnable before was due to the quota"),
	FIELD(waffle_rec_quota, cgroup, INODE, "inode number of the cgroup's folder"),
	FIELD(waffle_rec_quota, quota_ns, DURATION, "the quota"),
	FIELD(waffle_rec_quota, period_ns, DURATION, "its period"),
};

static const struct record_field stolen_fields[] = {
	FIELD(waffle_rec_stolen, from_ts, TIME,
	      "start of the interval, which ends at the record's time"),
	FIELD(waffle_rec_stolen, stolen_ns, DURATION, "how much of it the hypervisor took"),
	FILE_FIELD(waffle_rec_stolen, flags, FLAGS,
		   "1: counted at the timer's ticks only, so some of it may be of the time before"),
	RESERVED(waffle_rec_stolen),
};

static const struct record_field frequency_fields[] = {
	FIELD(waffle_rec_frequency, khz, NUMBER, "frequency of the CPU from now on, in kHz"),
	FIELD(waffle_rec_frequency, max_khz, NUMBER, "what the CPU can do, in kHz; 0: unknown"),
	FIELD(waffle_rec_frequency, flags, FLAGS, "1: read when the capture began"),
	RESERVED(waffle_rec_frequency),
};

static const struct record_field return_fields[] = {
	FIELD(waffle_rec_return, span_id, ID, "the call"),
	TGID(waffle_rec_return),
	FIELD(waffle_rec_return, site, SITE, "number of its site"),
	FIELD(waffle_rec_return, frame_bytes, BYTES,
	      "length of what follows: the values of the keys that the hit has not"),
	FIELD(waffle_rec_return, flags, FLAGS,
	      "1: it did not return; longjmp() or an exception left it at that time or before"),
};

static const struct record_field stack_fields[] = {
	FIELD(waffle_rec_stack, id, ID, "the span or event"),
	STACKS(waffle_rec_stack),
	FIELD(waffle_rec_stack, python_stack, STACK, "number of a Python stack; 0: none"),
	RESERVED(waffle_rec_stack),
};

static const struct record_field open_wait_fields[] = {
	FIELD(waffle_rec_open_wait, from_ts, TIME,
	      "when it left the CPU; 0: before the capture began"),
	STACKS(waffle_rec_open_wait),
	FIELD(waffle_rec_open_wait, lock, ADDRESS, "the futex that it waits for; 0: none"),
	FIELD(waffle_rec_open_wait, owner_tid, PID,
	      "the thread that holds the lock, according to the memory of the process; 0: unknown"),
	FIELD(waffle_rec_open_wait, flags, FLAGS,
	      "who says so; 1: a mutex of glibc, 2: a read-write lock of glibc with a writer, "
	      "4: the futex word; 8: it is no lock but a wait for the end of that thread; "
	      "16 (may be added to the others): the futex is private and the wait has no timeout, "
	      "so "
	      "that only a thread of the process can end it, or a signal"),
	FIELD(waffle_rec_open_wait, tracer_pid, PID,
	      "the process that traces the thread, and has stopped it (ptrace(2)); 0: none"),
	FIELD(waffle_rec_open_wait, ended_tid, PID,
	      "the thread that holds the lock, a mutex of glibc, and has ended, as the words at "
	      "the "
	      "futex look: it is certain only if the wait is in `pthread_mutex_lock()`; 0: "
	      "unknown"),
	FIELD(waffle_rec_open_wait, tracer_comm, TEXT, "name of the process `tracer_pid`"),
};

static const struct record_field memory_fields[] = {
	FIELD(waffle_rec_memory, cgroup, INODE, "inode number of the cgroup's folder"),
	FIELD(waffle_rec_memory, limit_bytes, BYTES, "how much it may use"),
	FIELD(waffle_rec_memory, used_bytes, BYTES, "how much it uses"),
	FIELD(waffle_rec_memory, user_bytes, BYTES, "resident memory of the process `user_pid`"),
	FIELD(waffle_rec_memory, user_pid, PID,
	      "the process of that cgroup with the most resident memory; 0: unknown"),
	FIELD(waffle_rec_memory, flags, FLAGS,
	      "1: the limit is memory.high, otherwise memory.max, or with 4 (cgroup v1) "
	      "memory.limit_in_bytes; 2: the kernel counts the wait as one for memory"),
	FIELD(waffle_rec_memory, user_comm, TEXT, "name of that process"),
};

static const struct record_field io_limit_fields[] = {
	FIELD(waffle_rec_io_limit, cgroup, INODE, "inode number of the cgroup's folder"),
	FIELD(waffle_rec_io_limit, limit, NUMBER,
	      "the limit: bytes or requests a second; 0 with flag 8; descriptors with flag 16; "
	      "processes and threads with 32; CPUs with 64; nanoseconds with 128; the nice value "
	      "with 256; the weight with 512"),
	FIELD(waffle_rec_io_limit, dev, NUMBER,
	      "the disk, in the kernel's encoding; 0 with flag 8, 16, 32 or 512; the lowest CPU "
	      "with 64; milliseconds with 128; the policy with 256"),
	FIELD(waffle_rec_io_limit, kind, FLAGS,
	      "1: of writes, otherwise of reads; 2: in requests, otherwise in bytes; 4: of "
	      "blkio.throttle, otherwise of io.max; 8: no limit, but the cgroup can be frozen; "
	      "16: all descriptors that the process may have are open; 32: the cgroup has all "
	      "processes and threads that it may have; 64: the thread `tid` may not run on all "
	      "CPUs; 128: no limit, but so long the process ran in that time before `ts`, and it "
	      "is in a cgroup that throttled a traced thread; 256: the thread `tid` has a nice "
	      "value above "
	      "0, or the policy SCHED_IDLE; 512: the cgroup has a lower cpu.weight, or with 4 "
	      "cpu.shares, than the default"),
};

static const struct record_field lock_refusal_fields[] = {
	FIELD(waffle_rec_lock_refusal, ino, INODE, "inode number of the file"),
	FIELD(waffle_rec_lock_refusal, dev, NUMBER, "device of the file, in the kernel's encoding"),
	FIELD(waffle_rec_lock_refusal, object, OBJECT,
	      "number of the file as an object; 0: unknown"),
	FIELD(waffle_rec_lock_refusal, holder_pid, PID,
	      "the number that the process had that took the lock that is in the way; 0: unknown"),
	FIELD(waffle_rec_lock_refusal, flags, FLAGS,
	      "1: by flock(2), otherwise by fcntl(2); 2: the lock in the way is a shared one, and "
	      "other processes may have one, too; 4: no process `holder_pid` has the file open"),
	FIELD(waffle_rec_lock_refusal, holder_comm, TEXT,
	      "name of the process `holder_pid`; empty with flag 4"),
};

static const struct record_field request_failure_fields[] = {
	FIELD(waffle_rec_request_failure, ino, INODE, "inode number of the socket"),
	FIELD(waffle_rec_request_failure, dev, NUMBER,
	      "device of the socket, in the kernel's encoding"),
	FIELD(waffle_rec_request_failure, object, OBJECT,
	      "number of the socket as an object; 0: unknown"),
	FIELD(waffle_rec_request_failure, status, NUMBER,
	      "status of the answer; 0: the connection was refused (ECONNREFUSED)"),
	FIELD(waffle_rec_request_failure, reserved, NUMBER, "0"),
};

static const struct record_field late_sleep_fields[] = {
	FIELD(waffle_rec_late_sleep, from_ts, TIME, "when it left its CPU to sleep"),
	FIELD(waffle_rec_late_sleep, asked_ns, NUMBER, "for how long it wanted to sleep"),
	FIELD(waffle_rec_late_sleep, slack_ns, NUMBER, "its timer slack"),
};

static const struct record_field track_fields[] = {
	TGID(waffle_rec_track),
	FIELD(waffle_rec_track, track, NUMBER, "its number in the process, from 1"),
	FIELD(waffle_rec_track, name, TEXT, "its name"),
	FIELD(waffle_rec_track, group, TEXT, "of tracks that belong together; empty: none"),
};

static const struct record_field thread_name_fields[] = {
	TGID(waffle_rec_thread_name),
	RESERVED(waffle_rec_thread_name),
	FILE_FIELD(waffle_rec_thread_name, start_ts, TIME, "when the thread was created"),
	FIELD(waffle_rec_thread_name, name, TEXT, "the name"),
};

static const struct record_field on_track_fields[] = {
	FIELD(waffle_rec_on_track, id, ID, "the span, event or value of a counter"),
	TGID(waffle_rec_on_track),
	FIELD(waffle_rec_on_track, track, NUMBER, "number of the track in the process"),
};

static const struct record_field sample_fields[] = {
	STACKS(waffle_rec_sample),
	FIELD(waffle_rec_sample, syscall, SIGNED,
	      "the system call that it was in; -1: none, or it ran its own code"),
	FIELD(waffle_rec_sample, flags, FLAGS, "1: it was in the kernel"),
	FIELD(waffle_rec_sample, period_ns, DURATION, "the time between two samples of a CPU"),
};

#define ROW(text, type, packed_bytes, from, list, about)                                           \
	.name = (text), .bytes = sizeof(struct type), .packed = (packed_bytes),                    \
	.words = (sizeof(struct type) - (packed_bytes)) / 8, .source = WAFFLE_SOURCE_##from,       \
	.fields = (list), .field_count = sizeof(list) / sizeof((list)[0]), .help = (about)
/* A kind that consists of words alone, as every new kind does. */
#define WORDS(text, from, about)                                                                   \
	{                                                                                          \
		ROW(#text, waffle_rec_##text, sizeof(struct waffle_rec), from, text##_fields,      \
		    about)                                                                         \
	}
/* A kind with a packed form of `bytes` bytes. */
#define PACKED(text, type, bytes, from, about)                                                     \
	{                                                                                          \
		ROW(#text, type, bytes, from, text##_fields, about)                                \
	}
#define PACKED_LONG(text, type, bytes, from, about)                                                \
	{                                                                                          \
		ROW(#text, type, bytes, from, text##_fields, about),                               \
			.length_at = offsetof(struct type, frame_bytes)                            \
	}
/* A kind that is never in a file. */
#define RING(text, from, length)                                                                   \
	{                                                                                          \
		.name = #text, .bytes = sizeof(struct waffle_rec_##text),                          \
		.packed = sizeof(struct waffle_rec_##text), .source = WAFFLE_SOURCE_##from,        \
		.length_at = (length)                                                              \
	}

const struct record_kind record_kinds[] = {
	[WAFFLE_REC_HIT] = PACKED_LONG(hit, waffle_rec_hit, 32, SPANS,
				       "A site begins a span, or makes an event, a counter or a "
				       "log message."),
	[WAFFLE_REC_SPAN_END] = PACKED(span_end, waffle_rec_span_end, 40, SPANS, "A span ends."),
	[WAFFLE_REC_SWITCH] = PACKED(switch, waffle_rec_switch, 64, SCHED,
				     "The CPU goes from `tid` to another thread. One of them is "
				     "traced."),
	[WAFFLE_REC_TASK] =
		PACKED(task, waffle_rec_task, 48, SPANS, "A thread is seen first, or renamed."),
	[WAFFLE_REC_STATE] = PACKED(state, waffle_rec_state, 72, COUNT,
				    "The state of a traced thread at the begin or the end of the "
				    "capture."),
	[WAFFLE_REC_FORK] = PACKED(fork, waffle_rec_fork, 24, SPANS, "`tid` makes a new process."),
	[WAFFLE_REC_EXEC] =
		PACKED(exec, waffle_rec_exit, 24, SPANS, "A process runs a new program."),
	[WAFFLE_REC_EXIT] = PACKED(exit, waffle_rec_exit, 24, SPANS, "A traced thread is gone."),
	[WAFFLE_REC_LOSS] = PACKED(loss, waffle_rec_loss, 40, COUNT,
				   "Records of a source were lost in an interval."),
	[WAFFLE_REC_WAIT] = WORDS(wait, WAITS,
				  "A wait that was not short. `ts` and `tid` are those of the "
				  "switch that brought the thread back to a CPU."),
	[WAFFLE_REC_WAKE] = WORDS(wake, WAITS,
				  "The wake-up that ended such a wait, or one that began before "
				  "the capture. `tid` is the waker, also if an interrupt on its "
				  "CPU woke the thread."),
	[WAFFLE_REC_FAULT] =
		WORDS(fault, WAITS, "Page faults of `tid`. `ts` is the time of the last one."),
	[WAFFLE_REC_IO] = WORDS(io, WAITS,
				"A block device has completed a request. `tid` issued it, perhaps "
				"for others."),
	[WAFFLE_REC_SIGNAL] =
		WORDS(signal, WAITS, "`tid` sends a signal to a thread of a traced process."),
	[WAFFLE_REC_QUOTA] = WORDS(quota, WAITS,
				   "`tid` is back on a CPU after it was throttled: its cgroup's "
				   "CPU time was used up."),
	[WAFFLE_REC_STOLEN] = WORDS(stolen, WAITS,
				    "`tid` was on its CPU for an interval, but of some of it the "
				    "hypervisor ran something else there."),
	[WAFFLE_REC_FREQUENCY] =
		WORDS(frequency, WAITS, "The CPU runs at another frequency. `tid` is 0."),
	[WAFFLE_REC_RETURN] = PACKED_LONG(return, waffle_rec_return, 40, SPANS, "A call ends."),
	[WAFFLE_REC_STACK] =
		WORDS(stack, SPANS, "The stacks of a span or event that begins at `ts` on `tid`."),
	[WAFFLE_REC_TRACK] =
		WORDS(track, COUNT, "A process has a track: a lane of spans that is no thread."),
	[WAFFLE_REC_ON_TRACK] =
		WORDS(on_track, SPANS,
		      "A span or event belongs to a track, and not to the thread `tid` that "
		      "delivered it. It precedes the hit. Its time and that of the hit are those "
		      "that the program gave, and may lie outside the capture."),
	[WAFFLE_REC_SAMPLE] = WORDS(sample, WAITS, "What the traced thread `tid` ran at a moment."),
	[WAFFLE_REC_OPEN_WAIT] =
		WORDS(open_wait, COUNT, "`tid` still waits at `ts`, when the capture ends."),
	[WAFFLE_REC_THREAD_NAME] =
		WORDS(thread_name, COUNT,
		      "Python's module threading knows `tid` by a name. `ts` is the time of the "
		      "thread's task record."),
	[WAFFLE_REC_MEMORY] = WORDS(memory, WAITS,
				    "`tid` is back on a CPU after an uninterruptible wait. Its "
				    "cgroup, or one above that, uses all of its memory."),
	[WAFFLE_REC_IO_LIMIT] = WORDS(io_limit, COUNT,
				      "A limit of the thread or process `tid`, of its cgroup or "
				      "of one above that. Those of disks, and flag 8, are as of "
				      "the process's first wait for a disk; the others are as of "
				      "the end of the capture."),
	[WAFFLE_REC_LOCK_REFUSAL] =
		WORDS(lock_refusal, WAITS,
		      "`tid` tried to lock a file and did not want to wait. The kernel refused, "
		      "since the file is locked. Of many tries within 100 us, one is recorded."),
	[WAFFLE_REC_REQUEST_FAILURE] = WORDS(
		request_failure, WAITS,
		"`tid` received an answer of HTTP/1 whose status is 400 or above, or nobody "
		"listened where it connected by TCP. Of many within 100 us, one is recorded."),
	[WAFFLE_REC_LATE_SLEEP] = WORDS(
		late_sleep, WAITS,
		"`tid` has slept for at least twice the time that it had asked for. Its timer "
		"slack is at least 1 ms."),
	[WAFFLE_REC_FRAMES] = RING(frames, SPANS, offsetof(struct waffle_rec_frames, frame_bytes)),
	[WAFFLE_REC_CODE] = RING(code, SPANS, 0),
	[WAFFLE_REC_TRACE] = RING(trace, WAITS, offsetof(struct waffle_rec_trace, frame_bytes)),
	[WAFFLE_REC_RING] = RING(ring, COUNT, 0),
	[WAFFLE_REC_TRACK_HIT] =
		RING(track_hit, SPANS, offsetof(struct waffle_rec_track_hit, frame_bytes)),
	[WAFFLE_REC_HALTED] = RING(halted, COUNT, offsetof(struct waffle_rec_halted, kernel_bytes)),
	[WAFFLE_REC_SOCKET] = RING(socket, SPANS, offsetof(struct waffle_rec_socket, frame_bytes)),
	[WAFFLE_REC_ENDPOINTS] = RING(endpoints, WAITS, 0),
	[WAFFLE_REC_WATCHED] = RING(watched, SPANS, 0),
	[WAFFLE_REC_PYTHON_NAME] = RING(python_name, WAITS, 0),
};
