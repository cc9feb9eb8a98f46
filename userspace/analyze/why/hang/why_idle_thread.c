// SPDX-License-Identifier: Apache-2.0
/* Threads beside those that hang: whether they may still do what these wait for. */
#include "analyze/why/hang/why_hang_internal.h"
#include "analyze/why/lookup/why_wait.h"
#include "util/syscall_names.h"
#include "util/text.h"

bool why_hang_is_idle(const struct model *model, uint32_t thread)
{
	const struct model_open_wait *wait = model_open_wait_of(model, thread);
	const struct model_thread *of = &model->threads.data[thread];
	struct wait_facts facts = {.call = WAIT_CALL_NONE};
	enum wait_kind kind;

	if (!wait)
		return false;
	if (wait->before && why_hang_is_inside(wait))
		return true;
	facts.syscall = syscall_name(model->meta->machine, wait->syscall);
	facts.call = wait_call_of(facts.syscall);
	facts.task_state = wait->task_state;
	if (wait->args < model->syscall_args.len)
		facts.args = &model->syscall_args.data[wait->args];
	kind = wait_kind_of(&facts);
	return kind == WAIT_SLEEP || kind == WAIT_SIGNAL ||
	       (kind == WAIT_SOCKET && text_begins(facts.syscall, "accept") && of->tid == of->pid);
}
