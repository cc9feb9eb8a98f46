// SPDX-License-Identifier: Apache-2.0
#include "render/json/hang_json_internal.h"

#include "render/json/stack_frame_internal.h"
#include "render/text/why_node.h"
#include "util/syscall_names.h"

static void stack_frame_put(const struct stack_frame *frame, void *arg)
{
	if (!frame->cut)
		stack_frame_json(arg, frame);
}

static void stack_json(struct json *json, const struct hang_view *view, const char *key,
		       uint32_t stack, uint64_t ts)
{
	json_key(json, key);
	json_array_begin(json);
	stack_names_each(view->names, stack, ts, stack_frame_put, json);
	json_array_end(json);
}

static void text_json(struct json *json, const char *key, const char *text)
{
	json_key(json, key);
	if (text)
		json_string(json, text);
	else
		json_null(json);
}

/* What a wait is for; NULL: perhaps for work, or for the end of a thread that is not known. */
static const char *awaited_text(const struct why_hung *hung)
{
	switch (hung->awaits) {
	case WHY_AWAITS_NOTHING:
		return "nothing";
	case WHY_AWAITS_END:
		return hung->owner == MODEL_NONE ? NULL : "thread";
	case WHY_AWAITS_PROCESS:
		return "process";
	case WHY_AWAITS_LOCK:
	case WHY_AWAITS_PASSED_LOCK:
	case WHY_AWAITS_MONITOR:
	case WHY_AWAITS_PROGRAM:
	case WHY_AWAITS_SHARED:
	case WHY_AWAITS_ENDED:
		return "lock";
	default:
		return NULL;
	}
}

static void children_json(struct json *json, const struct why_hangs *hangs,
			  const struct model *model, const struct model_open_wait *wait)
{
	uint32_t children[WHY_CHILDREN];
	uint32_t count = why_hang_children(hangs, model, wait, children);

	if (!count)
		return;
	json_field_u64(json, "child_count", count);
	json_key(json, "children");
	json_array_begin(json);
	for (uint32_t i = 0; i < count && i < WHY_CHILDREN; i++) {
		json_object_begin(json);
		why_thread_fields(json, model, children[i]);
		json_object_end(json);
	}
	json_array_end(json);
}

static void wait_json(struct json *json, const struct why_hangs *hangs, const struct why_hung *hung,
		      const struct hang_view *view)
{
	const struct model_open_wait *wait = &view->model->open_waits.data[hung->wait];

	json_object_begin(json);
	why_thread_json(json, view->model, "thread", wait->thread);
	json_field_u64(json, "start_ns", wait->from_ts);
	json_field_u64(json, "duration_ns", wait->ts - wait->from_ts);
	json_field_bool(json, "begun_before", wait->before);
	text_json(json, "syscall",
		  wait->syscall < 0 ? NULL
				    : syscall_name(view->model->meta->machine, wait->syscall));
	json_key(json, "address");
	if (wait->lock)
		json_hex64(json, wait->lock);
	else
		json_null(json);
	text_json(json, "variable", hang_lock_name(view, wait));
	text_json(json, "waits_for", awaited_text(hung));
	why_thread_json(json, view->model, "owner", hung->owner);
	if (hung->awaits == WHY_AWAITS_ENDED)
		json_field_u64(json, "ended_owner", model_pid_real(view->model, wait->ended));
	text_json(json, "grade",
		  hung->awaits == WHY_AWAITS_ENDED ? "likely"
		  : hung->owner == MODEL_NONE      ? NULL
		  : hung->sure                     ? "certain"
						   : "likely");
	json_key(json, "deadlock");
	if (hung->deadlock == MODEL_NONE)
		json_null(json);
	else
		json_u64(json, hung->deadlock);
	json_field_bool(json, "stuck", hung->stuck);
	children_json(json, hangs, view->model, wait);
	if (wait->tracer != MODEL_NONE)
		why_thread_json(json, view->model, "tracer", wait->tracer);
	stack_json(json, view, "user_stack", wait->user_stack, wait->ts);
	stack_json(json, view, "kernel_stack", wait->kernel_stack, wait->ts);
	json_object_end(json);
}

void hang_json(struct json *json, const struct why_hangs *hangs, const struct hang_view *view)
{
	if (!hangs->waits.len)
		return;
	json_field_u64(json, "deadlocks", hangs->deadlocks.len);
	if (hangs->stopped)
		json_field_u64(json, "stopped", hangs->stopped);
	if (hangs->ended)
		json_field_u64(json, "ended_owners", hangs->ended);
	if (hangs->standstills.len)
		json_field_u64(json, "standstills", hangs->standstills.len);
	json_key(json, "open_waits");
	json_array_begin(json);
	for (size_t i = 0; i < hangs->waits.len; i++)
		wait_json(json, hangs, &hangs->waits.data[i], view);
	json_array_end(json);
}
