/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dynamic loader's sources of library paths (ld.so(8)): entries of an ELF file, lists of
 * directories, and the cache of ldconfig(8). All of them are untrusted.
 */
#ifndef WAFFLE_TARGET_LOADER_LOADER_H
#define WAFFLE_TARGET_LOADER_LOADER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/vec.h"

struct loader_file {
	uint16_t machine;      /* e_machine */
	char *rpath, *runpath; /* unexpanded: "$ORIGIN/../lib:/x"; NULL: none */
	char *soname;          /* NULL: none */
	char *interpreter;     /* path of its loader; NULL: none, as in a static program */
	VEC(char *) needed;    /* names of libraries */
};

/* Reads the ELF file open at `fd`. False: it is not ELF, or is for another machine. */
bool loader_file_read(struct loader_file *file, int fd);
void loader_file_free(struct loader_file *file);

/* DT_RUNPATH, or else DT_RPATH, of a file. The caller frees it. NULL: none. */
char *loader_runpath(int fd);

/* Values of $ORIGIN and $LIB, and the base of relative paths. */
struct loader_base {
	const char *origin; /* the file that contains the list of directories */
	const char *folder; /* working directory of the process */
	const char *lib;    /* value of $LIB: "lib64", "lib/x86_64-linux-gnu"; NULL: unknown */
};

/* Expands `len` bytes of text to an absolute path. False: the path is too long, or a "$" precedes
 * an unknown name. With `origin` "", $ORIGIN is unknown. */
bool loader_expand(char path[PATH_MAX], const char *text, size_t len,
		   const struct loader_base *base);

/* Calls `each` with the absolute directories of a list until it returns true. Returns whether it
 * did. */
typedef bool (*loader_folder_fn)(const char *folder, void *arg);
bool loader_folders_each(const char *list, const struct loader_base *base, loader_folder_fn each,
			 void *arg);

/* Default directories of most distributions. Search them after the cache, or alone for a loader
 * without a cache, such as musl's. */
extern const char loader_usual[];

/*
 * The variants of this machine's processor, best first, terminated by NULL. glibc searches
 * glibc-hwcaps/VARIANT of each directory before the directory itself (ld.so(8)). Querying the
 * processor takes some microseconds in a virtual machine.
 */
const char *const *loader_variants(void);

#define LOADER_CACHE "/etc/ld.so.cache"
#define LOADER_CACHE_MAX (4 << 20) /* bytes */

/*
 * Calls `each` with the paths in an ld.so.cache (glibc's dl-cache.h, format 1.1, alone or after a
 * cache of the older format). Any other file yields none.
 */
void loader_cache_each(const char *cache, size_t bytes, void (*each)(const char *path, void *arg),
		       void *arg);

#endif
