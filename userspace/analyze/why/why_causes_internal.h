/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of causes. A new cause is a row here and a classifier that returns it: why_blocked.c
 * and the files that why_blocked_internal.h names for blocked time, why_running.c for running time,
 * why_walk.c for runnable time, why_await_sync.c for waits for a GPU or a rank. Then `make docs`
 * writes its line into docs/why.md. Of causes with the same time, the earlier one here comes first.
 *
 * CAUSE(identifier, name in the output and in JSON, line for people, colour on a terminal, the
 * source that shows it besides sched, role of the records that prove it besides the switches
 * (COUNT: none), which end of a long object is shown, documentation: what the time was spent on,
 * documentation: the culprit)
 *
 * The colours are those of the state that the time resembles: running, runnable or blocked.
 */
#ifndef WAFFLE_ANALYZE_WHY_WHY_CAUSES_INTERNAL_H
#define WAFFLE_ANALYZE_WHY_WHY_CAUSES_INTERNAL_H

#define WHY_CAUSES(CAUSE)                                                                          \
	CAUSE(RUNNING, "running", "it computed itself", GREEN, "", COUNT, END,                     \
	      "the span's thread computed", "the thread itself")                                   \
	CAUSE(CPU_CONTENTION, "cpu-contention", "it was runnable and had no CPU", YELLOW, "",      \
	      STOLEN, END,                                                                         \
	      "a thread was runnable, and another one had the CPU; or the hypervisor took the "    \
	      "CPU away; or the CPU was idle and slow to wake up",                                 \
	      "the thread that ran in its place most of that time; none, with the object `stolen " \
	      "by the hypervisor` or `the CPU was idle: woken late`")                              \
	CAUSE(LOCK, "lock", "the holder of a lock computed", RED, "", COUNT, END,                  \
	      "the holder of a lock computed",                                                     \
	      "the holder; the lock's address, and its name if symbols give one")                  \
	CAUSE(GIL, "gil", "the holder of Python's interpreter lock computed", RED, "", COUNT, END, \
	      "the holder of Python's interpreter lock computed",                                  \
	      "the holder; `GIL (_PyRuntime)` if symbols give it")                                 \
	CAUSE(DISK_READ, "disk-read", "a device was read", RED, "io", IO, END,                     \
	      "a thread waited for a block device to read",                                        \
	      "the thread that issued the request; the file")                                      \
	CAUSE(DISK_WRITE, "disk-write", "a device was written", RED, "io", IO, END,                \
	      "a thread waited for a block device to write",                                       \
	      "the thread that issued the request; the file")                                      \
	CAUSE(PAGE_FAULT_MAJOR, "page-fault-major", "a touched page was read from a device", RED,  \
	      "faults", FAULT, END, "a touched page had to be read from a device",                 \
	      "the thread; the file")                                                              \
	CAUSE(PAGE_FAULT_MINOR, "page-fault-minor", "pages were mapped when first touched", GREEN, \
	      "faults", FAULT, END, "the kernel mapped pages on their first access", "the thread") \
	CAUSE(CPU_QUOTA, "cpu-quota", "its cgroup's CPU time was used up", YELLOW, "quota", QUOTA, \
	      END, "a thread was runnable, and its cgroup's CPU time was used up",                 \
	      "the thread that used most of it; the cgroup")                                       \
	CAUSE(STOPPED, "stopped", "stopped by a signal or a tracer", RED, "", SIGNAL, END,         \
	      "a signal, a tracer or a freezer had stopped a thread, or waffle-bpf held a new "    \
	      "program",                                                                           \
	      "the signal's sender, the tracer; `held by waffle-bpf (this capture)`")              \
	CAUSE(SLEEP, "sleep", "it asked to sleep", RED, "", COUNT, END,                            \
	      "a thread called a function that sleeps, or `poll` or `select` without a "           \
	      "descriptor",                                                                        \
	      "the sleeper")                                                                       \
	CAUSE(TIMER, "timer", "a timeout or timer ran out", RED, "", COUNT, END,                   \
	      "a timeout or timer that somebody waited for expired",                               \
	      "the waiting thread; the timer")                                                     \
	CAUSE(PIPE, "pipe", "the other end of a pipe", RED, "files", COUNT, END,                   \
	      "the other end computed, or is not recorded; a named pipe, a POSIX message queue "   \
	      "and a terminal are pipes",                                                          \
	      "the other end's thread, if known; not the kernel's worker that passes on a "        \
	      "terminal's input")                                                                  \
	CAUSE(SOCKET, "socket", "the peer of a socket", RED, "files", COUNT, END,                  \
	      "the other end computed, does not answer, or is not recorded",                       \
	      "the other end's thread, if known")                                                  \
	CAUSE(PROCESS_EXIT, "process-exit", "a child process had to end", RED, "", COUNT, END,     \
	      "a child was waited for, and it computed, or was not recorded; `awaited by perl` "   \
	      "if it is no child of the process that is explained",                                \
	      "the child")                                                                         \
	CAUSE(GPU, "gpu", "a GPU", RED, "cuda", COUNT, BEGIN, "a GPU had work to do",              \
	      "the thread that submitted the work, and its span then; the kernel, copy or "        \
	      "collective, and its stream")                                                        \
	CAUSE(COLLECTIVE, "collective", "the other members of a collective operation", RED,        \
	      "nccl", COUNT, BEGIN, "the rank that came last to a collective operation computed",  \
	      "that rank's thread; the rank and the call")                                         \
	CAUSE(INTERRUPT, "interrupt", "an interrupt whose origin is not recorded", RED, "", COUNT, \
	      END, "an interrupt ended the wait; its origin is not recorded", "")                  \
	CAUSE(USER_WORK, "user-work", "another thread computed what was waited for", RED, "",      \
	      COUNT, END,                                                                          \
	      "another thread computed what was waited for (a condition variable, a semaphore, a " \
	      "host function on a stream)",                                                        \
	      "that thread and its span, if known; the awaited object, as far as it is known")     \
	CAUSE(NOT_RECORDED, "not-recorded", "the chain leaves what was recorded", DIM, "", COUNT,  \
	      END, "the chain leads to a thread or machine that was not recorded",                 \
	      "the last known thread")                                                             \
	CAUSE(UNKNOWN, "unknown", "records or wake-ups are missing or contradict each other", DIM, \
	      "", LOSS, END,                                                                       \
	      "records or wake-ups are missing or contradict each other, or the wait went on "     \
	      "when the capture ended",                                                            \
	      "")                                                                                  \
	CAUSE(IDLE, "idle", "a language's runtime had nothing to run on the thread", DIM, "",      \
	      COUNT, END,                                                                          \
	      "the runtime of Go had no goroutine to run on the thread, or on any. It stands "     \
	      "behind work and waits with at least a twentieth of the time",                       \
	      "what gave the runtime a goroutine to run")

#endif
