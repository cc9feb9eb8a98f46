/* SPDX-License-Identifier: Apache-2.0 */
/* Traced processes that a signal ended: a server whose workers crash, or that the kernel kills when
 * memory is short. */
#ifndef WAFFLE_ANALYZE_KILLED_H
#define WAFFLE_ANALYZE_KILLED_H

#include "model/model.h"
#include "util/vec.h"

/* Processes of one name and one parent that one signal ended. */
struct killed {
	uint32_t signo;
	uint32_t count;
	uint32_t thread;   /* main thread of the one that lived longest */
	uint32_t ppid;     /* 0: unknown */
	uint32_t parent;   /* main thread of the parent; MODEL_NONE: not in the capture */
	uint64_t lived_ns; /* how long `thread` lived; 0: nobody knows when one of them started */
};

typedef VEC(struct killed) killed_list;

/* Adds all groups to an empty list, the largest first. The caller frees it with vec_free(). */
void killed_find(killed_list *list, const struct model *model);

#endif
