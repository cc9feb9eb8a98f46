/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a process would find a library that it opens by dlopen(). It searches folders of its own:
 * those that its files (DT_RUNPATH) and its environment (LD_LIBRARY_PATH) name, and those of
 * Python's wheels beside the packages of an interpreter. Then it searches those of its system, by
 * the loader's cache. Nothing is executed, and the process notices nothing. Paths are as it sees
 * them, in its mount namespace and below its root. Files are not trusted.
 */
#ifndef WAFFLE_TARGET_SEARCH_H
#define WAFFLE_TARGET_SEARCH_H

#include <stdint.h>
#include <sys/types.h>

struct search;

/* -ESRCH: it is gone; -ENOSYS: the kernel can't keep to its root. */
int search_open(struct search **search, pid_t pid);
/* For the program that the process is about to execute, with that environment. */
int search_open_exec(struct search **search, pid_t pid, const char *program,
		     char *const *environment);
void search_close(struct search *search);

/* A file that it has mapped, by the path that it sees, and its runpath (loader.h) or NULL. */
void search_add_file(struct search *search, const char *path, const char *runpath);

/* Changes with the folders. */
uint64_t search_hash(const struct search *search);

/* Calls `each` with the path of each entry of its own folders, or of its system's. */
typedef void (*search_each)(const char *path, void *arg);
void search_own(const struct search *search, search_each each, void *arg);
void search_system(const struct search *search, search_each each, void *arg);

/* Opens a file to read it. -EINVAL: it is a folder, a device, … */
int search_file(const struct search *search, const char *path);

#endif
