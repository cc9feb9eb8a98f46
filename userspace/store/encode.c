// SPDX-License-Identifier: Apache-2.0
#include "store/encode_internal.h"

#include <stdlib.h>
#include <string.h>

#include "store/bytes_internal.h"
#include "store/format_internal.h"
#include "store/predict_internal.h"
#include "store/record_schema.h"
#include "util/hash.h"
#include "util/map.h"

/* Larger than any encoded record: a raw frame and the other fields of a hit. */
#define ENCODED_BYTES_MAX (RECORD_BYTES_MAX + 256)
/* A record refers to at most three threads, so this leaves room below the decoder's limit. */
#define THREADS_FULL (PREDICT_THREADS_MAX / 2)

struct encoder {
	struct predict predict;
	struct map threads; /* tid → index of predict.threads */
	struct map blocks;  /* hash → index of predict.blocks */
	unsigned char *data;
	size_t bytes;
	uint32_t records;
	uint64_t min_ts, max_ts;
	bool failed; /* out of memory within a record */
};

struct encoder *encoder_new(void)
{
	struct encoder *encoder = calloc(1, sizeof(*encoder));

	if (!encoder)
		return NULL;
	encoder->data = malloc(CHUNK_DATA_BYTES + ENCODED_BYTES_MAX);
	if (!encoder->data || !predict_init(&encoder->predict)) {
		encoder_free(encoder);
		return NULL;
	}
	encoder_reset(encoder);
	return encoder;
}

void encoder_free(struct encoder *encoder)
{
	if (!encoder)
		return;
	predict_free(&encoder->predict);
	map_free(&encoder->threads);
	map_free(&encoder->blocks);
	free(encoder->data);
	free(encoder);
}

bool encoder_add_site(struct encoder *encoder, const struct site_info *site)
{
	return predict_add_site(&encoder->predict, site);
}

static void map_clear(struct map *map)
{
	if (map->cap)
		memset(map->slots, 0xff, map->cap * sizeof(*map->slots));
	map->len = 0;
}

void encoder_reset(struct encoder *encoder)
{
	predict_reset(&encoder->predict);
	map_clear(&encoder->threads);
	map_clear(&encoder->blocks);
	encoder->bytes = 0;
	encoder->records = 0;
	encoder->min_ts = UINT64_MAX;
	encoder->max_ts = 0;
}

bool encoder_full(const struct encoder *encoder)
{
	return encoder->bytes >= CHUNK_DATA_BYTES || encoder->predict.thread_count >= THREADS_FULL;
}

struct encoded encoder_chunk(const struct encoder *encoder)
{
	return (struct encoded){.data = encoder->data,
				.bytes = encoder->bytes,
				.records = encoder->records,
				.min_ts = encoder->min_ts,
				.max_ts = encoder->max_ts};
}

/* Writes a thread: its number in the chunk, or 0 and the tid of a new thread. */
static unsigned char *put_thread(struct encoder *encoder, unsigned char *at, uint32_t tid,
				 uint32_t *index)
{
	*index = map_get(&encoder->threads, tid);
	if (*index != MAP_NONE)
		return put_varint(at, *index);
	*index = predict_add_thread(&encoder->predict, tid);
	if (!*index || !map_set(&encoder->threads, tid, *index))
		encoder->failed = true;
	return put_varint(put_varint(at, 0), tid);
}

/*
 * Writes what all records begin with, and the thread's index to `index`. The caller completes the
 * tag byte.
 */
static unsigned char *put_head(struct encoder *encoder, unsigned char *at,
			       const struct waffle_rec *rec, uint32_t *index)
{
	struct predict *predict = &encoder->predict;
	unsigned char *tag = at++;

	*tag = 0;
	if (rec->kind <= TAG_KIND)
		*tag = (unsigned char)rec->kind;
	else
		*at++ = (unsigned char)rec->kind;
	if (rec->cpu == predict->cpu)
		*tag |= TAG_SAME_CPU;
	else
		at = put_varint(at, rec->cpu);
	*index = predict_current(predict, rec->cpu);
	if (*index && predict->threads[*index].tid == rec->tid)
		*tag |= TAG_CURRENT;
	else
		at = put_thread(encoder, at, rec->tid, index);
	at = put_difference(at, rec->ts, predict->ts);
	predict->ts = rec->ts;
	predict->cpu = rec->cpu;
	return at;
}

static unsigned char *put_tgid(struct encoder *encoder, unsigned char *at, unsigned char *tag,
			       uint32_t thread, uint32_t tgid)
{
	if (encoder->predict.threads[thread].tgid == tgid)
		return at;
	*tag |= TAG_TGID;
	encoder->predict.threads[thread].tgid = tgid;
	encoder->predict.tgid = tgid;
	return put_varint(at, tgid);
}

/* ---- hits ---- */

static uint64_t load_word(const unsigned char *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

static size_t string_padded(uint64_t word)
{
	return (WAFFLE_STR_LEN(word) + 7u) & ~(size_t)7;
}

/* Whether the bytes behind a string are 0, as the packed form has it. */
static bool string_ends(uint64_t word, const unsigned char *text)
{
	for (size_t i = WAFFLE_STR_LEN(word); i < string_padded(word); i++)
		if (text[i])
			return false;
	return true;
}

/* Bytes of a key's value at `at`, of which `bytes` can be read; 0: it does not fit. */
static size_t value_bytes(char type, const unsigned char *at, size_t bytes)
{
	size_t need = type == WAFFLE_KEY_NUMBER || type == WAFFLE_KEY_DIM3 ? 16 : 8;

	if (bytes < need)
		return 0;
	if (type == WAFFLE_KEY_STR) {
		uint64_t word = load_word(at);

		if (WAFFLE_STR_LEN(word) > WAFFLE_STR_MAX)
			return 0;
		need += string_padded(word);
		if (bytes >= need && !string_ends(word, at + 8))
			return 0;
	}
	return bytes < need ? 0 : need;
}

/* If `at` holds the values of the site's keys from `first` on: the key after the last one. Else
 * -1. */
static int values_end(const struct predict_site *site, unsigned first, const unsigned char *at,
		      size_t bytes)
{
	unsigned key = first;

	for (; bytes && key < site->key_count; key++) {
		size_t one = value_bytes(site->types[key], at, bytes);

		if (!one)
			return -1;
		at += one;
		bytes -= one;
	}
	return bytes ? -1 : (int)key;
}

static unsigned char *put_values(struct predict_site *site, unsigned first, unsigned end,
				 unsigned char *at, const unsigned char *values)
{
	for (unsigned i = first; i < end; i++) {
		uint64_t word = load_word(values);

		values += 8;
		switch (site->types[i]) {
		case WAFFLE_KEY_STR:
			at = put_varint(at, word);
			at = put_bytes(at, values, WAFFLE_STR_LEN(word));
			values += string_padded(word);
			continue;
		case WAFFLE_KEY_F64:
			at = put_le(at, word, 8);
			continue;
		case WAFFLE_KEY_NUMBER:
			at = put_varint(at, word);
			word = load_word(values);
			values += 8;
			break;
		case WAFFLE_KEY_DIM3:
			at = put_difference(at, word, site->last[i]);
			site->last[i] = word;
			word = load_word(values);
			at = put_difference(at, word, site->second[i]);
			site->second[i] = word;
			values += 8;
			continue;
		default:
			break;
		}
		at = put_difference(at, word, site->last[i]);
		site->last[i] = word;
	}
	return at;
}

/* Chooses the encoding of a frame's ids. */
static unsigned hit_flags(const struct predict_ids *ids, const struct predict_site *site,
			  uint64_t predicted, const struct waffle_frame *head)
{
	unsigned id = HIT_ID_EXPLICIT, parent = HIT_PARENT_EXPLICIT, trace = HIT_TRACE_EXPLICIT;

	if (head->id == 0)
		id = HIT_ID_ZERO;
	else if (head->id == ids->last_id + 1)
		id = HIT_ID_NEXT;
	else if (head->id == predicted)
		id = HIT_ID_ROOT;
	if (head->parent == predict_parent(ids, site))
		parent = HIT_PARENT_OPEN;
	else if (head->parent == 0)
		parent = HIT_PARENT_ZERO;
	if (head->trace_hi == ids->trace_hi && head->trace_lo == ids->trace_lo)
		trace = HIT_TRACE_SAME;
	else if (!(head->trace_hi | head->trace_lo))
		trace = HIT_TRACE_ZERO;
	else if (head->trace_lo == head->id - 1 && head->trace_hi == predict_root_hi(head->id))
		trace = HIT_TRACE_ROOT;
	return id | parent << HIT_PARENT_SHIFT | trace << HIT_TRACE_SHIFT;
}

/* Writes a frame with the values of the keys before `end`. */
static unsigned char *put_frame(struct predict *predict, struct predict_ids *ids,
				struct predict_site *site, unsigned end, unsigned char *at,
				unsigned char *tag, const struct waffle_rec_hit *hit)
{
	const unsigned char *frame = (const unsigned char *)(hit + 1);
	struct waffle_frame head;
	unsigned flags;

	memcpy(&head, frame, sizeof(head));
	flags = hit_flags(ids, site, predict_id(predict, ids, site, &hit->rec), &head);
	if (end != site->begin_keys)
		flags |= HIT_KEYS;
	if (flags) {
		*tag |= TAG_HIT_FLAGS;
		*at++ = (unsigned char)flags;
	}
	if (flags & HIT_KEYS)
		*at++ = (unsigned char)(site->begin_keys = (uint16_t)end);
	if (HIT_ID(flags) == HIT_ID_EXPLICIT)
		at = put_difference(at, head.id, ids->last_id);
	if (HIT_PARENT(flags) == HIT_PARENT_EXPLICIT)
		at = put_difference(at, head.parent, ids->last_id);
	if (HIT_TRACE(flags) == HIT_TRACE_EXPLICIT)
		at = put_le(put_le(at, head.trace_hi, 8), head.trace_lo, 8);
	predict_hit(predict, ids, site, hit, &head);
	return put_values(site, 0, end, at, frame + sizeof(head));
}

/* The key after the last one with a value in the frame. -1: the frame does not match its site and
 * is stored unencoded. */
static int frame_end(const struct predict_site *site, const unsigned char *frame, size_t bytes)
{
	int end;

	if (!site || bytes < sizeof(struct waffle_frame))
		return -1;
	end = values_end(site, 0, frame + sizeof(struct waffle_frame),
			 bytes - sizeof(struct waffle_frame));
	return end == site->key_count || site->call ? end : -1;
}

static unsigned char *encode_hit(struct encoder *encoder, unsigned char *at,
				 const struct waffle_rec *rec)
{
	const struct waffle_rec_hit *hit = (const struct waffle_rec_hit *)rec;
	const unsigned char *frame = (const unsigned char *)(hit + 1);
	struct predict_site *site = predict_site(&encoder->predict, hit->site);
	int end = frame_end(site, frame, hit->frame_bytes);
	unsigned char *tag = at;
	uint32_t thread;

	at = put_head(encoder, at, rec, &thread);
	at = put_tgid(encoder, at, tag, thread, hit->tgid);
	at = put_varint(at, hit->site);
	predict_set_current(&encoder->predict, rec->cpu, thread);
	if (end >= 0)
		return put_frame(&encoder->predict,
				 predict_ids(&encoder->predict.threads[thread], site), site,
				 (unsigned)end, at, tag, hit);
	*tag |= TAG_HIT_FLAGS;
	*at++ = HIT_RAW;
	return put_bytes(put_varint(at, hit->frame_bytes), frame, hit->frame_bytes);
}

/* ---- ends ---- */

/* Writes id and site of a span or call that ends but is not the innermost. */
static unsigned char *put_ended(const struct predict_ids *ids, unsigned char *at, uint64_t id,
				uint32_t site)
{
	at = put_difference(at, id, ids->last_id);
	/* Plus one, so that WAFFLE_SITE_UNKNOWN is encoded as 0. */
	return put_varint(at, (uint32_t)(site + 1u));
}

static unsigned char *encode_span_end(struct encoder *encoder, unsigned char *at,
				      const struct waffle_rec *rec)
{
	const struct waffle_rec_span_end *end = (const struct waffle_rec_span_end *)rec;
	struct predict_ids *ids;
	unsigned char *tag = at;
	uint32_t index;

	at = put_head(encoder, at, rec, &index);
	at = put_tgid(encoder, at, tag, index, end->tgid);
	predict_set_current(&encoder->predict, rec->cpu, index);
	ids = &encoder->predict.threads[index].spans;
	if (!predict_ends(ids, end->span_id, end->site)) {
		*tag |= TAG_END_EXPLICIT;
		at = put_ended(ids, at, end->span_id, end->site);
	}
	predict_end(ids, end->span_id);
	return at;
}

/* The first key of a return's values; -1: the values do not match the site. */
static int return_first(const struct predict_site *site, const unsigned char *values, size_t bytes)
{
	if (!site || !site->call)
		return -1;
	if (values_end(site, site->begin_keys, values, bytes) == site->key_count)
		return site->begin_keys;
	for (unsigned first = 0; first <= site->key_count; first++)
		if (values_end(site, first, values, bytes) == site->key_count)
			return (int)first;
	return -1;
}

static unsigned char *encode_return(struct encoder *encoder, unsigned char *at,
				    const struct waffle_rec *rec)
{
	const struct waffle_rec_return *end = (const struct waffle_rec_return *)rec;
	const unsigned char *values = (const unsigned char *)(end + 1);
	struct predict_site *site = predict_site(&encoder->predict, end->site);
	bool left = end->flags & WAFFLE_RETURN_LEFT && !end->frame_bytes;
	int first = left ? 0 : return_first(site, values, end->frame_bytes);
	struct predict_ids *ids;
	unsigned char *tag = at;
	unsigned flags = 0;
	uint32_t index;

	at = put_head(encoder, at, rec, &index);
	at = put_tgid(encoder, at, tag, index, end->tgid);
	predict_set_current(&encoder->predict, rec->cpu, index);
	ids = &encoder->predict.threads[index].calls;
	if (!predict_ends(ids, end->span_id, end->site))
		flags |= RETURN_ID;
	if (left)
		flags |= RETURN_LEFT;
	else if (first < 0)
		flags |= RETURN_RAW;
	else if (first != site->begin_keys)
		flags |= RETURN_KEYS;
	if (flags) {
		*tag |= TAG_RETURN_FLAGS;
		*at++ = (unsigned char)flags;
	}
	if (flags & RETURN_ID)
		at = put_ended(ids, at, end->span_id, end->site);
	predict_end(ids, end->span_id);
	if (left)
		return at;
	if (flags & RETURN_RAW)
		return put_bytes(put_varint(at, end->frame_bytes), values, end->frame_bytes);
	if (flags & RETURN_KEYS)
		*at++ = (unsigned char)(site->begin_keys = (uint16_t)first);
	return put_values(site, (unsigned)first, site->key_count, at, values);
}

/* ---- switches ---- */

static bool block_equal(const struct block *a, const struct block *b)
{
	return a->args[0] == b->args[0] && a->args[1] == b->args[1] && a->args[2] == b->args[2] &&
	       a->syscall == b->syscall && a->state == b->state;
}

static uint64_t block_hash(const struct block *block)
{
	uint64_t hash = (uint64_t)(uint32_t)block->syscall << 16 | block->state;

	for (unsigned i = 0; i < WAFFLE_SYSCALL_ARGS; i++) {
		hash = hash_number(hash ^ block->args[i]);
		hash ^= hash >> 29;
	}
	return hash;
}

/* Writes a block: its number in the chunk plus 1, or 0 and the changes since the thread's last
 * block. */
static unsigned char *put_block(struct encoder *encoder, unsigned char *at,
				const struct block *block, const struct block *last)
{
	uint64_t hash = block_hash(block);
	uint32_t known = map_get(&encoder->blocks, hash);

	if (known != MAP_NONE && block_equal(&encoder->predict.blocks[known], block))
		return put_varint(at, known + 1u);
	if (encoder->predict.block_count < PREDICT_BLOCKS_MAX &&
	    !map_set(&encoder->blocks, hash, encoder->predict.block_count))
		encoder->failed = true;
	predict_add_block(&encoder->predict, block);
	at = put_varint(at, 0);
	at = put_varint(at, block->state);
	at = put_varint(at, zigzag_encode((uint64_t)(int64_t)block->syscall));
	for (unsigned i = 0; i < WAFFLE_SYSCALL_ARGS; i++)
		at = put_difference(at, block->args[i], last->args[i]);
	return at;
}

static unsigned char *encode_switch(struct encoder *encoder, unsigned char *at,
				    const struct waffle_rec *rec)
{
	const struct waffle_rec_switch *sw = (const struct waffle_rec_switch *)rec;
	struct block block = {.syscall = sw->syscall, .state = sw->prev_state};
	struct predict_thread *thread;
	unsigned char *tag = at;
	uint32_t prev, next, waker;

	memcpy(block.args, sw->args, sizeof(block.args));
	at = put_head(encoder, at, rec, &prev);
	at = put_thread(encoder, at, sw->next_tid, &next);
	*at++ = sw->flags;
	if (sw->waker_tid || sw->wake_ts) {
		*tag |= TAG_SWITCH_WAKER;
		at = put_thread(encoder, at, sw->waker_tid, &waker);
		at = put_difference(at, rec->ts, sw->wake_ts);
	}
	predict_set_current(&encoder->predict, rec->cpu, next);
	thread = &encoder->predict.threads[prev];
	if (block_equal(&block, &thread->block)) {
		*tag |= TAG_SWITCH_REPEATS;
		return at;
	}
	at = put_block(encoder, at, &block, &thread->block);
	thread->block = block;
	return at;
}

/* ---- the other kinds: rare, their fields one after another ---- */

static unsigned char *encode_task(struct encoder *encoder, unsigned char *at,
				  const struct waffle_rec *rec)
{
	const struct waffle_rec_task *task = (const struct waffle_rec_task *)rec;
	uint32_t thread;

	at = put_head(encoder, at, rec, &thread);
	at = put_varint(at, task->tgid);
	at = put_varint(at, task->flags);
	at = put_varint(at, task->start_ts);
	return put_bytes(at, task->comm, sizeof(task->comm));
}

static unsigned char *encode_state(struct encoder *encoder, unsigned char *at,
				   const struct waffle_rec *rec)
{
	const struct waffle_rec_state *state = (const struct waffle_rec_state *)rec;
	uint32_t thread;

	at = put_head(encoder, at, rec, &thread);
	at = put_varint(at, state->tgid);
	at = put_varint(at, state->state);
	at = put_varint(at, state->task_state);
	at = put_varint(at, zigzag_encode((uint64_t)(int64_t)state->syscall));
	at = put_varint(at, state->at_end);
	for (unsigned i = 0; i < WAFFLE_SYSCALL_ARGS; i++)
		at = put_varint(at, state->args[i]);
	at = put_varint(at, state->exec_ns);
	return put_varint(at, state->run_delay_ns);
}

static unsigned char *encode_fork(struct encoder *encoder, unsigned char *at,
				  const struct waffle_rec *rec)
{
	const struct waffle_rec_fork *child = (const struct waffle_rec_fork *)rec;
	uint32_t thread;

	at = put_head(encoder, at, rec, &thread);
	at = put_varint(at, child->tgid);
	return put_varint(at, child->child_tgid);
}

static unsigned char *encode_exit(struct encoder *encoder, unsigned char *at,
				  const struct waffle_rec *rec)
{
	const struct waffle_rec_exit *end = (const struct waffle_rec_exit *)rec;
	uint32_t thread;

	at = put_head(encoder, at, rec, &thread);
	at = put_varint(at, end->tgid);
	return put_varint(at, zigzag_encode((uint64_t)(int64_t)end->code));
}

static unsigned char *encode_loss(struct encoder *encoder, unsigned char *at,
				  const struct waffle_rec *rec)
{
	const struct waffle_rec_loss *loss = (const struct waffle_rec_loss *)rec;
	uint32_t thread;

	at = put_head(encoder, at, rec, &thread);
	at = put_varint(at, loss->source);
	at = put_difference(at, rec->ts, loss->from_ts);
	return put_varint(at, loss->count);
}

/* A kind whose packed form is the head alone. */
static unsigned char *encode_head(struct encoder *encoder, unsigned char *at,
				  const struct waffle_rec *rec)
{
	uint32_t thread;

	return put_head(encoder, at, rec, &thread);
}

typedef unsigned char *(*encode_fn)(struct encoder *encoder, unsigned char *at,
				    const struct waffle_rec *rec);

/* Kinds without a row have the head alone as their packed form. */
static const encode_fn encode_kind[WAFFLE_REC_KIND_COUNT] = {
	[WAFFLE_REC_HIT] = encode_hit,       [WAFFLE_REC_SPAN_END] = encode_span_end,
	[WAFFLE_REC_SWITCH] = encode_switch, [WAFFLE_REC_TASK] = encode_task,
	[WAFFLE_REC_STATE] = encode_state,   [WAFFLE_REC_FORK] = encode_fork,
	[WAFFLE_REC_EXEC] = encode_exit,     [WAFFLE_REC_EXIT] = encode_exit,
	[WAFFLE_REC_LOSS] = encode_loss,     [WAFFLE_REC_RETURN] = encode_return,
};

/* Writes the words behind the packed form, each as its difference to the kind's previous record. */
static unsigned char *put_words(struct encoder *encoder, unsigned char *at,
				const struct waffle_rec *rec)
{
	const struct record_kind *kind = &record_kinds[rec->kind];
	const unsigned char *from = (const unsigned char *)rec + kind->packed;
	uint64_t *last = encoder->predict.words[rec->kind];

	for (unsigned i = 0; i < kind->words; i++) {
		uint64_t word = load_word(from + i * sizeof(word));

		at = put_difference(at, word, last[i]);
		last[i] = word;
	}
	return at;
}

bool encoder_append(struct encoder *encoder, const struct waffle_rec *rec)
{
	unsigned char *from = encoder->data + encoder->bytes;
	encode_fn encode = encode_kind[rec->kind] ? encode_kind[rec->kind] : encode_head;
	unsigned char *to = put_words(encoder, encode(encoder, from, rec), rec);

	if (encoder->failed)
		return false;
	encoder->bytes += (size_t)(to - from);
	encoder->records++;
	if (rec->ts < encoder->min_ts)
		encoder->min_ts = rec->ts;
	if (rec->ts > encoder->max_ts)
		encoder->max_ts = rec->ts;
	return true;
}
