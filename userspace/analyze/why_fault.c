// SPDX-License-Identifier: Apache-2.0
/* Page faults that took running time: told as sums over a while, not one by one. */
#include "analyze/why_internal.h"

/* How much of a record's faults was in the instance, if they were spread evenly. */
static uint64_t share_of(const struct model_fault *fault, uint64_t from_ts, uint64_t to_ts)
{
	uint64_t length = fault->to_ts - fault->from_ts;

	if (!length || to_ts - from_ts >= length)
		return fault->total_ns;
	return (uint64_t)((unsigned __int128)fault->total_ns * (to_ts - from_ts) / length);
}

static void give_fault(struct why_walker *walker, const struct model_fault *fault)
{
	const struct why_instance *instance = walker->instance;
	uint32_t pid = walker->data->model->threads.data[fault->thread].pid;
	const struct store_mapping *mapping = why_mapping_at(walker->data, pid, fault->address);
	struct why_step step = {
		.from_ts = fault->from_ts > instance->from_ts ? fault->from_ts : instance->from_ts,
		.to_ts = fault->to_ts < instance->to_ts ? fault->to_ts : instance->to_ts,
		.thread = fault->thread,
		.state = WAFFLE_THREAD_RUNNING,
		.syscall = -1,
		.args = MODEL_NONE,
		.span = instance->span,
		.by = MODEL_NONE,
		.wait = MODEL_NONE,
	};
	struct why_stretch moved = {
		.cause = fault->major ? WHY_PAGE_FAULT_MAJOR : WHY_PAGE_FAULT_MINOR,
		.grade = instance->begun_before ? WHY_GRADE_LIKELY : WHY_GRADE_CERTAIN,
		.ns = share_of(fault, step.from_ts, step.to_ts),
		.thread = fault->thread,
		.span = instance->span,
		.steps = &step,
		.step_count = 1};

	if (mapping && *mapping->path)
		step.object = why_text(walker->why, "%s", mapping->path);
	moved.object = step.object;
	if (windows_overlap(&walker->data->losses, step.from_ts, step.to_ts))
		moved.grade = WHY_GRADE_LIKELY;
	if (step.object == STRTAB_NONE ||
	    !parts_move_running(&walker->parts, instance->thread, &moved))
		walker->failed = true;
}

/* Minor faults take running time. A major one mostly waits, which its wait tells. */
void why_explain_faults(struct why_walker *walker)
{
	const struct why_instance *instance = walker->instance;
	const struct model *model = walker->data->model;
	size_t low = 0, high = model->faults.len;

	/* The first one of the thread that begins at the instance's end or later. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct model_fault *fault = &model->faults.data[middle];

		if (fault->thread < instance->thread ||
		    (fault->thread == instance->thread && fault->from_ts < instance->to_ts))
			low = middle + 1;
		else
			high = middle;
	}
	/* Records of one kind do not overlap: behind two that end before it there is none. */
	for (unsigned before = 0; low && before < 4 && !walker->failed;) {
		const struct model_fault *fault = &model->faults.data[--low];

		if (fault->thread != instance->thread)
			break;
		if (fault->to_ts <= instance->from_ts)
			before++;
		else if (!fault->major)
			give_fault(walker, fault);
	}
}
