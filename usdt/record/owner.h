/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment variable WAFFLE_TRACE_OWNER. A process that records because of WAFFLE_TRACE sets
 * it, and so do its children, for the programs that they execute. It has the pid of the process,
 * the number of programs that the process has executed before, a number of the program that runs
 * now, and the name of the file as it was given.
 */
#ifndef WAFFLE_USDT_RECORD_OWNER_H
#define WAFFLE_USDT_RECORD_OWNER_H

#include <stddef.h>

#include "util/error.h"

enum owner {
	OWNER_NONE,  /* nobody records into the file with this name */
	OWNER_SELF,  /* this process did, before it executed this program */
	OWNER_COPY,  /* this program does, by another copy of libwaffle in the process */
	OWNER_OTHER, /* another process does, an ancestor of this one */
};

enum owner owner_of(const char *name);
/* With OWNER_SELF and OWNER_COPY: how many programs this process had executed before the one that
 * set the variable. */
unsigned owner_execs(void);
/* Sets the variable: this process records. The variable's memory is libwaffle's own. */
void owner_set(const char *name, unsigned execs);
/* Puts the pid of a new child into it. It takes no lock and allocates nothing. */
void owner_fork_child(void);

/* Adds to the name of a file, in front of its extension, how many programs this process has
 * executed: "out-17.json" becomes "out-17-2.json". No change for 0. Returns -ENAMETOOLONG with a
 * message if there is no room. */
int owner_name(char *path, size_t size, unsigned execs, struct error *err);

#endif
