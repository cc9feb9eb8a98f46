/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drops privileges for good, to limit what an attacker gains from a bug in a parser. The remaining
 * privileges are still powerful, so this is no sandbox (SECURITY.md).
 *
 * Both functions also set no_new_privs (prctl(2)), so that no exec of this process grants
 * privileges. If the kernel or a container refuses, they change nothing and waffle works as before.
 */
#ifndef WAFFLE_UTIL_PRIVILEGES_H
#define WAFFLE_UTIL_PRIVILEGES_H

/* For a tracer that has forked its command: drops the rights over kernel modules, devices, network,
 * clock, … */
void privileges_keep_tracing(void);
/* For a command that reads a capture: drops all rights over processes. It can still read the files
 * of other users to symbolize, and give its output to the user who called sudo. */
void privileges_keep_files(void);

#endif
