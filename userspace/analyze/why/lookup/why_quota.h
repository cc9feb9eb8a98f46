/* SPDX-License-Identifier: Apache-2.0 */
/* Who used up the CPU time of a cgroup. */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_QUOTA_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_QUOTA_H

#include "analyze/why/why_walk_types.h"

void why_quota_init(struct why_walk *walk);
void why_quota_free(struct why_walk *walk);
/* Finds out who used up the quota for which a thread was throttled from from_ts to to_ts. Changes
 * the culprit, the grade and the meaning of `throttled` if the records show them. */
void why_quota_users(struct why_walk *walk, const struct model_quota *quota, uint64_t from_ts,
		     uint64_t to_ts, struct why_throttled *throttled);

#endif
