/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drops privileges for good, so that a bug in a parser gives an attacker less. The remaining ones
 * are still powerful: this is no sandbox (SECURITY.md).
 *
 * Both functions also set no_new_privs (prctl(2)), so that no exec of this process grants
 * privileges. If the kernel or a container refuses, nothing changes: nothing depends on it.
 */
#ifndef WAFFLE_UTIL_PRIVILEGES_H
#define WAFFLE_UTIL_PRIVILEGES_H

/* For a tracer that has forked its command: drops kernel modules, devices, network, clock, … */
void privileges_keep_tracing(void);
/* For a command that reads a capture: drops all rights over processes. It can still read files of
 * others, for names of functions, and give its output to the user who called sudo. */
void privileges_keep_files(void);

#endif
