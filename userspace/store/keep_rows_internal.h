/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks and objects of a writer without a file, by their numbers. A recorder runs for weeks,
 * so a row is dropped when no record refers to it any more that is kept. Its number is then given
 * to a new row. In a file the rows that are free are empty ones.
 */
#ifndef WAFFLE_STORE_KEEP_ROWS_INTERNAL_H
#define WAFFLE_STORE_KEEP_ROWS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/dictionary_internal.h"
#include "store/store.h"
#include "util/map.h"
#include "util/strtab.h"
#include "util/vec.h"

struct kept_row {
	uint64_t used; /* number of the last segment with a record that refers to it; 0: free */
	void *copy;    /* of a stack: its bytes in the file. Of an object: itself and its texts */
	uint32_t bytes;
	uint32_t cost; /* memory in a reader */
};

/* Fewer rows are not dropped: they cost little, and may be of use without a record that refers to
 * them, as the peers of sockets. */
#define KEEP_ROWS_MIN (1u << 16)
#define KEEP_ROWS_MANY (1u << 19) /* are dropped also if there were as many at the last time */

struct keep_rows {
	VEC(struct kept_row) list; /* by number, from 1 */
	VEC(uint32_t) free;        /* numbers */
	size_t cost;               /* of all rows, also of free ones */
	size_t drop_at;            /* number of rows in use */
	uint64_t dropped_first;    /* `first` of the last keep_rows_drop() */
};

void keep_rows_free(struct keep_rows *rows);
/* The number that the next row gets. */
uint32_t keep_rows_next(const struct keep_rows *rows);
/* Adds a row, which is used in the segment `used`. *more: by how much the rows need more memory in
 * a reader. False: out of memory. */
bool keep_rows_add_stack(struct keep_rows *rows, const struct store_stack *stack, uint64_t used,
			 size_t *more);
bool keep_rows_add_object(struct keep_rows *rows, const struct store_object *object, uint64_t used,
			  size_t *more);
/* A record of the segment `used` refers to a number, which may be 0. */
void keep_rows_use(struct keep_rows *rows, uint32_t number, uint64_t used);
/* Whether to drop rows now. `full`: the memory in a reader is almost used up. */
bool keep_rows_are_many(const struct keep_rows *rows, uint64_t first, bool full);
/* Drops the rows that were not used since the segment `first`, and that may_drop() lets go. Returns
 * by how much they need less memory in a reader. */
size_t keep_rows_drop(struct keep_rows *rows, enum store_numbered what, uint64_t first,
		      bool (*may_drop)(uint32_t number, void *arg), void *arg);
/* Adds all named frames of the kept stacks (addresses with STORE_NAMED) to the keys of `frames`.
 * False: out of memory. */
bool keep_rows_named(const struct keep_rows *rows, struct map *frames);
/* Appends the row `number` as it is in a file. False: out of memory. */
bool keep_rows_put(const struct keep_rows *rows, enum store_numbered what, uint32_t number,
		   byte_vec *to, struct strtab *strings);

#endif
