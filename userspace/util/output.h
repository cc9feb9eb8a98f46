/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that appears whole or not at all. It is written under a temporary name in the same folder
 * (O_EXCL), and output_commit() renames it. A failure leaves the old file as it was. Only the user
 * who called sudo (SUDO_UID, SUDO_GID), or else the user of this process, can read it: it may
 * contain secrets of a traced program.
 *
 * waffle-bpf may run as root in another user's folder. It removes only files that output_open()
 * created, and follows no symbolic link. It opens a device or pipe through the descriptor that it
 * checked, not by name again. /dev/stdout and /dev/fd/N mean descriptors of this process, not
 * names.
 */
#ifndef WAFFLE_UTIL_OUTPUT_H
#define WAFFLE_UTIL_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "util/error.h"

/* Mode of all files that waffle-bpf writes. */
#define OUTPUT_MODE 0600

struct output {
	FILE *file; /* NULL: not open */
	char *path;
	char *temporary; /* its name in the folder; NULL: published, or a device or pipe */
	int folder;      /* -1: none */
	bool only_new;   /* nothing is replaced */
};

/* Opens an output. "-" is standard output; an existing device or pipe is written to directly. */
int output_open(struct output *output, const char *path, struct error *err);
/* The same for a name that somebody else chose in part: a file, device or pipe of this name is an
 * error (-EEXIST), when it is opened and when it gets its name. */
int output_open_new(struct output *output, const char *path, struct error *err);
/* Gives the file its final name before it is complete. Later writes go to the same file. */
int output_publish(struct output *output, struct error *err);
/* Flushes and renames, without fsync(). On an error the temporary file is removed. Frees in any
 * case. */
int output_commit(struct output *output, struct error *err);
/* Removes the temporary file and frees. Does nothing if the output is not open or was committed. */
void output_abort(struct output *output);
/* output_abort() as a memory_guard (util/memory.h). */
void output_abandon(void *output, struct error *err);
/* Writes all bytes to a descriptor that blocks, also if signals interrupt it. Returns 0 or -errno;
 * a part may be written then. */
int output_write(int fd, const void *data, size_t size);
/* Whether standard output is a pipe or socket whose reader has exited, as with `| head`. */
bool output_reader_is_gone(void);
/* Gets the user who called sudo; false: nobody did. *gid is (gid_t)-1 if SUDO_GID is not set. */
bool output_caller(unsigned *uid, unsigned *gid);
/* Makes the user who called sudo the owner of an open file. Does nothing without sudo. */
void output_give_to_caller(int fd);

#endif
