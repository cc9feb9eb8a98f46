/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tells the dynamic loader where libraries are: the folders that an ELF file names, and the
 * cache that ldconfig(8) keeps. Neither is trusted.
 */
#ifndef WAFFLE_TARGET_LOADER_H
#define WAFFLE_TARGET_LOADER_H

#include <stddef.h>

/* DT_RUNPATH, or DT_RPATH, of the ELF file open at `fd`, as it stands there ("$ORIGIN/../lib:/x");
 * to be freed. NULL: none. */
char *loader_runpath(int fd);

/*
 * Calls `each` with the paths in an ld.so.cache (glibc's dl-cache.h, format 1.1, by itself or
 * behind an old one). What is not such a cache has none.
 */
void loader_cache_each(const char *cache, size_t bytes, void (*each)(const char *path, void *arg),
		       void *arg);

#endif
