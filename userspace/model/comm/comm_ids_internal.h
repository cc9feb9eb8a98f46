/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids of communicators. An id is a hash, so that it is the same in every capture of a job and the
 * outputs can name it. But two keys may have one hash, by chance or because somebody made the file
 * so. Here each key is kept and compared, and no two keys get one id.
 */
#ifndef WAFFLE_MODEL_COMM_COMM_IDS_INTERNAL_H
#define WAFFLE_MODEL_COMM_COMM_IDS_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "util/keymap.h"
#include "util/map.h"
#include "util/vec.h"

/* All zero: no ids. */
struct comm_ids {
	VEC(uint64_t) list;
	struct keymap at; /* key → index in list */
	struct map used;  /* ids → 0 */
};

/* The id of a key: `hash`, unless another key has it. Then it is the next free number. */
uint64_t comm_id_of(struct comm_ids *ids, const uint64_t *key, size_t bytes, uint64_t hash);
void comm_ids_free(struct comm_ids *ids);

#endif
