// SPDX-License-Identifier: Apache-2.0
/* Whether threads wait at the other ends of all connections of an epoll instance. */
#include "analyze/why/lookup/why_peers_wait.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/why/lookup/why_evidence.h"
#include "analyze/why/lookup/why_halted.h"
#include "analyze/why/lookup/why_peers.h"
#include "analyze/why/why_walk_types.h"
#include "target/process/descriptors.h"

/* A thread that has just sent something may wait already when that arrives. */
#define SENT_BEFORE_NS 1000000ull
/* Limit of the text of an epoll instance that is known to be whole: it may lack what does not fit
 * into descriptor.detail. */
#define WATCHED_MAX 220

/* Whether a thread has waited at the other end of a socket for a while. */
static bool waits_at_other_end(struct why_walk *walk, uint32_t number, uint64_t ts)
{
	const struct store_reader *reader = walk->model->reader;
	const struct store_object *object = store_reader_object(reader, number), *awaited;
	uint32_t other = why_socket_other_end(walk, object), peer = why_socket_peer(walk, object);
	const struct why_interval *interval;
	size_t index;

	if (strncmp(object->detail, "tcp ", strlen("tcp ")) != 0 || other == MODEL_NONE ||
	    peer >= walk->model->threads.len)
		return false;
	index = why_intervals_after(&walk->intervals, peer, ts - 1);
	if (index >= walk->intervals.threads[peer].intervals.len)
		return false;
	interval = &walk->intervals.threads[peer].intervals.data[index];
	if (interval->state != WAFFLE_THREAD_BLOCKED || interval->from_ts + SENT_BEFORE_NS > ts)
		return false;
	awaited = why_wait_object(walk, peer, interval);
	return awaited && awaited->ino == store_reader_object(reader, other)->ino;
}

/* What is at the other ends of the connections of an epoll instance. */
struct epoll_ends {
	uint32_t waiting; /* so many threads wait there */
	uint32_t stopped; /* main thread of a process that is stopped; MODEL_NONE: none */
};

/* Looks at all of them. False: something else is at one of them, or it is not known. The ones whose
 * process is stopped count if `from` is not 0. */
static bool ends_find(struct why_walk *walk, const struct store_object *epoll, uint64_t from,
		      uint64_t to, struct epoll_ends *ends)
{
	const char *at = epoll->detail, *name = "socket:[";
	unsigned unknown = 0, endless = 0;

	*ends = (struct epoll_ends){.stopped = MODEL_NONE};
	/* The inodes in the text are those of the host. */
	if (walk->model->host_count > 1 || strlen(at) > WATCHED_MAX)
		return false;
	while ((at = strstr(at, name))) {
		uint64_t ino = strtoull(at + strlen(name), NULL, 10);
		uint32_t number = map_get(&walk->socket_at, ino), stopped = MODEL_NONE;
		const struct store_object *object;
		bool connected;

		at += strlen(name);
		object = number == MAP_NONE ? NULL
					    : store_reader_object(walk->model->reader, number);
		/* The one that listens has no other end. It may be the unknown one. */
		connected = object && strstr(object->detail, DESCRIPTOR_BETWEEN);
		endless += !connected;
		unknown += !object;
		if (unknown && endless > 1)
			return false;
		if (!connected)
			continue;
		if (from)
			stopped = why_halted_peer(walk, object, from, to);
		if (stopped != MODEL_NONE)
			ends->stopped = stopped;
		else if (waits_at_other_end(walk, number, to))
			ends->waiting++;
		else
			return false;
	}
	return true;
}

bool why_peers_wait(struct why_walk *walk, const struct store_object *epoll, uint64_t ts)
{
	struct epoll_ends ends;

	return ends_find(walk, epoll, 0, ts, &ends) && ends.waiting;
}

uint32_t why_peer_stopped(struct why_walk *walk, const struct store_object *epoll, uint64_t from,
			  uint64_t to)
{
	struct epoll_ends ends;

	return ends_find(walk, epoll, from, to, &ends) ? ends.stopped : MODEL_NONE;
}
