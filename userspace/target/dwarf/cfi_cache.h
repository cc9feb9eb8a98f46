/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the unwind tables of large files on disk, so that the next capture need not parse them
 * again. An entry is a worker's reply (target/dwarf/cfi_remote.h), which the reader trusts as
 * little as a worker.
 *
 * The cache holds tables of those files only that root alone can write, on a local file system that
 * this process sees. Root alone can write the cache, too: its folder, and each folder above. So
 * nobody else can choose what a table says. An entry is valid for one device, inode, size and time
 * of change (ctime, which a program cannot set). A build-id says less: tools that move code in a
 * file keep it. To read it, the tracer would have to parse the file.
 *
 * Devices get the numbers of others later, and who makes the image of a file system chooses all of
 * these. So an entry is also valid for one first page of the file only, which mostly has the
 * build-id, and files on mounts with "nosuid" have none: users may mount images and sticks of their
 * own so, with root as the owner of the files.
 */
#ifndef WAFFLE_TARGET_DWARF_CFI_CACHE_H
#define WAFFLE_TARGET_DWARF_CFI_CACHE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "util/wire.h"

#define CFI_CACHE_FOLDER "/var/cache/waffle"
#define CFI_CACHE_FILE_MIN (1u << 20)    /* tables of smaller files are made in a millisecond */
#define CFI_CACHE_BYTES_MAX (512u << 20) /* of all entries: beyond it, the oldest are removed */

struct cfi_cache;

/* Opens the cache in a folder, which is created if only its last part is missing. NULL: there is
 * none, because this process is not root's, others can write the folder or one above, or `folder`
 * is no absolute path ("off"). */
struct cfi_cache *cfi_cache_open(const char *folder);
void cfi_cache_close(struct cfi_cache *cache); /* NULL is allowed */

/* A state of a file. */
struct cfi_cache_file {
	struct stat status;
	uint64_t head; /* a hash of its first page; 0: of a file on an overlay */
};

/* Whether the table of an open file may be in the cache. Sets *file. NULL is allowed for `cache`.
 */
bool cfi_cache_may_have(const struct cfi_cache *cache, int fd, struct cfi_cache_file *file);
/* Reads the entry of a file. False: there is none, or it is not valid. The caller frees `reply` in
 * any case. */
bool cfi_cache_get(const struct cfi_cache *cache, const struct cfi_cache_file *file,
		   struct wire_out *reply);
/* Stores an entry, whole or not at all. `file` is from before the table was made. Without room on
 * disk nothing is stored. */
void cfi_cache_put(const struct cfi_cache *cache, const struct cfi_cache_file *file,
		   const struct wire_out *reply);

#endif
