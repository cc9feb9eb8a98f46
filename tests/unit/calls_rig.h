/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of a test's own program that are described, found, armed and called, with the records
 * that the kernel makes. Include it after cmocka.
 */
#ifndef WAFFLE_TEST_CALLS_RIG_H
#define WAFFLE_TEST_CALLS_RIG_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "probe/spec/call_set.h"
#include "filter/filter.h"
#include "filter/plan.h"
#include "kernel/kernel.h"
#include "target/elf/object_read.h"
#include "util/vec.h"

#define SELF "/proc/self/exe"
#define FIRST_SITE 1000
#define NOWHERE 8192ull /* an address where nothing is mapped */
#if defined(__clang__)
#define PROBED __attribute__((noinline))
#else
#define PROBED __attribute__((noinline, noclone))
#endif

/* ---- the called functions ---- */

struct box {
	unsigned x, y, z;
};
struct leaf {
	int64_t before;
	int32_t weight;
};
struct tree {
	char name[16];
	const struct leaf *leaf;
};

static volatile uint64_t sink;

/* Forces the compiler to store the data behind a pointer before the call. */
#define KEEP(pointer) __asm__ volatile("" ::"r"(pointer) : "memory")

PROBED long take_all(signed char tiny, unsigned short small, int number, long large, bool flag,
		     const char *text, unsigned kind, void *far);
PROBED void take_box(struct box box, const char *text, struct box second);
PROBED void take_tree(const struct tree *tree);
PROBED int give_out(int wanted, uint64_t *made);
PROBED long factorial(long n);
PROBED void jump_out(jmp_buf *where, int depth);
PROBED void plain(long number);
PROBED long inner_work(long number);
PROBED long outer_work(long number);
PROBED long outer_jump(long number);
PROBED void outer_leave(jmp_buf *where);
PROBED void launch(long number);
PROBED void launch_jump(long number);
PROBED void launch_inner(long number);
PROBED void pair_begins(long key);
PROBED void pair_ends(long key);
PROBED void collective(void *comm);

long take_all(signed char tiny, unsigned short small, int number, long large, bool flag,
	      const char *text, unsigned kind, void *far)
{
	KEEP(text);
	sink += (uint64_t)tiny + small + (uint64_t)number + flag +
		(text && text != (char *)NOWHERE) + kind + (far != NULL);
	return large - 1;
}

void take_box(struct box box, const char *text, struct box second)
{
	KEEP(text);
	sink += box.x + box.y + box.z + second.z + (text != NULL);
}

void take_tree(const struct tree *tree)
{
	KEEP(tree);
	sink += tree != NULL;
}

int give_out(int wanted, uint64_t *made)
{
	KEEP(made);
	*made = (uint64_t)wanted * 3;
	return -wanted;
}

long factorial(long n)
{
	long below = n < 2 ? 1 : factorial(n - 1);

	sink++;
	return n < 2 ? 1 : n * below;
}

void jump_out(jmp_buf *where, int depth)
{
	if (!depth)
		longjmp(*where, 1);
	if (sink != UINT64_MAX) /* always true, which the compiler must not know */
		jump_out(where, depth - 1);
	sink++;
}

static inline void jump_once(int depth)
{
	jmp_buf where;

	if (!setjmp(where))
		jump_out(&where, depth);
}

void plain(long number)
{
	sink += (uint64_t)number;
}

long inner_work(long number)
{
	sink += (uint64_t)number;
	return number + 1;
}

long outer_work(long number)
{
	long made = inner_work(number) + inner_work(number);

	sink++;
	return made;
}

/* Compiled to a jump: the callee has the stack pointer of the caller of this function. */
long outer_jump(long number)
{
	return inner_work(number * 2);
}

void outer_leave(jmp_buf *where)
{
	sink++;
	longjmp(*where, 1);
}

void launch_inner(long number)
{
	sink += (uint64_t)number;
}

void launch(long number)
{
	if (number >= 0) /* otherwise it fails */
		launch_inner(number + 100);
	sink++;
}

void launch_jump(long number)
{
	launch_inner(number + 200);
}

void pair_begins(long key)
{
	sink += (uint64_t)key;
}

void pair_ends(long key)
{
	sink -= (uint64_t)key;
}

void collective(void *comm)
{
	KEEP(comm);
	sink += comm != NULL;
}

/* ---- the kernel's records ---- */

/* A record with room for its values. */
struct said {
	struct waffle_rec rec;
	uint64_t id;
	uint32_t site;
	uint32_t frame_bytes;
	uint32_t flags; /* of a return */
	unsigned char frame[1024];
};

struct rig {
	struct kernel *kernel;
	struct call_set *set;
	struct object *object;
	struct filter_expr *filter; /* NULL: none */
	struct plan *plan;
	struct arm_use *uses;
	struct armed *armed;
	VEC(struct said) said;
};

static void must(int result, const struct error *err)
{
	if (result)
		fail_msg("%s", err->message);
}

static void record_take(const void *data, size_t size, void *context)
{
	struct rig *rig = context;
	const struct waffle_rec *rec = data;
	struct said said;

	said = (struct said){.rec = *rec};
	if (rec->kind == WAFFLE_REC_HIT) {
		const struct waffle_rec_hit *hit = data;

		assert_in_range(hit->frame_bytes, sizeof(struct waffle_frame), size - sizeof(*hit));
		said.site = hit->site - FIRST_SITE;
		said.frame_bytes = hit->frame_bytes;
		memcpy(said.frame, hit + 1, hit->frame_bytes);
		memcpy(&said.id, said.frame, sizeof(said.id));
	} else if (rec->kind == WAFFLE_REC_RETURN) {
		const struct waffle_rec_return *end = data;

		assert_in_range(end->frame_bytes, 0, size - sizeof(*end));
		said.site = end->site - FIRST_SITE;
		said.frame_bytes = end->frame_bytes;
		said.id = end->span_id;
		said.flags = end->flags;
		memcpy(said.frame, end + 1, end->frame_bytes);
	} else {
		return;
	}
	assert_non_null(vec_push(&rig->said, said));
}

static void rig_find(struct rig *rig, const char *const *texts)
{
	struct error err = ERROR_INIT;
	int fd = open(SELF, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	must(call_set_open(&rig->set, &err), &err);
	for (; *texts; texts++)
		must(call_set_add(rig->set, *texts, "test", &err), &err);
	must(object_read(&rig->object, fd, SELF, &err), &err);
	must(call_set_find(rig->set, rig->object, fd, &err), &err);
	close(fd);
}

static void rig_arm(struct rig *rig)
{
	const struct arm_request request = {
		.object = rig->object,
		.path = SELF,
		.pid = getpid(),
		.first_site = FIRST_SITE,
		.uses = rig->uses,
	};
	const struct waffle_enum *enums;
	struct error err = ERROR_INIT;
	uint32_t count;

	enums = call_set_enums(rig->set, &count);
	assert_int_equal(kernel_enums_set(rig->kernel, enums, count), 0);
	for (size_t i = 0; i < rig->object->calls.len; i++) {
		const struct object_call *call = &rig->object->calls.data[i];

		assert_int_equal(kernel_fetch_program_set(rig->kernel, FIRST_SITE + call->site,
							  &call->fetch_program),
				 0);
	}
	must(kernel_arm(rig->kernel, &rig->armed, &request, &err), &err);
	assert_non_null(rig->armed);
}

/* Applies the filter to each site. */
static void rig_plan(struct rig *rig)
{
	struct error err = ERROR_INIT;

	rig->uses = calloc(rig->object->sites.len, sizeof(*rig->uses));
	assert_non_null(rig->uses);
	for (size_t i = 0; i < rig->object->sites.len; i++)
		must(plan_site(rig->plan, &rig->object->sites.data[i], &rig->uses[i].use,
			       &rig->uses[i].class, &err),
		     &err);
	for (uint32_t i = 0; i < rig->plan->classes.len; i++)
		must(kernel_class_load(rig->kernel, i, &rig->plan->classes.data[i], &err), &err);
}

static struct rig *rig_begin(const char *filter, const char *const *texts)
{
	struct kernel_options options = {.ring_bytes = 4 << 20, .calls = true};
	struct rig *rig = calloc(1, sizeof(*rig));
	struct error err = ERROR_INIT;

	assert_non_null(rig);
	if (filter) {
		must(filter_parse(&rig->filter, "test", filter, &err), &err);
		must(plan_open(&rig->plan, rig->filter, false, &err), &err);
		options.filtered = !rig->plan->is_static;
		options.config.rate_count = rig->filter->rate.count;
		options.config.rate_unit_ns = rig->filter->rate.unit_ns;
	}
	must(kernel_open(&rig->kernel, &options, &err), &err);
	rig_find(rig, texts);
	if (rig->plan)
		rig_plan(rig);
	rig_arm(rig);
	return rig;
}
#define RIG(...) rig_begin(NULL, (const char *const[]){__VA_ARGS__, NULL})
#define RIG_FILTERED(filter, ...) rig_begin(filter, (const char *const[]){__VA_ARGS__, NULL})

static void rig_end(struct rig *rig)
{
	armed_release(rig->armed);
	kernel_close(rig->kernel);
	plan_free(rig->plan);
	filter_free(rig->filter);
	free(rig->uses);
	object_free(rig->object);
	call_set_free(rig->set);
	vec_free(&rig->said);
	free(rig);
}

static int said_compare(const void *a, const void *b)
{
	const struct said *x = a, *y = b;

	return x->rec.ts < y->rec.ts ? -1 : x->rec.ts > y->rec.ts;
}

/* Reads all records so far, sorted by time. */
static void rig_read(struct rig *rig)
{
	kernel_take(rig->kernel, record_take, rig);
	if (rig->said.len)
		qsort(rig->said.data, rig->said.len, sizeof(*rig->said.data), said_compare);
}

/* The record at an index, which must have that kind and function. */
static const struct said *said_get(const struct rig *rig, size_t index, unsigned kind,
				   const char *function)
{
	const struct said *said;

	if (index >= rig->said.len)
		fail_msg("%s: record %zu of %zu", function, index, rig->said.len);
	said = &rig->said.data[index];
	assert_in_range(said->site, 0, rig->object->sites.len - 1);
	assert_string_equal(rig->object->sites.data[said->site].name, function);
	assert_int_equal(said->rec.kind, kind);
	assert_int_equal(said->rec.tid, gettid());
	return said;
}
#define HIT(rig, index, function) said_get(rig, index, WAFFLE_REC_HIT, function)
#define RETURN(rig, index, function) said_get(rig, index, WAFFLE_REC_RETURN, function)

static inline size_t said_count(const struct rig *rig, unsigned kind, const char *function)
{
	size_t count = 0;

	for (size_t i = 0; i < rig->said.len; i++)
		count += rig->said.data[i].rec.kind == kind &&
			 !strcmp(rig->object->sites.data[rig->said.data[i].site].name, function);
	return count;
}

/* Number of a function's calls that were left without a return, each after its own begin. */
static inline size_t left_count(const struct rig *rig, const char *function)
{
	size_t count = 0;

	for (size_t i = 0; i < rig->said.len; i++) {
		const struct said *said = &rig->said.data[i];

		if (said->rec.kind != WAFFLE_REC_RETURN ||
		    strcmp(rig->object->sites.data[said->site].name, function) != 0)
			continue;
		assert_int_equal(said->flags, WAFFLE_RETURN_LEFT);
		assert_int_equal(said->frame_bytes, 0);
		for (size_t j = 0; j < i; j++)
			count += rig->said.data[j].rec.kind == WAFFLE_REC_HIT &&
				 rig->said.data[j].id == said->id;
	}
	return count;
}

static uint64_t dropped(const struct rig *rig)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < kernel_cpu_count(rig->kernel); i++)
		count += kernel_cpu(rig->kernel, i)->dropped[WAFFLE_SOURCE_SPANS];
	return count;
}

/* A value by the name of its key. */
static struct value value_of(const struct rig *rig, const struct said *said, const char *key)
{
	const struct site_info *site = &rig->object->sites.data[said->site];
	const struct object_call *call = &rig->object->calls.data[said->site];
	struct value_walk walk;
	struct value value;
	unsigned first = site->key_count;

	assert_int_equal(call->site, said->site);
	/* Each fetch makes a key; the two halves of a dim3 make one. */
	for (unsigned i = 0; i < call->fetch_program.returns; i++) {
		unsigned at = call->fetch_program.begins + call->fetch_program.saves + i;

		first -= call->fetch_program.fetches[at].format != WAFFLE_FORMAT_HIGH;
	}
	walk = said->rec.kind == WAFFLE_REC_HIT
		       ? value_walk_begin(site, said->frame, said->frame_bytes)
		       : value_walk_from(site, first, said->frame, said->frame_bytes);
	while (value_walk_next(&walk, &value))
		if (!strcmp(value.key->name, key))
			return value;
	fail_msg("%s: no value of key '%s'", site->name, key);
	return value;
}

static void text_is(const struct rig *rig, const struct said *said, const char *key,
		    const char *text)
{
	struct value value = value_of(rig, said, key);

	assert_int_equal(value.type, WAFFLE_KEY_STR);
	assert_int_equal(value.text_len, strlen(text));
	assert_memory_equal(value.text, text, strlen(text));
}

static inline void dim_is(const struct rig *rig, const struct said *said, const char *key,
			  struct box box)
{
	struct value value = value_of(rig, said, key);

	assert_int_equal(value.type, WAFFLE_KEY_DIM3);
	assert_int_equal(value.dim[0], box.x);
	assert_int_equal(value.dim[1], box.y);
	assert_int_equal(value.dim[2], box.z);
}

#endif
