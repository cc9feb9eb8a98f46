// SPDX-License-Identifier: Apache-2.0
#include "render/gpu_texts.h"

const char *const gpu_idle_texts[GPU_IDLE_COUNT] = {
	[GPU_IDLE_STARVED] = "launch-starved: nothing was launched",
	[GPU_IDLE_BLOCKING] = "blocking: a dependency was not done",
	[GPU_IDLE_STALLED] = "dependency-stalled: it could have begun",
	[GPU_IDLE_UNKNOWN] = "unknown: the launch is not recorded",
};

const char *const gpu_piece_texts[GPU_PIECE_KIND_COUNT] = {
	[GPU_PIECE_OPERATION] = "",
	[GPU_PIECE_GAP] = "before ",
	[GPU_PIECE_LAUNCH] = "launch of ",
	[GPU_PIECE_HOST] = "thread ",
	[GPU_PIECE_RETURN] = "return to thread ",
};

void gpu_problems(const struct gpu_timeline *timeline, struct gpu_problem problems[GPU_PROBLEMS])
{
	uint64_t dropped = 0, zero = 0, clamped = 0, unknown = 0;

	for (size_t i = 0; i < timeline->sessions.len; i++) {
		dropped += timeline->sessions.data[i].dropped;
		zero += timeline->sessions.data[i].zero_times;
		clamped += timeline->sessions.data[i].clamped;
		unknown += timeline->sessions.data[i].unknown;
	}
	problems[0] = (struct gpu_problem){dropped, "operation was dropped by CUPTI",
					   "operations were dropped by CUPTI"};
	problems[1] = (struct gpu_problem){zero, "operation had no times, and is lost",
					   "operations had no times, and are lost"};
	problems[2] = (struct gpu_problem){
		clamped, "operation began before its launch, and was moved there",
		"operations began before their launch, and were moved there"};
	problems[3] = (struct gpu_problem){timeline->unknown_ops, "operation is of an unknown kind",
					   "operations are of an unknown kind"};
	problems[4] = (struct gpu_problem){timeline->without_launch + timeline->early,
					   "operation has no launch in the capture",
					   "operations have no launch in the capture"};
	problems[5] = (struct gpu_problem){
		timeline->repeated, "operation has a correlation id that several launches have",
		"operations have a correlation id that several launches have"};
	problems[6] = (struct gpu_problem){unknown, "record of CUPTI is of an unknown kind",
					   "records of CUPTI are of unknown kinds"};
	problems[7] = (struct gpu_problem){timeline->edges_left_out, "dependency was left out",
					   "dependencies were left out"};
}

uint64_t gpu_clock_error_max(const struct gpu_timeline *timeline)
{
	uint64_t error_ns = 0;

	for (size_t i = 0; i < timeline->sessions.len; i++)
		if (timeline->sessions.data[i].clock_error_ns > error_ns)
			error_ns = timeline->sessions.data[i].clock_error_ns;
	return error_ns;
}
