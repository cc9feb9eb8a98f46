// SPDX-License-Identifier: Apache-2.0
#include "store/predict_internal.h"

#include <stdlib.h>
#include <string.h>

/* Of a job, thousands of files may be decoded at a time, and few have many threads and CPUs. */
#define THREADS_AT_FIRST 16
#define CPUS_AT_FIRST 64

bool predict_init(struct predict *predict)
{
	*predict = (struct predict){0};
	predict->thread_room = THREADS_AT_FIRST;
	predict->threads = calloc(THREADS_AT_FIRST + 1, sizeof(*predict->threads));
	if (!predict->threads)
		return false;
	predict_reset(predict);
	return true;
}

void predict_free(struct predict *predict)
{
	free(predict->threads);
	free(predict->current);
	for (size_t i = 0; i < predict->sites.len; i++)
		free(predict->sites.data[i].last);
	vec_free(&predict->sites);
	*predict = (struct predict){0};
}

bool predict_add_site(struct predict *predict, const struct site_info *site)
{
	struct predict_site added = {
		.kind = site->kind, .call = site->call, .key_count = site->key_count};

	for (unsigned i = 0; i < site->key_count && i < WAFFLE_KEYS_MAX; i++)
		added.types[i] = site->keys[i].type;
	return vec_push(&predict->sites, added);
}

void predict_reset(struct predict *predict)
{
	if (predict->cpu_limit)
		memset(predict->current, 0, predict->cpu_limit * sizeof(*predict->current));
	predict->cpu_limit = 0;
	predict->thread_count = 0;
	predict->block_count = 0;
	if (!++predict->chunk)
		predict->chunk = 1; /* 0 is that of a site that was never used */
	predict->ts = 0;
	predict->cpu = 0;
	predict->tgid = 0;
	predict->call_seed = 0;
	memset(predict->words, 0, sizeof(predict->words));
}

static bool threads_reserve(struct predict *predict)
{
	uint32_t room = predict->thread_room * 4;
	struct predict_thread *moved;

	if (predict->thread_count < predict->thread_room)
		return true;
	if (room > PREDICT_THREADS_MAX)
		room = PREDICT_THREADS_MAX;
	moved = realloc(predict->threads, (room + 1) * sizeof(*moved));
	if (!moved) {
		predict->failed = true;
		return false;
	}
	predict->threads = moved;
	predict->thread_room = room;
	return true;
}

uint32_t predict_add_thread(struct predict *predict, uint32_t tid)
{
	struct predict_thread *thread;

	if (predict->thread_count == PREDICT_THREADS_MAX || !threads_reserve(predict))
		return 0;
	thread = &predict->threads[++predict->thread_count];
	/* The entries of open[] from `depth` on are never read. */
	memset(thread, 0, offsetof(struct predict_thread, spans));
	memset(&thread->spans, 0, offsetof(struct predict_ids, open));
	memset(&thread->calls, 0, offsetof(struct predict_ids, open));
	thread->tid = tid;
	thread->tgid = predict->tgid;
	thread->block.syscall = -1;
	return predict->thread_count;
}

static bool cpus_reserve(struct predict *predict, uint16_t cpu)
{
	uint32_t room = predict->cpu_room ? predict->cpu_room : CPUS_AT_FIRST;
	uint16_t *moved;

	if (cpu < predict->cpu_room)
		return true;
	while (room <= cpu)
		room *= 4;
	if (room > PREDICT_CPUS)
		room = PREDICT_CPUS;
	moved = realloc(predict->current, room * sizeof(*moved));
	if (!moved) {
		predict->failed = true;
		return false;
	}
	memset(moved + predict->cpu_room, 0, (room - predict->cpu_room) * sizeof(*moved));
	predict->current = moved;
	predict->cpu_room = room;
	return true;
}

void predict_set_current(struct predict *predict, uint16_t cpu, uint32_t thread)
{
	if (!cpus_reserve(predict, cpu))
		return;
	predict->current[cpu] = (uint16_t)thread;
	if (cpu >= predict->cpu_limit)
		predict->cpu_limit = cpu + 1u;
}

/* Clears the last values of a site. */
static bool values_clear(struct predict_site *site)
{
	size_t count = site->key_count < WAFFLE_KEYS_MAX ? site->key_count : WAFFLE_KEYS_MAX;

	if (!count)
		return true;
	if (!site->last) {
		site->last = calloc(2 * count, sizeof(*site->last));
		site->second = site->last ? site->last + count : NULL;
		return site->last != NULL;
	}
	memset(site->last, 0, 2 * count * sizeof(*site->last));
	return true;
}

struct predict_site *predict_site(struct predict *predict, uint32_t index)
{
	struct predict_site *site;

	if (index >= predict->sites.len)
		return NULL;
	site = &predict->sites.data[index];
	if (site->chunk == predict->chunk)
		return site;
	if (!values_clear(site)) {
		predict->failed = true;
		return NULL;
	}
	site->chunk = predict->chunk;
	site->begin_keys = site->key_count;
	return site;
}

void predict_add_block(struct predict *predict, const struct block *block)
{
	if (predict->block_count < PREDICT_BLOCKS_MAX)
		predict->blocks[predict->block_count++] = *block;
}

/* Number of open spans up to and including the one with this id; 0: there is none. */
static uint32_t depth_of(const struct predict_ids *ids, uint64_t id)
{
	uint32_t depth = ids->depth;

	while (depth && ids->open[depth - 1].id != id)
		depth--;
	return depth;
}

static void open_push(struct predict_ids *ids, uint64_t id, uint32_t site)
{
	if (ids->depth < PREDICT_DEPTH_MAX)
		ids->open[ids->depth++] = (struct open_span){.id = id, .site = site};
}

/* A call has no parent that would show which calls have ended. If returns were lost, the outermost
 * calls are dropped. */
static void call_push(struct predict_ids *ids, uint64_t id, uint32_t site)
{
	if (ids->depth == PREDICT_DEPTH_MAX) {
		ids->depth--;
		memmove(&ids->open[0], &ids->open[1], ids->depth * sizeof(ids->open[0]));
	}
	open_push(ids, id, site);
}

void predict_hit(struct predict *predict, struct predict_ids *ids, const struct predict_site *site,
		 const struct waffle_rec_hit *hit, const struct waffle_frame *head)
{
	if (!site->call && head->parent != predict_parent(ids, site)) {
		/* The parent is the current span, so the spans within it have ended elsewhere. */
		ids->depth = depth_of(ids, head->parent);
		if (!ids->depth && head->parent)
			open_push(ids, head->parent, WAFFLE_SITE_UNKNOWN);
	}
	if (head->id)
		ids->last_id = head->id;
	if (head->id && site->call)
		predict->call_seed = predict_call(head->id, &hit->rec);
	ids->trace_hi = head->trace_hi;
	ids->trace_lo = head->trace_lo;
	if (site->kind != WAFFLE_SITE_SPAN)
		return;
	if (site->call)
		call_push(ids, head->id, hit->site);
	else
		open_push(ids, head->id, hit->site);
}

void predict_end(struct predict_ids *ids, uint64_t id)
{
	uint32_t depth = depth_of(ids, id);

	if (!depth)
		return;
	memmove(&ids->open[depth - 1], &ids->open[depth],
		(ids->depth - depth) * sizeof(ids->open[0]));
	ids->depth--;
}
