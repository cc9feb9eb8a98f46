// SPDX-License-Identifier: Apache-2.0
#include "store/decode_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/bytes_internal.h"
#include "store/encode_internal.h"
#include "store/predict_internal.h"
#include "store/record_schema.h"

struct decoder {
	struct predict predict;
	struct cursor cursor;
	struct record_lengths lengths;
	uint32_t left; /* records of the chunk not decoded yet */
	uint16_t kind; /* of the current record */
	union {
		struct waffle_rec rec;
		unsigned char bytes[RECORD_BYTES_MAX];
	} out;
};

struct decoder *decoder_new(void)
{
	struct decoder *decoder = calloc(1, sizeof(*decoder));

	if (decoder && !predict_init(&decoder->predict)) {
		free(decoder);
		return NULL;
	}
	if (decoder)
		decoder->lengths = record_lengths_own();
	return decoder;
}

void decoder_set_lengths(struct decoder *decoder, const struct record_lengths *lengths)
{
	decoder->lengths = *lengths;
}

void decoder_free(struct decoder *decoder)
{
	if (!decoder)
		return;
	predict_free(&decoder->predict);
	free(decoder);
}

bool decoder_add_site(struct decoder *decoder, const struct site_info *site)
{
	return predict_add_site(&decoder->predict, site);
}

void decoder_begin(struct decoder *decoder, const void *data, size_t bytes, uint32_t records)
{
	predict_reset(&decoder->predict);
	decoder->cursor = (struct cursor){.at = data, .end = (const unsigned char *)data + bytes};
	decoder->left = records;
}

static uint32_t get_u32(struct cursor *cursor)
{
	return (uint32_t)get_varint_max(cursor, UINT32_MAX);
}

static uint16_t get_u16(struct cursor *cursor)
{
	return (uint16_t)get_varint_max(cursor, UINT16_MAX);
}

static int32_t get_s32(struct cursor *cursor)
{
	int64_t value = (int64_t)zigzag_decode(get_varint(cursor));

	if (value < INT32_MIN || value > INT32_MAX)
		cursor->bad = true;
	return (int32_t)value;
}

/* Reads the index of a thread. Returns 1 if it is invalid, since threads[1] is always allocated. */
static uint32_t get_thread(struct decoder *decoder)
{
	struct predict *predict = &decoder->predict;
	uint32_t index = (uint32_t)get_varint_max(&decoder->cursor, predict->thread_count);

	if (!index)
		index = predict_add_thread(predict, get_u32(&decoder->cursor));
	if (!index)
		decoder->cursor.bad = true;
	return index ? index : 1;
}

static uint32_t get_head(struct decoder *decoder, unsigned tag, struct waffle_rec *rec)
{
	struct predict *predict = &decoder->predict;
	uint32_t index;

	if (!(tag & TAG_SAME_CPU))
		predict->cpu = get_u16(&decoder->cursor);
	index = tag & TAG_CURRENT ? predict_current(predict, predict->cpu) : get_thread(decoder);
	if (!index) {
		decoder->cursor.bad = true;
		index = 1;
	}
	predict->ts = get_difference(&decoder->cursor, predict->ts);
	rec->ts = predict->ts;
	rec->tid = predict->threads[index].tid;
	rec->kind = decoder->kind;
	rec->cpu = predict->cpu;
	return index;
}

static uint32_t get_tgid(struct decoder *decoder, unsigned tag, uint32_t thread)
{
	if (tag & TAG_TGID) {
		decoder->predict.tgid = get_u32(&decoder->cursor);
		decoder->predict.threads[thread].tgid = decoder->predict.tgid;
	}
	return decoder->predict.threads[thread].tgid;
}

/* ---- hits ---- */

static unsigned char *store_word(unsigned char *to, uint64_t word)
{
	memcpy(to, &word, sizeof(word));
	return to + sizeof(word);
}

static unsigned char *get_string(struct cursor *cursor, unsigned char *to)
{
	uint64_t word = get_varint(cursor);
	size_t len = WAFFLE_STR_LEN(word);
	size_t padded = (len + 7) & ~(size_t)7;
	const unsigned char *text;

	if (len > WAFFLE_STR_MAX)
		cursor->bad = true;
	text = cursor->bad ? NULL : get_bytes(cursor, len);
	to = store_word(to, word);
	if (!text)
		return to;
	if (padded)
		store_word(to + padded - 8, 0);
	memcpy(to, text, len);
	return to + padded;
}

/* Each of at most 16 keys takes at most 264 bytes, which WAFFLE_FRAME_MAX has room for. */
static unsigned char *get_values(struct cursor *cursor, struct predict_site *site, unsigned first,
				 unsigned end, unsigned char *to)
{
	for (unsigned i = first; i < end; i++) {
		switch (site->types[i]) {
		case WAFFLE_KEY_STR:
			to = get_string(cursor, to);
			continue;
		case WAFFLE_KEY_F64:
			to = store_word(to, get_le(cursor, 8));
			continue;
		case WAFFLE_KEY_NUMBER:
			to = store_word(to, get_varint(cursor));
			break;
		case WAFFLE_KEY_DIM3:
			site->last[i] = get_difference(cursor, site->last[i]);
			site->second[i] = get_difference(cursor, site->second[i]);
			to = store_word(to, site->last[i]);
			to = store_word(to, site->second[i]);
			continue;
		default:
			break;
		}
		site->last[i] = get_difference(cursor, site->last[i]);
		to = store_word(to, site->last[i]);
	}
	return to;
}

static uint64_t get_id(struct cursor *cursor, unsigned flags, const struct predict_ids *ids,
		       uint64_t predicted)
{
	switch (HIT_ID(flags)) {
	case HIT_ID_NEXT:
		return ids->last_id + 1;
	case HIT_ID_ROOT:
		return predicted;
	case HIT_ID_EXPLICIT:
		return get_difference(cursor, ids->last_id);
	default:
		return 0;
	}
}

static uint64_t get_parent(struct cursor *cursor, unsigned flags, const struct predict_ids *ids,
			   const struct predict_site *site)
{
	switch (HIT_PARENT(flags)) {
	case HIT_PARENT_OPEN:
		return predict_parent(ids, site);
	case HIT_PARENT_EXPLICIT:
		return get_difference(cursor, ids->last_id);
	case HIT_PARENT_ZERO:
		return 0;
	default:
		cursor->bad = true;
		return 0;
	}
}

static void get_trace(struct cursor *cursor, unsigned flags, const struct predict_ids *ids,
		      struct waffle_frame *head)
{
	switch (HIT_TRACE(flags)) {
	case HIT_TRACE_SAME:
		head->trace_hi = ids->trace_hi;
		head->trace_lo = ids->trace_lo;
		break;
	case HIT_TRACE_EXPLICIT:
		head->trace_hi = get_le(cursor, 8);
		head->trace_lo = get_le(cursor, 8);
		break;
	case HIT_TRACE_ROOT:
		head->trace_hi = predict_root_hi(head->id);
		head->trace_lo = head->id - 1;
		break;
	default:
		head->trace_hi = head->trace_lo = 0;
		break;
	}
}

static uint32_t get_raw_frame(struct cursor *cursor, unsigned char *to)
{
	uint32_t bytes = (uint32_t)get_varint_max(cursor, WAFFLE_FRAME_MAX);
	const unsigned char *from = get_bytes(cursor, bytes);

	if (from)
		memcpy(to, from, bytes);
	/* Padding is zero, as in the original record. */
	memset(to + bytes, 0, -bytes & 7u);
	return bytes;
}

/* Reads the number of keys whose values are in the frames of the site's hits. */
static void get_begin_keys(struct cursor *cursor, struct predict_site *site)
{
	unsigned keys = (unsigned)get_le(cursor, 1);

	if (keys > site->key_count)
		cursor->bad = true;
	else
		site->begin_keys = (uint16_t)keys;
}

static void decode_hit(struct decoder *decoder, unsigned tag)
{
	struct waffle_rec_hit *hit = (struct waffle_rec_hit *)&decoder->out;
	unsigned char *frame = (unsigned char *)(hit + 1), *to;
	struct cursor *cursor = &decoder->cursor;
	struct predict_site *site;
	struct predict_ids *ids;
	struct waffle_frame head;
	uint32_t index = get_head(decoder, tag, &hit->rec);
	unsigned flags;

	hit->tgid = get_tgid(decoder, tag, index);
	hit->site = get_u32(cursor);
	hit->reserved = 0;
	flags = tag & TAG_HIT_FLAGS ? (unsigned)get_le(cursor, 1) : 0;
	predict_set_current(&decoder->predict, hit->rec.cpu, index);
	if (flags == HIT_RAW) {
		hit->frame_bytes = get_raw_frame(cursor, frame);
		return;
	}
	site = predict_site(&decoder->predict, hit->site);
	if (!site || flags & HIT_RAW || (flags & HIT_KEYS && !site->call)) {
		cursor->bad = true;
		return;
	}
	if (flags & HIT_KEYS)
		get_begin_keys(cursor, site);
	ids = predict_ids(&decoder->predict.threads[index], site);
	head.id = get_id(cursor, flags, ids, predict_id(&decoder->predict, ids, site, &hit->rec));
	head.parent = get_parent(cursor, flags, ids, site);
	get_trace(cursor, flags, ids, &head);
	predict_hit(&decoder->predict, ids, site, hit, &head);
	memcpy(frame, &head, sizeof(head));
	to = get_values(cursor, site, 0, site->begin_keys, frame + sizeof(head));
	hit->frame_bytes = (uint32_t)(to - frame);
}

/* ---- ends ---- */

/* Id and site of the span or call that ends: they follow, or it is the innermost one. */
static void get_ended(struct cursor *cursor, const struct predict_ids *ids, bool follow,
		      uint64_t *id, uint32_t *site)
{
	if (follow) {
		*id = get_difference(cursor, ids->last_id);
		*site = get_u32(cursor) - 1u;
	} else if (ids->depth) {
		*id = ids->open[ids->depth - 1].id;
		*site = ids->open[ids->depth - 1].site;
	} else {
		*id = 0;
		*site = WAFFLE_SITE_UNKNOWN;
		cursor->bad = true;
	}
}

static void decode_span_end(struct decoder *decoder, unsigned tag)
{
	struct waffle_rec_span_end *end = (struct waffle_rec_span_end *)&decoder->out;
	uint32_t index = get_head(decoder, tag, &end->rec), site;
	struct predict_ids *ids = &decoder->predict.threads[index].spans;
	uint64_t id;

	end->tgid = get_tgid(decoder, tag, index);
	end->probe_addr = 0;
	predict_set_current(&decoder->predict, end->rec.cpu, index);
	get_ended(&decoder->cursor, ids, tag & TAG_END_EXPLICIT, &id, &site);
	end->span_id = id;
	end->site = site;
	predict_end(ids, id);
}

static void decode_return(struct decoder *decoder, unsigned tag)
{
	struct waffle_rec_return *end = (struct waffle_rec_return *)&decoder->out;
	unsigned char *values = (unsigned char *)(end + 1), *to;
	struct cursor *cursor = &decoder->cursor;
	uint32_t index = get_head(decoder, tag, &end->rec), number;
	struct predict_ids *ids = &decoder->predict.threads[index].calls;
	struct predict_site *site;
	unsigned flags;
	uint64_t id;

	end->tgid = get_tgid(decoder, tag, index);
	end->flags = 0;
	predict_set_current(&decoder->predict, end->rec.cpu, index);
	flags = tag & TAG_RETURN_FLAGS ? (unsigned)get_le(cursor, 1) : 0;
	get_ended(cursor, ids, flags & RETURN_ID, &id, &number);
	end->span_id = id;
	end->site = number;
	predict_end(ids, id);
	if ((flags & ~RETURN_ID) == RETURN_LEFT) {
		end->flags = WAFFLE_RETURN_LEFT;
		end->frame_bytes = 0;
		return;
	}
	if ((flags & ~RETURN_ID) == RETURN_RAW) {
		end->frame_bytes = get_raw_frame(cursor, values);
		return;
	}
	site = predict_site(&decoder->predict, number);
	if (!site || !site->call || flags & ~(RETURN_ID | RETURN_KEYS)) {
		cursor->bad = true;
		return;
	}
	if (flags & RETURN_KEYS)
		get_begin_keys(cursor, site);
	to = get_values(cursor, site, site->begin_keys, site->key_count, values);
	end->frame_bytes = (uint32_t)(to - values);
}

/* ---- switches ---- */

static void get_block(struct decoder *decoder, struct block *last)
{
	struct predict *predict = &decoder->predict;
	struct cursor *cursor = &decoder->cursor;
	uint32_t known = (uint32_t)get_varint_max(cursor, predict->block_count);

	if (known) {
		*last = predict->blocks[known - 1];
		return;
	}
	last->state = get_u16(cursor);
	last->syscall = get_s32(cursor);
	for (unsigned i = 0; i < WAFFLE_SYSCALL_ARGS; i++)
		last->args[i] = get_difference(cursor, last->args[i]);
	predict_add_block(predict, last);
}

static void decode_switch(struct decoder *decoder, unsigned tag)
{
	struct waffle_rec_switch *sw = (struct waffle_rec_switch *)&decoder->out;
	struct predict *predict = &decoder->predict;
	uint32_t prev = get_head(decoder, tag, &sw->rec);
	uint32_t next = get_thread(decoder), waker;
	struct block *block;

	sw->next_tid = predict->threads[next].tid;
	sw->flags = (unsigned char)get_le(&decoder->cursor, 1);
	sw->waker_tid = 0;
	sw->wake_ts = 0;
	if (tag & TAG_SWITCH_WAKER) {
		waker = get_thread(decoder); /* it may move the threads */
		sw->waker_tid = predict->threads[waker].tid;
		sw->wake_ts = sw->rec.ts - zigzag_decode(get_varint(&decoder->cursor));
	}
	predict_set_current(predict, sw->rec.cpu, next);
	block = &predict->threads[prev].block;
	if (!(tag & TAG_SWITCH_REPEATS))
		get_block(decoder, block);
	sw->prev_state = block->state;
	sw->reserved = 0;
	sw->syscall = block->syscall;
	memcpy(sw->args, block->args, sizeof(sw->args));
}

/* ---- other kinds ---- */

static void decode_task(struct decoder *decoder, unsigned tag)
{
	struct waffle_rec_task *task = (struct waffle_rec_task *)&decoder->out;
	const unsigned char *comm;

	get_head(decoder, tag, &task->rec);
	task->tgid = get_u32(&decoder->cursor);
	task->flags = get_u32(&decoder->cursor);
	task->start_ts = get_varint(&decoder->cursor);
	comm = get_bytes(&decoder->cursor, sizeof(task->comm));
	if (comm)
		memcpy(task->comm, comm, sizeof(task->comm));
}

static void decode_state(struct decoder *decoder, unsigned tag)
{
	struct waffle_rec_state *state = (struct waffle_rec_state *)&decoder->out;
	struct cursor *cursor = &decoder->cursor;

	get_head(decoder, tag, &state->rec);
	state->tgid = get_u32(cursor);
	state->state = get_u16(cursor);
	state->task_state = get_u16(cursor);
	state->syscall = get_s32(cursor);
	state->at_end = get_u32(cursor);
	for (unsigned i = 0; i < WAFFLE_SYSCALL_ARGS; i++)
		state->args[i] = get_varint(cursor);
	state->exec_ns = get_varint(cursor);
	state->run_delay_ns = get_varint(cursor);
}

static void decode_fork(struct decoder *decoder, unsigned tag)
{
	struct waffle_rec_fork *child = (struct waffle_rec_fork *)&decoder->out;

	get_head(decoder, tag, &child->rec);
	child->tgid = get_u32(&decoder->cursor);
	child->child_tgid = get_u32(&decoder->cursor);
}

static void decode_exit(struct decoder *decoder, unsigned tag)
{
	struct waffle_rec_exit *end = (struct waffle_rec_exit *)&decoder->out;

	get_head(decoder, tag, &end->rec);
	end->tgid = get_u32(&decoder->cursor);
	end->code = get_s32(&decoder->cursor);
}

static void decode_loss(struct decoder *decoder, unsigned tag)
{
	struct waffle_rec_loss *loss = (struct waffle_rec_loss *)&decoder->out;

	get_head(decoder, tag, &loss->rec);
	loss->source = get_u32(&decoder->cursor);
	loss->reserved = 0;
	loss->from_ts = loss->rec.ts - zigzag_decode(get_varint(&decoder->cursor));
	loss->count = get_varint(&decoder->cursor);
}

typedef void (*decode_fn)(struct decoder *decoder, unsigned tag);

/* Kinds without a row have the head alone as their packed form. */
static const decode_fn decode_kind[WAFFLE_REC_KIND_COUNT] = {
	[WAFFLE_REC_HIT] = decode_hit,       [WAFFLE_REC_SPAN_END] = decode_span_end,
	[WAFFLE_REC_SWITCH] = decode_switch, [WAFFLE_REC_TASK] = decode_task,
	[WAFFLE_REC_STATE] = decode_state,   [WAFFLE_REC_FORK] = decode_fork,
	[WAFFLE_REC_EXEC] = decode_exit,     [WAFFLE_REC_EXIT] = decode_exit,
	[WAFFLE_REC_LOSS] = decode_loss,     [WAFFLE_REC_RETURN] = decode_return,
};

static void skip_words(struct cursor *cursor, unsigned count)
{
	while (count-- && !cursor->bad)
		get_varint(cursor);
}

/* Reads the words behind the packed form: an older writer wrote fewer, a newer one more. */
static void get_words(struct decoder *decoder)
{
	unsigned in_file = decoder->lengths.words[decoder->kind];
	unsigned known = record_kinds[decoder->kind].words;
	unsigned both = in_file < known ? in_file : known;
	uint64_t *last = decoder->predict.words[decoder->kind];

	/* Most records are of kinds that have none. */
	if (!in_file && !known)
		return;
	for (unsigned i = 0; i < both; i++)
		last[i] = get_difference(&decoder->cursor, last[i]);
	/* Those that the file does not have are 0. */
	memcpy(decoder->out.bytes + record_kinds[decoder->kind].packed, last,
	       known * sizeof(*last));
	skip_words(&decoder->cursor, in_file - both);
}

/* Decodes a record. Returns false if its kind is unknown, so that it was skipped. */
static bool decode_record(struct decoder *decoder, unsigned tag)
{
	bool known = decoder->kind < WAFFLE_REC_KIND_COUNT;
	decode_fn decode = known ? decode_kind[decoder->kind] : NULL;

	if (decode)
		decode(decoder, tag);
	else
		get_head(decoder, tag, &decoder->out.rec);
	if (known)
		get_words(decoder);
	else
		skip_words(&decoder->cursor, decoder->lengths.words[decoder->kind]);
	return known;
}

int decoder_next(struct decoder *decoder, const struct waffle_rec **rec)
{
	struct cursor *cursor = &decoder->cursor;

	while (decoder->left) {
		unsigned tag = (unsigned)get_le(cursor, 1);
		bool known;

		decoder->kind = tag & TAG_KIND;
		if (!decoder->kind)
			decoder->kind = (uint16_t)get_le(cursor, 1);
		if (decoder->lengths.words[decoder->kind] == RECORD_ABSENT)
			return -EBADMSG;
		known = decode_record(decoder, tag);
		if (decoder->predict.failed)
			return -ENOMEM;
		if (cursor->bad || decoder->out.rec.ts > RECORD_TS_MAX)
			return -EBADMSG;
		decoder->left--;
		*rec = &decoder->out.rec;
		if (known)
			return 1;
	}
	return cursor->at == cursor->end ? 0 : -EBADMSG;
}

uint32_t decoder_left(const struct decoder *decoder)
{
	return decoder->left;
}
