/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The variable WAFFLE_TRACE_OWNER of the environment. A process that records because of
 * WAFFLE_TRACE tells programs that it executes, and so do its children: its pid, how many programs
 * this process has executed before, which one it runs, and the name of the file as it was given.
 */
#ifndef WAFFLE_USDT_RECORD_OWNER_H
#define WAFFLE_USDT_RECORD_OWNER_H

#include <stddef.h>

#include "util/error.h"

enum owner {
	OWNER_NONE,  /* nobody records into the file with this name */
	OWNER_SELF,  /* this process did before it executed this program */
	OWNER_COPY,  /* this program does, by another copy of libwaffle that can't be seen here */
	OWNER_OTHER, /* the process that executed this one */
};

enum owner owner_of(const char *name);
/* If this process does or did: how many programs it had executed by then. */
unsigned owner_execs(void);
/* Tells that this process does. The variable has memory of libwaffle's own. */
void owner_set(const char *name, unsigned execs);
/* Puts the pid of a new child into it. It takes no lock and allocates nothing. */
void owner_fork_child(void);

/* Adds to the name of a file, in front of its extension, how many programs this process has
 * executed: "out-17.json" becomes "out-17-2.json". No change for 0. Returns -ENAMETOOLONG with a
 * message if there is no room. */
int owner_name(char *path, size_t size, unsigned execs, struct error *err);

#endif
