/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random sites and frames for the differential test; filter_random_expression.h has the
 * expressions. Each expression takes its literals and values from one small pool, so that
 * comparisons are true about as often as false.
 */
#ifndef WAFFLE_TESTS_FILTER_RANDOM_H
#define WAFFLE_TESTS_FILTER_RANDOM_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filter/expr_internal.h"
#include "target/elf/site.h"

#define POOL 5
#define SOURCE_BYTES (FILTER_SOURCE_MAX + 1024)
#define RANDOM_FRAME_ROOM (WAFFLE_FRAME_MAX + 512)
#define PARENTS 6
#define PARENT_ID(i) (1000u + (i)) /* parents from PARENTS on are unknown */

struct random_text {
	unsigned len;
	char bytes[WAFFLE_STR_MAX];
};

struct world {
	uint64_t random;
	struct random_text texts[POOL], comms[POOL];
	const char *numbers[POOL]; /* as written in expressions */
	uint64_t durations[POOL];
	uint32_t pid, tid, cpu; /* of the thread that runs the programs */
	struct site_info site;
	char source[SOURCE_BYTES];
	size_t source_len;
	unsigned predicates;
};

/* A frame, and whether it can be read. */
struct random_frame {
	uint32_t size;
	bool unreadable;
	unsigned char bytes[RANDOM_FRAME_ROOM];
};

/* splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014. */
static inline uint64_t rnd(struct world *world)
{
	uint64_t z = world->random += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static inline unsigned below(struct world *world, unsigned n)
{
	return (unsigned)(rnd(world) % n);
}

static inline bool percent(struct world *world, unsigned n)
{
	return below(world, 100) < n;
}

/* ---- pools ---- */

static const char *const random_names[] = {"copy", "send", "recv", "step", "copy_all", "a*b"};
#define NAME_COUNT 6

static const char *const random_numbers[] = {
	"0",
	"1",
	"2",
	"3",
	"-1",
	"-2",
	"100",
	"0.5",
	"1.5",
	"-1.5",
	"2.25",
	"0.1",
	"-0.000001",
	"9223372036854775807",
	"9223372036854775808",
	"-9223372036854775808",
	"18446744073709551615",
	"9007199254740992",
	"9007199254740993",
	"9007199254740993.5",
	"4294967296",
	"2147483647",
	"2147483648",
	"-2147483648",
	"-2147483649",
	"1KiB",
	"1.5k",
	"-9007199254740993",
	"0.0",
	"18446744073709551614",
};

static inline void random_text_make(struct world *world, struct random_text *text, unsigned longest)
{
	static const char bytes[] = "aaaabbbbcc.*?[\\\xff \"";
	static const unsigned lengths[] = {5, 5, 5, 17, 17, 90, 257};
	unsigned most = lengths[below(world, 7)];

	most = most > longest + 1 ? longest + 1 : most;
	text->len = below(world, most);
	if (most == 257 && percent(world, 70))
		text->len = 100 + below(world, 157);
	for (unsigned i = 0; i < text->len; i++)
		text->bytes[i] = percent(world, 97) ? bytes[below(world, 10)]
						    : bytes[below(world, sizeof(bytes))];
}

/* A thread's name contains no NUL. */
static inline void random_comm_make(struct world *world, struct random_text *comm)
{
	random_text_make(world, comm, percent(world, 30) ? 15 : 6);
	for (unsigned i = 0; i < comm->len; i++)
		comm->bytes[i] = comm->bytes[i] ? comm->bytes[i] : 'c';
}

static inline void world_make(struct world *world)
{
	static const uint64_t durations[] = {0,          1,          2,          3,
					     1000,       10000000,   1ull << 31, 1ull << 32,
					     1ull << 63, UINT64_MAX, 4294967295, 12345678901};

	for (unsigned i = 0; i < POOL; i++) {
		random_text_make(world, &world->texts[i], WAFFLE_STR_MAX);
		random_comm_make(world, &world->comms[i]);
		world->numbers[i] = random_numbers[below(world, sizeof(random_numbers) /
									sizeof(*random_numbers))];
		world->durations[i] = durations[below(world, 12)];
	}
}

static inline void site_make(struct world *world)
{
	static const char types[] = "iiiiuuuudddbbpsssssssnnSEcvv";
	static const uint16_t kinds[] = {WAFFLE_SITE_SPAN,    WAFFLE_SITE_SPAN,
					 WAFFLE_SITE_SPAN,    WAFFLE_SITE_EVENT,
					 WAFFLE_SITE_COUNTER, WAFFLE_SITE_LOG_WARN};
	static const char *const keys[] = {"k0", "k1", "k2",  "k3",  "k4",  "k5",  "k6",  "k7",
					   "k8", "k9", "k10", "k11", "k12", "k13", "k14", "k15"};
	struct site_info *site = &world->site;

	*site = (struct site_info){
		.name = random_names[below(world, NAME_COUNT)],
		.category = percent(world, 50) ? "" : "net",
		.file = percent(world, 50) ? "src/a.c" : "b.c",
		.func = percent(world, 50) ? "main" : "run",
		.object = percent(world, 50) ? "/usr/lib/libx.so" : "/bin/prog",
		.line = 10 + below(world, 3),
		.kind = kinds[below(world, 6)],
		.key_count = (uint16_t)(percent(world, 80) ? 1 + below(world, 5)
							   : 1 + below(world, WAFFLE_KEYS_MAX)),
	};
	for (unsigned i = 0; i < site->key_count; i++) {
		site->keys[i].type = types[below(world, sizeof(types) - 1)];
		site->keys[i].name = keys[percent(world, 95) ? i : below(world, 16)];
	}
	if (percent(world, 2))
		site->keys[below(world, site->key_count)].type = 'X';
}

/* ---- frames ---- */

static inline void frame_word(struct random_frame *frame, uint64_t word)
{
	memcpy(frame->bytes + frame->size, &word, sizeof(word));
	frame->size += sizeof(word);
}

static inline uint64_t float_word(double value)
{
	uint64_t word;

	memcpy(&word, &value, sizeof(word));
	return word;
}

static inline uint64_t random_float(struct world *world)
{
	static const double special[] = {0.0, -0.0, 1e300, -1e300, 0x1p63, -0x1p63, 0x1p64, 5e-324};
	static const uint64_t bits[] = {0x7ff0000000000000ull, 0xfff0000000000000ull,
					0x7ff8000000000000ull, 0xfff8000000000001ull};
	double value = strtod(world->numbers[below(world, POOL)], NULL);

	switch (below(world, 8)) {
	case 0:
		return float_word(special[below(world, 8)]);
	case 1:
		return bits[below(world, 4)];
	case 2:
		return float_word(value + (percent(world, 50) ? 0.25 : -0.25));
	case 3:
		return float_word(value) + (percent(world, 50) ? 1 : -1ull);
	default:
		return float_word(value);
	}
}

static inline uint64_t random_integer(struct world *world)
{
	const char *text = world->numbers[below(world, POOL)];
	uint64_t value =
		*text == '-' ? (uint64_t)strtoll(text, NULL, 10) : strtoull(text, NULL, 10);

	value = strchr(text, 'K') ? value << 10 : value;
	return percent(world, 70) ? value : value + below(world, 3) - 1;
}

static inline void random_string(struct world *world, struct random_frame *frame)
{
	struct random_text text = world->texts[below(world, POOL)];
	uint64_t marks = 0;

	if (percent(world, 1)) {
		/* Longer than any copied string. */
		frame_word(frame, WAFFLE_STR_MAX + 1);
		memset(frame->bytes + frame->size, 'a', WAFFLE_STR_MAX + 8);
		frame->size += WAFFLE_STR_MAX + 8;
		return;
	}
	if (percent(world, 15) && text.len)
		text.bytes[below(world, text.len)] = percent(world, 20) ? '\0' : 'b';
	if (percent(world, 10) && text.len)
		text.len -= 1 + below(world, text.len);
	if (percent(world, 8))
		marks |= WAFFLE_STR_CUT;
	if (percent(world, 8)) {
		marks |= WAFFLE_STR_NULL;
		text.len = percent(world, 50) ? text.len : 0;
	}
	frame_word(frame, text.len | marks);
	memset(frame->bytes + frame->size, percent(world, 50) ? 0 : 'a', (text.len + 7u) & ~7u);
	memcpy(frame->bytes + frame->size, text.bytes, text.len);
	frame->size += (text.len + 7u) & ~7u;
}

static inline void random_value(struct world *world, struct random_frame *frame, char type)
{
	unsigned number;

	switch (type) {
	case WAFFLE_KEY_STR:
		random_string(world, frame);
		return;
	case WAFFLE_KEY_F64:
		frame_word(frame, random_float(world));
		return;
	case WAFFLE_KEY_BOOL:
		frame_word(frame, percent(world, 90) ? below(world, 2) : rnd(world));
		return;
	case WAFFLE_KEY_NUMBER:
		number = below(world, 3);
		frame_word(frame, percent(world, 95) ? number : rnd(world) % 6);
		frame_word(frame, number == WAFFLE_NUMBER_F64 ? random_float(world)
							      : random_integer(world));
		return;
	case WAFFLE_KEY_DIM3:
		frame_word(frame, random_integer(world));
		frame_word(frame, random_integer(world));
		return;
	default:
		frame_word(frame, random_integer(world));
		return;
	}
}

/* Damages a frame in ways that no correct program produces. */
static inline void frame_spoil(struct world *world, struct random_frame *frame)
{
	static const uint64_t words[] = {257,        256,        1ull << 34, UINT64_MAX,
					 4294967295, 0xfffffff9, 300,        3};

	switch (below(world, 5)) {
	case 0:
	case 1:
		frame->size = below(world, frame->size + 1);
		return;
	case 2:
		if (frame->size > sizeof(struct waffle_frame))
			memcpy(frame->bytes + sizeof(struct waffle_frame) +
				       8 * below(world, (frame->size - 32) / 8),
			       &words[below(world, 8)], 8);
		return;
	case 3:
		frame->size += below(world, 64);
		return;
	default:
		if (percent(world, 50))
			frame->size = WAFFLE_FRAME_MAX + 1 + below(world, 100);
		else
			frame->unreadable = true;
		return;
	}
}

static inline void frame_make(struct world *world, struct random_frame *frame)
{
	bool root = percent(world, 30), traced = percent(world, 70);

	frame->size = 0;
	frame->unreadable = false;
	frame_word(frame, percent(world, 90) ? rnd(world) : 0);
	frame_word(frame, root ? 0 : PARENT_ID(below(world, PARENTS + 2)));
	frame_word(frame, traced ? rnd(world) : 0);
	frame_word(frame, traced ? rnd(world) : 0);
	for (unsigned i = 0; i < world->site.key_count; i++)
		random_value(world, frame, world->site.keys[i].type);
	memset(frame->bytes + frame->size, 0x61, sizeof(frame->bytes) - frame->size);
	if (percent(world, 12))
		frame_spoil(world, frame);
}

#endif
