// SPDX-License-Identifier: Apache-2.0
#include "usdt/record/delivery.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "usdt/name/names.h"
#include "usdt/name/tracks.h"
#include "usdt/say/say.h"

/* Words of a RING_TRACK_HIT in front of its frame, in bytes. */
#define TRACK_HEAD 32
/* Times of a track that are farther away are those of a wrong clock. */
#define TRACK_REACH_NS (30ull * 86400 * 1000000000)

static bool append(struct delivery *delivery, const struct waffle_rec *rec)
{
	struct error problem = ERROR_INIT;
	int result = delivery->result;

	if (!result)
		result = sink_record(delivery->sink, rec, &problem);
	/* The sink only rejects a record that is not valid. After other errors it is of no use. */
	if (result && result != -EINVAL && !delivery->result) {
		delivery->result = result;
		delivery->problem = problem;
	}
	return !result;
}

static void append_counted(struct delivery *delivery, const struct waffle_rec *rec)
{
	if (append(delivery, rec))
		delivery->delivered++;
	else
		delivery->failed++;
}

/* Tells the sink the name of a track when it first has something. */
static void track_append(struct delivery *delivery, uint32_t number, uint64_t ts, uint32_t tid)
{
	const struct waffle_track_ *track = tracks_find(number);
	struct waffle_rec_track rec = {
		.rec = {.ts = ts, .tid = tid, .kind = WAFFLE_REC_TRACK},
		.tgid = delivery->pid,
		.track = number,
	};

	if (!track || map_get(&delivery->tracks, number) != MAP_NONE ||
	    !map_set(&delivery->tracks, number, 1))
		return;
	memcpy(rec.name, track->name, sizeof(rec.name));
	memcpy(rec.group, track->group, sizeof(rec.group));
	append(delivery, &rec.rec);
}

static void on_track_append(struct delivery *delivery, const struct waffle_rec_hit *hit)
{
	const struct waffle_frame *frame = (const void *)(hit + 1);
	struct waffle_rec_on_track rec = {
		.rec = hit->rec,
		.id = frame->id,
		.tgid = delivery->pid,
		.track = delivery->track,
	};

	rec.rec.kind = WAFFLE_REC_ON_TRACK;
	append_counted(delivery, &rec.rec);
}

void delivery_kept(struct waffle_rec *rec, void *arg)
{
	struct delivery *delivery = arg;

	if (delivery->track) {
		rec->tid = delivery->track_tid;
		if (rec->kind == WAFFLE_REC_HIT)
			on_track_append(delivery, (const struct waffle_rec_hit *)rec);
	}
	append_counted(delivery, rec);
}

static void name_append(struct delivery *delivery, const struct gather_item *item, uint64_t ts)
{
	struct waffle_rec_task task = {
		.rec = {.ts = ts, .tid = item->tid, .kind = WAFFLE_REC_TASK},
		.tgid = delivery->pid,
		.flags = WAFFLE_TASK_TRACED_FLAG,
	};

	memcpy(task.comm, item->comm, sizeof(task.comm));
	filter_stream_name(delivery->stream, task.tgid, item->tid, task.comm);
	append_counted(delivery, &task.rec);
}

void delivery_sites(struct delivery *delivery)
{
	for (;;) {
		const struct site_info *site;

		pthread_mutex_lock(&delivery->lock);
		if (delivery->known == delivery->listed.len) {
			pthread_mutex_unlock(&delivery->lock);
			return;
		}
		site = delivery->listed.data[delivery->known];
		pthread_mutex_unlock(&delivery->lock);
		if (!filter_stream_add_site(delivery->stream, site))
			return; /* out of memory: again in the next round */
		delivery->known++;
		if (!delivery->result)
			delivery->result = sink_add_site(delivery->sink, site, &delivery->problem);
	}
}

/* The number of the site with a probe; WAFFLE_SITE_UNKNOWN: it is not wanted, such as one that only
 * another tracer has armed. */
static uint32_t site_number(struct delivery *delivery, uint64_t probe, uint64_t ticks)
{
	uint32_t number = sites_number(delivery->sites, probe, ticks);

	if (number >= delivery->known && number != WAFFLE_SITE_UNKNOWN)
		delivery_sites(delivery); /* it was found during this round */
	return number;
}

static void hit_append(struct delivery *delivery, const struct gather_item *item, uint64_t ts)
{
	const uint64_t *words = (const uint64_t *)(item->record + 1);
	uint64_t buffer[RING_RECORD_MAX / 8];
	struct waffle_rec_hit *hit = (struct waffle_rec_hit *)buffer;
	size_t bytes = item->record->bytes - sizeof(*item->record);

	if (bytes < 8 + sizeof(struct waffle_frame) || bytes > 8 + WAFFLE_FRAME_MAX) {
		delivery->failed++;
		return;
	}
	*hit = (struct waffle_rec_hit){
		.rec = {.ts = ts,
			.tid = item->tid,
			.kind = WAFFLE_REC_HIT,
			.cpu = (uint16_t)item->record->cpu},
		.tgid = delivery->pid,
		.site = site_number(delivery, words[0], item->ticks),
		.frame_bytes = (uint32_t)bytes - 8,
	};
	memcpy(hit + 1, words + 1, bytes - 8);
	filter_stream_hit(delivery->stream, hit, ts);
}

static void end_append(struct delivery *delivery, const struct gather_item *item, uint64_t ts)
{
	const uint64_t *words = (const uint64_t *)(item->record + 1);
	struct waffle_rec_span_end end = {
		.rec = {.ts = ts,
			.tid = item->tid,
			.kind = WAFFLE_REC_SPAN_END,
			.cpu = (uint16_t)item->record->cpu},
		.tgid = delivery->pid,
	};

	if (item->record->bytes != sizeof(*item->record) + 16) {
		delivery->failed++;
		return;
	}
	end.span_id = words[0];
	end.probe_addr = words[1];
	end.site = site_number(delivery, end.probe_addr, item->ticks);
	if (end.site != WAFFLE_SITE_UNKNOWN)
		filter_stream_end(delivery->stream, &end, ts);
}

/* Whether a time that the program gave may be right. One line tells of the first that is not. */
static bool time_is_near(struct delivery *delivery, const uint64_t *words, uint64_t ts)
{
	uint64_t start = words[2], end = words[3];
	const struct waffle_track_ *track = tracks_find((uint32_t)words[1]);

	if (start <= end && start + TRACK_REACH_NS >= ts && end <= ts + TRACK_REACH_NS)
		return true;
	if (!delivery->told_time)
		say_line("what is recorded on the track '%s' is more than 30 days away from "
			 "now and counts as lost: is its clock right?",
			 track ? track->name : "?");
	delivery->told_time = true;
	return false;
}

/* For the filter a track is the thread 0 of its process, with the track's name. */
static void track_name(struct delivery *delivery)
{
	const struct waffle_track_ *track = tracks_find(delivery->track);
	char comm[WAFFLE_COMM_BYTES];

	if (!track || delivery->named_track == delivery->track)
		return;
	memcpy(comm, track->name, sizeof(comm));
	comm[sizeof(comm) - 1] = '\0';
	filter_stream_name(delivery->stream, delivery->pid, 0, comm);
	delivery->named_track = delivery->track;
}

static void track_hit_deliver(struct delivery *delivery, struct waffle_rec_hit *hit,
			      uint64_t end_ts, uint64_t probe, uint64_t ts)
{
	const struct waffle_frame *frame = (const void *)(hit + 1);
	const struct name_site *name = (const struct name_site *)(uintptr_t)probe;
	struct waffle_rec_span_end end = {
		.rec = hit->rec,
		.span_id = frame->id,
		.tgid = delivery->pid,
		.site = hit->site,
		.probe_addr = probe,
	};

	end.rec.kind = WAFFLE_REC_SPAN_END;
	end.rec.ts = end_ts;
	if (delivery->keep_children) {
		/* The filter may deliver the hit later, and in the order of its thread. */
		on_track_append(delivery, hit);
		delivery->track = 0;
	} else {
		hit->rec.tid = end.rec.tid = 0;
		track_name(delivery);
	}
	filter_stream_hit(delivery->stream, hit, ts);
	if (name->site.kind == WAFFLE_SITE_SPAN)
		filter_stream_end(delivery->stream, &end, ts);
}

/* A hit whose times the program gave. Its span's end is known, too. */
static void track_hit_append(struct delivery *delivery, const struct gather_item *item, uint64_t ts)
{
	const uint64_t *words = (const uint64_t *)(item->record + 1);
	uint64_t buffer[RING_RECORD_MAX / 8];
	struct waffle_rec_hit *hit = (struct waffle_rec_hit *)buffer;
	size_t bytes = item->record->bytes - sizeof(*item->record);

	if (bytes < TRACK_HEAD + sizeof(struct waffle_frame) ||
	    bytes > TRACK_HEAD + WAFFLE_FRAME_MAX || !time_is_near(delivery, words, ts)) {
		delivery->failed++;
		return;
	}
	*hit = (struct waffle_rec_hit){
		.rec = {.ts = words[2],
			.tid = item->tid,
			.kind = WAFFLE_REC_HIT,
			.cpu = (uint16_t)item->record->cpu},
		.tgid = delivery->pid,
		.site = site_number(delivery, words[0], item->ticks),
		.frame_bytes = (uint32_t)(bytes - TRACK_HEAD),
	};
	if (hit->site == WAFFLE_SITE_UNKNOWN)
		return;
	memcpy(hit + 1, words + TRACK_HEAD / 8, bytes - TRACK_HEAD);
	track_append(delivery, (uint32_t)words[1], ts, item->tid);
	delivery->track = (uint32_t)words[1];
	delivery->track_tid = item->tid;
	track_hit_deliver(delivery, hit, words[3], words[0], ts);
	delivery->track = 0;
}

void delivery_item(const struct gather_item *item, void *arg)
{
	struct delivery *delivery = arg;
	uint64_t ts = ticks_map_ns(&delivery->ticks, item->ticks);

	if (item->comm)
		name_append(delivery, item, ts);
	else if (item->ended)
		filter_stream_thread_exit(delivery->stream, delivery->pid, item->tid);
	else if (item->record->kind == RING_HIT)
		hit_append(delivery, item, ts);
	else if (item->record->kind == RING_SPAN_END)
		end_append(delivery, item, ts);
	else if (item->record->kind == RING_TRACK_HIT)
		track_hit_append(delivery, item, ts);
	else
		delivery->failed++;
}

/* ---- sites ---- */

uint32_t delivery_found(const struct site_info *site, void *arg)
{
	struct delivery *delivery = arg;
	uint32_t number = WAFFLE_SITE_UNKNOWN;

	if (filter_stream_use(delivery->stream, site) == FILTER_STREAM_DORMANT)
		return number;
	pthread_mutex_lock(&delivery->lock);
	if (vec_push(&delivery->listed, site))
		number = (uint32_t)delivery->listed.len - 1;
	pthread_mutex_unlock(&delivery->lock);
	return number;
}

/* ---- losses and counts ---- */

void delivery_losses(struct delivery *delivery, uint64_t unread)
{
	uint64_t count = unread + filter_stream_counts(delivery->stream).lost;
	struct waffle_rec_loss loss = {
		.rec = {.ts = clock_monotonic_ns(), .kind = WAFFLE_REC_LOSS},
		.source = WAFFLE_SOURCE_SPANS,
		.from_ts = delivery->losses_ns,
		.count = count - delivery->lost,
	};

	if (loss.count)
		append(delivery, &loss.rec);
	delivery->lost = count;
	delivery->losses_ns = loss.rec.ts;
}

/* What the filter rejects is not produced. */
void delivery_counts(const struct delivery *delivery,
		     struct store_counts counts[WAFFLE_SOURCE_COUNT])
{
	uint64_t lost = delivery->lost + delivery->failed;

	memset(counts, 0, WAFFLE_SOURCE_COUNT * sizeof(*counts));
	counts[WAFFLE_SOURCE_SPANS] = (struct store_counts){
		.produced = delivery->delivered + lost,
		.delivered = delivery->delivered,
		.lost = lost,
	};
}

/* ---- begin and end ---- */

void delivery_begin(struct delivery *delivery)
{
	pthread_mutex_init(&delivery->lock, NULL);
}

void delivery_free(struct delivery *delivery)
{
	if (delivery->sink)
		sink_discard(delivery->sink);
	filter_stream_free(delivery->stream);
	sites_free(delivery->sites);
	map_free(&delivery->tracks);
	vec_free(&delivery->listed);
	pthread_mutex_destroy(&delivery->lock);
}
