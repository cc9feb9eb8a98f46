// SPDX-License-Identifier: Apache-2.0
/*
 * The Chrome trace event format (JSON). Spans that nest on their thread are complete events ("X").
 * Spans that moved to another thread, overlap or began before the capture are asynchronous pairs
 * ("b", "e"), which need not nest. Tracks are threads with large numbers. Times are microseconds
 * since the beginning of the capture.
 */
#include <stdlib.h>
#include <string.h>

#include "export/chrome_encode.h"
#include "export/formats.h"
#include "export/model_node.h"
#include "render/json/span_stack.h"
#include "render/json/hosts_json.h"
#include "render/json/summary_json.h"
#include "render/json/values.h"
#include "render/place.h"
#include "util/memory.h"

typedef VEC(uint64_t) ends_vec;

struct chrome {
	struct json *json;
	const struct model *model;
	ends_vec *open;             /* by thread: ends of the enclosing spans */
	struct stack_names *stacks; /* of spans and events; NULL: the capture has none */
};

/* A track gets the number of a thread that no kernel gives to one. */
#define TRACK_TID 0x40000000u

static uint64_t tid_of(const struct model *model, uint32_t thread)
{
	return model_is_track(model, thread) ? TRACK_TID + thread : model->threads.data[thread].tid;
}

static struct chrome_point point_at(const struct chrome *c, uint64_t ts, uint32_t thread)
{
	const struct model *m = c->model;
	bool known = thread < m->threads.len;

	return (struct chrome_point){
		.ns = ts > m->start_ts ? ts - m->start_ts : 0,
		.pid = known ? m->threads.data[thread].pid : 0,
		.tid = known ? tid_of(m, thread) : 0,
	};
}

static void write_async(struct chrome *c, const struct model_span *span,
			const struct export_node *node)
{
	chrome_async_begin(c->json, node, point_at(c, span->start_ts, span->thread));
	span_stack_json(c->json, c->model, c->stacks, "waffle.", span->id);
	chrome_span_close(c->json, node);
	chrome_async_end(c->json, node->site, span->id, point_at(c, span->end_ts, span->thread));
}

/* Whether a span nests in the open spans of its thread. */
static bool span_nests(struct chrome *c, const struct model_span *span)
{
	ends_vec *open;

	if (span->flags & (MODEL_SPAN_MOVED | MODEL_SPAN_BEGUN_BEFORE) ||
	    span->thread >= c->model->threads.len)
		return false;
	open = &c->open[span->thread];
	while (open->len && open->data[open->len - 1] <= span->start_ts)
		open->len--;
	if (open->len && open->data[open->len - 1] < span->end_ts)
		return false;
	vec_add(open, span->end_ts);
	return true;
}

static void write_spans(struct chrome *c)
{
	const struct model *m = c->model;

	for (uint32_t i = 0; i < m->spans.len; i++) {
		const struct model_span *span = &m->spans.data[i];
		struct export_node node = model_span_node(m, i);

		if (!span_nests(c, span)) {
			write_async(c, span, &node);
			continue;
		}
		chrome_open(c->json, "X", node.site->name,
			    point_at(c, span->start_ts, span->thread));
		chrome_category(c->json, node.site);
		chrome_duration(c->json, span->end_ts - span->start_ts);
		chrome_node_args(c->json, &node);
		span_stack_json(c->json, m, c->stacks, "waffle.", span->id);
		chrome_span_close(c->json, &node);
	}
}

static void write_events(struct chrome *c)
{
	const struct model *m = c->model;

	for (uint32_t i = 0; i < m->events.len; i++) {
		const struct model_event *event = &m->events.data[i];
		struct export_node node = model_event_node(m, i);

		chrome_instant(c->json, &node, point_at(c, event->ts, event->thread));
		if (node.site->kind != WAFFLE_SITE_COUNTER)
			span_stack_json(c->json, m, c->stacks, "waffle.", event->id);
		chrome_event_close(c->json, &node);
	}
}

static void write_links(struct chrome *c)
{
	const struct model *m = c->model;

	for (size_t i = 0; i < m->links.len; i++) {
		const struct model_link *link = &m->links.data[i];
		struct model_node caused, cause;

		if (!model_node_find(m, link->from_kind, link->from, &caused) ||
		    !model_node_find(m, link->to_kind, link->to, &cause) || cause.ts > caused.ts)
			continue;
		chrome_flow_begin(c->json, i + 1, point_at(c, cause.ts, cause.thread));
		chrome_flow_end(c->json, i + 1, point_at(c, caused.ts, caused.thread));
	}
}

static void write_thread_names(struct chrome *c)
{
	const struct model *m = c->model;

	for (uint32_t i = 0; i < m->threads.len; i++) {
		if (!m->threads.data[i].traced && !model_is_track(m, i))
			continue;
		chrome_name(c->json, "thread_name", model_thread_name(m, i),
			    point_at(c, m->start_ts, i));
	}
	for (size_t i = 0; i < m->processes.len; i++) {
		const struct model_process *process = &m->processes.data[i];
		const char *cmdline = strtab_get(m->strings, process->cmdline);

		char place[PLACE_TEXT], name[4096];

		if (!*cmdline || process->main_thread >= m->threads.len)
			continue;
		if (*place_of_process(place, m, process)) {
			snprintf(name, sizeof(name), "%s: %.3600s", place, cmdline);
			cmdline = name;
		}
		chrome_name(c->json, "process_name", cmdline,
			    point_at(c, m->start_ts, process->main_thread));
	}
}

static void write_losses(struct chrome *c)
{
	const struct model *m = c->model;

	for (size_t i = 0; i < m->losses.len; i++) {
		const struct model_loss *loss = &m->losses.data[i];

		chrome_loss(c->json, loss->count, loss->source, loss->cpu,
			    point_at(c, loss->to_ts, MODEL_NONE));
	}
}

/* Thread states are asynchronous slices on a row of their own beside the thread's spans. */
static int write_interval(const struct model_interval *interval, void *arg)
{
	struct chrome *c = arg;
	const char *name = values_thread_state(interval->state);

	chrome_open(c->json, "b", name, point_at(c, interval->from_ts, interval->thread));
	json_field_string(c->json, "cat", "sched");
	json_field_u64(c->json, "id", interval->thread);
	chrome_args(c->json);
	values_interval(c->json, c->model, interval);
	chrome_close(c->json);
	chrome_open(c->json, "e", name, point_at(c, interval->to_ts, interval->thread));
	json_field_string(c->json, "cat", "sched");
	json_field_u64(c->json, "id", interval->thread);
	json_object_end(c->json);
	return 0;
}

static void write_other(struct chrome *c)
{
	const struct model *m = c->model;

	json_field_string(c->json, "displayTimeUnit", "ns");
	json_key(c->json, "otherData");
	json_object_begin(c->json);
	json_field_string(c->json, "command", m->meta->command);
	json_field_string(c->json, "hostname", m->meta->hostname);
	json_field_u64(c->json, "start_real_ns",
		       m->meta->real_ns + (m->start_ts - m->meta->start_ts));
	hosts_json(c->json, m);
	summary_json_filter(c->json, m);
	summary_json_simulated(c->json, m);
	summary_json_counts(c->json, &m->counts);
	json_object_end(c->json);
}

int chrome_write(const struct model *model, FILE *out, struct error *err)
{
	struct chrome c = {.json = json_new(out, false), .model = model};
	int code, closed;

	c.open = memory_zeroed(model->threads.len + 1, sizeof(*c.open));
	c.stacks = span_stack_open(model);
	json_object_begin(c.json);
	json_key(c.json, "traceEvents");
	json_array_begin(c.json);
	write_thread_names(&c);
	write_spans(&c);
	write_events(&c);
	write_links(&c);
	code = model_each_interval(model, write_interval, &c);
	write_losses(&c);
	json_array_end(c.json);
	write_other(&c);
	json_object_end(c.json);
	closed = json_close(c.json);
	for (size_t i = 0; i < model->threads.len; i++)
		vec_free(&c.open[i]);
	free(c.open);
	stack_names_close(c.stacks);
	code = code < 0 ? code : closed;
	if (code < 0)
		return error_set(err, -code, "chrome: %s", strerror(-code));
	return 0;
}
