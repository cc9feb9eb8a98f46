/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's directory of tracepoints, `events` in tracefs (Documentation/trace/events.rst).
 *
 * tracefs need not be mounted. If it is not, this module makes a detached mount, which only this
 * process can see.
 */
#ifndef WAFFLE_PROBE_FIND_TRACEFS_H
#define WAFFLE_PROBE_FIND_TRACEFS_H

#include "util/error.h"

/*
 * Opens the directory. Returns a descriptor that the caller closes, or a negative errno with a
 * message that says what to do: a detached mount needs CAP_SYS_ADMIN.
 */
int tracefs_open_events(struct error *err);

#endif
