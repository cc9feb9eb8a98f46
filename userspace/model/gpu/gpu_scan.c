// SPDX-License-Identifier: Apache-2.0
/* One pass over the calls of a capture in order of time. It builds channels, ops, syncs and
 * groups. */
#include <stdlib.h>
#include <string.h>

#include "model/build.h"
#include "model/gpu/gpu_internal.h"
#include "util/hash.h"
#include "util/memory.h"

#define INITS_MAX 4096 /* communicator creations that we store */
#define UNSEEN_MAX 64  /* graphs that began before the capture, whose ops we look for */

struct put {
	uint32_t node, channel;
};

/* A call in a group. Its op reaches the stream when the group ends. */
struct pending_launch {
	struct put put;
	uint32_t call; /* index in gpu.calls, or MODEL_NONE */
};

struct group {
	uint32_t depth;
	VEC(struct pending_launch) pending;
};

/* The last call of a thread, as a probe recorded it, that may come as an event of libwaffle-gpu. */
struct probed_call {
	uint64_t event;
	unsigned role; /* SITE_ROLE_NONE: none, or it has come */
};

struct gpu_scan {
	struct model_gpu *gpu;
	struct group *groups;       /* by thread */
	struct probed_call *probed; /* by thread */
	VEC(struct put) puts;
	unsigned unseen; /* graphs whose begin was not seen */
};

/* A span or an event. */
struct item {
	uint64_t ts;
	uint32_t node, span; /* span: MODEL_NONE for an event */
	uint32_t site, frame, thread, pid;
};

static uint64_t item_number(const struct gpu_scan *scan, const struct item *item, enum gpu_key key)
{
	return gpu_number(scan->gpu, item->site, item->frame, key, 0);
}

static uint32_t item_stream(struct gpu_scan *scan, const struct item *item)
{
	return gpu_channel_add(scan->gpu, CHANNEL_STREAM, item->pid,
			       gpu_stream_of(scan->gpu, item->site, item->frame), item->thread);
}

static void put_add(struct gpu_scan *scan, struct put put)
{
	vec_add(&scan->puts, put);
	scan->gpu->channels.data[put.channel].op_count++;
	scan->gpu->channels.data[put.channel].last = put.node;
}

/* ---- what each role does ---- */

static void add_work(struct gpu_scan *scan, const struct item *item)
{
	put_add(scan, (struct put){item->node, item_stream(scan, item)});
}

/* A synchronisation fails on a stream that is being captured. So a successful one proves that the
 * stream is not. */
static void waited_add(struct gpu_scan *scan, const struct item *item, uint32_t channel)
{
	struct value result;

	gpu_sync_add(scan->gpu, item->ts, item->span, channel);
	if (gpu_value(scan->gpu, item->site, item->frame, GPU_RESULT, &result) && !result.u64)
		gpu_graph_over(scan->gpu, channel);
}

/* A copy without a stream uses the default stream and returns when it is done. */
static void add_copy(struct gpu_scan *scan, const struct item *item)
{
	uint32_t channel = item_stream(scan, item);

	put_add(scan, (struct put){item->node, channel});
	if (item->span != MODEL_NONE &&
	    gpu_site(scan->gpu, item->site)->keys[GPU_STREAM] == GPU_KEY_NONE)
		waited_add(scan, item, channel);
}

static void add_sync_stream(struct gpu_scan *scan, const struct item *item)
{
	if (item->span != MODEL_NONE)
		waited_add(scan, item, item_stream(scan, item));
}

static void add_sync_device(struct gpu_scan *scan, const struct item *item)
{
	if (item->span != MODEL_NONE)
		gpu_sync_add(scan->gpu, item->ts, item->span,
			     gpu_channel_add(scan->gpu, CHANNEL_DEVICE, item->pid, 0, 0));
}

static uint32_t item_event(struct gpu_scan *scan, const struct item *item)
{
	return gpu_channel_add(scan->gpu, CHANNEL_EVENT, item->pid,
			       item_number(scan, item, GPU_EVENT), 0);
}

static void item_of_span(const struct model *model, uint32_t index, struct item *item)
{
	const struct model_span *span = &model->spans.data[index];

	*item = (struct item){span->start_ts,
			      index,
			      index,
			      span->site,
			      span->frame,
			      span->thread,
			      model->threads.data[span->thread].pid};
}

static void item_of_event(const struct model *model, uint32_t index, struct item *item)
{
	const struct model_event *event = &model->events.data[index];

	*item = (struct item){event->ts,
			      gpu_node(model, MODEL_NODE_EVENT, index),
			      MODEL_NONE,
			      event->site,
			      event->frame,
			      event->thread,
			      model->threads.data[event->thread].pid};
}

static void item_of_node(const struct model *model, uint32_t node, struct item *item)
{
	if (node < model->spans.len)
		item_of_span(model, node, item);
	else
		item_of_event(model, node - (uint32_t)model->spans.len, item);
}

/* The call waits for the ops that were put on the event's stream before the event was recorded. */
static void add_sync_event(struct gpu_scan *scan, const struct item *item)
{
	uint32_t channel = item_event(scan, item);
	struct item record;

	if (item->span == MODEL_NONE)
		return;
	gpu_sync_add(scan->gpu, item->ts, item->span, channel);
	if (scan->gpu->channels.data[channel].last == MODEL_NONE)
		return;
	item_of_node(scan->gpu->model, scan->gpu->channels.data[channel].last, &record);
	if (!gpu_of_context(scan->gpu, record.site))
		gpu_sync_add(scan->gpu, record.ts, item->span, item_stream(scan, &record));
}

static void add_record(struct gpu_scan *scan, const struct item *item)
{
	uint32_t event = item_event(scan, item);

	/* gpu_graph_take() has handled a record on one stream. Create the stream if it is new. */
	if (gpu_of_context(scan->gpu, item->site))
		scan->gpu->channels.data[event].graph = 0;
	else
		item_stream(scan, item);
	put_add(scan, (struct put){item->node, event});
}

/* Adds a part to a hash. The factor separates the parts: "ab" and "c" differ from "a" and "bc". */
static uint64_t hash_part(uint64_t hash, const void *bytes, size_t len)
{
	return hash_bytes(hash, bytes, len) * 31;
}

static uint64_t call_signature(const struct gpu_scan *scan, const struct item *item)
{
	static const enum gpu_key keys[] = {GPU_COUNT, GPU_DATATYPE, GPU_OP, GPU_ROOT};
	const char *name = model_site(scan->gpu->model, item->site)->name;
	bool collective = gpu_site(scan->gpu, item->site)->role == SITE_ROLE_COLLECTIVE;
	uint64_t hash = hash_part(HASH_BEGIN, name, collective ? strlen(name) : 0);
	struct value value;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (!gpu_value(scan->gpu, item->site, item->frame, keys[i], &value))
			continue;
		hash = value.type == WAFFLE_KEY_STR
			       ? hash_part(hash, value.text, value.text_len)
			       : hash_part(hash, &value.u64, sizeof(value.u64));
	}
	return hash;
}

static uint32_t item_rank(const struct gpu_scan *scan, const struct item *item, enum gpu_key key)
{
	uint64_t rank = item_number(scan, item, key);

	return gpu_site(scan->gpu, item->site)->keys[key] != GPU_KEY_NONE && rank < MODEL_NONE
		       ? (uint32_t)rank
		       : MODEL_NONE;
}

/* Sets the two ranks of a send or recv; false: they are unknown. */
static bool call_pair(const struct gpu_scan *scan, const struct item *item,
		      struct model_gpu_call *call)
{
	uint32_t peer = item_rank(scan, item, GPU_PEER);
	bool receives = call->role == SITE_ROLE_RECV;

	call->from = receives ? peer : call->rank;
	call->to = receives ? call->rank : peer;
	call->has_seq = false;
	return call->rank != MODEL_NONE && peer != MODEL_NONE;
}

/* Where a call has only the address of its communicator, the call that created the communicator
 * tells the rest. */
static void call_identify(const struct gpu_scan *scan, const struct item *item,
			  struct model_gpu_call *call)
{
	const struct gpu_comm *comm =
		gpu_comm_find(scan->gpu, item->pid, item_number(scan, item, GPU_COMM_ADDRESS));

	if (call->comm || !comm)
		return;
	call->comm = comm->comm;
	call->rank = comm->rank;
	call->nranks = comm->nranks;
	/* Without the hash, the tracer counts on where another communicator at this address ended.
	 */
	call->has_seq = false;
}

/* The index of the new call in gpu.calls; MODEL_NONE: its communicator or its ranks are unknown, or
 * the role does not tell what the call does. */
static uint32_t call_add(struct gpu_scan *scan, const struct item *item, uint32_t channel)
{
	struct model_gpu *gpu = scan->gpu;
	const struct gpu_site *site = gpu_site(gpu, item->site);
	struct model_gpu_call call = {
		.comm = item_number(scan, item, GPU_COMM),
		.seq = item_number(scan, item, GPU_SEQ),
		.arrival_ts = item->ts,
		.done_ts = UINT64_MAX,
		.count = gpu_number(gpu, item->site, item->frame, GPU_COUNT, UINT64_MAX),
		.rank = item_rank(scan, item, GPU_RANK),
		.nranks = (uint32_t)item_number(scan, item, GPU_NRANKS),
		.from = MODEL_NONE,
		.to = MODEL_NONE,
		.root = item_rank(scan, item, GPU_ROOT),
		.span = item->span,
		.done_span = MODEL_NONE,
		.group_end = MODEL_NONE,
		.thread = item->thread,
		.pid = item->pid,
		.channel = channel,
		.role = site->role,
		.has_seq = site->keys[GPU_SEQ] != GPU_KEY_NONE,
	};

	call_identify(scan, item, &call);
	if (site->role == SITE_ROLE_P2P || item->span == MODEL_NONE || !call.comm ||
	    gpu->calls.len >= MODEL_NONE ||
	    (site->role != SITE_ROLE_COLLECTIVE && !call_pair(scan, item, &call)))
		return MODEL_NONE;
	call.signature = call_signature(scan, item);
	vec_add(&gpu->calls, call);
	return (uint32_t)gpu->calls.len - 1;
}

static void add_communication(struct gpu_scan *scan, const struct item *item)
{
	struct group *group = &scan->groups[item->thread];
	struct pending_launch pending = {.put = {item->node, item_stream(scan, item)}};

	pending.call = call_add(scan, item, pending.put.channel);
	if (group->depth)
		vec_add(&group->pending, pending);
	else
		put_add(scan, pending.put);
}

static void add_group_start(struct gpu_scan *scan, const struct item *item)
{
	scan->groups[item->thread].depth++;
}

static void add_group_end(struct gpu_scan *scan, const struct item *item)
{
	struct group *group = &scan->groups[item->thread];
	uint32_t last = item->span;

	if (!group->depth || --group->depth)
		return;
	if (last != MODEL_NONE && model_gpu_failed(scan->gpu, last))
		group->pending.len = 0;
	for (size_t i = 0; i < group->pending.len; i++) {
		const struct pending_launch *pending = &group->pending.data[i];

		if (item->span != MODEL_NONE && pending->put.node < scan->gpu->model->spans.len) {
			map_put(&scan->gpu->grouped, pending->put.node, item->span);
			map_put(&scan->gpu->group_next, last, pending->put.node);
			last = pending->put.node;
		}
		if (pending->call != MODEL_NONE) {
			scan->gpu->calls.data[pending->call].arrival_ts = item->ts;
			scan->gpu->calls.data[pending->call].group_end = item->span;
		}
		put_add(scan, pending->put);
	}
	group->pending.len = 0;
}

static void add_init(struct gpu_scan *scan, const struct item *item)
{
	struct model_gpu_init init = {
		.comm = item_number(scan, item, GPU_COMM),
		.ts = item->ts,
		.pid = item->pid,
		.thread = item->thread,
		.rank = item_rank(scan, item, GPU_RANK),
	};
	uint64_t address = item_number(scan, item, GPU_COMM_ADDRESS);
	struct gpu_comm described = {
		.comm = item_number(scan, item, GPU_COMM_ID),
		.rank = init.rank,
		.nranks = (uint32_t)item_number(scan, item, GPU_NRANKS),
	};

	if (address) {
		gpu_comm_add(scan->gpu, item->pid, address, described);
		init.comm = described.comm;
	}
	if (scan->gpu->inits.len < INITS_MAX)
		vec_add(&scan->gpu->inits, init);
}

static void add_stream(struct gpu_scan *scan, const struct item *item)
{
	uint32_t channel = item_stream(scan, item);
	bool flagged = item_number(scan, item, GPU_FLAGS) & STREAM_FLAG_NON_BLOCKING;
	uint8_t blocking = flagged ? STREAM_NON_BLOCKING : STREAM_BLOCKING;
	struct channel *at = &scan->gpu->channels.data[channel];

	gpu_graph_over(scan->gpu, channel);
	/* Streams may reuse a handle one after the other. */
	at->blocking = at->blocking == STREAM_UNKNOWN || at->blocking == blocking ? blocking
										  : STREAM_MIXED;
}

/* Stream `own` waits for an event of another stream. If one of the two is the legacy default
 * stream, the other is taken for non-blocking: a blocking one would not need the event. */
static void order_streams(struct gpu_scan *scan, uint32_t own, uint32_t record_node)
{
	struct channel *channels, *at;
	struct item record;
	uint32_t other;

	item_of_node(scan->gpu->model, record_node, &record);
	if (gpu_of_context(scan->gpu, record.site))
		return;
	other = item_stream(scan, &record);
	channels = scan->gpu->channels.data;
	at = &channels[channels[own].handle == STREAM_NULL ? other : own];
	if (own != other && at->blocking == STREAM_UNKNOWN &&
	    (channels[own].handle == STREAM_NULL || channels[other].handle == STREAM_NULL))
		at->blocking = STREAM_ORDERED;
}

/* The call makes its stream wait for an event of another stream. */
static void add_stream_wait(struct gpu_scan *scan, const struct item *item)
{
	uint32_t own, event, record;

	if (gpu_of_context(scan->gpu, item->site))
		return;
	own = item_stream(scan, item);
	event = item_event(scan, item);
	record = scan->gpu->channels.data[event].last;
	if (record != MODEL_NONE)
		order_streams(scan, own, record);
	put_add(scan, (struct put){item->node, own});
}

static void add_capture_begin(struct gpu_scan *scan, const struct item *item)
{
	gpu_graph_begin(scan->gpu, item_stream(scan, item));
}

/* Returns whether a call goes into a graph instead of to its stream. */
static bool graph_take(struct gpu_scan *scan, const struct item *item)
{
	unsigned role = gpu_site(scan->gpu, item->site)->role;
	bool has_event = role == SITE_ROLE_EVENT_RECORD || role == SITE_ROLE_STREAM_WAIT;
	uint32_t stream, event;

	if (!gpu_graph_can_take(scan->gpu, item->site))
		return false;
	stream = item_stream(scan, item);
	event = has_event ? item_event(scan, item) : stream;
	return gpu_graph_take(scan->gpu, item->node, role, stream, event);
}

/* A graph ends that began before the capture. The ops that we have put on its stream, and on
 * streams that joined it, go into the graph. */
static void unseen_begin(struct gpu_scan *scan, uint32_t channel)
{
	struct model_gpu *gpu = scan->gpu;
	size_t kept = 0;

	gpu_graph_begin(gpu, channel);
	for (size_t i = 0; i < gpu->channels.len; i++)
		gpu->channels.data[i].last = MODEL_NONE;
	for (size_t i = 0; i < scan->puts.len; i++) {
		struct put put = scan->puts.data[i];
		struct item item;

		item_of_node(gpu->model, put.node, &item);
		if (graph_take(scan, &item)) {
			gpu->channels.data[put.channel].op_count--;
			continue;
		}
		gpu->channels.data[put.channel].last = put.node;
		scan->puts.data[kept++] = put;
	}
	scan->puts.len = kept;
}

static void add_capture_end(struct gpu_scan *scan, const struct item *item)
{
	uint32_t channel = item_stream(scan, item);
	struct value result;

	if (!gpu_value(scan->gpu, item->site, item->frame, GPU_RESULT, &result))
		result.u64 = 0;
	else if (!result.u64 && scan->unseen < UNSEEN_MAX &&
		 gpu_graph_begun_before(scan->gpu, channel)) {
		scan->unseen++;
		unseen_begin(scan, channel);
	}
	gpu_graph_end(scan->gpu, channel, result.u64);
}

typedef void (*role_fn)(struct gpu_scan *scan, const struct item *item);

static const role_fn role_add[SITE_ROLE_COUNT] = {
	[SITE_ROLE_LAUNCH] = add_work,
	[SITE_ROLE_COPY] = add_copy,
	[SITE_ROLE_SET] = add_work,
	[SITE_ROLE_SYNC_STREAM] = add_sync_stream,
	[SITE_ROLE_SYNC_EVENT] = add_sync_event,
	[SITE_ROLE_SYNC_DEVICE] = add_sync_device,
	[SITE_ROLE_EVENT_RECORD] = add_record,
	[SITE_ROLE_STREAM_WAIT] = add_stream_wait,
	[SITE_ROLE_COLLECTIVE] = add_communication,
	[SITE_ROLE_P2P] = add_communication,
	[SITE_ROLE_SEND] = add_communication,
	[SITE_ROLE_RECV] = add_communication,
	[SITE_ROLE_GROUP_START] = add_group_start,
	[SITE_ROLE_GROUP_END] = add_group_end,
	[SITE_ROLE_COMM_INIT] = add_init,
	[SITE_ROLE_STREAM_CREATE] = add_stream,
	[SITE_ROLE_CAPTURE_BEGIN] = add_capture_begin,
	[SITE_ROLE_CAPTURE_END] = add_capture_end,
};

/*
 * Whether an event of libwaffle-gpu is for a call that a probe of its thread has recorded just
 * before. Other calls than these two have the same effect if they come twice.
 */
static bool is_repeated(struct gpu_scan *scan, const struct item *item, unsigned role)
{
	struct probed_call *probed = &scan->probed[item->thread];
	struct probed_call call = {item_number(scan, item, GPU_EVENT), role};

	if (role != SITE_ROLE_EVENT_RECORD && role != SITE_ROLE_STREAM_WAIT)
		return false;
	if (!gpu_site(scan->gpu, item->site)->library) {
		*probed = call;
		return false;
	}
	if (probed->role != call.role || probed->event != call.event)
		return false;
	probed->role = SITE_ROLE_NONE;
	map_put(&scan->gpu->repeated, item->node, 1);
	return true;
}

static void scan_item(struct gpu_scan *scan, const struct item *item)
{
	unsigned role = gpu_site(scan->gpu, item->site)->role;

	if (role >= SITE_ROLE_COUNT || !role_add[role] || is_repeated(scan, item, role))
		return;
	/* No values are known of a call that began before the capture. */
	if (item->span != MODEL_NONE &&
	    scan->gpu->model->spans.data[item->span].flags & MODEL_SPAN_BEGUN_BEFORE)
		return;
	/* A failed call has no effect, except that the end of a group or of a stream's capture ends
	 * it in any case. */
	if (item->span != MODEL_NONE && role != SITE_ROLE_GROUP_END &&
	    role != SITE_ROLE_CAPTURE_END && model_gpu_failed(scan->gpu, item->span))
		return;
	if (!graph_take(scan, item))
		role_add[role](scan, item);
}

static void scan_all(struct gpu_scan *scan)
{
	const struct model *model = scan->gpu->model;
	size_t span = 0, event = 0;
	struct item item;

	while (span < model->spans.len || event < model->events.len) {
		if (event == model->events.len ||
		    (span < model->spans.len &&
		     model->spans.data[span].start_ts <= model->events.data[event].ts))
			item_of_span(model, (uint32_t)span++, &item);
		else
			item_of_event(model, (uint32_t)event++, &item);
		scan_item(scan, &item);
	}
}

/* ---- by channel ---- */

static void place_ops(struct gpu_scan *scan)
{
	struct model_gpu *gpu = scan->gpu;
	uint32_t at = 0;

	gpu->ops = memory_zeroed(scan->puts.len, sizeof(*gpu->ops));
	for (size_t i = 0; i < gpu->channels.len; i++) {
		gpu->channels.data[i].ops = at;
		at += gpu->channels.data[i].op_count;
		gpu->channels.data[i].op_count = 0;
	}
	for (size_t i = 0; i < scan->puts.len; i++) {
		struct channel *channel = &gpu->channels.data[scan->puts.data[i].channel];

		gpu->ops[channel->ops + channel->op_count++] = scan->puts.data[i].node;
	}
}

/* Removes calls that turned out to belong to a graph, and finds when the others were done. */
static void calls_finish(struct model_gpu *gpu)
{
	size_t kept = 0;

	for (size_t i = 0; i < gpu->calls.len; i++) {
		struct model_gpu_call call = gpu->calls.data[i];
		struct gpu_done done;

		if (gpu_in_graph(gpu, call.span))
			continue;
		done = gpu_done(gpu, call.channel, call.arrival_ts);
		call.done_ts = done.ts;
		call.done_span = done.span;
		gpu->calls.data[kept++] = call;
	}
	gpu->calls.len = kept;
}

void gpu_scan(struct model_gpu *gpu)
{
	size_t threads = gpu->model->threads.len;
	struct gpu_scan scan = {
		.gpu = gpu,
		.groups = memory_zeroed(threads, sizeof(*scan.groups)),
		.probed = memory_zeroed(threads, sizeof(*scan.probed)),
	};

	scan_all(&scan);
	place_ops(&scan);
	gpu_syncs_finish(gpu);
	calls_finish(gpu);
	for (size_t i = 0; i < threads; i++)
		vec_free(&scan.groups[i].pending);
	free(scan.groups);
	free(scan.probed);
	vec_free(&scan.puts);
}
