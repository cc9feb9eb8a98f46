// SPDX-License-Identifier: Apache-2.0
/*
 * The order in which a rank posted its calls. Threads may send to one rank at the same time, with
 * one tag. Nobody knows then which message is the first. After all of them have returned, the
 * number of the next message is known again:
 *
 *	thread 1   ---send---              ---send---
 *	thread 2         ---send---
 *	           |not known     |        |known
 */
#include "model/comm/comm_mpi_internal.h"
#include "util/memory.h"

/* Calls that are counted together: one direction, peer and tag of a communicator. */
struct mpi_channel {
	uint64_t open_until; /* the latest return of its calls so far */
	/* The only call since the channel was last idle; MODEL_NONE: there are several. */
	uint32_t alone;
};

struct mpi_channels {
	VEC(struct mpi_channel) list;
	struct keymap at; /* communicator and kind, peer and tag → channel */
};

static struct mpi_channel *channel_of(struct mpi_channels *channels, const struct mpi_call *call)
{
	uint64_t kind = !call->message ? 0 : call->receives ? 1 : 2;
	const uint64_t key[] = {
		call->comm, kind,
		call->message ? (uint64_t)(uint32_t)call->peer << 32 | (uint32_t)call->tag : 0};
	uint32_t found = keymap_get(&channels->at, key, sizeof(key));

	if (found != MAP_NONE)
		return &channels->list.data[found];
	found = (uint32_t)channels->list.len;
	memory_require(channels->list.len < MODEL_NONE);
	vec_add(&channels->list, (struct mpi_channel){0});
	keymap_put(&channels->at, key, sizeof(key), found);
	return &channels->list.data[found];
}

/* A call that was open when an unresolved one began may have been posted after it. */
static void unresolved_mark(struct mpi_scan *scan)
{
	for (size_t i = scan->calls.len; i--;) {
		struct mpi_call *call = &scan->calls.data[i];
		uint64_t *next = &scan->comms.data[call->comm].unresolved_ts[call->receives];

		if (mpi_call_is_unresolved(call))
			*next = call->posted_ts;
		else if (call->message && *next && call->returned_ts > *next)
			call->call.unsure = true;
	}
}

void mpi_calls_order(struct mpi_scan *scan)
{
	struct mpi_channels channels = {0};
	struct mpi_call *calls = scan->calls.data;

	for (uint32_t i = 0; i < scan->calls.len; i++) {
		struct mpi_channel *channel = channel_of(&channels, &calls[i]);

		if (calls[i].posted_ts >= channel->open_until) {
			*channel = (struct mpi_channel){calls[i].returned_ts, i};
		} else {
			calls[i].call.unsure = true;
			if (channel->alone != MODEL_NONE)
				calls[channel->alone].call.unsure = true;
			channel->alone = MODEL_NONE;
			if (calls[i].returned_ts > channel->open_until)
				channel->open_until = calls[i].returned_ts;
		}
	}
	unresolved_mark(scan);
	vec_free(&channels.list);
	keymap_free(&channels.at);
}
