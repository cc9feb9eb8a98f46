/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The records: written by the BPF programs (and by capture/ for losses), ordered by capture/,
 * packed by store/, read by model/. This is the only definition of their layout. Times are
 * CLOCK_MONOTONIC nanoseconds; tids and tgids are those of the initial pid namespace. Every record
 * is a multiple of 8 bytes and starts with a header; record_size() in userspace/store/record.h says
 * how long one is.
 */
#ifndef WAFFLE_RECORD_H
#define WAFFLE_RECORD_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#define WAFFLE_COMM_BYTES 16
#define WAFFLE_SYSCALL_ARGS 3

enum waffle_rec_kind {
	WAFFLE_REC_HIT = 1,   /* an armed site that begins a span or makes an event, counter, log */
	WAFFLE_REC_SPAN_END,  /* end of an active span */
	WAFFLE_REC_SWITCH,    /* one CPU goes from a thread to another, one of them traced */
	WAFFLE_REC_TASK,      /* a thread is seen first, or renamed */
	WAFFLE_REC_STATE,     /* state of a traced thread at the begin or the end of the capture */
	WAFFLE_REC_FORK,      /* a traced process has a new child process */
	WAFFLE_REC_EXEC,      /* a traced process runs a new program */
	WAFFLE_REC_EXIT,      /* a traced thread is gone */
	WAFFLE_REC_LOSS,      /* records were dropped in an interval */
	WAFFLE_REC_WAIT,      /* details of a wait that was not short */
	WAFFLE_REC_WAKE,      /* details of the wake-up that ended such a wait */
	WAFFLE_REC_FAULT,     /* page faults of a thread */
	WAFFLE_REC_IO,        /* a block device has done a request */
	WAFFLE_REC_SIGNAL,    /* a signal was sent to a traced process */
	WAFFLE_REC_QUOTA,     /* a traced thread had to wait: its cgroup's CPU time was used up */
	WAFFLE_REC_STOLEN,    /* a hypervisor had the CPU that a traced thread was on */
	WAFFLE_REC_FREQUENCY, /* a CPU runs at another frequency */
	WAFFLE_REC_RETURN,    /* end of a call, with what is known at its return */
	WAFFLE_REC_STACK,     /* where in the program a span or event was */
	WAFFLE_REC_KIND_COUNT,
	/* Never in a file: a STACK on its way from the kernel. */
	WAFFLE_REC_FRAMES = WAFFLE_REC_KIND_COUNT,
	WAFFLE_REC_CODE,  /* never in a file: a code object of Python that frames are of */
	WAFFLE_REC_TRACE, /* never in a file: a stack that later records refer to by its number */
	WAFFLE_REC_RING_COUNT,
	/* A HIT on its way from the kernel; probe/ hands over the HIT. */
	WAFFLE_REC_PLAIN = WAFFLE_REC_RING_COUNT
};

/* Where records come from; each source counts what it produced and what it dropped. */
enum waffle_source {
	WAFFLE_SOURCE_SPANS = 0,
	WAFFLE_SOURCE_SCHED = 1,
	WAFFLE_SOURCE_WAITS = 2, /* WAIT, WAKE and the records below them */
	WAFFLE_SOURCE_COUNT
};

struct waffle_rec {
	__u64 ts;
	__u32 tid;
	__u16 kind; /* enum waffle_rec_kind */
	__u16 cpu;
};

/* Followed by frame_bytes bytes: struct waffle_frame and the values (include/waffle/abi.h), padded
 * to a multiple of 8. The frame comes from the traced process: not trusted. */
struct waffle_rec_hit {
	struct waffle_rec rec;
	__u32 tgid;
	__u32 site; /* index into the capture's site table */
	__u32 frame_bytes;
	__u32 reserved;
};

struct waffle_rec_span_end {
	struct waffle_rec rec;
	__u64 span_id;
	__u32 tgid;
	__u32 site; /* set by capture/ from probe_addr: the begin's site; WAFFLE_SITE_UNKNOWN */
	__u64 probe_addr; /* address in the process of the begin's probe */
};
#define WAFFLE_SITE_UNKNOWN 0xffffffffu

/*
 * The end of a call (bpf/call.h), followed by frame_bytes bytes: the values of those keys of its
 * site that the frame of its begin does not have, in order, padded to a multiple of 8.
 */
struct waffle_rec_return {
	struct waffle_rec rec;
	__u64 span_id;
	__u32 tgid;
	__u32 site;
	__u32 frame_bytes;
	__u32 flags; /* WAFFLE_RETURN_* */
};
/* It did not return: longjmp() or an exception left it, at rec.ts or before. It has no values. */
#define WAFFLE_RETURN_LEFT 1u

/* A plain call (bpf/call.h): the registers that C passes arguments in, and behind them words of the
 * stack. probe/ makes the hit. */
#define WAFFLE_PLAIN_WORDS 9
struct waffle_rec_plain {
	struct waffle_rec rec;
	__u32 tgid;
	__u32 recipe; /* its number */
	__u64 words[WAFFLE_PLAIN_WORDS];
};

/* The stacks of the span or event `id` that begins at rec.ts on rec.tid; numbers as in a wait. */
struct waffle_rec_stack {
	struct waffle_rec rec;
	__u64 id;
	__u32 kernel_stack, user_stack;
	__u32 python_stack; /* number of one in the capture's table of Python stacks; 0: none */
	__u32 reserved;
};

/*
 * Followed by frame_bytes bytes: return addresses, innermost first, and then python_count frames of
 * Python, innermost first, of two words each: the address of the code object, and that of the
 * instruction in it. Not longer than WAFFLE_FRAME_MAX.
 */
struct waffle_rec_frames {
	struct waffle_rec rec;
	__u64 id;
	__u32 tgid;
	__u32 kernel_stack; /* as in a wait */
	__u32 frame_bytes;
	__u32 python_count;
	__u32 cut; /* WAFFLE_CUT_* */
	__u32 reserved;
};
/* The walk ended before the outermost frame. */
#define WAFFLE_CUT_USER 1u
#define WAFFLE_CUT_PYTHON 2u

/*
 * A stack that was not met before, or not for long. Followed by frame_bytes bytes: addresses,
 * innermost first. Its time is a little before that of the first record that refers to it.
 */
struct waffle_rec_trace {
	struct waffle_rec rec;
	__u32 number;
	__u32 tgid; /* 0: of the kernel */
	__u32 frame_bytes;
	__u32 reserved;
};

/*
 * A code object of Python, recorded when it is first met, since it or its process may be gone when
 * it is looked for. Texts are as CPython stores them; `state` says how (target/python.c).
 */
struct waffle_code_text {
	__u32 state;
	__u32 bytes;
};
#define WAFFLE_CODE_NAME_MAX 256
#define WAFFLE_CODE_FILE_MAX 512
#define WAFFLE_CODE_TABLE_MAX 2048

struct waffle_rec_code {
	struct waffle_rec rec;
	__u64 code;
	__u32 tgid;
	__u32 first_line;
	struct waffle_code_text name_text, file_text;
	__u32 table_bytes; /* 0: too long, or not to be read */
	__u32 reserved;
	__u8 name[WAFFLE_CODE_NAME_MAX];
	__u8 file[WAFFLE_CODE_FILE_MAX];
	__u8 table[WAFFLE_CODE_TABLE_MAX];
};

#define WAFFLE_FRAMES_USER_MAX 64
#define WAFFLE_FRAMES_PYTHON_MAX 48

/* rec.tid is the thread that leaves the CPU. One cache line. */
struct waffle_rec_switch {
	struct waffle_rec rec;
	__u32 next_tid;
	__u32 waker_tid;  /* who woke next; valid if WAFFLE_SWITCH_WOKEN */
	__u64 wake_ts;    /* when; valid if WAFFLE_SWITCH_WOKEN */
	__u16 prev_state; /* normalised as the kernel's tracepoint does: enum waffle_task_state */
	__u8 flags;       /* WAFFLE_SWITCH_* */
	__u8 reserved;
	__s32 syscall; /* of the leaving thread if it blocks; -1: none */
	__u64 args[WAFFLE_SYSCALL_ARGS];
};

#define WAFFLE_SWITCH_PREV_TRACED 1u
#define WAFFLE_SWITCH_NEXT_TRACED 2u
#define WAFFLE_SWITCH_WOKEN 4u /* next was woken since it last left a CPU: waker_tid, wake_ts */
/* An interrupt woke it, or a softirq did, and not waker_tid's own doing. */
#define WAFFLE_SWITCH_WAKER_HARDIRQ 8u
#define WAFFLE_SWITCH_WAKER_SOFTIRQ 16u
#define WAFFLE_SWITCH_PREEMPTED 32u /* prev was still runnable */
#define WAFFLE_SWITCH_NEW 64u       /* the wake-up is the thread's creation */

/* Bits as reported by the kernel's sched_switch tracepoint (TASK_REPORT). */
enum waffle_task_state {
	WAFFLE_TASK_RUNNING = 0x00,
	WAFFLE_TASK_INTERRUPTIBLE = 0x01,
	WAFFLE_TASK_UNINTERRUPTIBLE = 0x02,
	WAFFLE_TASK_STOPPED = 0x04,
	WAFFLE_TASK_TRACED = 0x08,
	WAFFLE_TASK_DEAD = 0x10,
	WAFFLE_TASK_ZOMBIE = 0x20,
	WAFFLE_TASK_PARKED = 0x40,
	WAFFLE_TASK_IDLE = 0x80,
	WAFFLE_TASK_PREEMPTED = 0x100,
};

struct waffle_rec_task {
	struct waffle_rec rec;
	__u32 tgid;
	__u32 flags; /* WAFFLE_TASK_TRACED_FLAG: one of the target's, else a waker or a neighbour */
	__u64 start_ts;
	char comm[WAFFLE_COMM_BYTES];
};
#define WAFFLE_TASK_TRACED_FLAG 1u
#define WAFFLE_TASK_OWN_FLAG 2u /* of the tracer, or of its processes */

enum waffle_thread_state {
	WAFFLE_THREAD_RUNNING = 1,
	WAFFLE_THREAD_RUNNABLE,
	WAFFLE_THREAD_BLOCKED,
};

struct waffle_rec_state {
	struct waffle_rec rec;
	__u32 tgid;
	__u16 state;      /* enum waffle_thread_state */
	__u16 task_state; /* enum waffle_task_state, if blocked */
	__s32 syscall;    /* if blocked; -1: none */
	__u32 at_end;     /* 0: begin of the capture, 1: end */
	__u64 args[WAFFLE_SYSCALL_ARGS];
	__u64 exec_ns;      /* schedstat field 1: CPU time of the thread so far */
	__u64 run_delay_ns; /* schedstat field 2: time spent waiting for a CPU so far */
};

struct waffle_rec_fork {
	struct waffle_rec rec; /* tid: the parent thread */
	__u32 tgid;
	__u32 child_tgid; /* on its way from the kernel | WAFFLE_FORK_SHARES */
};
#define WAFFLE_FORK_SHARES 0x80000000u /* the child has its parent's memory, as after vfork() */

/* rec.tid: the thread; tgid its process; code as wait(2) reports it, only meaningful when the last
 * thread of the process exits (tid == tgid). EXEC uses the same layout; its code is
 * the tid that its thread had before if it was not the main one, otherwise 0; on its way from the
 * kernel | WAFFLE_EXEC_RIGHTS. */
struct waffle_rec_exit {
	struct waffle_rec rec;
	__u32 tgid;
	__s32 code;
};
#define WAFFLE_EXEC_RIGHTS 0x40000000 /* the program got rights: nothing of it is read */

/* count records of a source were dropped in (from_ts, rec.ts]; rec.cpu: of that CPU. */
struct waffle_rec_loss {
	struct waffle_rec rec;
	__u32 source; /* enum waffle_source */
	__u32 reserved;
	__u64 from_ts;
	__u64 count;
};

/*
 * The records from here on are rare: waits of at least wait_min_ns, and what explains them. Their
 * fields behind `rec` are whole words: store/ writes them word by word. A stack is the number of
 * one in the capture's table of stacks (0: none was taken); on its way from the kernel it is that
 * of a TRACE, which capture/ replaces.
 */

/* rec.ts and rec.tid: of the switch that brought the thread back in. */
struct waffle_rec_wait {
	struct waffle_rec rec;
	__u64 from_ts; /* of the switch that took it out */
	__u32 kernel_stack, user_stack;
	__u32 dev; /* of the file that the system call waits for, as the kernel numbers devices */
	__u32 object; /* number in the table of objects, 0: not known; on its way from the kernel
			 it is the descriptor */
	__u64 ino;    /* of that file; 0: none */
	/* Page fault: what was touched; 0: not a page fault. On its way from the kernel, with an
	 * inode: the first bytes of the name of an anonymous one. */
	__u64 address;
};

/* rec.ts: of the wake-up; rec.tid: the waker, whatever an interrupt on its CPU did. */
struct waffle_rec_wake {
	struct waffle_rec rec;
	__u32 woken_tid;
	__u32 flags; /* WAFFLE_SWITCH_WAKER_* */
	__u32 kernel_stack, user_stack;
};

/* `count` faults of a thread between from_ts and rec.ts, which took total_ns in all. */
struct waffle_rec_fault {
	struct waffle_rec rec;
	__u64 from_ts;
	__u64 total_ns;
	__u64 address; /* of the last one */
	__u64 ip;      /* of the last one */
	__u32 count;
	__u32 flags; /* WAFFLE_FAULT_* */
};
#define WAFFLE_FAULT_MAJOR 1u /* had to read from a device */

/* rec.tid issued the request, perhaps for others. rec.ts: its completion. */
struct waffle_rec_io {
	struct waffle_rec rec;
	__u64 issue_ts;
	__u64 sector; /* of 512 bytes */
	__u32 bytes;
	__u32 dev;
	__u32 flags; /* WAFFLE_IO_* */
	__s32 error; /* negative errno, or 0 */
};
#define WAFFLE_IO_WRITE 1u
#define WAFFLE_IO_SYNC 2u
#define WAFFLE_IO_FLUSH 4u

/* rec.tid is the sender. */
struct waffle_rec_signal {
	struct waffle_rec rec;
	__u32 target_tid;
	__u32 target_tgid;
	__s32 signo;
	__s32 code; /* SI_USER, … */
};

/* rec.ts: the thread is back on a CPU; of its time as runnable before, throttled_ns were quota. */
struct waffle_rec_quota {
	struct waffle_rec rec;
	__u64 throttled_ns;
	__u64 cgroup; /* inode of its folder */
	__u64 quota_ns, period_ns;
};

/* The thread was on its CPU from from_ts to rec.ts, but stolen_ns of that time, nobody knows which,
 * the hypervisor ran something else there. */
struct waffle_rec_stolen {
	struct waffle_rec rec;
	__u64 from_ts;
	__u64 stolen_ns;
	__u32 flags; /* WAFFLE_STOLEN_* */
	__u32 reserved;
};
/* Counted at the timer's ticks only: some of it may be of the time before from_ts. */
#define WAFFLE_STOLEN_BY_TICK 1u

/* From rec.ts on rec.cpu runs at khz; rec.tid is 0. Recorded if it differs from the last record by
 * a twentieth of that or more. */
struct waffle_rec_frequency {
	struct waffle_rec rec;
	__u32 khz;
	__u32 max_khz; /* what the CPU can do; 0: not known */
	__u32 flags;   /* WAFFLE_FREQUENCY_* */
	__u32 reserved;
};
/* Read when the capture began, not from the kernel's tracepoint: some drivers never report a
 * change. */
#define WAFFLE_FREQUENCY_READ 1u

#endif
