/* SPDX-License-Identifier: Apache-2.0 */
/* What the records show about a wait: who ended it, its file, and the texts for both. */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_EVIDENCE_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_EVIDENCE_H

#include "analyze/why/lookup/why_worker.h"
#include "analyze/why/why_walk_types.h"

/* What the kernel functions on the stack of a wake-up show about it. */
enum why_hint {
	WHY_HINT_INTERRUPT = 1,
	WHY_HINT_TIMER = 2,
	WHY_HINT_SOCKET = 4,
	WHY_HINT_PIPE = 8,
	WHY_HINT_TERMINAL = 16,
	WHY_HINT_SIGNAL = 32,
	WHY_HINT_CHILD = 64,      /* a child ended */
	WHY_HINT_DISK = 128,      /* a block request is done */
	WHY_HINT_THAW = 256,      /* the cgroup's freezer thaws it */
	WHY_HINT_RECEIVE = 512,   /* packets are received */
	WHY_HINT_BACKLOG = 1024,  /* packets that this machine sent are received */
	WHY_HINT_READERS = 2048,  /* one or more readers hold or held a lock */
	WHY_HINT_WRITER = 4096,   /* it waits to write under a lock that readers may hold */
	WHY_HINT_TRANSMIT = 8192, /* packets are sent */
	WHY_HINT_TIMERS = 16384,  /* a timer of the kernel expired; whose it is is not known */
	WHY_HINT_ALARM = 32768,   /* a timer of a process expired and sent its signal */
	WHY_HINT_TCP = 65536,     /* a packet for an established TCP connection */
	WHY_HINT_FAULT = 131072,  /* a page fault: only why_stack_is_fault() uses it */
};

/* Makes the walk ready. `like`: another walk of the model, which lives longer and shares what never
 * changes and is large; or NULL. */
void why_evidence_init(struct why_walk *walk, const struct why_walk *like);
/* When the thread was back on a CPU after the wait of an interval; 0: not in the capture. */
uint64_t why_switched_in(const struct why_walk *walk, uint32_t thread, size_t index);
/* Returns the object that a thread waited for in an interval. NULL: it is unknown. */
const struct store_object *why_wait_object(const struct why_walk *walk, uint32_t thread,
					   const struct why_interval *interval);
struct why_waker why_waker_of(const struct why_walk *walk, uint32_t thread, size_t index);
/* What woke the thread that a switch brought in. */
struct why_waker why_waker_in(const struct why_walk *walk, const struct model_switch *sw);
struct wait_facts why_facts_of(const struct why_walk *walk, uint32_t thread,
			       const struct why_interval *interval, const struct model_wait **wait);
/* Index in walk->by_pid of the first thread of a process. */
size_t why_threads_of(const struct why_walk *walk, uint32_t pid);
/* Whether the process of a thread has no other thread. */
bool why_is_only_thread(const struct why_walk *walk, uint32_t thread);
/* The thread besides which the process has only this one, at the end of the capture; MODEL_NONE:
 * there are more, or none. */
uint32_t why_only_other_thread(const struct why_walk *walk, uint32_t thread);
/* Index in walk->traced of the first thread of a process. */
size_t why_traced_of(const struct why_walk *walk, uint32_t pid);
/* Whether the kernel handles a page fault on a stack. */
bool why_stack_is_fault(const struct why_walk *walk, uint32_t stack);
/* Looks up what a kernel stack says about a wait. */
void why_stack_meaning(struct why_walk *walk, uint32_t stack, struct why_stack *meaning);
/* Returns the text of what a thread of the kernel does, by its name, such as "kernel: memory
 * reclaim"; 0: unknown. */
uint32_t why_worker_text(struct why_walk *walk, uint32_t thread);
/* The same of the kernel's thread that woke a thread at ts, also by its stack; `what` is that of
 * its row. 0: another thread did, or it is unknown what it does. */
uint32_t why_worker_of_wake(struct why_walk *walk, uint32_t thread, uint64_t ts,
			    enum worker_for *what);
/* The text of a cgroup by its inode number, and the controller by which it was found: "cpu",
 * "memory", "pids", "blkio" or "freezer". */
uint32_t why_cgroup(struct why_walk *walk, uint64_t ino, const char *controller);
/* The text of the file that is mapped at an address; 0: none. */
uint32_t why_mapped_file(struct why_walk *walk, uint32_t pid, uint64_t address, uint64_t ts);

/* Sets the object of a wait by its number in the file, and the name of a file of which only the
 * inode was known. NULL: there is no such object. */
void why_facts_object(const struct why_walk *walk, struct wait_facts *facts, uint32_t number);

#endif
