/* SPDX-License-Identifier: Apache-2.0 */
/* Traced processes that cannot do their work, whatever they wait for: they are stopped, or may open
 * no more files. */
#ifndef WAFFLE_ANALYZE_HAMPERED_H
#define WAFFLE_ANALYZE_HAMPERED_H

#include "model/model.h"
#include "util/vec.h"

struct hampered {
	uint32_t thread;      /* the main thread of the process */
	uint64_t descriptors; /* as many as it may have are open when the capture ends; 0: it is
				 stopped since before the capture began */
};

typedef VEC(struct hampered) hampered_list;

/* Adds all to an empty list, in the order of the processes. The caller frees it with vec_free(). */
void hampered_find(hampered_list *list, const struct model *model);

#endif
