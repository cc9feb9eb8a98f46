/* SPDX-License-Identifier: Apache-2.0 */
/* A command that waits before its exec until it may run. */
#ifndef WAFFLE_CAPTURE_LAUNCH_INTERNAL_H
#define WAFFLE_CAPTURE_LAUNCH_INTERNAL_H

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "capture/account_internal.h"
#include "util/error.h"

struct launch {
	pid_t pid;
	int go;     /* closing it lets the command exec */
	int failed; /* delivers the errno of a failed exec */
};

/* Forks; the child waits. Just before its exec it becomes the account's user, unless `account` is
 * NULL, so that no other user can stop or kill it until then. Its signal settings and limit of open
 * files are those with which waffle-bpf started. The caller may have raised the limit meanwhile. */
int launch_prepare(struct launch *launch, char **command, const struct account *account,
		   const struct rlimit *files, struct error *err);

/*
 * Lets the command exec. Does not wait for the exec, which the kernel may still hold back until
 * kernel_exec_release(). A failed exec shows as an exit; launch_failure() then returns the errno
 * (0: the exec succeeded; negative: the process could not become its user).
 */
void launch_go(struct launch *launch);
int launch_failure(struct launch *launch);
/* Whether the exec is known to have succeeded. */
bool launch_executed(const struct launch *launch);

/* Kills a child that was not released by launch_go(). Otherwise does nothing. */
void launch_abort(struct launch *launch);

#endif
