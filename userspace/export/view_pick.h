/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WAFFLE_EXPORT_VIEW_PICK_H
#define WAFFLE_EXPORT_VIEW_PICK_H

#include "export/view_text.h"

struct view_ranked {
	uint64_t span_ns, running_ns;
	uint32_t thread;
	bool shown, first;
};

struct view_ranking {
	struct view_ranked *threads; /* those shown first; to be freed */
	uint64_t from_ts, to_ts;
	uint32_t first; /* the thread to draw first, or MODEL_NONE */
};

/* What the options ask for, as a window. */
int view_find_window(const struct model *model, const struct view_options *options,
		     struct view_ranking *ranking, struct error *err);

/* The threads that did something in the window, those with most time in spans first, and how many
 * of them to show. False: out of memory. */
bool view_rank_threads(struct view_ranking *ranking, const struct model *model,
		       const struct view_options *options, size_t *count);

#endif
