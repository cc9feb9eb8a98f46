/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tells the dynamic loader where libraries are (ld.so(8)): what an ELF file says, lists of
 * folders, and the cache that ldconfig(8) keeps. Nothing of it is trusted.
 */
#ifndef WAFFLE_TARGET_LOADER_H
#define WAFFLE_TARGET_LOADER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/vec.h"

struct loader_file {
	uint16_t machine;      /* e_machine */
	char *rpath, *runpath; /* as they stand there: "$ORIGIN/../lib:/x"; NULL: none */
	char *soname;          /* NULL: none */
	char *interpreter;     /* its loader; NULL: none, as of a static program */
	VEC(char *) needed;    /* libraries */
};

/* Reads the ELF file that is open at `fd`. false: it is none, or one of another kind of machine. */
bool loader_file_read(struct loader_file *file, int fd);
void loader_file_free(struct loader_file *file);

/* DT_RUNPATH, or DT_RPATH, of a file; to be freed. NULL: none. */
char *loader_runpath(int fd);

/* What stands for $ORIGIN, and before a relative path. */
struct loader_base {
	const char *origin; /* the file that names the folders */
	const char *folder; /* that the process works in */
	const char *lib;    /* stands for $LIB: "lib64", "lib/x86_64-linux-gnu"; NULL: not known */
};

/* Expands `len` bytes of text to an absolute path. False: it is too long, or has "$" with an
 * unknown name; `origin` "" makes $ORIGIN unknown. */
bool loader_expand(char path[PATH_MAX], const char *text, size_t len,
		   const struct loader_base *base);

/* Calls `each` with the folders of a list, absolute, until it returns true; so it does then. */
typedef bool (*loader_folder_fn)(const char *folder, void *arg);
bool loader_folders_each(const char *list, const struct loader_base *base, loader_folder_fn each,
			 void *arg);

/* Folders of most distributions: behind those of the cache, or for a loader without one, as musl's.
 */
extern const char loader_usual[];

/*
 * The kinds of this machine's processor, the best first, up to a NULL. glibc searches
 * glibc-hwcaps/KIND of each folder before the folder itself (ld.so(8)). Asking the processor takes
 * some microseconds in a virtual machine.
 */
const char *const *loader_variants(void);

#define LOADER_CACHE "/etc/ld.so.cache"
#define LOADER_CACHE_MAX (4 << 20) /* bytes */

/*
 * Calls `each` with the paths in an ld.so.cache (glibc's dl-cache.h, format 1.1, by itself or
 * behind an old one). What is not such a cache has none.
 */
void loader_cache_each(const char *cache, size_t bytes, void (*each)(const char *path, void *arg),
		       void *arg);

#endif
