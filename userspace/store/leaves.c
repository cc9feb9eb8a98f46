// SPDX-License-Identifier: Apache-2.0
#include "store/leaves_internal.h"

#include <stdlib.h>
#include <string.h>

#include "util/hash.h"

/* Bits of the filter for each record. Leaves are a part of the records, and few others are not
 * leaves, so less than 10 % of the leaves are found wrongly. */
#define BITS_A_RECORD 8
#define BITS_MIN (1ull << 16)
#define BITS_MAX (1ull << 31)

struct leaves {
	uint64_t *bits;
	uint64_t mask; /* number of bits, less one */
	uint64_t seed;
};

/* ---- the filter ---- */

/* Consecutive ids, as a thread makes them, share words. */
static uint64_t bit_of(const struct leaves *leaves, uint64_t id)
{
	uint64_t block = hash_number(id / 64 ^ leaves->seed);

	block = (block ^ block >> 32) * (leaves->seed | 1);
	return ((block >> 32 ^ block << 16) * 64 + id % 64) & leaves->mask;
}

static bool is_excluded(const struct leaves *leaves, uint64_t id)
{
	uint64_t bit = bit_of(leaves, id);

	return __atomic_load_n(&leaves->bits[bit / 64], __ATOMIC_RELAXED) >> bit % 64 & 1;
}

void leaves_exclude(struct leaves *leaves, uint64_t id)
{
	uint64_t bit = bit_of(leaves, id);

	if (id && !is_excluded(leaves, id))
		__atomic_fetch_or(&leaves->bits[bit / 64], 1ull << bit % 64, __ATOMIC_RELAXED);
}

/* ---- records ---- */

/* Whether spans of a site may be leaves. */
bool leaves_may_have(const struct site_info *site)
{
	if (site->kind != WAFFLE_SITE_SPAN || site->role != SITE_ROLE_NONE)
		return false;
	for (unsigned i = 0; i < site->key_count && i < WAFFLE_KEYS_MAX; i++)
		if (site->keys[i].type == WAFFLE_KEY_CAUSE_SPAN ||
		    site->keys[i].type == WAFFLE_KEY_CAUSE_EVENT)
			return false;
	return true;
}

bool leaves_hit_is_valid(const struct waffle_rec_hit *hit, struct waffle_frame *frame)
{
	*frame = (struct waffle_frame){0};
	if (hit->frame_bytes >= sizeof(*frame))
		memcpy(frame, hit + 1, sizeof(*frame));
	return hit->rec.tid && frame->id;
}

bool leaves_has(const struct leaves *leaves, const struct waffle_rec *rec)
{
	struct waffle_frame frame;
	uint64_t id = 0;

	switch (rec->kind) {
	case WAFFLE_REC_HIT:
		if (leaves_hit_is_valid((const struct waffle_rec_hit *)rec, &frame))
			id = frame.id;
		break;
	case WAFFLE_REC_SPAN_END:
		id = ((const struct waffle_rec_span_end *)rec)->span_id;
		break;
	case WAFFLE_REC_RETURN:
		id = ((const struct waffle_rec_return *)rec)->span_id;
		break;
	default:
		break;
	}
	return id && !is_excluded(leaves, id);
}

/* ---- all of them ---- */

struct leaves *leaves_new(uint64_t records)
{
	struct leaves *leaves = calloc(1, sizeof(*leaves));
	uint64_t bits = BITS_MIN;

	while (bits < BITS_MAX && bits / BITS_A_RECORD < records)
		bits *= 2;
	if (!leaves)
		return NULL;
	leaves->bits = calloc(bits / 64, sizeof(*leaves->bits));
	leaves->mask = bits - 1;
	leaves->seed = hash_secret().factor;
	if (leaves->bits)
		return leaves;
	free(leaves);
	return NULL;
}

void leaves_free(struct leaves *leaves)
{
	if (!leaves)
		return;
	free(leaves->bits);
	free(leaves);
}
