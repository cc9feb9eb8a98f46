/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names the functions that are values of calls (WAFFLE_KEY_CODE). A value is an address in the
 * process, which symbol tables name, or a handle. A handle is named when the process obtains it
 * (roles NAME and HANDLE). Each value is looked up once per mapping, while the process lives, and
 * written to the capture's table of names. A separate thread does this: reading the symbols of a
 * large library takes a second, and the drain cannot wait that long.
 */
#ifndef WAFFLE_CAPTURE_ENRICH_FUNCTIONS_H
#define WAFFLE_CAPTURE_ENRICH_FUNCTIONS_H

#include <sys/types.h>

#include "capture/enrich/told_internal.h"
#include "kernel/kernel.h"
#include "store/store.h"

struct functions;

/* Without `kernel`, assumes that no process calls exec. `told`: the queue of mapping events. */
int functions_open(struct functions **functions, const struct kernel *kernel,
		   struct store_writer *writer, const struct told *told, struct error *err);
void functions_close(struct functions *functions);

/* Whether values of a site give or need names. Only records of such sites need
 * functions_record(). */
bool functions_concern(const struct site_info *site);

/*
 * Processes a hit or a return of a call on its way to the file. The values of a return belong to
 * the site's keys from index `first` on. Negative errno: writing failed.
 */
int functions_record(struct functions *functions, const struct site_info *site, unsigned first,
		     const struct waffle_rec *rec, struct error *err);

/* Waits until all lookups are done, at most until a time of CLOCK_MONOTONIC. False: not done. */
bool functions_wait(struct functions *functions, uint64_t until_ns);
/* Writes the names found so far. */
int functions_write(struct functions *functions, struct error *err);

/* Describes which names are missing. NULL: nothing known. */
const char *functions_warning(const struct functions *functions);

/* Such sites are armed in this process. Reads its mappings now, while it lives. */
void functions_process(struct functions *functions, pid_t pid);
/* The process runs a new program since `ts`. From then on its addresses have another meaning. */
void functions_exec(struct functions *functions, pid_t pid, uint64_t ts);
/* The process has ended. */
void functions_forget(struct functions *functions, pid_t pid);
/* Adds a mapping event. Pass it before the records from its time on. */
void functions_told(struct functions *functions, const struct mmap_event *event);

#endif
