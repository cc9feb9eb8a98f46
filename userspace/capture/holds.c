// SPDX-License-Identifier: Apache-2.0
#include "capture/holds_internal.h"

#include <string.h>

/* One exec makes a request for the program, for up to five interpreters of scripts, and for a
 * loader. */
#define HOLDS_MAX 16

/* The next one takes over what the oldest one knows against its exec. */
static void oldest_drop(struct holds *holds)
{
	const struct hold *oldest = &holds->list.data[0];
	struct hold *next = &holds->list.data[1];

	if (next->exec_ts == oldest->exec_ts) {
		next->missed |= oldest->missed;
		next->armed |= oldest->armed;
		next->counted |= oldest->counted;
	}
	memmove(&holds->list.data[0], next, --holds->list.len * sizeof(*next));
}

struct hold *holds_add(struct holds *holds, uint64_t id, uint64_t begin_ts)
{
	bool over = begin_ts < holds->exec_ts;
	struct hold hold = {.id = id,
			    .begin_ts = begin_ts,
			    .exec_ts = over ? holds->exec_ts : 0,
			    .missed = over};

	if (holds->list.len == HOLDS_MAX)
		oldest_drop(holds);
	if (!vec_push(&holds->list, hold))
		return NULL;
	return &holds->list.data[holds->list.len - 1];
}

struct hold *holds_find(struct holds *holds, uint64_t id)
{
	for (size_t i = 0; i < holds->list.len; i++)
		if (id && holds->list.data[i].id == id)
			return &holds->list.data[i];
	return NULL;
}

void holds_exec(struct holds *holds, uint64_t exec_ts)
{
	/* Records of two CPUs may be read in the wrong order. */
	if (exec_ts > holds->exec_ts)
		holds->exec_ts = exec_ts;
	for (size_t i = 0; i < holds->list.len; i++) {
		struct hold *hold = &holds->list.data[i];

		if (hold->begin_ts < exec_ts && (!hold->exec_ts || exec_ts < hold->exec_ts))
			hold->exec_ts = exec_ts;
	}
}

void holds_free(struct holds *holds)
{
	vec_free(&holds->list);
}

struct hold_sum holds_sum(const struct holds *holds, uint64_t exec_ts)
{
	struct hold_sum sum = {.name = ""};
	bool missed = false;

	for (size_t i = 0; i < holds->list.len; i++) {
		const struct hold *hold = &holds->list.data[i];

		if (hold->exec_ts != exec_ts)
			continue;
		sum.any = true;
		sum.name = sum.name[0] ? sum.name : hold->name;
		sum.prepared |= hold->ready && !hold->id;
		sum.ready |= hold->ready;
		sum.armed |= hold->armed;
		sum.counted |= hold->counted;
		missed |= hold->missed;
	}
	sum.ready &= !missed;
	return sum;
}

void holds_count(struct holds *holds)
{
	for (size_t i = 0; holds->exec_ts && i < holds->list.len; i++)
		holds->list.data[i].counted |= holds->list.data[i].exec_ts == holds->exec_ts;
}

uint64_t holds_next_ts(const struct holds *holds)
{
	uint64_t next_ts = UINT64_MAX;

	for (size_t i = 0; i < holds->list.len; i++)
		if (!holds->list.data[i].exec_ts && holds->list.data[i].begin_ts < next_ts)
			next_ts = holds->list.data[i].begin_ts;
	return next_ts;
}

void holds_disarmed(struct holds *holds)
{
	for (size_t i = 0; i < holds->list.len; i++)
		if (!holds->list.data[i].exec_ts)
			holds->list.data[i].missed = true;
}

void holds_armed(struct holds *holds)
{
	for (size_t i = 0; i < holds->list.len; i++)
		if (!holds->list.data[i].exec_ts && holds->list.data[i].missed)
			holds->list.data[i].armed = true;
}

bool holds_any_ready(const struct holds *holds)
{
	for (size_t i = 0; i < holds->list.len; i++)
		if (holds->list.data[i].ready)
			return true;
	return false;
}
