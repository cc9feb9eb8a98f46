// SPDX-License-Identifier: Apache-2.0
/*
 * The Chrome trace event format (JSON). Spans that nest on their thread are complete events ("X").
 * Spans that moved to another thread, overlap or began before the capture are asynchronous pairs
 * ("b", "e"), which need not nest. Times are microseconds since the beginning of the capture.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/formats.h"
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

static void write_time(struct chrome *c, const char *key, uint64_t ns)
{
	char digits[40];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64 ".%03u", ns / 1000,
			   (unsigned)(ns % 1000));

	json_key(c->json, key);
	json_number(c->json, digits, (size_t)len);
}

static uint64_t since_start(const struct chrome *c, uint64_t ts)
{
	return ts > c->model->start_ts ? ts - c->model->start_ts : 0;
}

static void event_open(struct chrome *c, const char *phase, const char *name, uint64_t ts,
		       uint32_t thread)
{
	const struct model *m = c->model;
	bool known = thread < m->threads.len;

	json_object_begin(c->json);
	json_field_string(c->json, "ph", phase);
	json_field_string(c->json, "name", *name ? name : "(unnamed)");
	write_time(c, "ts", since_start(c, ts));
	json_field_u64(c->json, "pid", known ? m->threads.data[thread].pid : 0);
	json_field_u64(c->json, "tid", known ? m->threads.data[thread].tid : 0);
}

static void write_category(struct chrome *c, const struct site_info *site)
{
	json_field_string(c->json, "cat", *site->category ? site->category : "waffle");
}

static void args_open(struct chrome *c)
{
	json_key(c->json, "args");
	json_object_begin(c->json);
}

static void args_close(struct chrome *c)
{
	json_object_end(c->json);
	json_object_end(c->json);
}

/* Writes the fields of a span or event other than its values and times. */
static void write_node(struct chrome *c, uint8_t kind, uint32_t index, uint64_t id)
{
	const struct model_link *late = values_late_cause(c->model, kind, index);

	json_field_hex64(c->json, "waffle.id", id);
	if (late)
		json_field_hex64(c->json, "waffle.caused_by", late->to_id);
	span_stack_json(c->json, c->model, c->stacks, "waffle.", id);
}

static void write_span_args(struct chrome *c, const struct model_span *span)
{
	args_open(c);
	values_write(c->json, c->model, span->site, span->frame);
	write_node(c, MODEL_NODE_SPAN, (uint32_t)(span - c->model->spans.data), span->id);
	if (span->parent_id)
		json_field_hex64(c->json, "waffle.parent", span->parent_id);
	if (span->flags & MODEL_SPAN_HAS_SCHED) {
		json_field_u64(c->json, "waffle.running_ns", span->running_ns);
		json_field_u64(c->json, "waffle.runnable_ns", span->runnable_ns);
	}
	if (span->flags & MODEL_SPAN_BEGUN_BEFORE)
		json_field_bool(c->json, "waffle.begun_before", true);
	if (span->flags & MODEL_SPAN_UNFINISHED)
		json_field_bool(c->json, "waffle.unfinished", true);
	if (span->flags & MODEL_SPAN_LEFT)
		json_field_bool(c->json, "waffle.left", true);
	args_close(c);
}

static void write_async(struct chrome *c, const struct model_span *span)
{
	const struct site_info *site = model_site(c->model, span->site);

	event_open(c, "b", site->name, span->start_ts, span->thread);
	write_category(c, site);
	json_field_hex64(c->json, "id", span->id);
	write_span_args(c, span);
	event_open(c, "e", site->name, span->end_ts, span->thread);
	write_category(c, site);
	json_field_hex64(c->json, "id", span->id);
	json_object_end(c->json);
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

	for (size_t i = 0; i < m->spans.len; i++) {
		const struct model_span *span = &m->spans.data[i];
		const struct site_info *site = model_site(m, span->site);

		if (!span_nests(c, span)) {
			write_async(c, span);
			continue;
		}
		event_open(c, "X", site->name, span->start_ts, span->thread);
		write_category(c, site);
		write_time(c, "dur", span->end_ts - span->start_ts);
		write_span_args(c, span);
	}
}

static void write_events(struct chrome *c)
{
	const struct model *m = c->model;

	for (size_t i = 0; i < m->events.len; i++) {
		const struct model_event *event = &m->events.data[i];
		const struct site_info *site = model_site(m, event->site);
		const char *severity = values_severity(m, event->site);
		bool counter = site->kind == WAFFLE_SITE_COUNTER;

		event_open(c, counter ? "C" : "i", site->name, event->ts, event->thread);
		if (!counter) {
			write_category(c, site);
			json_field_string(c->json, "s", "t");
		}
		args_open(c);
		values_write(c->json, m, event->site, event->frame);
		if (!counter)
			write_node(c, MODEL_NODE_EVENT, (uint32_t)i, event->id);
		if (severity)
			json_field_string(c->json, "waffle.severity", severity);
		args_close(c);
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
		event_open(c, "s", "cause", cause.ts, cause.thread);
		json_field_string(c->json, "cat", "waffle");
		json_field_u64(c->json, "id", i + 1);
		json_object_end(c->json);
		event_open(c, "f", "cause", caused.ts, caused.thread);
		json_field_string(c->json, "cat", "waffle");
		json_field_u64(c->json, "id", i + 1);
		json_field_string(c->json, "bp", "e");
		json_object_end(c->json);
	}
}

static void write_thread_names(struct chrome *c)
{
	const struct model *m = c->model;

	for (uint32_t i = 0; i < m->threads.len; i++) {
		if (!m->threads.data[i].traced)
			continue;
		event_open(c, "M", "thread_name", m->start_ts, i);
		args_open(c);
		json_field_string(c->json, "name", model_thread_name(m, i));
		args_close(c);
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
		event_open(c, "M", "process_name", m->start_ts, process->main_thread);
		args_open(c);
		json_field_string(c->json, "name", cmdline);
		args_close(c);
	}
}

static void write_losses(struct chrome *c)
{
	const struct model *m = c->model;

	for (size_t i = 0; i < m->losses.len; i++) {
		const struct model_loss *loss = &m->losses.data[i];

		event_open(c, "i", "records lost", loss->to_ts, MODEL_NONE);
		json_field_string(c->json, "cat", "waffle");
		json_field_string(c->json, "s", "g");
		args_open(c);
		json_field_u64(c->json, "count", loss->count);
		json_field_string(c->json, "source", record_source_name(loss->source));
		json_field_u64(c->json, "cpu", loss->cpu);
		args_close(c);
	}
}

/* Thread states are asynchronous slices on a row of their own beside the thread's spans. */
static int write_interval(const struct model_interval *interval, void *arg)
{
	struct chrome *c = arg;
	const char *name = values_thread_state(interval->state);

	event_open(c, "b", name, interval->from_ts, interval->thread);
	json_field_string(c->json, "cat", "sched");
	json_field_u64(c->json, "id", interval->thread);
	args_open(c);
	values_interval(c->json, c->model, interval);
	args_close(c);
	event_open(c, "e", name, interval->to_ts, interval->thread);
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
