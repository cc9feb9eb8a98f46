// SPDX-License-Identifier: Apache-2.0
#include "export/model_node.h"

#include "render/json/values.h"

static void thread_set(struct export_node *node, const struct model *model, uint32_t thread)
{
	if (thread >= model->threads.len)
		return;
	node->pid = model->threads.data[thread].pid;
	node->tid = model->threads.data[thread].tid;
}

static uint64_t late_cause(const struct model *model, uint8_t kind, uint32_t index)
{
	const struct model_link *late = values_late_cause(model, kind, index);

	return late ? late->to_id : 0;
}

struct export_node model_span_node(const struct model *model, uint32_t index)
{
	const struct model_span *span = &model->spans.data[index];
	const struct model_context *context = model_context_of(model, span);
	struct export_node node = {
		.site = model_site(model, span->site),
		.values = model_values(model, span->site, span->frame),
		.id = span->id,
		.parent_id = context->parent_id,
		.trace_hi = context->trace_hi,
		.trace_lo = context->trace_lo,
		.ts = span->start_ts,
		.caused_by = late_cause(model, MODEL_NODE_SPAN, index),
		.begun_before = span->flags & MODEL_SPAN_BEGUN_BEFORE,
		.unfinished = span->flags & MODEL_SPAN_UNFINISHED,
		.left = span->flags & MODEL_SPAN_LEFT,
		.loss = span->flags & MODEL_SPAN_LOSS,
		.has_sched = span->flags & MODEL_SPAN_HAS_SCHED,
		.running_ns = span->running_ns,
		.runnable_ns = span->runnable_ns,
	};

	thread_set(&node, model, span->thread);
	if (node.has_sched)
		node.blocked_ns =
			span->end_ts - span->start_ts - span->running_ns - span->runnable_ns;
	if (span->flags & MODEL_SPAN_MOVED && span->end_thread < model->threads.len)
		node.end_tid = model->threads.data[span->end_thread].tid;
	return node;
}

struct export_node model_event_node(const struct model *model, uint32_t index)
{
	const struct model_event *event = &model->events.data[index];
	struct export_node node = {
		.site = model_site(model, event->site),
		.values = model_values(model, event->site, event->frame),
		.id = event->id,
		.parent_id = event->parent_id,
		.trace_hi = event->trace_hi,
		.trace_lo = event->trace_lo,
		.ts = event->ts,
		.caused_by = late_cause(model, MODEL_NODE_EVENT, index),
	};

	node.severity = site_severity(node.site->kind);
	thread_set(&node, model, event->thread);
	return node;
}
