// SPDX-License-Identifier: Apache-2.0
/*
 * One JSON object a line, for jq and scripts. First come spans, events and counters, then what the
 * scheduler did, then what explains waits. Losses ({"kind": "loss"}) and one {"kind": "summary"}
 * are last. docs/ndjson.md has all keys.
 */
#include <inttypes.h>
#include <string.h>

#include "export/formats.h"
#include "export/ndjson_waits_internal.h"
#include "render/json/span_stack.h"
#include "render/json/hosts_json.h"
#include "render/json/summary_json.h"
#include "render/json/values.h"
#include "render/place.h"

struct ndjson {
	struct json *json;
	const struct model *model;
	struct stack_names *stacks; /* of spans and events; NULL: the capture has none */
};

static void write_thread(struct ndjson *n, uint32_t thread)
{
	if (thread >= n->model->threads.len)
		return;
	json_field_u64(n->json, "pid", place_pid(n->model, thread));
	if (!model_is_track(n->model, thread)) {
		json_field_u64(n->json, "tid", place_tid(n->model, thread));
		json_field_string(n->json, "comm", model_thread_name(n->model, thread));
	}
	place_json(n->json, n->model, thread);
}

static void write_ids(struct ndjson *n, uint64_t id, uint64_t parent, uint64_t hi, uint64_t lo)
{
	char trace[40];

	if (id)
		json_field_hex64(n->json, "id", id);
	if (parent)
		json_field_hex64(n->json, "parent", parent);
	if (hi | lo) {
		snprintf(trace, sizeof(trace), "%016" PRIx64 "%016" PRIx64, hi, lo);
		json_field_string(n->json, "trace", trace);
	}
}

static void write_site(struct ndjson *n, uint32_t site)
{
	const struct site_info *info = model_site(n->model, site);

	json_field_string(n->json, "name", info->name);
	if (*info->category)
		json_field_string(n->json, "category", info->category);
}

static void write_args(struct ndjson *n, uint32_t site, uint32_t frame)
{
	json_key(n->json, "args");
	json_object_begin(n->json);
	values_write(n->json, n->model, site, frame);
	json_object_end(n->json);
}

/* Writes the causes, including those that are not in the capture. */
static void write_links(struct ndjson *n, uint8_t kind, uint32_t index)
{
	size_t first, count;

	if (!n->model->links.len)
		return;
	count = model_links_from(n->model, kind, index, &first);
	if (!count)
		return;
	json_key(n->json, "links");
	json_array_begin(n->json);
	for (size_t i = 0; i < count; i++) {
		const struct model_link *link = &n->model->links.data[first + i];

		json_object_begin(n->json);
		json_field_string(n->json, "kind",
				  link->to_kind == MODEL_NODE_SPAN ? "span" : "event");
		json_field_hex64(n->json, "id", link->to_id);
		json_object_end(n->json);
	}
	json_array_end(n->json);
}

static void write_flags(struct ndjson *n, uint32_t flags)
{
	static const struct {
		uint32_t flag;
		const char *name;
	} rows[] = {
		{MODEL_SPAN_BEGUN_BEFORE, "begun_before"},
		{MODEL_SPAN_UNFINISHED, "unfinished"},
		{MODEL_SPAN_LEFT, "left"},
		{MODEL_SPAN_MOVED, "moved"},
		{MODEL_SPAN_LOSS, "loss"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (flags & rows[i].flag)
			json_field_bool(n->json, rows[i].name, true);
	}
}

static void write_span(struct ndjson *n, const struct model_span *span)
{
	const struct model_context *context = model_context_of(n->model, span);

	json_object_begin(n->json);
	json_field_string(n->json, "kind", "span");
	write_ids(n, span->id, context->parent_id, context->trace_hi, context->trace_lo);
	write_site(n, span->site);
	write_thread(n, span->thread);
	json_field_u64(n->json, "start_ns", span->start_ts);
	json_field_u64(n->json, "end_ns", span->end_ts);
	if (span->flags & MODEL_SPAN_HAS_SCHED) {
		json_field_u64(n->json, "running_ns", span->running_ns);
		json_field_u64(n->json, "runnable_ns", span->runnable_ns);
		json_field_u64(n->json, "blocked_ns",
			       span->end_ts - span->start_ts - span->running_ns -
				       span->runnable_ns);
	}
	write_flags(n, span->flags);
	if (span->flags & MODEL_SPAN_MOVED && span->end_thread < n->model->threads.len)
		json_field_u64(n->json, "end_tid", place_tid(n->model, span->end_thread));
	write_args(n, span->site, span->frame);
	write_links(n, MODEL_NODE_SPAN, (uint32_t)(span - n->model->spans.data));
	span_stack_json(n->json, n->model, n->stacks, "", span->id);
	json_object_end(n->json);
	json_line(n->json);
}

static void write_event(struct ndjson *n, const struct model_event *event)
{
	bool counter = model_site(n->model, event->site)->kind == WAFFLE_SITE_COUNTER;
	const char *severity = site_severity(model_site(n->model, event->site)->kind);

	json_object_begin(n->json);
	json_field_string(n->json, "kind", counter ? "counter" : "event");
	write_ids(n, event->id, event->parent_id, event->trace_hi, event->trace_lo);
	write_site(n, event->site);
	if (severity)
		json_field_string(n->json, "severity", severity);
	write_thread(n, event->thread);
	json_field_u64(n->json, "start_ns", event->ts);
	write_args(n, event->site, event->frame);
	write_links(n, MODEL_NODE_EVENT, (uint32_t)(event - n->model->events.data));
	span_stack_json(n->json, n->model, n->stacks, "", event->id);
	json_object_end(n->json);
	json_line(n->json);
}

static int write_interval(const struct model_interval *interval, void *arg)
{
	struct ndjson *n = arg;

	json_object_begin(n->json);
	json_field_string(n->json, "kind", "sched");
	json_field_string(n->json, "name", values_thread_state(interval->state));
	write_thread(n, interval->thread);
	json_field_u64(n->json, "start_ns", interval->from_ts);
	json_field_u64(n->json, "end_ns", interval->to_ts);
	if (interval->open)
		json_field_bool(n->json, "unfinished", true);
	json_key(n->json, "args");
	json_object_begin(n->json);
	values_interval(n->json, n->model, interval);
	json_object_end(n->json);
	json_object_end(n->json);
	json_line(n->json);
	return 0;
}

static void write_loss(struct ndjson *n, const struct model_loss *loss)
{
	json_object_begin(n->json);
	json_field_string(n->json, "kind", "loss");
	json_field_u64(n->json, "start_ns", loss->from_ts);
	json_field_u64(n->json, "end_ns", loss->to_ts);
	json_key(n->json, "args");
	json_object_begin(n->json);
	json_field_string(n->json, "source", record_source_name(loss->source));
	json_field_u64(n->json, "cpu", loss->cpu);
	json_field_u64(n->json, "count", loss->count);
	json_object_end(n->json);
	json_object_end(n->json);
	json_line(n->json);
}

static void write_summary(struct ndjson *n)
{
	const struct model *m = n->model;

	json_object_begin(n->json);
	json_field_string(n->json, "kind", "summary");
	json_field_u64(n->json, "start_ns", m->start_ts);
	json_field_u64(n->json, "end_ns", m->end_ts);
	hosts_json(n->json, m);
	summary_json_filter(n->json, m);
	summary_json_simulated(n->json, m);
	json_key(n->json, "records");
	json_object_begin(n->json);
	summary_json_counts(n->json, &m->counts);
	json_object_end(n->json);
	json_key(n->json, "clock");
	json_object_begin(n->json);
	json_field_u64(n->json, "monotonic_ns", m->meta->start_ts);
	json_field_u64(n->json, "boot_ns", m->meta->boot_ns);
	json_field_u64(n->json, "real_ns", m->meta->real_ns);
	json_object_end(n->json);
	json_object_end(n->json);
	json_line(n->json);
}

int ndjson_write(const struct model *model, FILE *out, struct error *err)
{
	struct ndjson n = {
		.json = json_new(out, false), .model = model, .stacks = span_stack_open(model)};
	int code;

	for (size_t i = 0; i < model->spans.len; i++)
		write_span(&n, &model->spans.data[i]);
	for (size_t i = 0; i < model->events.len; i++)
		write_event(&n, &model->events.data[i]);
	code = model_each_interval(model, write_interval, &n);
	ndjson_waits(n.json, model);
	for (size_t i = 0; i < model->losses.len; i++)
		write_loss(&n, &model->losses.data[i]);
	write_summary(&n);
	code = json_close(n.json) ?: code;
	stack_names_close(n.stacks);
	if (code < 0)
		return error_set(err, -code, "ndjson: %s", strerror(-code));
	return 0;
}
