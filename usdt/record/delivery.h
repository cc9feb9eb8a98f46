/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a record that was taken from a ring: it gets its site and its time, passes the
 * filter, and is given to the sink.
 *
 *	gather (one order) ──→ delivery_item ──→ filter ──→ delivery_kept ──→ sink
 *
 * Only the collector's thread uses it, but for delivery_found().
 */
#ifndef WAFFLE_USDT_RECORD_DELIVERY_H
#define WAFFLE_USDT_RECORD_DELIVERY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "filter/stream/stream.h"
#include "usdt/record/gather.h"
#include "usdt/record/sites.h"
#include "usdt/ring/ticks.h"
#include "usdt/sink/sink.h"
#include "util/clock.h"
#include "util/map.h"
#include "util/vec.h"

struct delivery {
	/* Set by the collector, and owned by the delivery. */
	struct sink *sink;
	struct filter_stream *stream;
	struct sites *sites;
	uint32_t pid;
	bool keep_children;
	uint64_t losses_ns; /* up to when losses have been told */
	struct ticks_map ticks;

	pthread_mutex_t lock; /* protects `listed`, since other threads find sites, too */
	VEC(const struct site_info *) listed;
	size_t known; /* number of those that the filter and the sink know */

	struct map tracks; /* numbers of those whose names the sink knows */
	/* Of the hit that is being delivered: its track, or 0, and the thread that delivered it. */
	uint32_t track, track_tid;
	uint32_t named_track; /* the filter's thread 0 has its name */
	bool told_time;
	/* Records: in the sink, not valid, and without room in a ring or in the filter. */
	uint64_t delivered, failed, lost;
	int result; /* the first error of the sink, after which nothing is written */
	struct error problem;
};

/* The rest is 0 or was set before. */
void delivery_begin(struct delivery *delivery);
/* Frees what it owns. A sink that is still there is discarded. */
void delivery_free(struct delivery *delivery);

/* The function of gather_round(). */
void delivery_item(const struct gather_item *item, void *arg);
/* The function of the filter. */
void delivery_kept(struct waffle_rec *rec, void *arg);
/* The function of struct sites_callbacks. Any thread may call it. */
uint32_t delivery_found(const struct site_info *site, void *arg);
/* Tells the filter and the sink of sites that were found since the last call. */
void delivery_sites(struct delivery *delivery);
/* Adds a record if records were lost since the last call; `unread` were so far in rings. */
void delivery_losses(struct delivery *delivery, uint64_t unread);
void delivery_counts(const struct delivery *delivery,
		     struct store_counts counts[WAFFLE_SOURCE_COUNT]);

#endif
