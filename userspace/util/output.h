/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that appears whole or not at all: written beside its final name (O_EXCL), renamed over it
 * by output_commit(). A failure leaves the old file as it was. Only the user who called sudo
 * (SUDO_UID, SUDO_GID), or else we, can read it: it may hold what a traced program keeps to itself.
 *
 * waffle-bpf may be root in a folder of somebody else. Nothing is removed that output_open() has
 * not created, no symbolic link at the name is followed, and a device or pipe is opened by what was
 * looked at, not by its name again. /dev/stdout and /dev/fd/N are descriptors of ours, not names.
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
/* Who called sudo, if somebody did; *gid is (gid_t)-1 if sudo did not say. */
bool output_caller(unsigned *uid, unsigned *gid);
/* Gives an open file to the user who called sudo; silently nothing if there is none. */
void output_give_to_caller(int fd);

#endif
