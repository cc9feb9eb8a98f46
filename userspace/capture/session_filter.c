// SPDX-License-Identifier: Apache-2.0
/* The filter of records that come through rings, in a capture. */
#include "capture/session_internal.h"

int session_filter_open(struct session *session)
{
	const struct session_options *options = session->options;
	struct record_filter_options filter = {
		.filter = options->filter,
		.keep_children = options->kernel.config.keep_children,
		.arming = session->arming,
		.rate_windows = kernel_rate_windows(session->kernel),
		.deliver = stages_deliver,
		.arg = &session->stages,
	};

	session->filter_lost_ts = clock_monotonic_ns();
	return options->filter ? record_filter_open(&session->stages.filter, &filter, session->err)
			       : 0;
}

void session_counts(struct session *session)
{
	struct store_counts *spans = &session->result->counts[WAFFLE_SOURCE_SPANS];
	struct record_filter_counts counts;

	drain_counts(session->drain, session->result->counts);
	if (!session->stages.filter)
		return;
	/* For the drain all that the filter takes is delivered. What it rejects is not produced. */
	counts = record_filter_counts(session->stages.filter);
	spans->delivered = spans->delivered - counts.taken + counts.delivered;
	spans->lost += counts.lost;
	spans->produced = spans->produced - counts.taken + counts.delivered + counts.lost;
}

int session_filter_losses(struct session *session)
{
	uint64_t lost =
		session->stages.filter ? record_filter_counts(session->stages.filter).lost : 0;
	struct waffle_rec_loss loss = {
		.rec = {.ts = clock_monotonic_ns(), .kind = WAFFLE_REC_LOSS},
		.source = WAFFLE_SOURCE_SPANS,
		.from_ts = session->filter_lost_ts,
		.count = lost - session->filter_lost,
	};

	session->filter_lost_ts = loss.rec.ts;
	session->filter_lost = lost;
	return loss.count ? stages_pass(&session->stages, &loss.rec) : 0;
}
