// SPDX-License-Identifier: Apache-2.0
/*
 * What synchronisations wait for, and what earlier ones have covered. The legacy default stream and
 * the blocking streams of its context wait for each other. Streams created with
 * cudaStreamNonBlocking do not take part. For a stream created before the capture, the kind is
 * unknown.
 */
#include <stdlib.h>

#include "model/gpu/gpu_internal.h"
#include "util/memory.h"
#include "util/search.h"

/* Limits of the work for one synchronisation. */
#define STREAMS_MAX 4096
/* Of all synchronisations together: streams for each span or event, and some more. */
#define STREAMS_EACH 16
#define STREAMS_MORE (1u << 20)
#define SYNCS_LOOKED_AT 32
#define WAITS_MAX 8

uint32_t gpu_sync_after(const struct model_gpu *gpu, const struct channel *channel, uint64_t ts)
{
	return lower_bound(channel->sync_count, i, gpu->syncs.data[channel->syncs + i].ts < ts);
}

/* The earliest end among the first synchronisations that cover an op put on the channel at ts. */
static struct gpu_done covered_by(const struct model_gpu *gpu, uint32_t channel, uint64_t ts)
{
	const struct channel *at;
	struct gpu_done done = {UINT64_MAX, MODEL_NONE};
	uint32_t first;

	if (channel == MODEL_NONE)
		return done;
	at = &gpu->channels.data[channel];
	first = gpu_sync_after(gpu, at, ts);
	for (uint32_t i = first; i < at->sync_count && i - first < SYNCS_LOOKED_AT; i++) {
		uint32_t index = gpu->syncs.data[at->syncs + i].span;
		const struct model_span *span = &gpu->model->spans.data[index];

		if (!(span->flags & (MODEL_SPAN_UNFINISHED | MODEL_SPAN_LEFT)) &&
		    span->end_ts < done.ts)
			done = (struct gpu_done){span->end_ts, index};
	}
	return done;
}

struct gpu_done gpu_done(const struct model_gpu *gpu, uint32_t channel, uint64_t ts)
{
	struct gpu_done done = covered_by(gpu, channel, ts), other;
	const struct channel *at;

	if (channel == MODEL_NONE || gpu->channels.data[channel].kind != CHANNEL_STREAM)
		return done;
	at = &gpu->channels.data[channel];
	other = covered_by(gpu, gpu_channel(gpu, CHANNEL_DEVICE, at->pid, 0, 0), ts);
	done = other.ts < done.ts ? other : done;
	if (at->blocking != STREAM_BLOCKING)
		return done;
	other = covered_by(gpu, gpu_stream(gpu, at->pid, STREAM_NULL, 0), ts);
	return other.ts < done.ts ? other : done;
}

/* Whether a synchronisation that ended by by_ts covered what was put on the channel at ts. */
static bool gpu_waited(const struct model_gpu *gpu, uint32_t channel, uint64_t ts, uint64_t by_ts)
{
	return gpu_done(gpu, channel, ts).ts <= by_ts;
}

bool model_gpu_waited(const struct model_gpu *gpu, const struct model_gpu_op *op,
		      uint64_t before_ts)
{
	return gpu && gpu_waited(gpu, op->channel, op->ts, before_ts);
}

/* Collects ops that were put on a stream before `until_ts`, for a call that came at `by_ts`. */
struct awaited {
	const struct model_gpu *gpu;
	struct model_gpu_awaited *found;
	uint64_t until_ts, by_ts;
};

static bool legacy_waited(const struct awaited *awaited, const struct model_gpu_op *op)
{
	uint32_t legacy = gpu_stream(awaited->gpu, op->pid, STREAM_NULL, 0);

	return covered_by(awaited->gpu, legacy, op->ts).ts <= awaited->by_ts;
}

/*
 * Adds the ops of a channel that may not be done. `legacy`: the legacy default stream waits for the
 * channel. A finished synchronisation of the legacy stream then also excludes an op: either the
 * legacy stream waited for it then, or it never waits for this channel.
 */
static void awaited_of(struct awaited *awaited, uint32_t channel, bool legacy)
{
	const struct model_gpu *gpu = awaited->gpu;
	struct model_gpu_op op;

	if (!gpu_op_last(gpu, channel, awaited->until_ts, &op))
		return;
	for (unsigned i = 0; i < WAITS_MAX; i++) {
		if (gpu_waited(gpu, channel, op.ts, awaited->by_ts) ||
		    (legacy && legacy_waited(awaited, &op)))
			return;
		op.maybe = legacy && gpu->channels.data[channel].blocking != STREAM_BLOCKING;
		vec_add(&awaited->found->ops, op);
		if (op.role != SITE_ROLE_STREAM_WAIT || !model_gpu_previous(gpu, &op, &op))
			return;
	}
}

/* `legacy`: only streams that the legacy default stream waits for; otherwise all. */
static void awaited_of_streams(struct awaited *awaited, uint32_t pid, bool legacy)
{
	const struct model_gpu *gpu = awaited->gpu;
	uint64_t nodes = gpu->model->spans.len + gpu->model->events.len;
	uint32_t channel = map_get(&gpu->streams, pid);

	for (unsigned i = 0; channel != MODEL_NONE; i++) {
		const struct channel *at = &gpu->channels.data[channel];
		bool waits = at->blocking != STREAM_NON_BLOCKING && at->blocking != STREAM_ORDERED;

		if (i == STREAMS_MAX ||
		    awaited->found->examined++ >= nodes * STREAMS_EACH + STREAMS_MORE) {
			awaited->found->more = true;
			return;
		}
		if (!legacy || (waits && at->handle != STREAM_NULL))
			awaited_of(awaited, channel, legacy);
		channel = at->sibling;
	}
}

static void awaited_of_stream(struct awaited *awaited, uint32_t pid, uint64_t stream,
			      uint32_t thread)
{
	awaited_of(awaited, gpu_stream(awaited->gpu, pid, stream, thread), false);
	if (stream == STREAM_NULL || stream == STREAM_LEGACY)
		awaited_of_streams(awaited, pid, true);
}

static void awaited_of_event(struct awaited *awaited, const struct model_span *span, uint32_t pid)
{
	const struct model_gpu *gpu = awaited->gpu;
	uint64_t event = gpu_number(gpu, span->site, span->frame, GPU_EVENT, 0);
	struct model_gpu_op record;

	if (!model_gpu_recorded(gpu, pid, event, span->start_ts, &record) ||
	    record.channel == MODEL_NONE)
		return;
	awaited->until_ts = record.ts;
	awaited_of_stream(awaited, pid, record.stream, record.thread);
}

int model_gpu_op_compare(const void *left, const void *right)
{
	const struct model_gpu_op *a = left, *b = right;

	if (a->ts != b->ts)
		return a->ts > b->ts ? -1 : 1;
	return a->index > b->index ? -1 : a->index < b->index;
}

static void awaited_sort(struct model_gpu_awaited *found)
{
	if (found->ops.len)
		qsort(found->ops.data, found->ops.len, sizeof(*found->ops.data),
		      model_gpu_op_compare);
}

void model_gpu_awaited(const struct model_gpu *gpu, uint32_t span, struct model_gpu_awaited *found)
{
	struct awaited awaited = {.gpu = gpu, .found = found};
	const struct model_span *at;
	const struct gpu_site *site;
	uint32_t pid;

	found->ops.len = 0;
	found->more = false;
	if (!gpu || span >= gpu->model->spans.len)
		return;
	at = &gpu->model->spans.data[span];
	site = gpu_site(gpu, at->site);
	pid = gpu->model->threads.data[at->thread].pid;
	if (at->flags & MODEL_SPAN_BEGUN_BEFORE || model_gpu_failed(gpu, span))
		return;
	awaited.until_ts = awaited.by_ts = at->start_ts;
	if (site->role == SITE_ROLE_SYNC_STREAM ||
	    (site->role == SITE_ROLE_COPY && site->keys[GPU_STREAM] == GPU_KEY_NONE))
		awaited_of_stream(&awaited, pid, gpu_stream_of(gpu, at->site, at->frame),
				  at->thread);
	else if (site->role == SITE_ROLE_SYNC_EVENT)
		awaited_of_event(&awaited, at, pid);
	else if (site->role == SITE_ROLE_SYNC_DEVICE || site->role == SITE_ROLE_MAY_SYNC)
		awaited_of_streams(&awaited, pid, false);
	awaited_sort(found);
}

void model_gpu_before(const struct model_gpu *gpu, const struct model_gpu_op *op,
		      struct model_gpu_awaited *found)
{
	struct awaited awaited = {gpu, found, op->ts, op->ts};

	found->ops.len = 0;
	found->more = false;
	if (!gpu || op->channel == MODEL_NONE)
		return;
	awaited_of_stream(&awaited, op->pid, op->stream, op->thread);
	awaited_sort(found);
}

void model_gpu_around(const struct model_gpu *gpu, const struct model_gpu_op *op, uint64_t by_ts,
		      struct model_gpu_awaited *found)
{
	struct awaited awaited = {gpu, found, op->ts, by_ts};

	found->ops.len = 0;
	found->more = false;
	if (!gpu || op->channel == MODEL_NONE)
		return;
	if (gpu->channels.data[op->channel].handle == STREAM_NULL)
		awaited_of_streams(&awaited, op->pid, true);
	else if (gpu->channels.data[op->channel].blocking == STREAM_BLOCKING)
		awaited_of(&awaited, gpu_stream(gpu, op->pid, STREAM_NULL, 0), false);
	awaited_sort(found);
}

bool model_gpu_is_known(const struct model_gpu *gpu, uint32_t span)
{
	const struct model_span *at;
	struct model_gpu_op op;
	uint32_t pid;

	if (!gpu || span >= gpu->model->spans.len)
		return false;
	at = &gpu->model->spans.data[span];
	pid = gpu->model->threads.data[at->thread].pid;
	switch (gpu_site(gpu, at->site)->role) {
	case SITE_ROLE_SYNC_STREAM:
		return model_gpu_last(gpu, pid, gpu_stream_of(gpu, at->site, at->frame), at->thread,
				      at->start_ts, &op);
	case SITE_ROLE_SYNC_EVENT:
		return model_gpu_recorded(gpu, pid,
					  gpu_number(gpu, at->site, at->frame, GPU_EVENT, 0),
					  at->start_ts, &op) &&
		       op.channel != MODEL_NONE;
	default:
		return false;
	}
}
