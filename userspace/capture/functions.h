/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names the functions that calls have as values (WAFFLE_KEY_CODE). A value is an address in the
 * process, which its symbol tables name, or a handle, which is named when the process gets it
 * (roles NAME and HANDLE). Each is looked up once for what is mapped there, while the process
 * lives, and written into the capture's table of names. A thread of its own does it, since the
 * symbols of a large library take a second to read, and the drain can't wait so long.
 */
#ifndef WAFFLE_CAPTURE_FUNCTIONS_H
#define WAFFLE_CAPTURE_FUNCTIONS_H

#include <sys/types.h>

#include "probe/kernel.h"
#include "store/store.h"
#include "target/mmap_watch.h"

struct functions;

/* Without `kernel`, assumes that no process calls exec. */
int functions_open(struct functions **functions, const struct kernel *kernel,
		   struct store_writer *writer, struct error *err);
void functions_close(struct functions *functions);

/* Whether values of a site give or need names. Only records of such sites need functions_record().
 */
bool functions_concern(const struct site_info *site);

/*
 * Takes a hit or a return of a call on its way to the file. The values of a return are those of the
 * site's keys from number `first` on. Negative errno: of writing.
 */
int functions_record(struct functions *functions, const struct site_info *site, unsigned first,
		     const struct waffle_rec *rec, struct error *err);

/* Waits until all is looked up; false: not until that time of the monotonic clock. */
bool functions_wait(struct functions *functions, uint64_t until_ns);
/* Writes what was found meanwhile. */
int functions_write(struct functions *functions, struct error *err);

/* A process has such sites armed. Reads its mappings now, while it lives. */
void functions_process(struct functions *functions, pid_t pid);
/* The process runs a new program, or has ended: its addresses mean something else from now on. */
void functions_forget(struct functions *functions, pid_t pid, uint64_t ts, bool exited);
/* The kernel reported a mapping. Records from its time on must come later. */
void functions_told(struct functions *functions, const struct mmap_event *event);

#endif
