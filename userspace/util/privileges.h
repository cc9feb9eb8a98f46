/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Privileges that are given up for good, so that a fault in the reading of a foreign file gives an
 * attacker less. The rest still is much: docs say that this is no sandbox.
 *
 * Both also see to it that no program that this process might start gets privileges by its exec
 * (no_new_privs, prctl(2)). Where the kernel or a container refuses, all stays as it was: nothing
 * depends on it.
 */
#ifndef WAFFLE_UTIL_PRIVILEGES_H
#define WAFFLE_UTIL_PRIVILEGES_H

/* Of a tracer whose command was forked: modules of the kernel, devices, the network's and the
 * clock's settings, … are of no use any more. */
void privileges_keep_tracing(void);
/* Of a command that reads a capture: other processes are none of its business. Files of others can
 * still be read, for names of functions, and an output can be given to who called sudo. */
void privileges_keep_files(void);

#endif
