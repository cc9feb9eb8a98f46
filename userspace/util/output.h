/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that appears whole or not at all: written beside its final name (O_EXCL), renamed over it
 * by output_commit(). A failure leaves the old file as it was. Only the user who called sudo
 * (SUDO_UID, SUDO_GID), or else we, can read it: it may contain secrets of a traced program.
 *
 * waffle-bpf may be root in another user's folder. It removes only files that output_open() has
 * created, and follows no symbolic link at the name. It opens a device or pipe by the descriptor
 * that it checked, not by the name again. /dev/stdout and /dev/fd/N are descriptors of ours, not
 * names.
 */
#ifndef WAFFLE_UTIL_OUTPUT_H
#define WAFFLE_UTIL_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "util/error.h"

/* Of all files that waffle-bpf writes. */
#define OUTPUT_MODE 0600

struct output {
	FILE *file; /* NULL: not open */
	char *path;
	char *temporary; /* its name in the folder; NULL: published, or a device or a pipe */
	int folder;      /* -1: none */
};

/* "-" is standard output; an existing device or pipe is written to directly. */
int output_open(struct output *output, const char *path, struct error *err);
/* Gives the file its name before it is whole. What is written later goes into it. */
int output_publish(struct output *output, struct error *err);
/* Flushes, syncs nothing, renames. On an error the temporary file is removed. Frees in any case. */
int output_commit(struct output *output, struct error *err);
/* Removes the temporary file and frees; nothing to do if not open or committed. */
void output_abort(struct output *output);
/* Whether standard output is a pipe or socket whose reader has gone, as `| head` does. */
bool output_reader_is_gone(void);
/* The user who called sudo, if somebody did; *gid is (gid_t)-1 if SUDO_GID is not set. */
bool output_caller(unsigned *uid, unsigned *gid);
/* Gives an open file to the user who called sudo; silently nothing if there is none. */
void output_give_to_caller(int fd);

#endif
