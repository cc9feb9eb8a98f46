/* SPDX-License-Identifier: Apache-2.0 */
/* A running process, seen through /proc. Its names and paths come from anyone: not trusted. */
#ifndef WAFFLE_TARGET_PROCESS_H
#define WAFFLE_TARGET_PROCESS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/error.h"
#include "util/vec.h"

/* A mapping. */
struct mapping {
	uint64_t start, end; /* addresses in the process */
	uint64_t offset;     /* in the file, of start */
	uint64_t ino;        /* 0: not of a file */
	uint32_t dev;        /* as the kernel numbers devices */
	bool executable, writable;
	char *path; /* as /proc shows it, "(deleted)" stripped; "": none */
};

struct mappings {
	VEC(struct mapping) list;
};

/* The executable file mappings of a process, by address. -ESRCH: no such process. */
int process_mappings(struct mappings *mappings, pid_t pid, struct error *err);
/* All of them, also those of no file. */
int process_mappings_all(struct mappings *mappings, pid_t pid, struct error *err);
void mappings_free(struct mappings *mappings);

/* Takes "(deleted)" off a path of the kernel's. */
void mapping_path_trim(char *path);
/* Decodes the octal escapes of a path in mountinfo: "\040" is a blank (proc(5)). */
void process_unescape(char *path);

/* "no such process", "not a process but a thread of 4711", … ; 0 if the process can be traced. */
int process_check(pid_t pid, struct error *err);

/* One of the kernel's own, which has no files and no memory. */
bool process_is_kernel_thread(pid_t pid);

/* Pids of all processes whose name (comm) is `name`, waffle's own left out. */
typedef VEC(pid_t) pid_list;
int process_find(pid_list *pids, const char *name, struct error *err);

/* A thread by which /proc shows a process's memory and files: the main one, unless that has exited
 * and others have not. */
pid_t process_live_task(pid_t pid);
/* The name of a thread or process; "?" if it is gone. */
void process_comm(pid_t pid, char comm[16]);
/* Its arguments joined by blanks, cut at size; the name in brackets if it has none. */
void process_cmdline(pid_t pid, char *text, size_t size);
pid_t process_parent(pid_t pid); /* 0: unknown */
/* Where a link in its folder of /proc leads, such as "exe" or "cwd"; false, and "": not known. */
bool process_link(pid_t pid, const char *name, char path[PATH_MAX]);
/* The value of a variable in an environment as execve() wants it; NULL: it is not set. */
const char *environment_value(char *const *environment, const char *name);
/* "PID" or "time" if waffle is in such a namespace that is not the kernel's first, as in a
 * container: processes or moments have other numbers there than in the kernel's records. NULL: in
 * none. */
const char *process_own_namespace(void);

#endif
