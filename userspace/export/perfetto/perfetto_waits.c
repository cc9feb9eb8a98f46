// SPDX-License-Identifier: Apache-2.0
/* The long waits of threads as slices, with their causes: thread states are scheduler data, which
 * has no arguments. Those of a thread are on a track below its own. */
#include <inttypes.h>
#include <stdio.h>

#include "export/perfetto/node_stacks_internal.h"
#include "export/perfetto/perfetto_internal.h"
#include "export/perfetto/slice_causes_internal.h"
#include "util/units.h"

static const char *const key_names[WAIT_TEXT_COUNT] = {
	[WAIT_CAUSE] = "cause",       [WAIT_GRADE] = "grade",   [WAIT_CULPRIT] = "culprit",
	[WAIT_OBJECT] = "object",     [WAIT_CAUSES] = "causes", [WAIT_SYSCALL] = "system_call",
	[WAIT_WOKEN_BY] = "woken_by",
};

/* Numbers of the names that slices of waits have. */
struct wait_names {
	uint32_t category, stack, keys[WAIT_TEXT_COUNT];
};

static void wait_put(struct perfetto *p, struct sequence *sequence, const struct wait_names *names,
		     const struct wait_slice *wait)
{
	const char *name = wait->cause == WHY_UNKNOWN ? "blocked" : why_causes[wait->cause].name;
	struct site_names slice = {.name = names_own(&p->encoder, name),
				   .category = names->category};

	event_begin(&p->encoder, sequence, PF__EVENT_TYPE__SLICE_BEGIN, 0, wait->from_ts);
	event_site(&p->encoder, sequence, &slice);
	for (unsigned i = 0; i < WAIT_TEXT_COUNT; i++)
		event_refer(p, sequence, names->keys[i], TEXT_CAUSES, wait->texts[i]);
	event_refer(p, sequence, names->stack, TEXT_STACKS,
		    node_stacks_of_wait(p->stacks,
					model_wait_at(p->model, wait->thread, wait->from_ts)));
	event_put(&p->encoder);
	slice_end_put(&p->encoder, sequence, wait->to_ts, 0);
}

/* Begins the track of a thread's waits. */
static struct sequence track_begin(struct perfetto *p, const struct wait_slice *first)
{
	uint64_t uuid = ++p->encoder.next_uuid;
	char name[128];

	snprintf(name, sizeof(name), "waits of %.64s", model_thread_name(p->model, first->thread));
	track_describe(&p->encoder, uuid, p->threads[first->thread].uuid, name, false,
		       first->from_ts);
	return sequence_begin(&p->encoder, uuid, true);
}

/* Tells that waits are missing. */
static void left_out_tell(struct perfetto *p, size_t count, uint64_t left_out)
{
	char text[128];

	if (!left_out)
		return;
	snprintf(text, sizeof(text), "%zu of %" PRIu64 " of at least 1 ms", count,
		 count + left_out);
	about_attribute(&p->encoder, "waffle.waits", text);
}

void perfetto_waits(struct perfetto *p)
{
	uint64_t left_out;
	size_t count;
	const struct wait_slice *waits = slice_causes_waits(p->causes, &count, &left_out);
	struct sequence sequence = {0};
	struct wait_names names = {
		.category = names_own(&p->encoder, "wait"),
		.stack = names_own(&p->encoder, "stack"),
	};

	for (unsigned i = 0; i < WAIT_TEXT_COUNT; i++)
		names.keys[i] = names_own(&p->encoder, key_names[i]);
	for (size_t i = 0; i < count; i++) {
		if (!p->threads[waits[i].thread].uuid)
			continue;
		if (!i || waits[i].thread != waits[i - 1].thread)
			sequence = track_begin(p, &waits[i]);
		wait_put(p, &sequence, &names, &waits[i]);
	}
	left_out_tell(p, count, left_out);
}
