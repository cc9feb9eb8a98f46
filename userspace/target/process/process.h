/* SPDX-License-Identifier: Apache-2.0 */
/* A running process, seen through /proc. The process controls its names and paths, so they are not
 * trusted. */
#ifndef WAFFLE_TARGET_PROCESS_PROCESS_H
#define WAFFLE_TARGET_PROCESS_PROCESS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/error.h"
#include "util/vec.h"

#define PROCESS_PID_MAX 4194304 /* the kernel's PID_MAX_LIMIT */

struct mapping {
	uint64_t start, end; /* addresses in the process */
	uint64_t offset;     /* file offset of `start` */
	uint64_t ino;        /* 0: anonymous */
	uint32_t dev;        /* in the kernel's encoding */
	bool executable, writable;
	char *path;     /* as /proc shows it, without "(deleted)"; "": none */
	uint64_t since; /* when the kernel reported it; 0: it was read from /proc */
	bool written;   /* the capture has it */
};

struct mappings {
	VEC(struct mapping) list;
};

/* Whether code of a file is mapped. */
bool mapping_is_program(const struct mapping *mapping);
/* Those mappings of a process, sorted by address. -ESRCH: no such process. Those whose paths take
 * more than 8 MiB together are left out. */
int process_mappings(struct mappings *mappings, pid_t pid, struct error *err);
/* All mappings, including anonymous ones. */
int process_mappings_all(struct mappings *mappings, pid_t pid, struct error *err);
void mappings_free(struct mappings *mappings);

/* Removes "(deleted)" from a path that the kernel shows. */
void mapping_path_trim(char *path);
/* Decodes the octal escapes of a path in mountinfo: "\040" is a space (proc(5)). */
void process_unescape(char *path);

/* Returns 0 if the process can be traced, else an error such as "no such process" or "not a process
 * but a thread of 4711". */
int process_check(pid_t pid, struct error *err);

#define PROCESS_STAT_BYTES 1024
/* Reads /proc/PID/stat. Returns its end from the ")" behind the name on, which may have any
 * characters itself; NULL: the process is gone. */
const char *process_stat(pid_t pid, char line[PROCESS_STAT_BYTES]);
/* Whether a process has ended, and its parent has not waited for it yet; then with what wait(2)
 * will report, or 0 if we may not know that. */
bool process_is_zombie(pid_t pid, int *status);

/* Whether this is a kernel thread, which has no files and no memory. */
bool process_is_kernel_thread(pid_t pid);

/* Whether the program of a process gained privileges at its exec (set-user-ID, file capabilities).
 * True as well if that can't be seen. */
bool process_is_privileged(pid_t pid);

/* Adds the pids of all processes whose name (comm) is `name`, except this one. The caller frees the
 * list, also after an error. -ESRCH with a message: there is none. */
typedef VEC(pid_t) pid_list;
int process_find(pid_list *pids, const char *name, struct error *err);

/* The process number at the begin of a text, as a file may have it; 0: none. */
uint32_t process_number(const char *text);

/* Value of a numeric field of /proc/PID/status, the first one of several: "PPid"; -1: unknown. */
long process_status_field(pid_t pid, const char *field);

/* The number of threads of a process; 0: unknown. */
uint32_t process_thread_count(pid_t pid);

/* A thread through which /proc shows the memory and files of a process: the main thread, unless it
 * has exited before others. */
pid_t process_live_task(pid_t pid);
/* The name of a thread or process; "?" if it is gone. */
void process_comm(pid_t pid, char comm[16]);
/* Whether there is no thread of this number, or only what its parent has not waited for. */
bool process_has_ended(pid_t tid);
/* Whether a thread is stopped, by a signal or its tracer. */
bool process_is_stopped(pid_t tid);
/* Whether a signal has stopped it. A tracer may stop it for an instant, at each system call. */
bool process_is_stopped_by_signal(pid_t tid);
/* Whether the freezer of its cgroup has stopped it. */
bool process_is_frozen(pid_t tid);
/* The process that traces a thread and has stopped it (ptrace(2)); 0: it is in no such stop. */
pid_t process_tracer(pid_t tid);
/* The arguments joined by spaces and cut at `size`. Without arguments, the name in brackets. */
void process_cmdline(pid_t pid, char *text, size_t size);
pid_t process_parent(pid_t pid);     /* 0: unknown */
long process_user(pid_t pid);        /* its real user ID; -1: unknown */
uint64_t process_network(pid_t pid); /* inode of its network namespace; 0: unknown */
/* Target of a link in its /proc directory, such as "exe" or "cwd". False, and "": unknown. */
bool process_link(pid_t pid, const char *name, char path[PATH_MAX]);
/* The value of a variable in an environment (a list as for execve()). NULL: it is not set. */
const char *environment_value(char *const *environment, const char *name);
/* "PID" or "time" if waffle runs in a PID or time namespace other than the initial one, as in a
 * container. Then pids or timestamps differ from those in the kernel's records. NULL: neither. */
const char *process_own_namespace(void);

#endif
