/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user that a command runs as. waffle-bpf needs root, but the command does not: it runs as it
 * would have without the tracer.
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

/* Looks up a user by name, or by number if there is no such name. */
int account_by_name(struct account **account, const char *name, struct error *err);
/* The user who called sudo. NULL without an error: nobody called sudo, or we are not root. */
int account_of_caller(struct account **account, struct error *err);
void account_free(struct account *account);

/*
 * Makes this process the user's: groups, ids, and HOME, USER, LOGNAME, SHELL, XDG_RUNTIME_DIR. It
 * removes sudo's own variables, and keeps the folder, limits, terminal and all other variables. For
 * a child before its exec. Returns 0 or a negative errno.
 */
int account_become(const struct account *account);

#endif
