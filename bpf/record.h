/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The records. The BPF programs write them (userspace writes those of losses), capture/ orders
 * them, store/ packs them, model/ reads them. This is the only definition of their layout. Times
 * are CLOCK_MONOTONIC nanoseconds. Tids and tgids are those of the initial pid namespace. Every
 * record is a multiple of 8 bytes and starts with a header; record_size() in
 * userspace/store/record.h returns its length. A struct that is stored in files only grows at its
 * end, by whole words: userspace/store/record_schema.h.
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
	WAFFLE_REC_SWITCH,    /* a CPU switches from one thread to another; one of them is traced */
	WAFFLE_REC_TASK,      /* name of a thread: when it is first seen, or renamed */
	WAFFLE_REC_STATE,     /* state of a traced thread at the begin or the end of the capture */
	WAFFLE_REC_FORK,      /* a traced process has a new child process */
	WAFFLE_REC_EXEC,      /* a traced process runs a new program */
	WAFFLE_REC_EXIT,      /* a traced thread is gone */
	WAFFLE_REC_LOSS,      /* records were dropped in an interval */
	WAFFLE_REC_WAIT,      /* details of a wait of at least wait_min_ns */
	WAFFLE_REC_WAKE,      /* details of the wake-up that ended such a wait, or an older one */
	WAFFLE_REC_FAULT,     /* page faults of a thread */
	WAFFLE_REC_IO,        /* a block device has completed a request */
	WAFFLE_REC_SIGNAL,    /* a signal was sent to a traced process */
	WAFFLE_REC_QUOTA,     /* a traced thread waited because its cgroup's CPU time was used up */
	WAFFLE_REC_STOLEN,    /* a hypervisor took CPU time from a traced thread */
	WAFFLE_REC_FREQUENCY, /* a CPU changed its frequency */
	WAFFLE_REC_RETURN,    /* end of a call, with the values read at its return */
	WAFFLE_REC_STACK,     /* stacks of a span or event */
	WAFFLE_REC_TRACK,     /* name of a track: a lane of a process that is no thread */
	WAFFLE_REC_ON_TRACK,  /* a span or event belongs to a track */
	WAFFLE_REC_SAMPLE,    /* which code a traced thread was running */
	WAFFLE_REC_OPEN_WAIT, /* a wait that goes on when the capture ends */
	WAFFLE_REC_THREAD_NAME, /* name that a thread has in its own program */
	WAFFLE_REC_MEMORY,      /* a traced thread waited while its cgroup used all of its memory */
	WAFFLE_REC_IO_LIMIT,    /* a traced process may use a disk only so much */
	WAFFLE_REC_LOCK_REFUSAL, /* a traced thread tried to lock a file that another one has locked
				  */
	WAFFLE_REC_REQUEST_FAILURE, /* a server has refused what a traced thread asked for */
	WAFFLE_REC_LATE_SLEEP, /* a sleep took longer than asked for, by the thread's timer slack */
	WAFFLE_REC_KIND_COUNT,
	/* Only between the kernel and userspace, never in a file: */
	WAFFLE_REC_FRAMES = WAFFLE_REC_KIND_COUNT,
	WAFFLE_REC_CODE,        /* a Python code object that frames refer to */
	WAFFLE_REC_TRACE,       /* a stack that later records refer to by its number */
	WAFFLE_REC_RING,        /* a thread of a program with libwaffle has made a ring */
	WAFFLE_REC_TRACK_HIT,   /* of a ring: becomes ON_TRACK, HIT and SPAN_END */
	WAFFLE_REC_HALTED,      /* a thread that is blocked at the end: becomes OPEN_WAIT */
	WAFFLE_REC_SOCKET,      /* a server's connection: becomes HIT and SPAN_END of a request */
	WAFFLE_REC_ENDPOINTS,   /* the addresses of a socket that a later wait is for */
	WAFFLE_REC_WATCHED,     /* an access to a function of Python: becomes HIT or RETURN */
	WAFFLE_REC_PYTHON_NAME, /* the name of a new thread in Python: becomes THREAD_NAME */
	WAFFLE_REC_RING_COUNT
};

/* Each source counts what it produced and what it dropped. */
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
 * to a multiple of 8. The frame comes from the traced process, so it is not trusted. */
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
	/* site of the span's begin, which capture/ finds by probe_addr; or WAFFLE_SITE_UNKNOWN */
	__u32 site;
	__u64 probe_addr; /* address of the begin's probe in the process */
};
#define WAFFLE_SITE_UNKNOWN 0xffffffffu

/*
 * The end of a call (bpf/call.h), followed by frame_bytes bytes: the values of those keys of its
 * site that the frame of its begin does not have. They are in the site's order and padded to a
 * multiple of 8.
 */
struct waffle_rec_return {
	struct waffle_rec rec;
	__u64 span_id;
	__u32 tgid;
	__u32 site;
	__u32 frame_bytes;
	__u32 flags; /* WAFFLE_RETURN_* */
};
/* The call did not return: longjmp() or an exception left it, at rec.ts or before. No values. */
#define WAFFLE_RETURN_LEFT 1u

/* The stacks of the span or event `id` that begins at rec.ts on rec.tid; numbers as in a wait. */
struct waffle_rec_stack {
	struct waffle_rec rec;
	__u64 id;
	__u32 kernel_stack, user_stack;
	__u32 python_stack; /* number of one in the capture's table of Python stacks; 0: none */
	__u32 reserved;
};

/*
 * A track is a time line that a program declares (include/waffle_named.h), such as that of a
 * device. Its spans and events are hits and ends whose times are those that the program gave: they
 * may come late, in any order, overlap, and lie outside the capture. An ON_TRACK record precedes
 * each hit; without it the hit would belong to the thread rec.tid, which delivered it. So older
 * programs show these spans, but on that thread.
 */
#define WAFFLE_TRACK_NAME 64

struct waffle_rec_track {
	struct waffle_rec rec;
	__u32 tgid;
	__u32 track;                   /* its number in the process, from 1 */
	char name[WAFFLE_TRACK_NAME];  /* NUL-padded; without a NUL if it has that length */
	char group[WAFFLE_TRACK_NAME]; /* of tracks that belong together; empty: none */
};

/* rec.ts and rec.tid are those of the hit. A counter on a track has an id, too. */
struct waffle_rec_on_track {
	struct waffle_rec rec;
	__u64 id;
	__u32 tgid;
	__u32 track;
};

/* rec.ts is the time of delivery. Followed by a frame as a hit is. */
struct waffle_rec_track_hit {
	struct waffle_rec rec;
	__u32 tgid;
	__u32 site;
	__u32 frame_bytes;
	__u32 track;
	__u64 start_ts, end_ts; /* as the program says: not trusted */
};

/*
 * What a traced process did with a connection on which requests come in (request.bpf.c). The thread
 * of WAFFLE_SOCKET_CLOSED may be any thread of the machine.
 * WAFFLE_SOCKET_RECEIVED is followed by frame_bytes bytes: the first ones of what the program
 * received, which look like the begin of a request. They are not trusted, and are never in a file.
 */
enum waffle_socket_event {
	WAFFLE_SOCKET_RECEIVED = 1,
	WAFFLE_SOCKET_SENT,
	WAFFLE_SOCKET_CLOSED,
};
#define WAFFLE_SOCKET_HEAD_BYTES 256
/* Clients of RESP often send many commands at once. */
#define WAFFLE_SOCKET_BATCH_BYTES 4096

struct waffle_rec_socket {
	struct waffle_rec rec;
	__u64 cookie; /* the kernel's number of the socket, which no other one gets */
	__u32 tgid;
	__u32 frame_bytes;
	__u16 event; /* enum waffle_socket_event */
	__u16 local_port;
	__u32 flags; /* WAFFLE_SOCKET_* */
};
/* The peer is the client: this side had sent nothing before, or its Unix socket has an address.
 * Without the mark it may be either. */
#define WAFFLE_SOCKET_SERVER 1u

/*
 * A thread began to run a watched function of Python, or changed the number of references to its
 * code. It does that before each call and after it (bpf/python.bpf.c).
 */
struct waffle_rec_watched {
	struct waffle_rec rec;
	__u32 tgid;
	__u32 function; /* number of the function */
	/* The innermost frame of the function on the thread's stack, and the next one. 0: none. */
	__u64 frame, outer;
	/* The caller of `frame`, and the instruction that it executes. 0: none. */
	__u64 caller, caller_at;
	/* The thread's innermost frame, and its instruction. 0: it runs no Python. */
	__u64 current, current_at;
	__u32 flags; /* WAFFLE_WATCHED_* */
	__u32 reserved;
};
#define WAFFLE_WATCHED_BEGIN 1u  /* it reads the first instruction */
#define WAFFLE_WATCHED_FRESH 2u  /* with BEGIN: `frame` has executed nothing yet */
#define WAFFLE_WATCHED_RETURN 4u /* `frame`, which is `current`, executes its return */
/* The stack was too deep to be searched: `outer` or `frame` is 0. */
#define WAFFLE_WATCHED_DEEP 8u
/* With BEGIN: the call's frame is not the innermost one yet, since a compiler may move the read of
 * the instruction before the write that makes it so. */
#define WAFFLE_WATCHED_EARLY 16u

/*
 * Followed by frame_bytes bytes: return addresses, innermost first; then python_count frames of
 * Python, innermost first. A Python frame has two words: the address of the code object, and that
 * of the instruction in it. frame_bytes is at most WAFFLE_FRAME_MAX.
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

/* A stack that was not seen before, or not recently. Followed by frame_bytes bytes: addresses,
 * innermost first. Its time is a little before that of the first record that refers to it. */
struct waffle_rec_trace {
	struct waffle_rec rec;
	__u32 number;
	__u32 tgid; /* 0: a stack of the kernel */
	__u32 frame_bytes;
	__u32 reserved;
};

/*
 * A Python code object. It is recorded when it is first seen, since the object or its process may
 * be gone when names are looked up. Texts are as CPython stores them; `state` has their encoding
 * (target/process/python.c).
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
	__u32 table_bytes; /* 0: the table is too long or unreadable */
	__u32 reserved;
	__u8 name[WAFFLE_CODE_NAME_MAX];
	__u8 file[WAFFLE_CODE_FILE_MAX];
	__u8 table[WAFFLE_CODE_TABLE_MAX];
};

/* rec.tid is the thread that made it. The rest comes from the process and is not trusted. */
struct waffle_rec_ring {
	struct waffle_rec rec;
	__u32 tgid;
	__u32 seen_tid; /* its tid as the process sees it */
	__u64 address, bytes;
};

#define WAFFLE_FRAMES_USER_MAX 64
#define WAFFLE_FRAMES_PYTHON_MAX 48

/* rec.tid is the thread that leaves the CPU. One cache line. */
struct waffle_rec_switch {
	struct waffle_rec rec;
	__u32 next_tid;
	__u32 waker_tid;  /* the thread that woke next; valid if WAFFLE_SWITCH_WOKEN */
	__u64 wake_ts;    /* time of that wake-up; valid if WAFFLE_SWITCH_WOKEN */
	__u16 prev_state; /* normalised as the kernel's tracepoint does: enum waffle_task_state */
	__u8 flags;       /* WAFFLE_SWITCH_* */
	__u8 reserved;
	__s32 syscall; /* of the leaving thread if it blocks; -1: none */
	__u64 args[WAFFLE_SYSCALL_ARGS];
};

#define WAFFLE_SWITCH_PREV_TRACED 1u
#define WAFFLE_SWITCH_NEXT_TRACED 2u
#define WAFFLE_SWITCH_WOKEN 4u /* next was woken since it last left a CPU */
/* A hard or soft interrupt on the waker's CPU woke next, not waker_tid itself. */
#define WAFFLE_SWITCH_WAKER_HARDIRQ 8u
#define WAFFLE_SWITCH_WAKER_SOFTIRQ 16u
#define WAFFLE_SWITCH_WAKER_INTERRUPT (WAFFLE_SWITCH_WAKER_HARDIRQ | WAFFLE_SWITCH_WAKER_SOFTIRQ)
#define WAFFLE_SWITCH_PREEMPTED 32u /* prev was still runnable */
#define WAFFLE_SWITCH_NEW 64u       /* the wake-up is the thread's creation */
/* The next thread stayed on one run queue while it was runnable. If the bit is not set, the
 * thread moved, or that is unknown. */
#define WAFFLE_SWITCH_STAYED 128u

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
	__u32 flags; /* WAFFLE_TASK_*_FLAG */
	__u64 start_ts;
	char comm[WAFFLE_COMM_BYTES];
};
#define WAFFLE_TASK_TRACED_FLAG 1u
#define WAFFLE_TASK_OWN_FLAG 2u /* a thread of the tracer or of its workers */
/* Of whom the thread is: any process may have the name of a thread of the kernel. Captures of
 * earlier versions have neither flag. */
#define WAFFLE_TASK_KERNEL_FLAG 4u
#define WAFFLE_TASK_USER_FLAG 8u

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

/*
 * The name that Python's module threading gave to a thread. Userspace reads it from the memory of
 * the process, so it is not trusted. rec.ts and start_ts are those of the thread's TASK record;
 * start_ts tells the thread from others with its tid.
 */
#define WAFFLE_THREAD_NAME 64

struct waffle_rec_thread_name {
	struct waffle_rec rec;
	__u32 tgid;
	__u32 reserved;
	__u64 start_ts;
	char name[WAFFLE_THREAD_NAME]; /* UTF-8, NUL-padded */
};

/* The same, which the kernel has read: as CPython stores it, twice. It counts only if both readings
 * are the same. text.bytes 0: it changed meanwhile. */
struct waffle_rec_python_name {
	struct waffle_rec rec;
	__u32 tgid;
	__u32 reserved;
	struct waffle_code_text text;
	__u8 name[4 * WAFFLE_THREAD_NAME], again[4 * WAFFLE_THREAD_NAME];
};

struct waffle_rec_fork {
	struct waffle_rec rec; /* tid: the parent thread */
	__u32 tgid;
	__u32 child_tgid; /* the kernel adds the flag WAFFLE_FORK_SHARES */
};
#define WAFFLE_FORK_SHARES 0x80000000u /* the child has its parent's memory, as after vfork() */

/*
 * The layout of EXIT and EXEC. rec.tid is the thread, and tgid its process. `code` of an EXIT is
 * the status that wait(2) reports; it is valid if the last thread of the process exits (rec.tid ==
 * tgid). `code` of an EXEC is 0 if the main thread called execve(). Otherwise it is the tid that
 * the calling thread had before. The kernel adds the flag WAFFLE_EXEC_PRIVILEGED to it.
 */
struct waffle_rec_exit {
	struct waffle_rec rec;
	__u32 tgid;
	__s32 code;
};
#define WAFFLE_EXEC_PRIVILEGED 0x40000000 /* the exec gained privileges: nothing is read */

/* `count` records of a source were dropped in (from_ts, rec.ts] on rec.cpu. */
struct waffle_rec_loss {
	struct waffle_rec rec;
	__u32 source; /* enum waffle_source */
	__u32 reserved;
	__u64 from_ts;
	__u64 count;
};

/*
 * The records below are rare: waits of at least wait_min_ns, and records that explain them. Their
 * fields after `rec` are whole words, because store/ writes them word by word. A stack is a number
 * in the capture's table of stacks (0: none was taken). From the kernel it is the number of a
 * TRACE, which capture/ replaces.
 */

/* rec.ts and rec.tid are those of the switch that brought the thread back onto a CPU. */
struct waffle_rec_wait {
	struct waffle_rec rec;
	__u64 from_ts; /* time of the switch that took it off the CPU */
	__u32 kernel_stack, user_stack;
	__u32 dev; /* device of the file that the system call waits for, in the kernel's encoding */
	/* number in the table of objects, 0: unknown; from the kernel: the descriptor */
	__u32 object;
	__u64 ino; /* inode of that file; 0: none */
	/* Page fault: the accessed address; 0: not a page fault. From the kernel, if `ino` is set:
	 * the first bytes of the name of an anonymous inode, or WAFFLE_WAIT_RESENT. */
	__u64 address;
};

/* In `address`, from the kernel only: the file is a socket that has sent something again during the
 * wait, or whose SYN nobody has answered. The lowest bits are what waffle_rec_endpoints.resent is.
 * No name has this bit. */
#define WAFFLE_WAIT_RESENT (1ull << 63)

/*
 * Value of `dev` above, from the kernel only: the thread waits for several descriptors, in poll(2)
 * or select(2). Then `object`, `ino` and `address` have the first descriptors and the number of all
 * of them; see wait_polled() in wait.h.
 */
#define WAFFLE_WAIT_POLLED 0xffffffffu
#define WAFFLE_POLLED_MAX 4 /* descriptors that are named */

/* rec.ts: time of the wake-up; rec.tid: the waker, or the thread that a waking interrupt hit. */
struct waffle_rec_wake {
	struct waffle_rec rec;
	__u32 woken_tid;
	__u32 flags; /* WAFFLE_SWITCH_WAKER_* */
	__u32 kernel_stack, user_stack;
};

/* A thread had `count` page faults between from_ts and rec.ts, which took total_ns together. */
struct waffle_rec_fault {
	struct waffle_rec rec;
	__u64 from_ts;
	__u64 total_ns;
	__u64 address; /* of the last one */
	__u64 ip;      /* of the last one */
	__u32 count;
	__u32 flags; /* WAFFLE_FAULT_* */
};
#define WAFFLE_FAULT_MAJOR 1u /* the kernel read from a device */

/* rec.tid issued the request, perhaps for another thread. rec.ts: its completion. */
struct waffle_rec_io {
	struct waffle_rec rec;
	__u64 issue_ts;
	__u64 sector; /* of 512 bytes */
	__u32 bytes;
	__u32 dev;
	__u32 flags; /* WAFFLE_IO_* */
	__s32 error; /* negative errno, or 0 */
	__u32 disk;  /* that the device is on; 0: unknown */
	__u32 reserved;
};
#define WAFFLE_IO_WRITE 1u
#define WAFFLE_IO_SYNC 2u
#define WAFFLE_IO_FLUSH 4u
/* The process is not traced. Its request is recorded because a traced process had one on that disk
 * meanwhile. */
#define WAFFLE_IO_NEIGHBOUR 8u

/* rec.tid is the sender. */
struct waffle_rec_signal {
	struct waffle_rec rec;
	__u32 target_tid;
	__u32 target_tgid;
	__s32 signo;
	__s32 code; /* SI_USER, … */
};

/* rec.ts: the thread is back on a CPU. While it was runnable,
 * its cgroup was throttled for throttled_ns. */
struct waffle_rec_quota {
	struct waffle_rec rec;
	__u64 throttled_ns;
	__u64 cgroup; /* inode of its directory */
	__u64 quota_ns, period_ns;
};

/* At rec.ts the thread rec.tid is back on a CPU after an uninterruptible wait. Its cgroup, or one
 * above that, uses as much memory as it may. */
struct waffle_rec_memory {
	struct waffle_rec rec;
	__u64 cgroup; /* inode of its directory */
	__u64 limit_bytes, used_bytes;
	__u64 user_bytes; /* resident memory of user_pid */
	/* The process of the cgroup with the most resident memory; 0: unknown. Userspace looks for
	 * it. */
	__u32 user_pid;
	__u32 flags; /* WAFFLE_MEMORY_* */
	char user_comm[WAFFLE_COMM_BYTES];
};
/* The limit is memory.high, which slows the cgroup down. Otherwise it is memory.max, or with
 * WAFFLE_MEMORY_OLD memory.limit_in_bytes. */
#define WAFFLE_MEMORY_HIGH 1u
/* The kernel counted the wait as one for memory (PSI): memory is being freed, or a page is read
 * that was freed a little before. */
#define WAFFLE_MEMORY_STALL 2u
#define WAFFLE_MEMORY_OLD 4u /* the cgroup is one of cgroup v1 */

/* A limit of the thread or process rec.tid, of its cgroup or of one above that: `kind` says which.
 * What it does not need is 0. Userspace makes this record. */
struct waffle_rec_io_limit {
	struct waffle_rec rec;
	__u64 cgroup; /* inode of its directory */
	__u64 limit;  /* bytes or requests a second; or what the kind says */
	__u32 dev;    /* the disk; or what the kind says */
	__u32 kind;   /* WAFFLE_IO_LIMIT_* */
};
#define WAFFLE_IO_LIMIT_WRITES 1u  /* otherwise of reads */
#define WAFFLE_IO_LIMIT_COUNT 2u   /* requests, otherwise bytes */
#define WAFFLE_IO_LIMIT_OLD 4u     /* of cgroup v1: blkio.throttle.*; otherwise io.max */
#define WAFFLE_IO_LIMIT_FREEZER 8u /* no limit: the cgroup can be frozen */
/* As many descriptors as it may have are open at rec.ts (RLIMIT_NOFILE). */
#define WAFFLE_IO_LIMIT_DESCRIPTORS 16u
/* At rec.ts the cgroup has as many processes and threads as it may: `limit` (pids.max). */
#define WAFFLE_IO_LIMIT_PIDS 32u
/* At rec.ts the thread rec.tid may run on `limit` CPUs, not on all (affinity or cpuset). `dev` is
 * the lowest of them; cgroup is 0. */
#define WAFFLE_IO_LIMIT_CPUS 64u
/* No limit: process rec.tid ran for `limit` ns of the `dev` ms before rec.ts. The cgroup throttled
 * a traced thread; at rec.ts the process is in it or in one below that. */
#define WAFFLE_IO_LIMIT_CPU_USER 128u
/* At rec.ts the thread rec.tid is one that others go before: its nice value is `limit`, above 0, or
 * its policy `dev` is SCHED_IDLE. cgroup is 0. */
#define WAFFLE_IO_LIMIT_NICE 256u
/* At rec.ts the cgroup has cpu.weight `limit`, less than the default of 100; or with
 * WAFFLE_IO_LIMIT_OLD cpu.shares, whose default is 1024. dev is 0. */
#define WAFFLE_IO_LIMIT_WEIGHT 512u

/* At rec.ts the thread rec.tid tried to lock a file, by flock(2) or fcntl(2), and did not want to
 * wait for it. The kernel refused, because of a lock of another process or another open file. */
struct waffle_rec_lock_refusal {
	struct waffle_rec rec;
	__u64 ino; /* the inode of the file */
	__u32 dev; /* in the kernel's encoding */
	/* number in the table of objects, 0: unknown; from the kernel: the descriptor */
	__u32 object;
	__u32 holder_pid;                    /* that of the process that took it; 0: unknown */
	__u32 flags;                         /* WAFFLE_LOCK_* */
	char holder_comm[WAFFLE_COMM_BYTES]; /* userspace looks it up */
};
#define WAFFLE_LOCK_FLOCK 1u  /* by flock(2); otherwise by fcntl(2) */
#define WAFFLE_LOCK_SHARED 2u /* the lock in the way is a shared one; others may be, too */
/* No process of the number has the file open: who took the lock has left it to another, or closed
 * it. Userspace finds that out. */
#define WAFFLE_LOCK_FORMER 4u

/* At rec.ts the thread rec.tid received an answer of HTTP/1 whose status is 400 or above, or nobody
 * listened at the address to which it connected by TCP. */
struct waffle_rec_request_failure {
	struct waffle_rec rec;
	__u64 ino; /* the inode of the socket */
	__u32 dev; /* in the kernel's encoding */
	/* number in the table of objects, 0: unknown; from the kernel: the descriptor, or -1 */
	__u32 object;
	__u32 status; /* of HTTP; 0: the connection was refused */
	__u32 reserved;
};

/* The thread rec.tid, which is back on a CPU at rec.ts, has slept for at least twice the time that
 * it had asked for. Its timer slack is long: by so much the kernel may delay the end (prctl(2),
 * PR_SET_TIMERSLACK). */
struct waffle_rec_late_sleep {
	struct waffle_rec rec;
	__u64 from_ts; /* as in a wait */
	__u64 asked_ns;
	__u64 slack_ns;
};

/* The thread was on its CPU from from_ts to rec.ts. For stolen_ns of that time the hypervisor ran
 * something else there; the exact moments are unknown. */
struct waffle_rec_stolen {
	struct waffle_rec rec;
	__u64 from_ts;
	__u64 stolen_ns;
	__u32 flags; /* WAFFLE_STOLEN_* */
	__u32 reserved;
};
/* The time was counted at timer ticks only, so some of it may have passed before from_ts. */
#define WAFFLE_STOLEN_BY_TICK 1u

/* From rec.ts on rec.cpu runs at khz; rec.tid is 0. Recorded if it differs from the last record by
 * at least 5 %. */
struct waffle_rec_frequency {
	struct waffle_rec rec;
	__u32 khz;
	__u32 max_khz; /* maximum of the CPU; 0: unknown */
	__u32 flags;   /* WAFFLE_FREQUENCY_* */
	__u32 reserved;
};
/* Read when the capture began. Some drivers never report a change to the tracepoint. */
#define WAFFLE_FREQUENCY_READ 1u

/* At rec.ts the thread rec.tid ran on rec.cpu. Samples are taken of each CPU at regular times, so
 * their number is in proportion to the time that threads ran. */
struct waffle_rec_sample {
	struct waffle_rec rec;
	__u32 kernel_stack, user_stack; /* as in a wait; kernel_stack 0: it ran its own code */
	__s32 syscall;                  /* in the kernel: the system call; -1: none */
	__u32 flags;                    /* WAFFLE_SAMPLE_* */
	__u64 period_ns;                /* between two samples of a CPU */
};
#define WAFFLE_SAMPLE_KERNEL 1u

/*
 * The traced thread rec.tid still waits at rec.ts, when the capture ends. If it waits for a lock of
 * which the C library or the kernel records the owner, the record says which thread that is. The
 * lock lies in the memory of the traced process, so neither address nor owner is trusted. Userspace
 * makes this record.
 */
struct waffle_rec_open_wait {
	struct waffle_rec rec;
	__u64 from_ts;                  /* when it left its CPU; 0: before the capture began */
	__u32 kernel_stack, user_stack; /* as in a wait */
	__u64 lock;                     /* address of the futex; 0: it waits for none */
	__u32 owner_tid;                /* 0: unknown */
	__u32 flags;                    /* WAFFLE_OPEN_WAIT_* */
	__u32 tracer_pid;               /* its tracer has stopped it; 0: it has not, or unknown */
	/* owner_tid is 0: the owner of a mutex has ended without releasing it; 0: unknown. As the
	 * words at the futex look: certain only in pthread_mutex_lock(). */
	__u32 ended_tid;
	char tracer_comm[WAFFLE_COMM_BYTES];
};
/* The owner is that of a plain mutex of glibc, of a read-write lock of glibc that a writer holds,
 * or of a lock whose owner the kernel knows by the futex word (priority inheritance, robust). */
#define WAFFLE_OPEN_WAIT_MUTEX 1u
#define WAFFLE_OPEN_WAIT_RWLOCK 2u
#define WAFFLE_OPEN_WAIT_WORD 4u
/* It is no lock: the thread waits for the end of that thread (pthread_join()). */
#define WAFFLE_OPEN_WAIT_JOIN 8u
/* The futex is in memory of the process alone, or the wait is for the end of a thread of it, and
 * has no timeout: only another thread of the process can end it, or a signal. */
#define WAFFLE_OPEN_WAIT_INSIDE 16u

/* The addresses of a socket of IPv4 or IPv6, when a wait for it ended. The socket may be closed
 * before userspace can look. They are recorded once, and again when they or `resent` change. */
struct waffle_rec_endpoints {
	struct waffle_rec rec;
	__u64 ino; /* inode that the socket has on `dev` */
	__u32 dev;
	__u32 tgid;
	__u8 local[16], remote[16];    /* an address of IPv4 is in the first four bytes */
	__u16 local_port, remote_port; /* 0: no peer */
	__u8 version;                  /* 4 or 6 */
	__u8 protocol;
	__u16 resent; /* how often TCP has sent something again during the wait */
};

/* In `resent`: it was the SYN; otherwise it was data. With a count of 0: nobody has answered the
 * SYN yet, which was sent once. */
#define WAFFLE_RESENT_SYN 0x8000u
/* With the SYN: an epoll was waited for, which has other sockets of a network as well. Without it,
 * in an open wait: the same, and how often the SYN was sent is not known. */
#define WAFFLE_RESENT_AMONG 0x4000u
#define WAFFLE_RESENT_MAX 16u /* it was that often or more */

/* A thread that is blocked at the end of the capture, with its registers in user mode. Followed by
 * kernel_bytes bytes: addresses of its kernel stack, innermost first. */
struct waffle_rec_halted {
	struct waffle_rec rec;
	__u32 tgid;
	__u32 kernel_bytes;
	__u64 from_ts;                  /* as in an open wait */
	__u32 kernel_stack, user_stack; /* numbers, as the kernel has them in a wait; 0: none */
	__u64 ip, sp, fp;
	__u64 python_key; /* finds the thread among the interpreter's (python_thread.bpf.h) */
	__s32 syscall;    /* -1: none */
	__u32 reserved;
	__u64 args[WAFFLE_SYSCALL_ARGS];
};

#endif
