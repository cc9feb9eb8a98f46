/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names the processes that have locked files. The kernel records their numbers only. A process that
 * has locked a file may have ended since then, while a child has inherited the lock: its number is
 * then that of nobody, or of another process. So a process is named only if it has the file open.
 */
#ifndef WAFFLE_CAPTURE_ENRICH_LOCK_HOLDERS_INTERNAL_H
#define WAFFLE_CAPTURE_ENRICH_LOCK_HOLDERS_INTERNAL_H

#include <sys/types.h>

#include "bpf/record.h"

struct lock_holders;

/* NULL: out of memory. */
struct lock_holders *lock_holders_open(void);
void lock_holders_close(struct lock_holders *holders);

/* Fills in the name of the holder, if it has the file open; otherwise sets WAFFLE_LOCK_FORMER. If
 * that can't be seen, the holder is unknown. `refused`: the process that tried. */
void lock_holders_name(struct lock_holders *holders, struct waffle_rec_lock_refusal *refusal,
		       pid_t refused);

#endif
