/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread waits for, told by names: of system calls, of functions in kernel and user stacks,
 * of files, of kernel threads. Rows in tables, each a rule; what no rule tells is WAIT_OTHER.
 */
#ifndef WAFFLE_ANALYZE_WAIT_NAMES_H
#define WAFFLE_ANALYZE_WAIT_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

enum wait_kind {
	WAIT_OTHER,     /* no rule tells */
	WAIT_LOCK,      /* a mutex of the program */
	WAIT_GIL,       /* Python's interpreter lock */
	WAIT_CONDITION, /* a condition variable, semaphore, join, barrier: that another is done */
	WAIT_DISK,
	WAIT_FAULT, /* a page that is not in memory */
	WAIT_PIPE,
	WAIT_SOCKET,
	WAIT_POLL, /* any of several files, or a timeout */
	WAIT_TIMER,
	WAIT_SLEEP,
	WAIT_EXIT,        /* the end of a process */
	WAIT_EVENT,       /* eventfd, message queue, System V semaphore */
	WAIT_SIGNAL,      /* a signal as an answer */
	WAIT_KERNEL_LOCK, /* a lock inside the kernel, or of a file */
	WAIT_GPU,
	WAIT_COLLECTIVE, /* the other ranks of a job */
	WAIT_STOPPED,
	WAIT_KIND_COUNT
};

/* How a system call waits; what its file is can tell more. */
struct wait_syscall {
	const char *name;
	uint8_t kind;  /* enum wait_kind */
	bool file;     /* its first argument is a file descriptor */
	bool write;    /* to a disk, if it is one */
	bool metadata; /* of files, by path: a disk if it can't be interrupted */
	uint8_t count; /* 1 + the argument that says how many files are waited for */
};
/* A row that tells nothing for an unknown name or NULL. */
const struct wait_syscall *wait_syscall_of(const char *name);

/* What a futex's operation and expected value tell. *certain: not by a rule that can be wrong. */
enum wait_kind wait_futex_kind(uint64_t op, uint64_t value, bool *certain);

/* What a function in a stack tells of a wait or wake-up, by the begin of its name. */
struct wait_function {
	const char *begin;
	uint8_t kind;     /* enum wait_kind; WAIT_OTHER: only `text` is told */
	const char *text; /* for people: "ext4", "memory reclaim"; NULL */
};
/* NULL: nothing. Of the kernel's; of a program's. A wake-up's functions are of the waker. */
const struct wait_function *wait_kernel_function(const char *name);
const struct wait_function *wait_wake_function(const char *name);
const struct wait_function *wait_user_function(const char *name);

/* A kernel function of a call that sends to the network or takes from it: what interrupts do below
 * it on this CPU is its own doing. */
bool wait_is_network_call(const char *name);

/* What a file tells by its name; `uninterruptible`: it is waited for in D state. */
enum wait_kind wait_object_kind(const struct store_object *object, bool uninterruptible);

/* A socket whose two ends are on this machine. */
bool wait_socket_is_local(const struct store_object *object);

/* Threads of the kernel's own, which work for whoever asks; told by name only. */
bool wait_is_kernel_thread(const char *comm);

#endif
