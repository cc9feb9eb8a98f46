/* SPDX-License-Identifier: Apache-2.0 */
/* What a blocked thread waits for, derived from its system call, the arguments and the file. */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_WAIT_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_WAIT_H

#include "model/model.h"
#include "util/strtab.h"

enum wait_kind {
	WAIT_NONE,  /* no system call and no known page fault */
	WAIT_OTHER, /* a system call that says little */
	WAIT_MUTEX, /* its waker held the lock */
	WAIT_FUTEX, /* a condition variable, semaphore, join, … */
	WAIT_GIL,   /* Python's interpreter lock */
	WAIT_PIPE,  /* or a message queue */
	WAIT_SOCKET,
	WAIT_POLL,
	WAIT_TIMER,
	WAIT_SLEEP,
	WAIT_SIGNAL,
	WAIT_CHILD,
	WAIT_FAULT,
	WAIT_FILE_READ,
	WAIT_FILE_WRITE,
	WAIT_GPU,
	WAIT_COLLECTIVE, /* for the last rank to arrive */
	WAIT_STOPPED,
};

/* Futex operations and flags of <linux/futex.h>; older headers lack FUTEX_LOCK_PI2. */
#define WAIT_FUTEX_COMMAND 127u /* mask: the operation without its flags */
#define WAIT_FUTEX_WAIT 0u
#define WAIT_FUTEX_LOCK_PI 6u
#define WAIT_FUTEX_WAIT_BITSET 9u
#define WAIT_FUTEX_LOCK_PI2 13u
#define WAIT_FUTEX_PRIVATE 128u
#define WAIT_FUTEX_CLOCK_REALTIME 256u
/* Value of a contended mutex's futex word in glibc, musl and similar C libraries. */
#define WAIT_MUTEX_CONTENDED 2u

/* Whether a futex call, by its arguments, takes a priority-inheriting lock. */
static inline bool wait_takes_pi_lock(const uint64_t *args)
{
	uint32_t command = (uint32_t)args[1] & WAIT_FUTEX_COMMAND;

	return command == WAIT_FUTEX_LOCK_PI || command == WAIT_FUTEX_LOCK_PI2;
}

/* The variable with the state of Python's interpreter, including its lock. */
#define WAIT_PYTHON_STATE "_PyRuntime"

/* What is known about Python in the process. */
enum wait_python {
	WAIT_NO_PYTHON,
	WAIT_PYTHON,       /* the address of the interpreter's state is unknown */
	WAIT_PYTHON_KNOWN, /* it is known: a futex elsewhere is not its lock */
};

/* What a futex is used for, by the functions on the user stack. */
enum futex_use {
	FUTEX_USE_UNKNOWN,
	FUTEX_USE_LOCK,   /* a mutex, or a read-write lock with one holder */
	FUTEX_USE_OTHER,  /* no lock: a condition variable, a semaphore */
	FUTEX_USE_ENDS,   /* no lock, and only one wake-up ends it: a join, a barrier */
	FUTEX_USE_SHARED, /* several readers may hold it, and the last one wakes the waiter */
	FUTEX_USE_OWN,    /* not from the C library: the program implements it */
	FUTEX_USE_LIBC,   /* a function of glibc without a name made the call */
};

/* Decides by the functions of the waiter or the waker, innermost first; NULL: unknown name. The
 * first function that is in the table counts. In why_futex.c. */
enum futex_use futex_use_by(const char *const *functions, size_t count);

bool futex_use_is_lock(enum futex_use use);

/* Classes of system calls, from which we derive the kind of a wait. */
enum wait_call {
	WAIT_CALL_NONE, /* no system call, or unknown */
	WAIT_CALL_OTHER,
	WAIT_CALL_FUTEX,
	WAIT_CALL_FUTEX2, /* the calls of Linux 5.16 and 6.7, with other arguments */
	WAIT_CALL_READ,   /* the kind of file decides */
	WAIT_CALL_WRITE,
	WAIT_CALL_IOCTL,
	WAIT_CALL_SOCKET,
	WAIT_CALL_SEND,
	WAIT_CALL_POLL,
	WAIT_CALL_POLL_LIST, /* with the number of descriptors: 0 in a program that sleeps */
	WAIT_CALL_SELECT,    /* the same, in the first argument */
	WAIT_CALL_SLEEP,
	WAIT_CALL_SIGNAL,
	WAIT_CALL_CHILD,
	WAIT_CALL_FILE_READ,
	WAIT_CALL_FILE_WRITE,
	WAIT_CALL_FSYNC,
	WAIT_CALL_MSYNC,
	WAIT_CALL_FILE_LOCK,
	WAIT_CALL_QUEUE_READ, /* a POSIX message queue */
	WAIT_CALL_QUEUE_WRITE,
};

/* The class of a system call by its name; name NULL: unknown. */
enum wait_call wait_call_of(const char *name);
/* Whether a thread may have nothing to do in a call. */
bool wait_call_is_for_work(const char *name);
/* Whether a thread with nothing to do would not wait in a system call: it opens, looks up or writes
 * a file, sends, connects, or takes a file lock. */
bool wait_call_is_never_idle(const char *name);
/* Whether a call waits until there is something to read or to accept, or a connection is made. */
bool wait_call_gets_data(enum wait_call call);

/* What we know about a wait. */
struct wait_facts {
	enum wait_call call;
	const char *syscall; /* name; NULL: none, or unknown */
	const uint64_t *args;
	const struct store_object *object; /* NULL: unknown */
	const char *name;     /* of the object, if that has none; NULL: it has, or none is known */
	bool other_request;   /* the object, if any, is that of the thread's other requests of
				 io_uring */
	const char *variable; /* variable at the futex; NULL: unknown */
	uint16_t task_state;
	bool fault;
	enum wait_python python;
	bool pipe;           /* the kernel stack shows a wait for a pipe */
	uint32_t lock_hints; /* enum why_hint: what the kernel stack shows of a kernel lock */
	enum futex_use futex;
};

/* Whether it is a wait at a socket, or one for several descriptors, which may be sockets. */
static inline bool wait_may_be_at_socket(enum wait_kind kind)
{
	return kind == WAIT_SOCKET || kind == WAIT_POLL;
}

enum wait_kind wait_kind_of(const struct wait_facts *facts);

/* Whether the kind follows from a rule that can be wrong. */
bool wait_is_guess(const struct wait_facts *facts, enum wait_kind kind);

/* Whether the thread waits for room in a full pipe or socket. */
bool wait_is_for_room(const struct wait_facts *facts, enum wait_kind kind);

/* Whether the first argument is a descriptor of what it may wait for. */
bool wait_has_descriptor(const struct wait_facts *facts);

/* Whether the first argument is the address of a futex that it waits for. */
bool wait_has_futex(const struct wait_facts *facts, enum wait_kind kind);

/* The address of the futex. A condition variable has two futexes that take turns; this is always
 * the first one. */
uint64_t wait_futex_address(const struct wait_facts *facts);

/* Whether a wait is for a socket that is being connected. NULL: it is not known what it is for. */
bool wait_is_for_connecting(const struct store_object *object);

/* Whether the first argument is an address in the mapping of a file. */
bool wait_has_mapping(const struct wait_facts *facts);

/* Adds a text such as "futex 0x7f01 (queue_lock)" or "/data/shard-7 (ext4)" to `texts`. 0: nothing
 * is known. */
uint32_t wait_object_text(struct strtab *texts, const struct wait_facts *facts,
			  enum wait_kind kind);
/* How the texts of locks begin. */
#define WAIT_FUTEX_BEGIN "futex 0x"
#define WAIT_GIL_BEGIN "GIL"
/* How the text of several futexes without a name ends: "8 futexes". */
#define WAIT_FUTEXES_END " futexes"
/* Whether the text is "futex 0x7f01", and not "futex 0x7f01 (queue_lock)". */
bool wait_is_unnamed_futex(const char *text);
/* Nothing but a number tells some objects from others of their kind: "futex 0x7f01", "pipe:[4711]",
 * "socket:[4711] (unix)", "inode 4711 of /data", "/data/seg.7 (ext4)". The text of the kind:
 * "pipe:[N]", "/data/seg.N"; 0: the object has a name. Numbered files are parts of one thing,
 * unless each is a `lock`. All are among `texts`. */
uint32_t wait_unnamed(struct strtab *texts, uint32_t object, bool lock);
/* The " (ext4)" of "/data/seg.7 (ext4), and its cgroup …", or of "/data/seg.7 (ext4) and 7 more";
 * NULL: it is no such text. */
const char *wait_file_system(const char *text);
/* The text of several objects of one kind, of which `object` is one: "8 futexes", "pipe:[4711] and
 * 7 more", or "/data/seg.7 (ext4) and 7 more, and its cgroup …". */
uint32_t wait_unnamed_text(struct strtab *texts, uint32_t object, size_t count);

#endif
