/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names the functions that are values of calls (WAFFLE_KEY_CODE). A value is an address in the
 * process, which symbol tables name, or a handle. A handle is named when the process obtains it
 * (roles NAME and HANDLE). Each value is looked up once per mapping, while the process lives, and
 * written to the capture's table of names. A separate thread does this: reading the symbols of a
 * large library takes a second, and the drain cannot wait that long.
 */
#ifndef WAFFLE_CAPTURE_ENRICH_CODE_NAMES_H
#define WAFFLE_CAPTURE_ENRICH_CODE_NAMES_H

#include <sys/types.h>

#include "capture/address_space/address_spaces.h"
#include "kernel/kernel.h"
#include "store/store.h"

struct code_names;

/* Without `kernel`, assumes that no process calls exec. */
int code_names_open(struct code_names **names, const struct kernel *kernel,
		    struct address_spaces *spaces, struct store_writer *writer, struct error *err);
void code_names_close(struct code_names *names);

/* Whether values of a site give or need names. Only records of such sites need
 * code_names_record(). */
bool code_names_concern(const struct site_info *site);

/*
 * Processes a hit or a return of a call on its way to the file. The values of a return belong to
 * the site's keys from index `first` on. Negative errno: writing failed.
 */
int code_names_record(struct code_names *names, const struct site_info *site, unsigned first,
		      const struct waffle_rec *rec, struct error *err);

/* Waits until all lookups are done, at most until a time of CLOCK_MONOTONIC. False: not done. */
bool code_names_wait(struct code_names *names, uint64_t until_ns);
/* Writes the names found so far. */
int code_names_write(struct code_names *names, struct error *err);

/* Describes which names are missing. NULL: nothing known. */
const char *code_names_warning(const struct code_names *names);

/* Sites that code_names_concern() are armed in this process. Opens its mapped files now, since
 * the process may end soon. */
void code_names_process(struct code_names *names, pid_t pid);
/* The process runs a new program, or has ended. */
void code_names_forget(struct code_names *names, pid_t pid);

#endif
