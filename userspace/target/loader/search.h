/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a process would find a library that it opens with dlopen(). The search covers first its own
 * directories: those in its files (DT_RUNPATH), in its environment (LD_LIBRARY_PATH), and those of
 * Python wheels beside an interpreter's packages. Then it covers the directories of the system, by
 * the loader's cache. Nothing is executed, and the process is not disturbed. Paths are as the
 * process sees them, in its mount namespace and below its root. Files are not trusted.
 */
#ifndef WAFFLE_TARGET_LOADER_SEARCH_H
#define WAFFLE_TARGET_LOADER_SEARCH_H

#include <stdint.h>
#include <sys/types.h>

struct loader_search;

/* -ESRCH: the process is gone; -ENOSYS: the kernel cannot resolve paths below a root. */
int search_open(struct loader_search **search, pid_t pid);
/* For the program that the process is about to execute with that environment. */
int search_open_exec(struct loader_search **search, pid_t pid, const char *program,
		     char *const *environment);
void search_close(struct loader_search *search);

/* Adds a file that the process has mapped, by its own view of the path, and its runpath (loader.h)
 * or NULL. */
void search_add_file(struct loader_search *search, const char *path, const char *runpath);

/* A hash that changes with the set of directories. */
uint64_t search_hash(const struct loader_search *search);

/* Calls `each` with the path of each entry of its own directories, or of the system's. */
typedef void (*search_each)(const char *path, void *arg);
void search_own(const struct loader_search *search, search_each each, void *arg);
void search_system(const struct loader_search *search, search_each each, void *arg);

/* Opens a file for reading. -EINVAL: it is a directory, a device, … */
int search_file(const struct loader_search *search, const char *path);

#endif
