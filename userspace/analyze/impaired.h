/* SPDX-License-Identifier: Apache-2.0 */
/* Traced processes that cannot do their work, whatever they wait for: they are stopped, or may open
 * no more files, or start no more processes and threads. */
#ifndef WAFFLE_ANALYZE_IMPAIRED_H
#define WAFFLE_ANALYZE_IMPAIRED_H

#include "model/model.h"
#include "util/vec.h"

struct impaired {
	uint32_t thread; /* the main thread of the process */
	bool stopped;    /* since before the capture began */
	/* So many are open when the capture ends, and it may have no more; 0: it may, or that is
	 * not known. */
	uint64_t descriptors;
	/* Its cgroup has so many processes and threads when the capture ends, and may have no more;
	 * 0: it may, or that is not known. */
	uint64_t pids;
	uint64_t pids_cgroup; /* the inode of that cgroup, which may be one above */
};

typedef VEC(struct impaired) impaired_list;

/* Adds all to an empty list, in the order of the processes. The caller frees it with vec_free(). */
void impaired_find(impaired_list *list, const struct model *model);

/* The path of that cgroup; NULL: unknown. */
const char *impaired_cgroup(const struct model *model, const struct impaired *impaired);

#endif
