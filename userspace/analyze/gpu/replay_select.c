// SPDX-License-Identifier: Apache-2.0
#include "analyze/gpu/replay_select.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/memory.h"
#include "util/units.h"

int replay_part_range(struct replay_part *part, const char *text, struct error *err)
{
	const char *dash = strchr(text, '-');
	size_t len = dash ? (size_t)(dash - text) : strlen(text);
	char first[24] = "";
	bool valid = len < sizeof(first) && *text && strcmp(text, "-") != 0;

	if (valid)
		memcpy(first, text, len);
	part->first = 1;
	part->last = UINT64_MAX;
	if (valid && *first)
		valid = units_parse_number(first, &part->first);
	if (valid && !dash)
		part->last = part->first;
	else if (valid && dash[1])
		valid = units_parse_number(dash + 1, &part->last);
	if (valid && part->first >= 1 && part->first <= part->last)
		return 0;
	return error_set(err, EINVAL,
			 "--operations: '%s' is no range: give 10-20, 10-, -20 or 10; they count "
			 "from 1",
			 text);
}

static bool stream_parse(const char *text, struct replay_part_stream *stream)
{
	const char *colon = strchr(text, ':');
	char device[24] = "";

	*stream = (struct replay_part_stream){.given = true, .has_device = colon != NULL};
	if (!colon)
		return units_parse_number(text, &stream->number);
	if ((size_t)(colon - text) >= sizeof(device))
		return false;
	memcpy(device, text, (size_t)(colon - text));
	return units_parse_number(device, &stream->device) &&
	       units_parse_number(colon + 1, &stream->number);
}

int replay_part_stream(struct replay_part *part, const char *text, struct error *err)
{
	if (stream_parse(text, &part->stream))
		return 0;
	return error_set(err, EINVAL,
			 "--stream: '%s' is no stream: give its number, or DEVICE:NUMBER, as "
			 "waffle-bpf gpu shows them",
			 text);
}

static bool is_on_stream(const struct gpu_timeline *timeline, const struct gpu_timeline_op *op,
			 const struct replay_part_stream *chosen)
{
	const struct gpu_timeline_stream *stream = &timeline->streams.data[op->stream];

	return stream->number == chosen->number &&
	       (!chosen->has_device ||
		timeline->devices.data[stream->device].number == chosen->device);
}

/* Selects operations. Returns their number, and the time from the first launch of one to the last
 * end of one. */
static uint64_t ops_select(const struct replay_build *build, const struct replay_part *part,
			   bool *selected, uint64_t *from_ts, uint64_t *to_ts)
{
	const struct gpu_timeline *timeline = build->timeline;
	uint64_t number = 0, count = 0;

	*from_ts = UINT64_MAX;
	*to_ts = 0;
	for (uint32_t i = 0; i < build->graph.nodes.len; i++) {
		struct replay_origin origin = build->origins.data[i];
		const struct gpu_timeline_op *op;
		uint64_t begin_ts;

		if (origin.kind != REPLAY_ORIGIN_OP)
			continue;
		op = &timeline->ops.data[origin.index];
		number++;
		if (number < part->first || number > part->last || op->start_ts < part->from_ts ||
		    op->start_ts >= part->to_ts ||
		    (part->stream.given && !is_on_stream(timeline, op, &part->stream)))
			continue;
		selected[i] = true;
		count++;
		begin_ts = op->launch == MODEL_NONE ? op->start_ts
						    : timeline->launches.data[op->launch].ts;
		*from_ts = begin_ts < *from_ts ? begin_ts : *from_ts;
		*to_ts = op->end_ts > *to_ts ? op->end_ts : *to_ts;
	}
	return count;
}

/* What is no operation: calls of the host, and arrivals at collectives. */
static void others_select(const struct replay_build *build, const struct replay_part *part,
			  bool *selected, uint64_t from_ts, uint64_t to_ts)
{
	for (uint32_t i = 0; i < build->graph.nodes.len; i++) {
		uint64_t start_ts = build->graph.nodes.data[i].start_ts;
		struct replay_origin origin = build->origins.data[i];

		if (origin.kind == REPLAY_ORIGIN_ARRIVAL)
			selected[i] = selected[build->op_node[origin.index]];
		else if (origin.kind != REPLAY_ORIGIN_OP && !part->stream.given)
			selected[i] = start_ts >= from_ts && start_ts <= to_ts &&
				      start_ts >= part->from_ts && start_ts < part->to_ts;
	}
}

int replay_part_select(const struct replay_build *build, const struct replay_part *part,
		       bool **selected, struct error *err)
{
	uint64_t from_ts, to_ts;

	*selected = NULL;
	if (replay_part_is_all(part))
		return 0;
	*selected = memory_zeroed(build->graph.nodes.len, sizeof(**selected));
	if (!ops_select(build, part, *selected, &from_ts, &to_ts)) {
		free(*selected);
		*selected = NULL;
		return error_set(err, ENOENT,
				 "no operation is in this part of the capture; waffle-bpf gpu "
				 "shows streams and times");
	}
	others_select(build, part, *selected, from_ts, to_ts);
	return 0;
}
