/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user whom a command runs as. waffle-bpf needs root, and what it starts does not: a training
 * run that was started by `sudo waffle-bpf run` is as it would have been without the tracer.
 */
#ifndef WAFFLE_CAPTURE_ACCOUNT_H
#define WAFFLE_CAPTURE_ACCOUNT_H

#include <stddef.h>
#include <sys/types.h>

#include "util/error.h"

struct account {
	uid_t uid;
	gid_t gid;
	gid_t *groups; /* all of them, gid among them */
	size_t group_count;
	char *name, *home, *shell;
};

/* A user by name, or by number if no name is that. */
int account_by_name(struct account **account, const char *name, struct error *err);
/* Who called sudo. NULL, without an error: nobody did, or we are not root. */
int account_of_caller(struct account **account, struct error *err);
void account_free(struct account *account);

/*
 * Makes this process that user's: groups, ids, and HOME, USER, LOGNAME, SHELL, XDG_RUNTIME_DIR.
 * The folder, the limits, the terminal and all other variables stay, but those by which sudo tells
 * of itself. For a child before its exec. Returns 0 or a negative errno.
 */
int account_become(const struct account *account);

#endif
