/* SPDX-License-Identifier: Apache-2.0 */
/* What a blocked thread waits for: told by its system call, that one's arguments and its file. */
#ifndef WAFFLE_ANALYZE_WHY_WAIT_H
#define WAFFLE_ANALYZE_WHY_WAIT_H

#include "model/model.h"
#include "util/strtab.h"

enum wait_kind {
	WAIT_NONE,  /* no system call, and no page fault that is known */
	WAIT_OTHER, /* a system call that says little */
	WAIT_MUTEX, /* whoever ends it held the lock */
	WAIT_FUTEX, /* a condition variable, semaphore, join, … */
	WAIT_GIL,   /* Python's interpreter lock */
	WAIT_PIPE,
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
	WAIT_COLLECTIVE, /* for the rank that arrives last */
	WAIT_STOPPED,
};

/* The variable that has the state of Python's interpreter, with its lock. */
#define WAIT_PYTHON_STATE "_PyRuntime"

/* What is known of the process. */
enum wait_python {
	WAIT_NO_PYTHON,
	WAIT_PYTHON,       /* where its interpreter's state is, is not known */
	WAIT_PYTHON_KNOWN, /* it is: what lies elsewhere is not the interpreter's lock */
};

/* What the program's functions say of a futex. */
enum wait_told {
	WAIT_TOLD_NOTHING,
	WAIT_TOLD_LOCK,   /* of any kind: a mutex, a lock for readers and writers */
	WAIT_TOLD_OTHER,  /* a condition variable, semaphore: no lock */
	WAIT_TOLD_ENDS,   /* a join, a barrier: no lock, and no wake-up but the one that ends it */
	WAIT_TOLD_SHARED, /* a lock that several may have held, of whom the last one lets it go */
	WAIT_TOLD_OWN,    /* no function of the C library: what it is is the program's own */
};

/* By functions of who waits or of who woke it, the innermost first; NULL: not known. The first one
 * that says something counts. In why_futex.c. */
enum wait_told wait_told_by(const char *const *functions, size_t count);

bool wait_told_lock(enum wait_told told);

/* Classes of system calls: how the kind of a wait is found. */
enum wait_call {
	WAIT_CALL_NONE, /* no system call, or it is not known */
	WAIT_CALL_OTHER,
	WAIT_CALL_FUTEX,
	WAIT_CALL_FUTEX2, /* the calls of Linux 5.16 and 6.7, which have other arguments */
	WAIT_CALL_READ,   /* the descriptor's object decides */
	WAIT_CALL_WRITE,
	WAIT_CALL_IOCTL,
	WAIT_CALL_SOCKET,
	WAIT_CALL_SEND,
	WAIT_CALL_POLL,
	WAIT_CALL_SLEEP,
	WAIT_CALL_SIGNAL,
	WAIT_CALL_CHILD,
	WAIT_CALL_FILE_READ,
	WAIT_CALL_FILE_WRITE,
	WAIT_CALL_FSYNC,
	WAIT_CALL_MSYNC,
	WAIT_CALL_FILE_LOCK,
};

/* The class of a system call by its name; NULL: not known. */
enum wait_call wait_call_of(const char *name);

/* What of a wait is looked at. */
struct wait_facts {
	enum wait_call call;
	const char *syscall; /* name; NULL: none, or not known */
	const uint64_t *args;
	const struct store_object *object; /* NULL: not known */
	const char *variable;              /* that a futex is in; NULL: not known */
	uint16_t task_state;
	bool fault;
	enum wait_python python;
	bool pipe; /* the kernel's functions say so */
	enum wait_told told;
};

enum wait_kind wait_kind_of(const struct wait_facts *facts);

/* Whether that is a rule which can be wrong. */
bool wait_is_guess(const struct wait_facts *facts, enum wait_kind kind);

/* Whether it waits for room in a pipe or socket that is full. */
bool wait_is_for_room(const struct wait_facts *facts, enum wait_kind kind);

/* Whether the first argument of a system call is what it may wait for. */
bool wait_has_descriptor(const struct wait_facts *facts);

/* Whether what it waits for is at the address that its first argument is. */
bool wait_has_futex(const struct wait_facts *facts, enum wait_kind kind);

/* Where that is; of a condition variable, whose two futexes take turns, always the first one. */
uint64_t wait_futex_address(const struct wait_facts *facts);

/* Whether that is an address of memory that a file is mapped at. */
bool wait_has_mapping(const struct wait_facts *facts);

/* "futex 0x7f01 (queue_lock)", "/data/shard-7 (ext4)", …, added to `texts`; 0: none. STRTAB_NONE:
 * no memory. */
uint32_t wait_object_text(struct strtab *texts, const struct wait_facts *facts,
			  enum wait_kind kind);

#endif
