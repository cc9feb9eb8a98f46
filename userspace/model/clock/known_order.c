// SPDX-License-Identifier: Apache-2.0
/* What is known of times of different hosts. */
#include "model/model.h"

bool model_hosts_comparable(const struct model *model, uint32_t host, uint32_t other)
{
	const struct store_host *a, *b;

	if (host == other)
		return true;
	if (host >= model->host_count || other >= model->host_count)
		return false;
	a = model->hosts[host];
	b = model->hosts[other];
	return (a->clock.kind == STORE_CLOCK_REFERENCE || a->clock.kind == STORE_CLOCK_ALIGNED) &&
	       (b->clock.kind == STORE_CLOCK_REFERENCE || b->clock.kind == STORE_CLOCK_ALIGNED);
}

uint64_t model_order_error(const struct model *model, uint32_t thread, uint64_t ts, uint32_t other,
			   uint64_t other_ts)
{
	uint32_t host = model_host_of(model, thread), other_host = model_host_of(model, other);
	uint64_t error, other_error;

	if (host == other_host)
		return 0;
	if (!model_hosts_comparable(model, host, other_host))
		return UINT64_MAX;
	error = store_clock_error_at(&model->hosts[host]->clock, ts);
	other_error = store_clock_error_at(&model->hosts[other_host]->clock, other_ts);
	return error < UINT64_MAX - other_error ? error + other_error : UINT64_MAX;
}

bool model_order_known(const struct model *model, uint32_t thread, uint64_t ts, uint32_t other,
		       uint64_t other_ts)
{
	uint64_t error = model_order_error(model, thread, ts, other, other_ts);

	return !error || (ts < other_ts ? other_ts - ts : ts - other_ts) > error;
}
