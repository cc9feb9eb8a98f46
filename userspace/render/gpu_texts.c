// SPDX-License-Identifier: Apache-2.0
#include "render/gpu_texts.h"

#include <stdio.h>

#include "util/units.h"

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

enum problem {
	PROBLEM_DROPPED,
	PROBLEM_NO_TIMES,
	PROBLEM_CLAMPED,
	PROBLEM_OPERATION,
	PROBLEM_NO_LAUNCH,
	PROBLEM_REPEATED,
	PROBLEM_RECORD,
	PROBLEM_EDGES,
};
_Static_assert(PROBLEM_EDGES + 1 == GPU_PROBLEMS, "one text for each problem");

/* The text follows the number of cases. */
static const struct {
	const char *one, *many;
} problem_texts[GPU_PROBLEMS] = {
	[PROBLEM_DROPPED] = {"operation was dropped by CUPTI", "operations were dropped by CUPTI"},
	[PROBLEM_NO_TIMES] = {"operation had no times, and is lost",
			      "operations had no times, and are lost"},
	[PROBLEM_CLAMPED] = {"operation began before its launch, and was moved there",
			     "operations began before their launch, and were moved there"},
	[PROBLEM_OPERATION] = {"operation is of an unknown kind",
			       "operations are of an unknown kind"},
	[PROBLEM_NO_LAUNCH] = {"operation has no launch in the capture",
			       "operations have no launch in the capture"},
	[PROBLEM_REPEATED] = {"operation has a correlation id that several launches have",
			      "operations have a correlation id that several launches have"},
	[PROBLEM_RECORD] = {"record of CUPTI is of an unknown kind",
			    "records of CUPTI are of unknown kinds"},
	[PROBLEM_EDGES] = {"dependency was left out", "dependencies were left out"},
};

size_t gpu_problems(const struct gpu_timeline *timeline, char texts[GPU_PROBLEMS][GPU_PROBLEM_TEXT])
{
	uint64_t counts[GPU_PROBLEMS] = {
		[PROBLEM_OPERATION] = timeline->unknown_ops,
		[PROBLEM_NO_LAUNCH] = timeline->without_launch + timeline->early,
		[PROBLEM_REPEATED] = timeline->repeated,
		[PROBLEM_EDGES] = timeline->edges_left_out,
	};
	char number[UNITS_TEXT];
	size_t len = 0;

	for (size_t i = 0; i < timeline->sessions.len; i++) {
		counts[PROBLEM_DROPPED] += timeline->sessions.data[i].dropped;
		counts[PROBLEM_NO_TIMES] += timeline->sessions.data[i].zero_times;
		counts[PROBLEM_CLAMPED] += timeline->sessions.data[i].clamped;
		counts[PROBLEM_RECORD] += timeline->sessions.data[i].unknown;
	}
	for (size_t i = 0; i < GPU_PROBLEMS; i++)
		if (counts[i])
			snprintf(texts[len++], GPU_PROBLEM_TEXT, "%s %s",
				 units_format_count(number, counts[i]),
				 units_plural(counts[i], problem_texts[i].one,
					      problem_texts[i].many));
	return len;
}

uint64_t gpu_clock_error_max(const struct gpu_timeline *timeline)
{
	uint64_t error_ns = 0;

	for (size_t i = 0; i < timeline->sessions.len; i++)
		if (timeline->sessions.data[i].clock_error_ns > error_ns)
			error_ns = timeline->sessions.data[i].clock_error_ns;
	return error_ns;
}
