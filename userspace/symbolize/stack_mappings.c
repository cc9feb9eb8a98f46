// SPDX-License-Identifier: Apache-2.0
#include "symbolize/stack_mappings.h"

#include <stdlib.h>
#include <string.h>

#include "util/hash.h"
#include "util/map.h"
#include "util/memory.h"
#include "util/search.h"
#include "util/vec.h"

/* The segment tree of a process. Each leaf is the range between two adjacent bounds. */
struct tree {
	uint64_t *bounds;
	uint32_t leaves;
	uint32_t *lists; /* lists of all nodes, one after the other: indexes of mappings */
	const struct store_mapping **by_start; /* mappings with a name */
	uint32_t named;
	/* End of the list of each node, from node 1 on; node n has the children 2n and 2n+1. */
	uint32_t *ends;
};

struct stack_mappings {
	const struct store_mapping **rows; /* by pid, then by time */
	uint32_t count;
	VEC(struct tree) trees;
	struct map tree_of;   /* pid → index */
	struct map described; /* described_hash() → first row with a build-id */
	bool described_made;
};

static int row_compare(const void *left, const void *right)
{
	const struct store_mapping *a = *(const struct store_mapping *const *)left;
	const struct store_mapping *b = *(const struct store_mapping *const *)right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a->ts < b->ts ? -1 : a->ts > b->ts;
}

struct stack_mappings *stack_mappings_open(const struct store_reader *reader)
{
	uint32_t count = store_reader_mapping_count(reader);
	struct stack_mappings *made = memory_zeroed(1, sizeof(*made));

	made->rows = memory_zeroed((size_t)count + 1, sizeof(*made->rows));
	for (uint32_t i = 0; i < count; i++)
		made->rows[i] = store_reader_mapping(reader, i);
	qsort(made->rows, count, sizeof(*made->rows), row_compare);
	made->count = count;
	return made;
}

static void tree_free(struct tree *tree)
{
	free(tree->bounds);
	free(tree->lists);
	free(tree->ends);
	free(tree->by_start);
}

void stack_mappings_close(struct stack_mappings *mappings)
{
	if (!mappings)
		return;
	for (size_t i = 0; i < mappings->trees.len; i++)
		tree_free(&mappings->trees.data[i]);
	vec_free(&mappings->trees);
	map_free(&mappings->tree_of);
	map_free(&mappings->described);
	free(mappings->rows);
	free(mappings);
}

uint32_t stack_mappings_count(const struct stack_mappings *mappings)
{
	return mappings->count;
}

const struct store_mapping *stack_mappings_at(const struct stack_mappings *mappings, uint32_t at)
{
	return mappings->rows[at];
}

uint32_t stack_mappings_of(const struct stack_mappings *mappings, uint32_t pid)
{
	return lower_bound(mappings->count, i, mappings->rows[i]->pid < pid);
}

/* ---- trees ---- */

static int bound_compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

/* Number of bounds at or below an address. */
static uint32_t bounds_until(const struct tree *tree, uint64_t address)
{
	return lower_bound(tree->leaves + 1, i, tree->bounds[i] <= address);
}

/* Collects the bounds of `count` rows. */
static void bounds_make(struct tree *tree, const struct store_mapping *const *rows, uint32_t count)
{
	size_t used = 0, kept = 0;

	tree->bounds = memory_zeroed(2 * (size_t)count + 1, sizeof(*tree->bounds));
	for (uint32_t i = 0; i < count; i++) {
		if (rows[i]->start >= rows[i]->end)
			continue;
		tree->bounds[used++] = rows[i]->start;
		tree->bounds[used++] = rows[i]->end;
	}
	qsort(tree->bounds, used, sizeof(*tree->bounds), bound_compare);
	for (size_t i = 0; i < used; i++)
		if (!kept || tree->bounds[kept - 1] != tree->bounds[i])
			tree->bounds[kept++] = tree->bounds[i];
	tree->leaves = kept ? (uint32_t)kept - 1 : 0;
}

/* The nodes that together cover a row, at most two on each level. */
static uint32_t nodes_of(const struct tree *tree, const struct store_mapping *row,
			 uint32_t nodes[64])
{
	uint64_t low, high;
	uint32_t count = 0;

	if (row->start >= row->end)
		return 0;
	low = bounds_until(tree, row->start) - 1ull + tree->leaves;
	high = bounds_until(tree, row->end) - 1ull + tree->leaves;
	for (; low < high; low /= 2, high /= 2) {
		if (low & 1)
			nodes[count++] = (uint32_t)low++;
		if (high & 1)
			nodes[count++] = (uint32_t)--high;
	}
	return count;
}

static void lists_make(struct tree *tree, const struct store_mapping *const *rows, uint32_t first,
		       uint32_t count)
{
	uint32_t nodes[64], found;
	size_t total = 0, node_count = 2 * (size_t)tree->leaves + 1;

	tree->ends = memory_zeroed(node_count + 1, sizeof(*tree->ends));
	for (uint32_t i = 0; i < count; i++) {
		found = nodes_of(tree, rows[i], nodes);
		for (uint32_t k = 0; k < found; k++)
			tree->ends[nodes[k]]++;
		total += found;
	}
	memory_require(total <= UINT32_MAX);
	tree->lists = memory_zeroed(total + 1, sizeof(*tree->lists));
	/* ends[] first has the start of each list; adding the entries advances it to the end. */
	for (size_t node = 0, begin = 0; node < node_count; node++) {
		uint32_t length = tree->ends[node];

		tree->ends[node] = (uint32_t)begin;
		begin += length;
	}
	for (uint32_t i = 0; i < count; i++) {
		found = nodes_of(tree, rows[i], nodes);
		for (uint32_t k = 0; k < found; k++)
			tree->lists[tree->ends[nodes[k]]++] = first + i;
	}
}

/* By address, then by time, so that the last one of an address wins. */
static int start_compare(const void *left, const void *right)
{
	const struct store_mapping *a = *(const struct store_mapping *const *)left;
	const struct store_mapping *b = *(const struct store_mapping *const *)right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->ts < b->ts ? -1 : a->ts > b->ts;
}

static void by_start_make(struct tree *tree, const struct store_mapping *const *rows,
			  uint32_t count)
{
	tree->by_start = memory_zeroed((size_t)count + 1, sizeof(*tree->by_start));
	for (uint32_t i = 0; i < count; i++)
		if (*rows[i]->path)
			tree->by_start[tree->named++] = rows[i];
	qsort(tree->by_start, tree->named, sizeof(*tree->by_start), start_compare);
}

/* Finds or makes the tree of a process. NULL: the process has no mappings. */
static const struct tree *tree_of(struct stack_mappings *mappings, uint32_t pid)
{
	uint32_t known = map_get(&mappings->tree_of, pid), first, end;
	struct tree tree = {0};

	if (known != MAP_NONE)
		return &mappings->trees.data[known];
	first = stack_mappings_of(mappings, pid);
	for (end = first; end < mappings->count && mappings->rows[end]->pid == pid;)
		end++;
	if (end == first)
		return NULL;
	bounds_make(&tree, mappings->rows + first, end - first);
	lists_make(&tree, mappings->rows + first, first, end - first);
	by_start_make(&tree, mappings->rows + first, end - first);
	map_put(&mappings->tree_of, pid, (uint32_t)mappings->trees.len);
	vec_add(&mappings->trees, tree);
	return &mappings->trees.data[mappings->trees.len - 1];
}

/* Searches the list of a node for the last row at or before `ts`, and for the first one after
 * it. */
static void list_look(const struct stack_mappings *mappings, const struct tree *tree, uint32_t node,
		      uint64_t ts, uint32_t *last, uint32_t *next)
{
	const uint32_t *list = &tree->lists[tree->ends[node - 1]];
	uint32_t count = tree->ends[node] - tree->ends[node - 1];
	uint32_t after = lower_bound(count, i, mappings->rows[list[i]]->ts <= ts);

	if (after && (*last == MAP_NONE || list[after - 1] > *last))
		*last = list[after - 1];
	if (after < count && list[after] < *next)
		*next = list[after];
}

const struct store_mapping *stack_mappings_find(struct stack_mappings *mappings, uint32_t pid,
						uint64_t address, uint64_t ts)
{
	const struct tree *tree = tree_of(mappings, pid);
	uint32_t last = MAP_NONE, next = MAP_NONE, leaf;
	const struct store_mapping *found;

	if (!tree || !tree->leaves)
		return NULL;
	leaf = bounds_until(tree, address);
	if (!leaf || leaf > tree->leaves)
		return NULL;
	for (uint32_t node = leaf - 1 + tree->leaves; node; node /= 2)
		list_look(mappings, tree, node, ts, &last, &next);
	if (last == MAP_NONE)
		last = next;
	if (last == MAP_NONE)
		return NULL;
	found = mappings->rows[last];
	return *found->path ? found : NULL;
}

const struct store_mapping *stack_mappings_before(struct stack_mappings *mappings, uint32_t pid,
						  uint64_t address)
{
	const struct tree *tree = tree_of(mappings, pid);
	uint32_t after =
		lower_bound(tree ? tree->named : 0, i, tree->by_start[i]->start <= address);

	return after ? tree->by_start[after - 1] : NULL;
}

/* ---- files ---- */

static uint64_t described_hash(const struct store_mapping *row)
{
	const struct hash_secret secret = hash_secret();
	uint64_t hash = hash_word(secret.begin, row->pid, &secret);

	hash = hash_word(hash, row->ino, &secret);
	hash = hash_word(hash, row->dev, &secret);
	return hash_keyed(hash, row->path, strlen(row->path), &secret);
}

const struct store_mapping *stack_mappings_described(struct stack_mappings *mappings,
						     const struct store_mapping *mapping)
{
	const struct store_mapping *other;
	uint32_t index;

	if (mapping->build_id_bytes)
		return mapping;
	for (uint32_t i = 0; !mappings->described_made && i < mappings->count; i++) {
		uint64_t hash = described_hash(mappings->rows[i]);

		if (mappings->rows[i]->build_id_bytes &&
		    map_get(&mappings->described, hash) == MAP_NONE)
			map_put(&mappings->described, hash, i);
	}
	mappings->described_made = true;
	index = map_get(&mappings->described, described_hash(mapping));
	if (index == MAP_NONE)
		return mapping;
	other = mappings->rows[index];
	return other->pid == mapping->pid && other->ino == mapping->ino &&
			       other->dev == mapping->dev && !strcmp(other->path, mapping->path)
		       ? other
		       : mapping;
}
