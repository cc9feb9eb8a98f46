/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user as whom a command runs. waffle-bpf needs root, but the command does not. So it runs as
 * it would without the tracer.
 */
#ifndef WAFFLE_CAPTURE_ACCOUNT_INTERNAL_H
#define WAFFLE_CAPTURE_ACCOUNT_INTERNAL_H

#include <stddef.h>
#include <sys/types.h>

#include "util/error.h"

struct account {
	uid_t uid;
	gid_t gid;
	gid_t *groups; /* all groups, including gid */
	size_t group_count;
	char *name, *home, *shell;
};

/* Looks up a user by name, or by number if no user has such a name. */
int account_by_name(struct account **account, const char *name, struct error *err);
/* The user who called sudo. NULL without an error: sudo was not used, or we are not root. */
int account_of_caller(struct account **account, struct error *err);
void account_free(struct account *account);

/*
 * Gives this process the user's groups, ids, and HOME, USER, LOGNAME, SHELL, XDG_RUNTIME_DIR.
 * Removes sudo's variables. Keeps the working directory, limits, terminal and all other variables.
 * Call it in a child before its exec. Returns 0 or a negative errno.
 */
int account_become(const struct account *account);

#endif
