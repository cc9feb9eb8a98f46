// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/why_compare.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/keymap.h"
#include "util/memory.h"

/* Writes a text without the digits of addresses: "futex 0x55bb9c33e140 (queue_lock)" is
 * "futex 0x (queue_lock)". */
static void put_without_addresses(FILE *out, const char *text)
{
	while (*text) {
		fputc(*text, out);
		if (text[0] == '0' && text[1] == 'x' && isxdigit((unsigned char)text[2])) {
			fputc(*++text, out);
			while (isxdigit((unsigned char)text[1]))
				text++;
		}
		text++;
	}
	fputc('\0', out);
}

/* What a cause of one capture has in common with the same cause of another one. The caller frees
 * it. */
static char *cause_key(const struct why_aggregate *of, const struct why_group_cause *cause,
		       size_t *len)
{
	char *key = NULL;
	FILE *out = memory_stream(&key, len);

	fprintf(out, "%u %d %d%c", cause->cause, cause->own, cause->merged != 0, '\0');
	if (!cause->own && cause->comm != MODEL_NONE)
		fputs(strtab_get(of->model->strings, cause->comm), out);
	fputc('\0', out);
	if (cause->span != MODEL_NONE)
		fputs(of->groups.data[cause->span].name, out);
	fputc('\0', out);
	if (cause->object)
		put_without_addresses(out, strtab_get(of->why->texts, cause->object));
	memory_require(!fclose(out));
	return key;
}

static double change_of(const double ns[WHY_SIDES])
{
	return ns[WHY_AFTER] - ns[WHY_BEFORE];
}

bool why_change_is_nothing(const struct why_change *change)
{
	return change->ns[WHY_BEFORE] < 0.5 && change->ns[WHY_AFTER] < 0.5;
}

static int by_size(double a, double b)
{
	return fabs(a) > fabs(b) ? -1 : fabs(a) < fabs(b);
}

static int change_compare(const void *left, const void *right)
{
	const struct why_change *a = left, *b = right;
	const struct why_group_cause *of_a = a->cause[WHY_AFTER] ?: a->cause[WHY_BEFORE];
	const struct why_group_cause *of_b = b->cause[WHY_AFTER] ?: b->cause[WHY_BEFORE];
	int order = why_change_is_nothing(a) - why_change_is_nothing(b);

	order = order ?: by_size(change_of(a->ns), change_of(b->ns));
	/* What did not change is still sorted by what it takes. */
	return order ?: by_size(a->ns[WHY_AFTER], b->ns[WHY_AFTER])
				?: (of_a->cause > of_b->cause) - (of_a->cause < of_b->cause);
}

static void add_causes(struct why_change_name *name, struct keymap *keys,
		       const struct why_aggregate *of, enum why_side side)
{
	const struct why_group *group = name->group[side];

	for (size_t i = 0; group && i < group->causes.len; i++) {
		const struct why_group_cause *cause = &group->causes.data[i];
		size_t len;
		char *key = cause_key(of, cause, &len);
		uint32_t at = keymap_get(keys, key, len);

		if (at == MAP_NONE) {
			at = (uint32_t)name->causes.len;
			vec_add(&name->causes, (struct why_change){.ns = {0}});
			keymap_put(keys, key, len, at);
		}
		if (!name->causes.data[at].cause[side]) /* they are sorted by time */
			name->causes.data[at].cause[side] = cause;
		name->causes.data[at].ns[side] +=
			(double)cause->total_ns / (double)group->explained;
		free(key);
	}
}

static void name_compare_causes(struct why_change_name *name, const struct why_comparison *in)
{
	uint64_t count = (name->group[WHY_AFTER] ?: name->group[WHY_BEFORE])->count;
	struct keymap keys = {0};

	for (unsigned side = 0; side < WHY_SIDES; side++) {
		const struct why_group *group = name->group[side];

		if (group)
			name->ns[side] = (double)group->explained_ns / (double)group->explained;
		add_causes(name, &keys, in->of[side], side);
	}
	keymap_free(&keys);
	name->weight_ns = fabs(change_of(name->ns)) * (double)count;
	if (name->causes.len)
		qsort(name->causes.data, name->causes.len, sizeof(*name->causes.data),
		      change_compare);
}

static int name_compare(const void *left, const void *right)
{
	const struct why_change_name *a = left, *b = right;
	const struct why_group *of_a = a->group[WHY_AFTER] ?: a->group[WHY_BEFORE];
	const struct why_group *of_b = b->group[WHY_AFTER] ?: b->group[WHY_BEFORE];

	return by_size(a->weight_ns, b->weight_ns) ?: strcmp(of_a->name, of_b->name)
						     ?: strcmp(of_a->category, of_b->category);
}

/* For each group, whether its spans are calls of book-keeping, which reports leave out. The caller
 * frees it. */
static bool *bookkeeping_find(const struct why_aggregate *of)
{
	bool *found = memory_zeroed(of->groups.len + 1, sizeof(*found));

	for (uint32_t i = 0; i < of->site_count; i++)
		found[of->group_of[i]] |= site_is_bookkeeping(model_site(of->model, i));
	return found;
}

static void add_names(struct why_comparison *comparison, struct keymap *keys, enum why_side side,
		      const char *wanted)
{
	const struct why_aggregate *of = comparison->of[side];
	bool *bookkeeping = bookkeeping_find(of);

	for (size_t i = 0; i < of->groups.len; i++) {
		const struct why_group *group = &of->groups.data[i];
		size_t name_len = strlen(group->name) + 1, len = name_len + strlen(group->category);
		char *key;
		uint32_t at;

		if (!group->explained ||
		    (wanted ? strcmp(wanted, group->name) != 0 : bookkeeping[i]))
			continue;
		key = memory_get(len);
		memcpy(key, group->name, name_len);
		memcpy(key + name_len, group->category, len - name_len);
		at = keymap_get(keys, key, len);
		if (at == MAP_NONE) {
			at = (uint32_t)comparison->names.len;
			vec_add(&comparison->names, (struct why_change_name){.ns = {0}});
			keymap_put(keys, key, len, at);
		}
		comparison->names.data[at].group[side] = group;
		free(key);
	}
	free(bookkeeping);
}

void why_compare(struct why_comparison *comparison, const struct why_aggregate *before,
		 const struct why_aggregate *after, const char *name)
{
	struct keymap keys = {0}; /* name and category → index in names */

	*comparison = (struct why_comparison){.of = {before, after}};
	for (unsigned side = 0; side < WHY_SIDES; side++)
		add_names(comparison, &keys, side, name);
	keymap_free(&keys);
	for (size_t i = 0; i < comparison->names.len; i++)
		name_compare_causes(&comparison->names.data[i], comparison);
	if (comparison->names.len)
		qsort(comparison->names.data, comparison->names.len,
		      sizeof(*comparison->names.data), name_compare);
}

void why_comparison_free(struct why_comparison *comparison)
{
	for (size_t i = 0; i < comparison->names.len; i++)
		vec_free(&comparison->names.data[i].causes);
	vec_free(&comparison->names);
}
