/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names the processes that have locked files. The kernel records their numbers only. A process that
 * has locked a file may have ended since then, while a child has inherited the lock: its number is
 * then that of nobody, or of another process.
 */
#ifndef WAFFLE_CAPTURE_ENRICH_LOCK_HOLDERS_INTERNAL_H
#define WAFFLE_CAPTURE_ENRICH_LOCK_HOLDERS_INTERNAL_H

#include "bpf/record.h"

struct lock_holders;

/* NULL: out of memory. */
struct lock_holders *lock_holders_open(void);
void lock_holders_close(struct lock_holders *holders);

/* Fills in the name of the holder. If there is no such process, the holder is unknown. */
void lock_holders_name(struct lock_holders *holders, struct waffle_rec_lock_refusal *refusal);

#endif
