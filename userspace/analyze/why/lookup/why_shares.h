/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of several things has the most of a time, such as which thread held a lock. The times are
 * exact. A zero-initialised list is empty; vec_free() frees it.
 */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_SHARES_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_SHARES_H

#include <stdint.h>

#include "util/vec.h"

struct why_share {
	uint32_t of;   /* a thread, process or stack */
	uint32_t wait; /* index in model.waits of one that it is about, or 0 */
	uint64_t ns;
};

typedef VEC(struct why_share) why_shares;

void why_shares_add(why_shares *shares, const struct why_share *more);
void why_shares_add_all(why_shares *shares, const why_shares *more);
/* The thing with the most time; `ns` 0: there is none. */
struct why_share why_shares_most(why_shares *shares);

#endif
