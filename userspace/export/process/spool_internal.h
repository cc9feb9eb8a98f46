/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder for parcels that could not be delivered, one file each. They are delivered later,
 * perhaps by another process that uses the same folder: the one that has the folder's lock. When
 * the limit of bytes is reached, the oldest files are removed.
 *
 *	TIME-PID-NUMBER-KIND-RECORDS.parcel      all but the last two in hexadecimal
 */
#ifndef WAFFLE_EXPORT_PROCESS_SPOOL_INTERNAL_H
#define WAFFLE_EXPORT_PROCESS_SPOOL_INTERNAL_H

#include <stdbool.h>

#include "export/process/parcel_internal.h"
#include "util/error.h"

/* Longer files are not read. */
#define SPOOL_PARCEL_MAX (64u << 20)

struct spool;

/* Opens a folder, which is created with mode 0700 if it is not there. */
int spool_open(struct spool **spool, const char *path, uint64_t limit_bytes, struct error *err);
void spool_close(struct spool *spool);
/* Writes a parcel. Returns 0, or a negative errno: it was not written. *dropped is increased by the
 * records of older parcels that were removed for it. */
int spool_put(struct spool *spool, const struct parcel *parcel, uint64_t *dropped);
/* The oldest parcel, for free(). NULL: there is none, or another process delivers them. */
struct parcel *spool_first(struct spool *spool);
/* Removes the parcel that spool_first() returned last. */
void spool_remove(struct spool *spool);

#endif
