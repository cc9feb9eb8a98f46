// SPDX-License-Identifier: Apache-2.0
#include "render/json/why_json.h"

#include <inttypes.h>
#include <stdlib.h>

#include "analyze/why/why.h"
#include "analyze/why/why_waiters.h"
#include "render/json/samples_json.h"
#include "render/json/summary_json.h"
#include "render/json/values.h"
#include "render/json/hang_json_internal.h"
#include "render/json/impaired_json_internal.h"
#include "render/json/killed_json_internal.h"
#include "render/json/stack_frame_internal.h"
#include "render/text/why_node.h"
#include "symbolize/stack_java.h"
#include "util/json.h"
#include "util/memory.h"
#include "util/syscall_names.h"

struct why_json_printer {
	const struct why *why;
	const struct model *model;
	const struct why_view *view;
	struct json *json;
};

static const char *step_state(const struct why_step *step)
{
	if (step->handed)
		return "handed-over";
	if (step->not_started)
		return "not-started";
	return step->state ? values_thread_state(step->state) : "unknown";
}

static void field_null(struct json *json, const char *key)
{
	json_key(json, key);
	json_null(json);
}

static void thread_fields(const struct why_json_printer *printer, uint32_t thread)
{
	why_thread_fields(printer->json, printer->model, thread);
}

static void span_fields(const struct why_json_printer *printer, const char *name_key,
			const char *id_key, uint32_t span)
{
	const struct model_span *found;

	if (span >= printer->model->spans.len) {
		field_null(printer->json, name_key);
		field_null(printer->json, id_key);
		return;
	}
	found = &printer->model->spans.data[span];
	json_field_string(printer->json, name_key, model_site(printer->model, found->site)->name);
	json_field_hex64(printer->json, id_key, found->id);
}

/* Writes the values of a span as an object, or null if it has none. */
static void keys_json(const struct why_json_printer *printer, const char *key, uint32_t span)
{
	const struct model *model = printer->model;

	json_key(printer->json, key);
	if (span >= model->spans.len || model->spans.data[span].frame == MODEL_NONE) {
		json_null(printer->json);
		return;
	}
	json_object_begin(printer->json);
	values_write(printer->json, model, model->spans.data[span].site,
		     model->spans.data[span].frame);
	json_object_end(printer->json);
}

static void text_field(const struct why_json_printer *printer, const char *key, uint32_t text)
{
	if (text)
		json_field_string(printer->json, key, strtab_get(printer->why->texts, text));
	else
		field_null(printer->json, key);
}

static void syscall_field(const struct why_json_printer *printer, const struct why_step *step)
{
	const char *name;
	char number[32];

	if (step->state != WAFFLE_THREAD_BLOCKED || step->syscall < 0) {
		field_null(printer->json, "syscall");
		return;
	}
	name = syscall_name(printer->model->meta->machine, step->syscall);
	snprintf(number, sizeof(number), "%d", step->syscall);
	json_field_string(printer->json, "syscall", name ? name : number);
}

struct why_frames {
	struct json *json;
	bool cut;
};

static void frame_json(const struct stack_frame *frame, void *arg)
{
	struct why_frames *frames = arg;

	if (frame->cut) {
		frames->cut = true;
		return;
	}
	stack_frame_json(frames->json, frame);
}

static void stack_json(const struct why_json_printer *printer, const char *key, uint32_t stack,
		       uint64_t ts)
{
	struct why_frames frames = {.json = printer->json};
	char cut[32];

	json_key(printer->json, key);
	json_array_begin(printer->json);
	stack_names_each(printer->view->names, stack, ts, frame_json, &frames);
	json_array_end(printer->json);
	if (!frames.cut)
		return;
	snprintf(cut, sizeof(cut), "%s_cut", key);
	json_field_bool(printer->json, cut, true);
}

static void wait_fields(const struct why_json_printer *printer, const struct why_step *step)
{
	const struct model_wait *wait;
	struct stack_frame inner;

	if (step->wait >= printer->model->waits.len)
		return;
	wait = &printer->model->waits.data[step->wait];
	if (stack_names_inner(printer->view->names, wait->user_stack, wait->from_ts, &inner))
		json_field_string(printer->json, "function", inner.function);
	if (stack_names_package(printer->view->names, wait->user_stack, wait->from_ts, &inner))
		json_field_string(printer->json, "package_function", inner.function);
	if (stack_names_own(printer->view->names, wait->user_stack, wait->from_ts, &inner))
		json_field_string(printer->json, "own", inner.function);
	if (!printer->view->evidence)
		return;
	stack_json(printer, "user_stack", wait->user_stack, wait->from_ts);
	stack_json(printer, "kernel_stack", wait->kernel_stack, wait->from_ts);
}

static void thread_field(const struct why_json_printer *printer, const char *key, uint32_t thread)
{
	why_thread_json(printer->json, printer->model, key, thread);
}

static void cpu_field(const struct why_json_printer *printer, const char *key, uint16_t cpu)
{
	if (cpu == MODEL_CPU_NONE)
		field_null(printer->json, key);
	else
		json_field_u64(printer->json, key, cpu);
}

static void runnable_fields(const struct why_json_printer *printer, const struct why_step *step)
{
	if (step->state != WAFFLE_THREAD_RUNNABLE)
		return;
	cpu_field(printer, "from_cpu", step->from_cpu);
	json_field_bool(printer->json, "preempted", step->preemptor != MODEL_NONE);
	thread_field(printer, "preemptor", step->preemptor);
}

/* For a call that waits: the call that it waits for. */
static void call_field(const struct why_json_printer *printer, const struct why_step *step)
{
	struct json *json = printer->json;

	if (!step->gpu)
		return;
	json_key(json, step->last_rank ? "arrival" : "launch");
	if (!step->call_ts) {
		json_null(json);
		return;
	}
	json_object_begin(json);
	thread_fields(printer, step->call_thread);
	json_field_u64(json, "start_ns", step->call_ts);
	span_fields(printer, "span", "span_id", step->call_span);
	json_object_end(json);
}

/* Writes the records of a step that were found. */
static void records_json(const struct why_json_printer *printer, const struct why_step *step)
{
	struct json *json = printer->json;

	if (!printer->view->evidence)
		return;
	json_key(json, "records");
	json_array_begin(json);
	for (uint32_t i = 0; i < step->count; i++) {
		const struct why_record *record = &printer->why->records.data[step->record + i];

		if (!record->number)
			continue;
		json_object_begin(json);
		json_field_u64(json, "record", record->number);
		json_field_string(json, "as", why_role_names[record->role]);
		json_object_end(json);
	}
	json_array_end(json);
}

/* Writes the wake-ups after which the thread waited for the same object again. */
static void series_field(const struct why_json_printer *printer, const struct why_step *step)
{
	struct json *json = printer->json;

	if (!step->wakes)
		return;
	json_key(json, "series");
	json_object_begin(json);
	json_field_u64(json, "wakes", step->wakes);
	thread_field(printer, "mostly_by", step->woken_by);
	json_field_u64(json, "mostly_by_wakes", step->woken_count);
	json_object_end(json);
}

static void step_json(const struct why_json_printer *printer, const struct why_step *step)
{
	struct json *json = printer->json;

	json_object_begin(json);
	thread_fields(printer, step->thread);
	json_field_string(json, "state", step_state(step));
	json_field_u64(json, "start_ns", step->from_ts);
	json_field_u64(json, "duration_ns", step->to_ts - step->from_ts);
	span_fields(printer, "span", "span_id", step->span);
	syscall_field(printer, step);
	text_field(printer, "object", step->object);
	text_field(printer, "meaning", step->meaning);
	thread_field(printer, "by", step->interrupt ? MODEL_NONE : step->by);
	json_field_bool(json, "interrupt", step->interrupt);
	if (step->answer)
		json_field_bool(json, "answer", true);
	if (step->owned || step->left)
		json_field_bool(json, "open", true);
	if (step->locked)
		json_field_bool(json, "locked", true);
	series_field(printer, step);
	if (step->cpu_khz)
		json_field_u64(json, "cpu_khz", step->cpu_khz);
	if (step->cpu_max_khz)
		json_field_u64(json, "cpu_max_khz", step->cpu_max_khz);
	cpu_field(printer, "cpu", step->cpu);
	runnable_fields(printer, step);
	call_field(printer, step);
	wait_fields(printer, step);
	records_json(printer, step);
	json_object_end(json);
}

static int number_compare(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

/* Writes the numbers of all records of the chain, each once. */
static void cause_records_json(const struct why_json_printer *printer, const struct why_part *part)
{
	const struct why *why = printer->why;
	VEC(uint64_t) numbers = {0};

	if (!printer->view->evidence)
		return;
	for (uint32_t i = 0; i < part->step_count; i++) {
		const struct why_step *step = &why->steps.data[part->step + i];

		for (uint32_t k = 0; k < step->count; k++)
			if (why->records.data[step->record + k].number)
				vec_add(&numbers, why->records.data[step->record + k].number);
	}
	if (numbers.len)
		qsort(numbers.data, numbers.len, sizeof(*numbers.data), number_compare);
	json_key(printer->json, "records");
	json_array_begin(printer->json);
	for (size_t i = 0; i < numbers.len; i++)
		if (!i || numbers.data[i] != numbers.data[i - 1])
			json_u64(printer->json, numbers.data[i]);
	json_array_end(printer->json);
	vec_free(&numbers);
}

static void polls_json(const struct why_json_printer *printer, const struct why_polls *polls)
{
	const char *call =
		polls->votes ? syscall_name(printer->model->meta->machine, polls->call) : NULL;
	struct json *json = printer->json;

	if (!polls->sleeps)
		return;
	json_key(json, "polls");
	json_object_begin(json);
	json_field_u64(json, "sleeps", polls->sleeps);
	json_field_u64(json, "slept_ns", polls->slept_ns);
	json_field_u64(json, "checks", polls->checks);
	json_field_u64(json, "ran_ns", polls->ran_ns);
	if (call)
		json_field_string(json, "seen_in", call);
	json_object_end(json);
}

static void neighbour_json(const struct why_json_printer *printer,
			   const struct why_neighbour *neighbour)
{
	if (!neighbour->bytes)
		return;
	json_key(printer->json, "disk_shared_with");
	json_object_begin(printer->json);
	thread_fields(printer, neighbour->thread);
	json_field_u64(printer->json, "bytes", neighbour->bytes);
	json_object_end(printer->json);
}

static void signals_json(const struct why_json_printer *printer, const struct why_signals *signals)
{
	if (!signals->count)
		return;
	json_key(printer->json, "signals");
	json_object_begin(printer->json);
	json_field_u64(printer->json, "count", signals->count);
	json_field_u64(printer->json, "signo", signals->signo);
	json_field_bool(printer->json, "timer", signals->timer);
	json_object_end(printer->json);
}

static void at_end_json(const struct why_json_printer *printer, uint32_t at_end)
{
	const struct model *model = printer->model;
	struct json *json = printer->json;
	const struct model_open_wait *wait;
	struct stack_java java;

	if (at_end >= model->open_waits.len)
		return;
	wait = &model->open_waits.data[at_end];
	if (!stack_java_find(printer->view->names, wait->user_stack, wait->ts, &java))
		return;
	json_key(json, "at_end");
	json_object_begin(json);
	json_field_string(json, "function", java.inner);
	if (java.entry)
		json_field_string(json, "by", java.entry);
	if (java.caller)
		json_field_string(json, "from", java.caller);
	json_object_end(json);
}

static void cause_json(const struct why_json_printer *printer, const struct why_instance *instance,
		       const struct why_part *part)
{
	uint64_t duration_ns = instance->to_ts - instance->from_ts;
	const struct model_process *nice = why_part_nice(printer->why, part);
	struct json *json = printer->json;

	json_object_begin(json);
	json_field_string(json, "cause", why_causes[part->cause].name);
	json_field_f64(json, "share", duration_ns ? (double)part->ns / (double)duration_ns : 0);
	json_field_string(json, "grade", why_grade_names[part->grade]);
	json_field_u64(json, "duration_ns", part->ns);
	json_field_u64(json, "stretches", part->stretches);
	if (part->open_ns)
		json_field_u64(json, "open_ns", part->open_ns);
	json_field_u64(json, "threads", part->threads);
	json_field_u64(json, "processes", part->processes);
	if (part->relation)
		json_field_string(json, "relation",
				  part->relation == WHY_RELATION_CHILDREN ? "children"
									  : "siblings");
	if (part->objects > 1)
		json_field_u64(json, "objects", part->objects);
	if (part->connections)
		json_field_u64(json, "connections", part->connections);
	if (part->lock)
		text_field(printer, "holds", part->lock);
	if (part->pool_wait_ns)
		json_field_u64(json, "pool_wait_ns", part->pool_wait_ns);
	if (nice)
		json_field_i64(json, "nice", nice->nice);
	if (part->idle)
		json_field_bool(json, "idle", true);
	if (part->capture)
		json_field_bool(json, "capture", true);
	polls_json(printer, &part->polls);
	json_key(json, "culprit");
	json_object_begin(json);
	thread_fields(printer, part->thread);
	span_fields(printer, "span", "span_id", part->span);
	if (part->span != instance->span)
		keys_json(printer, "keys", part->span);
	text_field(printer, "object", part->object);
	json_object_end(json);
	neighbour_json(printer, &part->neighbour);
	signals_json(printer, &part->signals);
	at_end_json(printer, part->at_end);
	samples_json(json, printer->why, why_part_places(printer->why, part), part->place_count);
	cause_records_json(printer, part);
	json_key(json, "chain");
	json_array_begin(json);
	for (uint32_t i = 0; i < part->step_count; i++)
		step_json(printer, &printer->why->steps.data[part->step + i]);
	json_array_end(json);
	json_object_end(json);
}

static void parts_json(struct json *json, const struct why_instance *instance)
{
	json_key(json, "parts");
	json_object_begin(json);
	json_field_u64(json, "running_ns", instance->running_ns);
	json_field_u64(json, "runnable_ns", instance->runnable_ns);
	json_field_u64(json, "blocked_ns", instance->blocked_ns);
	json_field_u64(json, "unknown_ns", instance->unknown_ns);
	json_object_end(json);
}

static void by_cause_json(const struct why_json_printer *printer,
			  const struct why_instance *instance)
{
	struct why_by_cause sums[WHY_BY_CAUSE_MAX];
	uint32_t count = why_by_cause(printer->why, instance, sums);
	uint64_t duration_ns = instance->to_ts - instance->from_ts;
	struct json *json = printer->json;

	json_key(json, "by_cause");
	json_array_begin(json);
	for (uint32_t i = 0; i < count; i++) {
		json_object_begin(json);
		json_field_string(json, "cause", why_causes[sums[i].cause].name);
		if (sums[i].idle)
			json_field_bool(json, "idle", true);
		json_field_f64(json, "share",
			       duration_ns ? (double)sums[i].ns / (double)duration_ns : 0);
		json_field_u64(json, "duration_ns", sums[i].ns);
		json_field_u64(json, "culprits", sums[i].culprits);
		json_object_end(json);
	}
	json_array_end(json);
}

static void by_process_json(const struct why_json_printer *printer,
			    const struct why_instance *instance)
{
	const struct model *model = printer->model;
	struct why_by_process sums[WHY_BY_PROCESS_MAX];
	uint32_t count = why_by_process(printer->why, instance, sums);
	uint64_t duration_ns = instance->to_ts - instance->from_ts;
	struct json *json = printer->json;

	if (!count)
		return;
	json_key(json, "by_process");
	json_array_begin(json);
	for (uint32_t i = 0; i < count; i++) {
		json_object_begin(json);
		why_thread_json(json, model, "thread",
				model->processes.data[sums[i].process].main_thread);
		json_field_f64(json, "share", (double)sums[i].ns / (double)duration_ns);
		json_field_u64(json, "duration_ns", sums[i].ns);
		json_object_end(json);
	}
	json_array_end(json);
}

static void locks_json(const struct why_json_printer *printer, const struct why_instance *instance)
{
	uint64_t duration_ns = instance->to_ts - instance->from_ts;
	const struct why_lock_time *locks;
	struct json *json = printer->json;

	if (!instance->lock_count)
		return;
	locks = &printer->why->locks.data[instance->lock];
	json_key(json, "locks");
	json_array_begin(json);
	for (uint32_t i = 0; i < instance->lock_count; i++) {
		json_object_begin(json);
		json_field_string(json, "lock", strtab_get(printer->why->texts, locks[i].lock));
		json_field_f64(json, "share",
			       duration_ns ? (double)locks[i].ns / (double)duration_ns : 0);
		json_field_u64(json, "duration_ns", locks[i].ns);
		if (locks[i].holder < printer->model->threads.len)
			why_thread_json(json, printer->model, "held_up_by", locks[i].holder);
		if (locks[i].awaited < printer->model->threads.len)
			why_thread_json(json, printer->model, "holder_waits_for", locks[i].awaited);
		json_object_end(json);
	}
	json_array_end(json);
}

static void links_json(const struct why_json_printer *printer, uint32_t span)
{
	const struct model *model = printer->model;

	json_key(printer->json, "links");
	json_array_begin(printer->json);
	for (size_t i = 0; span != MODEL_NONE && i < model->links.len; i++) {
		const struct model_link *link = &model->links.data[i];

		if (link->from_kind == MODEL_NODE_SPAN && link->from == span) {
			json_object_begin(printer->json);
			why_node_fields(printer->json, model, link->to_kind, link->to, link->to_id);
			json_object_end(printer->json);
		}
	}
	json_array_end(printer->json);
}

static void instance_json(const struct why_json_printer *printer,
			  const struct why_instance *instance)
{
	uint64_t duration_ns = instance->to_ts - instance->from_ts;
	struct json *json = printer->json;

	json_object_begin(json);
	span_fields(printer, "span", "id", instance->span);
	json_key(json, "thread");
	json_object_begin(json);
	thread_fields(printer, instance->thread);
	json_object_end(json);
	if (instance->program)
		json_field_bool(json, "program", true);
	json_field_u64(json, "start_ns", instance->from_ts);
	json_field_u64(json, "duration_ns", duration_ns);
	if (instance->median_of)
		json_field_u64(json, "median_of", instance->median_of);
	keys_json(printer, "keys", instance->span);
	parts_json(json, instance);
	json_field_u64(json, "waffle_ns", instance->own_ns);
	if (instance->memory)
		text_field(printer, "memory", instance->memory);
	if (instance->cpus)
		text_field(printer, "cpus", instance->cpus);
	if (instance->full_pool)
		text_field(printer, "full_pool", instance->full_pool);
	if (instance->manager)
		text_field(printer, "manager", instance->manager);
	json_field_bool(json, "loss", instance->loss);
	json_field_bool(json, "begun_before", instance->begun_before);
	json_field_bool(json, "unfinished", instance->unfinished);
	json_field_bool(json, "left", instance->left);
	if (instance->ranks_behind)
		json_field_bool(json, "length_unknown", true);
	thread_field(printer, "ended_by", instance->ended_by);
	links_json(printer, instance->span);
	by_cause_json(printer, instance);
	by_process_json(printer, instance);
	locks_json(printer, instance);
	json_key(json, "causes");
	json_array_begin(json);
	for (uint32_t i = 0; i < instance->part_count; i++)
		cause_json(printer, instance, &printer->why->parts.data[instance->part + i]);
	json_array_end(json);
	json_object_end(json);
}

static void waiters_json(struct json *json, const char *key, const struct why *why,
			 const struct why_waiter *list, size_t count, const struct why_view *view)
{
	json_key(json, key);
	json_array_begin(json);
	for (size_t i = 0; i < count; i++) {
		const struct why_json_printer printer = {
			.why = why, .model = why->model, .view = view, .json = json};
		const struct why_waiter *waiter = &list[i];
		const struct why_instance *instance = &why->instances.data[waiter->instance];

		json_object_begin(json);
		json_key(json, "thread");
		json_object_begin(json);
		thread_fields(&printer, instance->thread);
		json_object_end(json);
		json_field_u64(json, "more", waiter->more);
		json_field_u64(json, "duration_ns", waiter->ns);
		json_field_f64(json, "share",
			       (double)waiter->ns / (double)(instance->to_ts - instance->from_ts));
		json_key(json, "longest");
		cause_json(&printer, instance, &why->parts.data[instance->part + waiter->part]);
		json_object_end(json);
	}
	json_array_end(json);
}

int why_print_json(const struct why *why, const struct why_view *view, FILE *out)
{
	const struct why_json_printer printer = {
		.why = why, .model = why->model, .view = view, .json = json_new(out, true)};

	json_object_begin(printer.json);
	json_key(printer.json, "instances");
	json_array_begin(printer.json);
	for (size_t i = 0; i < why->instances.len; i++)
		instance_json(&printer, &why->instances.data[i]);
	json_array_end(printer.json);
	if (view->waiters)
		waiters_json(printer.json, "waiters", view->waiters->why, view->waiters->list.data,
			     view->waiters->list.len, view);
	if (view->waiters && why_rests(why))
		waiters_json(printer.json, "resting", view->waiters->why,
			     view->waiters->resting.data, view->waiters->resting.len, view);
	if (view->hangs)
		hang_json(printer.json, view->hangs,
			  &(struct hang_view){.model = why->model, .names = view->names});
	killed_json(printer.json, why->model);
	impaired_json(printer.json, why->model);
	summary_json_filter(printer.json, why->model);
	summary_json_records(printer.json, why->model);
	json_object_end(printer.json);
	return json_close(printer.json);
}
