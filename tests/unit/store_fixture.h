/* SPDX-License-Identifier: Apache-2.0 */
/* Random records of all kinds from a seed, for the tests and the fuzzer's corpus of the store. */
#ifndef WAFFLE_TEST_STORE_FIXTURE_H
#define WAFFLE_TEST_STORE_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"

struct record_buffer {
	union {
		struct waffle_rec rec;
		struct waffle_rec_hit hit;
		struct waffle_rec_span_end span_end;
		struct waffle_rec_switch sw;
		struct waffle_rec_task task;
		struct waffle_rec_state state;
		struct waffle_rec_fork child;
		struct waffle_rec_exit end;
		struct waffle_rec_loss loss;
		struct waffle_rec_return ret;
		uint64_t words[RECORD_BYTES_MAX / 8];
	};
};

struct record_source {
	uint64_t random, ts;
	unsigned kinds; /* only those below; 0: all */
	uint64_t ids[8], open[8][4];
	unsigned depth[8];
	uint64_t call_ids[8], calls[8];
};

static inline uint64_t fixture_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull; /* splitmix64, Steele et al. 2014 */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static inline unsigned fixture_below(struct record_source *source, unsigned limit)
{
	return (unsigned)(fixture_random(&source->random) % limit);
}

/* Mostly small, but occasionally of any size. */
static inline uint64_t fixture_value(struct record_source *source)
{
	uint64_t value = fixture_random(&source->random);

	return value >> fixture_below(source, 64);
}

static const struct site_info fixture_sites[] = {
	{"step",
	 "train",
	 "loop.c",
	 "loop",
	 "/bin/train",
	 10,
	 WAFFLE_SITE_SPAN,
	 SITE_ROLE_NONE,
	 false,
	 false,
	 false,
	 false,
	 2,
	 2,
	 {{WAFFLE_KEY_I64, "step"}, {WAFFLE_KEY_U64, "bytes"}}},
	{"load",
	 "",
	 "loop.c",
	 "",
	 "/bin/train",
	 20,
	 WAFFLE_SITE_SPAN,
	 SITE_ROLE_NONE,
	 false,
	 false,
	 false,
	 false,
	 0,
	 0,
	 {{0, NULL}}},
	{"found",
	 "io",
	 "io.cc",
	 "read<int>",
	 "/lib/libio.so",
	 7,
	 WAFFLE_SITE_EVENT,
	 SITE_ROLE_NONE,
	 false,
	 true,
	 false,
	 false,
	 5,
	 5,
	 {{WAFFLE_KEY_STR, "path"},
	  {WAFFLE_KEY_F64, "ratio"},
	  {WAFFLE_KEY_BOOL, "hot"},
	  {WAFFLE_KEY_CAUSE_EVENT, "cause"},
	  {WAFFLE_KEY_PTR, "at"}}},
	{"queue",
	 "",
	 "io.cc",
	 "",
	 "/lib/libio.so",
	 8,
	 WAFFLE_SITE_COUNTER,
	 SITE_ROLE_NONE,
	 false,
	 false,
	 false,
	 false,
	 1,
	 1,
	 {{WAFFLE_KEY_NUMBER, "value"}}},
	{"failed",
	 "",
	 "io.cc",
	 "",
	 "/lib/libio.so",
	 9,
	 WAFFLE_SITE_LOG_ERROR,
	 SITE_ROLE_NONE,
	 false,
	 false,
	 false,
	 false,
	 2,
	 2,
	 {{WAFFLE_KEY_STR, "why"}, {WAFFLE_KEY_CAUSE_SPAN, "cause"}}},
	{"cuLaunchKernel",
	 "cuda",
	 "",
	 "cuLaunchKernel",
	 "/lib/libcuda.so.1",
	 0,
	 WAFFLE_SITE_EVENT,
	 SITE_ROLE_LAUNCH,
	 true,
	 false,
	 false,
	 false,
	 3,
	 3,
	 {{WAFFLE_KEY_CODE, "kernel"}, {WAFFLE_KEY_DIM3, "grid"}, {WAFFLE_KEY_PTR, "stream"}}},
	{"malloc",
	 "heap",
	 "",
	 "malloc",
	 "/lib/libc.so.6",
	 0,
	 WAFFLE_SITE_SPAN,
	 SITE_ROLE_ALLOC,
	 true,
	 false,
	 true,
	 false,
	 3,
	 3,
	 {{WAFFLE_KEY_U64, "bytes"}, {WAFFLE_KEY_PTR, "address"}, {WAFFLE_KEY_STR, "error"}}},
};
#define FIXTURE_SITES (sizeof(fixture_sites) / sizeof(fixture_sites[0]))
#define FIXTURE_MALLOC                                                                             \
	(FIXTURE_SITES - 1) /* its frame has the first key, its return the others                  \
			     */

static const struct store_meta fixture_meta = {
	.start_ts = 1000000007,
	.boot_ns = 2000000011,
	.real_ns = 1700000000123456789ull,
	.hostname = "node-7",
	.boot_id = "2c5b1ad8-7a35-4f53-8f2e-0e1a3c3d9b11",
	.kernel = "6.1.0",
	.machine = "x86_64",
	.version = "0.1.0",
	.command = "train --epochs 3",
	.filter = "name ~ \"a*\"\n && dur > 1ms",
	.cpu_count = 4,
	.sched = true,
};

static inline uint64_t *fixture_values(struct record_source *source, const struct site_info *site,
				       unsigned first, unsigned end, uint64_t *at)
{
	for (unsigned i = first; i < end; i++) {
		if (site->keys[i].type == WAFFLE_KEY_STR) {
			unsigned len = fixture_below(source, WAFFLE_STR_MAX + 1);

			*at++ = len | (fixture_below(source, 4) == 0 ? WAFFLE_STR_CUT : 0);
			memset(at, 0, (len + 7u) & ~7u);
			memset(at, 'a' + (int)(len % 26), len);
			at += (len + 7) / 8;
			continue;
		}
		if (site->keys[i].type == WAFFLE_KEY_NUMBER)
			*at++ = fixture_below(source, 3);
		if (site->keys[i].type == WAFFLE_KEY_DIM3)
			*at++ = fixture_value(source);
		*at++ = fixture_value(source);
	}
	return at;
}

/* A call's ids differ from those of the thread's spans, and it has no parent. */
static inline void fixture_call(struct record_source *source, uint64_t *frame, unsigned t)
{
	frame[0] = ++source->call_ids[t];
	if (fixture_below(source, 2)) /* as the kernel makes them */
		frame[0] = (source->ts << 22 | (100 + t)) * 0x9e3779b97f4a7c15ull ^ 12345;
	frame[1] = frame[2] = frame[3] = 0;
	source->calls[t] = frame[0];
}

/* A hit as libwaffle makes it, and occasionally an impossible one. */
static inline void fixture_hit(struct record_source *source, struct record_buffer *to, unsigned t)
{
	uint32_t index = fixture_below(source, FIXTURE_SITES);
	const struct site_info *site = &fixture_sites[index];
	uint64_t *frame = (uint64_t *)(&to->hit + 1);
	unsigned odd = fixture_below(source, 16);

	to->hit.tgid = 100 + t / 4;
	to->hit.site = odd == 0 ? (uint32_t)fixture_value(source) : index;
	frame[0] = site->kind == WAFFLE_SITE_COUNTER ? 0 : ++source->ids[t];
	frame[1] = source->depth[t] ? source->open[t][source->depth[t] - 1] : 0;
	frame[2] = odd == 1 ? 0 : t * 77;
	frame[3] = odd == 1 ? 0 : t;
	if (odd == 2) {
		frame[0] = fixture_value(source);
		frame[1] = fixture_value(source);
		frame[2] = fixture_value(source);
	}
	if (odd == 3) {
		frame[0] = source->ids[t] += 2;
		frame[2] = (frame[0] - 2) * 0x9e3779b97f4a7c15ull;
		frame[3] = frame[0] - 1;
	}
	if (site->call && odd > 3)
		fixture_call(source, frame, t);
	to->hit.frame_bytes =
		(uint32_t)((char *)fixture_values(source, site, 0,
						  index == FIXTURE_MALLOC ? 1 : site->key_count,
						  frame + 4) -
			   (char *)frame);
	if (odd == 4) {
		to->hit.frame_bytes = fixture_below(source, to->hit.frame_bytes + 1);
		memset((char *)frame + to->hit.frame_bytes, 0, 8);
	}
	if (site->kind == WAFFLE_SITE_SPAN && !site->call && source->depth[t] < 4)
		source->open[t][source->depth[t]++] = frame[0];
}

static inline void fixture_span_end(struct record_source *source, struct record_buffer *to,
				    unsigned t)
{
	unsigned other = fixture_below(source, 8) ? t : fixture_below(source, 8);

	to->span_end.tgid = 100 + t / 4;
	to->span_end.site = fixture_below(source, 2);
	if (fixture_below(source, 8) == 0)
		to->span_end.site = WAFFLE_SITE_UNKNOWN;
	to->span_end.span_id = fixture_value(source);
	if (source->depth[other])
		to->span_end.span_id = source->open[other][--source->depth[other]];
}

/* The return of a call on any thread, and occasionally one without a call. */
static inline void fixture_return(struct record_source *source, struct record_buffer *to,
				  unsigned t)
{
	unsigned other = fixture_below(source, 8) ? t : fixture_below(source, 8);
	unsigned odd = fixture_below(source, 16);
	uint64_t *values = (uint64_t *)(&to->ret + 1);

	to->ret.tgid = 100 + t / 4;
	to->ret.site = odd == 0 ? (uint32_t)fixture_value(source) : FIXTURE_MALLOC;
	if (odd == 1)
		to->ret.site = fixture_below(source, FIXTURE_SITES);
	to->ret.span_id = odd == 2 ? fixture_value(source) : source->calls[other];
	to->ret.frame_bytes =
		(uint32_t)((char *)fixture_values(source, &fixture_sites[FIXTURE_MALLOC],
						  odd == 3 ? fixture_below(source, 4) : 1, 3,
						  values) -
			   (char *)values);
	if (odd == 4) {
		to->ret.frame_bytes = fixture_below(source, to->ret.frame_bytes + 1);
		memset((char *)values + to->ret.frame_bytes, 0, 8);
	}
}

static inline void fixture_switch(struct record_source *source, struct record_buffer *to)
{
	to->sw.next_tid = 100 + fixture_below(source, 9);
	to->sw.flags = (uint8_t)fixture_below(source, 128);
	if (to->sw.flags & WAFFLE_SWITCH_WOKEN) {
		to->sw.waker_tid = 100 + fixture_below(source, 12);
		to->sw.wake_ts = to->sw.rec.ts - fixture_value(source) % 1000000;
	}
	to->sw.prev_state = (uint16_t)(1u << fixture_below(source, 9));
	to->sw.syscall = (int32_t)fixture_below(source, 3) * 101 - 1;
	for (unsigned i = 0; i < WAFFLE_SYSCALL_ARGS; i++)
		to->sw.args[i] = fixture_below(source, 4) ? i * 1000 : fixture_value(source);
}

static inline void fixture_fill(struct record_source *source, struct record_buffer *to, unsigned t)
{
	switch (to->rec.kind) {
	case WAFFLE_REC_HIT:
		fixture_hit(source, to, t);
		break;
	case WAFFLE_REC_SPAN_END:
		fixture_span_end(source, to, t);
		break;
	case WAFFLE_REC_RETURN:
		fixture_return(source, to, t);
		break;
	case WAFFLE_REC_SWITCH:
		fixture_switch(source, to);
		break;
	case WAFFLE_REC_TASK:
		to->task.tgid = 100;
		to->task.flags = fixture_below(source, 2);
		to->task.start_ts = fixture_value(source);
		snprintf(to->task.comm, sizeof(to->task.comm), "worker-%u",
			 fixture_below(source, 1000));
		break;
	case WAFFLE_REC_STATE:
		to->state.state = (uint16_t)(1 + fixture_below(source, 3));
		to->state.syscall = (int32_t)fixture_below(source, 400) - 1;
		to->state.at_end = fixture_below(source, 2);
		to->state.args[1] = fixture_value(source);
		to->state.exec_ns = fixture_value(source);
		to->state.run_delay_ns = fixture_value(source);
		break;
	case WAFFLE_REC_LOSS:
		to->loss.source = fixture_below(source, WAFFLE_SOURCE_COUNT);
		to->loss.from_ts = to->rec.ts - fixture_value(source) % 5000;
		to->loss.count = fixture_value(source);
		break;
	case WAFFLE_REC_WAIT:
	case WAFFLE_REC_WAKE:
	case WAFFLE_REC_FAULT:
	case WAFFLE_REC_IO:
	case WAFFLE_REC_SIGNAL:
	case WAFFLE_REC_QUOTA:
	case WAFFLE_REC_STOLEN:
	case WAFFLE_REC_FREQUENCY:
	case WAFFLE_REC_STACK:
	case WAFFLE_REC_TRACK:
	case WAFFLE_REC_ON_TRACK:
	case WAFFLE_REC_SAMPLE:
	case WAFFLE_REC_OPEN_WAIT:
	case WAFFLE_REC_THREAD_NAME:
	case WAFFLE_REC_MEMORY:
	case WAFFLE_REC_IO_LIMIT:
	case WAFFLE_REC_LOCK_REFUSAL:
	case WAFFLE_REC_REQUEST_FAILURE:
	case WAFFLE_REC_LATE_SLEEP:
		for (size_t at = sizeof(to->rec);
		     at < record_size(to, sizeof(*to)) && fixture_below(source, 8); at += 8)
			memcpy((char *)to + at, &(uint64_t){fixture_value(source)}, 8);
		break;
	default: /* fork, exec, exit: two numbers */
		to->end.tgid = 100;
		to->end.code = (int32_t)fixture_value(source);
		break;
	}
}

static inline void fixture_record(struct record_source *source, struct record_buffer *to)
{
	unsigned t = fixture_below(source, 8);
	unsigned common = fixture_below(source, 8);

	memset(&to->sw, 0, 256);
	source->ts += fixture_below(source, 3000);
	/* One in 16 records is late. */
	to->rec.ts = source->ts - (fixture_below(source, 16) ? 0 : fixture_below(source, 100000));
	to->rec.tid = 100 + t;
	to->rec.cpu = (uint16_t)(fixture_below(source, 64) ? t % 4 : fixture_value(source));
	to->rec.kind =
		(uint16_t)(1 +
			   (common ? common % 3
				   : fixture_below(source,
						   (source->kinds ?: WAFFLE_REC_KIND_COUNT) - 1)));
	if (common == 7)
		to->rec.kind = WAFFLE_REC_RETURN;
	fixture_fill(source, to, t);
}

#define FIXTURE_SOURCE(seed) ((struct record_source){.random = (seed), .ts = 5000000000ull})

#endif
