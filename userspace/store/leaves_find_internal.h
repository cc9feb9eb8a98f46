/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the leaves of a job (store/leaves_internal.h) by reading all of its files. */
#ifndef WAFFLE_STORE_LEAVES_FIND_INTERNAL_H
#define WAFFLE_STORE_LEAVES_FIND_INTERNAL_H

#include "store/file_reader_internal.h"
#include "store/leaves_internal.h"

/*
 * Reads the files with several threads, and sets `has_leaves` of each. `leaves_if` as in struct
 * store_leave_out. *leaves is NULL if there are none to leave out, or no memory to find them.
 * Afterwards the files have to seek. Returns 0 or a negative errno with a message.
 */
int leaves_find(struct leaves **leaves, struct file_reader *const *files, uint32_t count,
		bool (*leaves_if)(const struct site_info *site), struct error *err);

#endif
