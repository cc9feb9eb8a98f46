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

/* The same of an instance. */
static uint64_t share_in(const struct model_fault *fault, const struct why_instance *instance)
{
	return share_of(fault,
			fault->from_ts > instance->from_ts ? fault->from_ts : instance->from_ts,
			fault->to_ts < instance->to_ts ? fault->to_ts : instance->to_ts);
}

static void give_fault(struct why_walker *walker, const struct model_fault *fault, uint64_t ns)
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
		.ns = ns,
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

/* The first fault of the thread that begins at the instance's end or later. */
static size_t faults_end(const struct model *model, const struct why_instance *instance)
{
	size_t low = 0, high = model->faults.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct model_fault *fault = &model->faults.data[middle];

		if (fault->thread < instance->thread ||
		    (fault->thread == instance->thread && fault->from_ts < instance->to_ts))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The first of those before `end` that can have time in the instance. */
static size_t faults_begin(const struct model *model, const struct why_instance *instance,
			   size_t end)
{
	/* Records of one kind do not overlap: before some that end before it there is none. */
	for (unsigned before = 0; end && before < 4; end--) {
		const struct model_fault *fault = &model->faults.data[end - 1];

		if (fault->thread != instance->thread)
			break;
		before += fault->to_ts <= instance->from_ts;
	}
	return end;
}

/*
 * A minor fault runs all of its time. What a major one ran is what it took less what its thread
 * waited in it.
 */
void why_explain_faults(struct why_walker *walker)
{
	const struct why_instance *instance = walker->instance;
	const struct model *model = walker->data->model;
	size_t end = faults_end(model, instance);
	size_t begin = faults_begin(model, instance, end);
	uint64_t major_ns = 0, ran_ns;

	for (size_t i = begin; i < end; i++)
		if (model->faults.data[i].major && model->faults.data[i].to_ts > instance->from_ts)
			major_ns += share_in(&model->faults.data[i], instance);
	ran_ns = major_ns > walker->fault_wait_ns ? major_ns - walker->fault_wait_ns : 0;
	for (size_t i = begin; i < end && !walker->failed; i++) {
		const struct model_fault *fault = &model->faults.data[i];
		uint64_t ns = fault->to_ts > instance->from_ts ? share_in(fault, instance) : 0;

		if (fault->major && major_ns)
			ns = (uint64_t)((unsigned __int128)ns * ran_ns / major_ns);
		if (ns)
			give_fault(walker, fault, ns);
	}
}
