/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps on disk what workers found in large files, so that the next capture need not parse them
 * again: unwind tables, and replies to requests for arming. An entry is a worker's reply, which its
 * reader trusts as little as a worker.
 *
 * The cache has entries of those files only that root alone can write, on a local file system that
 * this process sees. Root alone can write the cache, too: its folder, and each folder above. So
 * nobody else can choose what an entry says. An entry is valid for one device, inode, size and time
 * of change (ctime, which a program cannot set). A build-id says less: tools that move code in a
 * file keep it. To read it, the tracer would have to parse the file.
 *
 * Devices get the numbers of others later, and who makes the image of a file system chooses all of
 * these. So an entry is also valid for one first page of the file only, which mostly has the
 * build-id, and files on mounts with "nosuid" have none: users may mount images and sticks of their
 * own so, with root as the owner of the files.
 */
#ifndef WAFFLE_TARGET_WORKER_FILE_CACHE_H
#define WAFFLE_TARGET_WORKER_FILE_CACHE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "util/wire.h"

#define FILE_CACHE_FOLDER "/var/cache/waffle"
#define FILE_CACHE_FILE_MIN (1u << 20) /* smaller files are parsed in a millisecond */
/* Of all entries: beyond this, the oldest are removed. */
#define FILE_CACHE_BYTES_MAX (512u << 20)
#define FILE_CACHE_ENTRIES_MAX 4096

struct file_cache;

/* Opens the cache in a folder, which is created if only its last part is missing. NULL: there is
 * none, because this process is not root's, others can write the folder or one above, or `folder`
 * is no absolute path ("off"). */
struct file_cache *file_cache_open(const char *folder);
/* The cache in $WAFFLE_CACHE, or else in FILE_CACHE_FOLDER. */
struct file_cache *file_cache_open_default(void);
void file_cache_close(struct file_cache *cache); /* NULL is allowed */

/* A state of a file. */
struct file_cache_file {
	struct stat status;
	uint64_t head; /* a hash of its first page; 0: of a file on an overlay */
};

/* What an entry answers. */
enum file_cache_kind {
	FILE_CACHE_UNWIND,  /* the unwind table of the file */
	FILE_CACHE_REQUEST, /* a request about it */
};
struct file_cache_key {
	enum file_cache_kind kind;
	struct wire_out request; /* empty for UNWIND; the reply is valid for exactly these bytes */
};

/* Whether an open file may have entries in the cache. Sets *file. NULL is allowed for `cache`.
 */
bool file_cache_may_have(const struct file_cache *cache, int fd, struct file_cache_file *file);
/* Whether an open file is still in that state. */
bool file_cache_is_unchanged(int fd, const struct file_cache_file *file);
/* Reads an entry of a file. False: there is none, or it is not valid. The caller frees `reply` in
 * any case. */
bool file_cache_get(const struct file_cache *cache, const struct file_cache_file *file,
		    const struct file_cache_key *key, struct wire_out *reply);
/* Stores an entry, whole or not at all. `file` is from before the file was parsed. Without room on
 * disk nothing is stored. */
void file_cache_put(const struct file_cache *cache, const struct file_cache_file *file,
		    const struct file_cache_key *key, const struct wire_out *reply);

#endif
