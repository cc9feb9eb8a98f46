// SPDX-License-Identifier: Apache-2.0
#include "render/json/values.h"

#include "render/json/value_json.h"
#include "render/place.h"
#include "util/syscall_names.h"

void values_write(struct json *json, const struct model *model, uint32_t site, uint32_t frame)
{
	value_json_all(json, model_values(model, site, frame));
}

const struct model_link *values_late_cause(const struct model *model, uint8_t kind, uint32_t index)
{
	struct model_node node, cause;
	size_t first, count = 0;

	if (!model_node_find(model, kind, index, &node) || !model_site(model, node.site)->call)
		return NULL;
	if (model->links.len)
		count = model_links_from(model, kind, index, &first);
	for (size_t i = 0; i < count; i++) {
		const struct model_link *link = &model->links.data[first + i];

		if (model_node_find(model, link->to_kind, link->to, &cause) && cause.ts > node.ts)
			return link;
	}
	return NULL;
}

const char *values_thread_state(enum waffle_thread_state state)
{
	static const char *const names[] = {
		[WAFFLE_THREAD_RUNNING] = "running",
		[WAFFLE_THREAD_RUNNABLE] = "runnable",
		[WAFFLE_THREAD_BLOCKED] = "blocked",
	};

	return state >= WAFFLE_THREAD_RUNNING && state <= WAFFLE_THREAD_BLOCKED ? names[state]
										: "?";
}

/* The letters that ps(1) and Perfetto use. */
static const char *task_state_letter(uint16_t state)
{
	static const struct {
		uint16_t bit;
		const char *letter;
	} rows[] = {
		{WAFFLE_TASK_INTERRUPTIBLE, "S"}, {WAFFLE_TASK_UNINTERRUPTIBLE, "D"},
		{WAFFLE_TASK_STOPPED, "T"},       {WAFFLE_TASK_TRACED, "t"},
		{WAFFLE_TASK_DEAD, "X"},          {WAFFLE_TASK_ZOMBIE, "Z"},
		{WAFFLE_TASK_PARKED, "P"},        {WAFFLE_TASK_IDLE, "I"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (state & rows[i].bit)
			return rows[i].letter;
	}
	return "R";
}

static void write_blocked(struct json *json, const struct model *model,
			  const struct model_interval *interval)
{
	const char *name;

	json_field_string(json, "state", task_state_letter(interval->task_state));
	if (interval->syscall < 0)
		return;
	name = syscall_name(model->meta->machine, interval->syscall);
	json_key(json, "syscall");
	if (name)
		json_string(json, name);
	else
		json_i64(json, interval->syscall);
	if (interval->args >= model->syscall_args.len ||
	    model->syscall_args.len - interval->args < WAFFLE_SYSCALL_ARGS)
		return;
	json_key(json, "syscall_args");
	json_array_begin(json);
	for (unsigned i = 0; i < WAFFLE_SYSCALL_ARGS; i++)
		json_u64(json, model->syscall_args.data[interval->args + i]);
	json_array_end(json);
}

void values_interval(struct json *json, const struct model *model,
		     const struct model_interval *interval)
{
	if (interval->state != WAFFLE_THREAD_BLOCKED)
		json_field_u64(json, "cpu", interval->cpu);
	else
		write_blocked(json, model, interval);
	if (interval->state == WAFFLE_THREAD_RUNNABLE && interval->interrupt) {
		json_field_string(json, "waker", "(interrupt)");
		return;
	}
	if (interval->state != WAFFLE_THREAD_RUNNABLE || interval->by >= model->threads.len)
		return;
	json_field_u64(json, interval->woken ? "waker_tid" : "preempted_by_tid",
		       place_tid(model, interval->by));
	json_field_string(json, interval->woken ? "waker" : "preempted_by",
			  model_thread_name(model, interval->by));
}
