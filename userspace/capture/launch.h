/* SPDX-License-Identifier: Apache-2.0 */
/* A command that waits before its exec until it may run. */
#ifndef WAFFLE_CAPTURE_LAUNCH_H
#define WAFFLE_CAPTURE_LAUNCH_H

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "capture/account.h"
#include "util/error.h"

struct launch {
	pid_t pid;
	int go;     /* closing it lets the command exec */
	int failed; /* delivers the errno of an exec that failed */
};

/* Forks; the child waits. It becomes the account's user, unless that is NULL, just before its exec:
 * until then nobody else may stop or end it. Signals are as they were when waffle-bpf started, and
 * so is the limit of open files, which the caller may have raised meanwhile. */
int launch_prepare(struct launch *launch, char **command, const struct account *account,
		   const struct rlimit *files, struct error *err);

/*
 * Lets it exec. Does not wait for the exec, which may be held by kernel_exec_release()'s
 * counterpart; a failed exec shows as an exit, and launch_failure() then tells the errno (0: the
 * exec worked; negative: it could not become its user).
 */
void launch_go(struct launch *launch);
int launch_failure(struct launch *launch);
/* Whether the exec is known to have worked. */
bool launch_executed(const struct launch *launch);

/* Kills a child that has not been let go. Nothing to do otherwise. */
void launch_abort(struct launch *launch);

#endif
