/* SPDX-License-Identifier: Apache-2.0 */
/* Which spans can be explained, and which of them count in sums. */
#ifndef WAFFLE_ANALYZE_WHY_WHY_WHOLE_INTERNAL_H
#define WAFFLE_ANALYZE_WHY_WHY_WHOLE_INTERNAL_H

#include "model/model.h"

/* Whether a span is on a thread, whose time can be explained. */
static inline bool why_can_explain(const struct model *model, const struct model_span *span)
{
	return span->thread < model->threads.len && span->start_ts <= span->end_ts &&
	       !model_is_track(model, span->thread);
}

/* Whether it also begins and ends in the capture. */
static inline bool why_is_whole(const struct model *model, const struct model_span *span)
{
	return why_can_explain(model, span) && !(span->flags & MODEL_SPAN_CUT);
}

/* Whether a span, which is one of model->spans, is whole and selected. why_each() explains these.
 */
static inline bool why_is_counted(const struct model *model, const struct model_span *span)
{
	return why_is_whole(model, span) &&
	       model_is_selected(model, (size_t)(span - model->spans.data));
}

#endif
