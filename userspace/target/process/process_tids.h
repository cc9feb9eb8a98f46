/* SPDX-License-Identifier: Apache-2.0 */
/* What a process in another namespace sees: its tids and its clock. */
#ifndef WAFFLE_TARGET_PROCESS_PROCESS_TIDS_H
#define WAFFLE_TARGET_PROCESS_PROCESS_TIDS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The tid by which a process sees its thread, in the innermost pid namespace that it belongs to. 0:
 * there is no such thread. This takes some 10 µs. */
uint32_t process_seen_tid(pid_t pid, uint32_t tid);
/* Whether a process has a thread with this tid, and sees it by the same one. */
bool process_has_tid(pid_t pid, uint32_t tid);
/* Calls a function with the tids of a process that sees others than we do, of up to 4096 threads.
 * This takes as long as process_seen_tid() for each. */
void process_tids_each(pid_t pid, void (*each)(uint32_t seen, uint32_t tid, void *arg), void *arg);
/* Whether some process of the machine sees other tids than we do, or may: not all were read until
 * then. */
bool process_any_sees_others(uint64_t until_ns);
/*
 * Whether system calls that the process does not make by itself may end it, because of seccomp. The
 * filters of its container count as harmless: all processes in it have them, and the usual ones
 * return an error for what they forbid.
 */
bool process_is_confined(pid_t pid);
/* Whether CLOCK_MONOTONIC of the process is another one than ours, or that is unknown. */
bool process_has_other_time(pid_t pid);

#endif
