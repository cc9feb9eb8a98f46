/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WAFFLE_RENDER_TEXT_VIEW_PICK_INTERNAL_H
#define WAFFLE_RENDER_TEXT_VIEW_PICK_INTERNAL_H

#include "model/model.h"
#include "render/text/view_options.h"
#include "util/error.h"

struct view_ranked {
	uint64_t span_ns, running_ns;
	uint32_t thread;
	bool shown, first;
};

struct view_ranking {
	struct view_ranked *threads; /* the threads to show come first; to be freed by the caller */
	uint64_t from_ts, to_ts;
	uint32_t first; /* the thread to draw first, or MODEL_NONE */
};

/* Finds the window that the options select. */
int view_find_window(const struct model *model, const struct view_options *options,
		     struct view_ranking *ranking, struct error *err);

/* Ranks the threads that are active in the window by their time in spans. *count is the number of
 * threads to show. */
void view_rank_threads(struct view_ranking *ranking, const struct model *model,
		       const struct view_options *options, size_t *count);

#endif
