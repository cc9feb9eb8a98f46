/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's folder of tracepoints, `events` in tracefs (Documentation/trace/events.rst).
 *
 * Machines need not have tracefs mounted. Where it is not, a mount that is attached to no folder
 * and that only this process has gives access; the machine stays as it is.
 */
#ifndef WAFFLE_CALL_TRACEFS_H
#define WAFFLE_CALL_TRACEFS_H

#include "util/error.h"

/*
 * Opens the folder. Returns a descriptor that the caller closes, or a negative errno with an error
 * that says what to do: a detached mount needs CAP_SYS_ADMIN.
 */
int tracefs_open_events(struct error *err);

#endif
