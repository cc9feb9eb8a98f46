// SPDX-License-Identifier: Apache-2.0
#include "filter/split.h"

#include <string.h>

#include "bpf/record.h"
#include "filter/eval.h"

/* ---- evaluating a predicate at a site ---- */

enum split_answer { ANSWER_NO, ANSWER_YES, ANSWER_ASK };

const struct site_key *site_key_find(const struct site_info *site, const char *name,
				     unsigned *index)
{
	for (unsigned i = 0; i < site->key_count && i < WAFFLE_KEYS_MAX; i++) {
		if (!strchr("iudbpsnSEcvT", site->keys[i].type) || !site->keys[i].type)
			return NULL; /* value_walk_next() ends here */
		if (!strcmp(site->keys[i].name, name)) {
			*index = i;
			return &site->keys[i];
		}
	}
	return NULL;
}

unsigned key_bytes(char type)
{
	return type == WAFFLE_KEY_NUMBER || type == WAFFLE_KEY_DIM3 ? 16 : 8;
}

enum waffle_deferred_size site_deferred_size(const struct site_info *site)
{
	unsigned bytes = sizeof(struct waffle_frame);

	for (unsigned i = 0; i < site->key_count && i < WAFFLE_KEYS_MAX; i++)
		bytes += key_bytes(site->keys[i].type) +
			 (site->keys[i].type == WAFFLE_KEY_STR ? WAFFLE_STR_MAX : 0);
	return bytes <= WAFFLE_DEFERRED_SMALL_BYTES    ? WAFFLE_DEFERRED_SMALL
	       : bytes <= WAFFLE_DEFERRED_MEDIUM_BYTES ? WAFFLE_DEFERRED_MEDIUM
						       : WAFFLE_DEFERRED_LARGE;
}

static enum split_answer number_answer(const struct filter_expr *filter,
				       const struct filter_predicate *predicate,
				       enum number_class class)
{
	const struct filter_literal *literals = &filter->literals.data[predicate->literal];
	enum split_answer answer = ANSWER_NO;
	struct number_test test;

	if (predicate->op == FILTER_MATCH || predicate->op == FILTER_NOT_MATCH)
		return ANSWER_NO;
	for (uint32_t i = 0; i < predicate->count; i++) {
		if (!filter_literal_is_number(&literals[i]))
			continue;
		test = number_test_make(class, predicate->op, &literals[i]);
		if (test.answer == NUMBER_ALWAYS)
			return ANSWER_YES;
		if (test.answer == NUMBER_COMPARE)
			answer = ANSWER_ASK;
	}
	return answer;
}

static size_t glob_least(const struct glob *glob)
{
	size_t least = 0;

	for (size_t i = 0; i < glob->len; i++)
		least += glob->tokens[i].type != GLOB_STAR;
	return least;
}

/* For a text that exists, is not truncated and has at most `longest` bytes. */
static enum split_answer text_answer(const struct filter_expr *filter,
				     const struct filter_predicate *predicate, size_t longest)
{
	const struct filter_literal *literals = &filter->literals.data[predicate->literal];
	bool some = false, possible = false;
	const struct glob *glob;

	for (uint32_t i = 0; i < predicate->count; i++) {
		if (literals[i].type != FILTER_LITERAL_TEXT)
			continue;
		some = true;
		possible = possible || literals[i].text_len <= longest;
	}
	if (!some)
		return ANSWER_NO;
	switch (predicate->op) {
	case FILTER_EQ:
	case FILTER_IN:
		return possible ? ANSWER_ASK : ANSWER_NO;
	case FILTER_NE:
		return possible ? ANSWER_ASK : ANSWER_YES;
	case FILTER_MATCH:
	case FILTER_NOT_MATCH:
		glob = literals[0].glob;
		if (glob_least(glob) > longest)
			return predicate->op == FILTER_MATCH ? ANSWER_NO : ANSWER_YES;
		if (glob->len == 1 && glob->tokens[0].type == GLOB_STAR)
			return predicate->op == FILTER_MATCH ? ANSWER_YES : ANSWER_NO;
		return ANSWER_ASK;
	default:
		return ANSWER_NO; /* texts have no order */
	}
}

/* Never ANSWER_YES, since the value may be missing. */
static enum split_answer key_answer(const struct filter_expr *filter,
				    const struct filter_predicate *predicate, char type)
{
	static const enum number_class classes[] = {NUMBER_SIGNED, NUMBER_UNSIGNED, NUMBER_FLOAT};

	switch (type) {
	case WAFFLE_KEY_STR:
		return text_answer(filter, predicate, WAFFLE_STR_MAX) == ANSWER_NO ? ANSWER_NO
										   : ANSWER_ASK;
	case SITE_KEY_TEXT:
		return text_answer(filter, predicate, SIZE_MAX) == ANSWER_NO ? ANSWER_NO
									     : ANSWER_ASK;
	case WAFFLE_KEY_DIM3:
		return ANSWER_NO;
	case WAFFLE_KEY_NUMBER:
		for (unsigned i = 0; i < sizeof(classes) / sizeof(*classes); i++)
			if (number_answer(filter, predicate, classes[i]) != ANSWER_NO)
				return ANSWER_ASK;
		return ANSWER_NO;
	default:
		return number_answer(filter, predicate, number_class_of(type)) == ANSWER_NO
			       ? ANSWER_NO
			       : ANSWER_ASK;
	}
}

bool key_can_be(const struct filter_expr *filter, const struct filter_predicate *predicate,
		char type)
{
	return key_answer(filter, predicate, type) != ANSWER_NO;
}

enum number_class number_class_of(char type)
{
	return type == WAFFLE_KEY_I64   ? NUMBER_SIGNED
	       : type == WAFFLE_KEY_F64 ? NUMBER_FLOAT
					: NUMBER_UNSIGNED;
}

static enum split_answer predicate_answer(const struct filter_expr *filter,
					  const struct filter_predicate *predicate,
					  const struct site_info *site)
{
	const struct filter_subject subject = {.site = site, .depth = -1};
	const struct site_key *key;
	enum split_answer answer;
	unsigned index;

	if (filter_fields[predicate->field].at_site)
		return filter_eval_predicate(filter, predicate, &subject) == FILTER_YES ? ANSWER_YES
											: ANSWER_NO;
	switch (predicate->field) {
	case FILTER_KV:
		key = site_key_find(site, predicate->key, &index);
		return key ? key_answer(filter, predicate, key->type) : ANSWER_NO;
	case FILTER_COMM:
		return text_answer(filter, predicate, WAFFLE_COMM_BYTES - 1);
	case FILTER_PARENT_NAME:
		return ANSWER_ASK;
	case FILTER_DEPTH:
		answer = number_answer(filter, predicate, NUMBER_UNSIGNED);
		return answer == ANSWER_NO ? ANSWER_NO : ANSWER_ASK;
	case FILTER_DUR:
		/* Even `dur >= 0` is unknown for a span that has not ended (eval.h). */
		return site->kind == WAFFLE_SITE_SPAN ? ANSWER_ASK : ANSWER_NO;
	default:
		return number_answer(filter, predicate, NUMBER_UNSIGNED);
	}
}

/* ---- rebuilding a tree ---- */

struct split_part {
	enum split_answer answer;
	uint32_t node; /* ANSWER_ASK: index in the new tree */
};

struct rebuild {
	struct residual *out;
	const struct filter_node *nodes; /* of the old tree */
	const struct filter_expr *filter;
	const struct site_info *site;  /* for residual_make() */
	const struct site_info *bound; /* for residual_bound() */
	bool upper;                    /* which bound to make */
	bool failed;
};

static struct split_part part_known(bool yes)
{
	return (struct split_part){.answer = yes ? ANSWER_YES : ANSWER_NO};
}

static struct split_part part_node(struct rebuild *rebuild, struct filter_node node)
{
	struct split_part part = {.answer = ANSWER_ASK, .node = (uint32_t)rebuild->out->nodes.len};

	if (!vec_push(&rebuild->out->nodes, node))
		rebuild->failed = true;
	return part;
}

/* Whether a predicate refers to facts that are known only when a span ends. */
static bool asks_end(const struct filter_predicate *predicate, const struct site_info *site)
{
	unsigned index;

	if (predicate->field == FILTER_DUR)
		return true;
	return predicate->field == FILTER_KV && site->call && site->kind == WAFFLE_SITE_SPAN &&
	       site_key_find(site, predicate->key, &index) && index >= site->begin_keys;
}

static struct split_part part_test(struct rebuild *rebuild, const struct filter_node *node,
				   bool negated)
{
	const struct filter_predicate *predicate =
		&rebuild->filter->predicates.data[node->predicate];
	enum split_answer answer = ANSWER_ASK;

	if (rebuild->site)
		answer = predicate_answer(rebuild->filter, predicate, rebuild->site);
	else if (rebuild->bound && asks_end(predicate, rebuild->bound))
		answer = rebuild->upper != negated ? ANSWER_YES : ANSWER_NO;
	return answer == ANSWER_ASK ? part_node(rebuild, *node) : part_known(answer == ANSWER_YES);
}

static struct split_part part_make(struct rebuild *rebuild, uint32_t index, bool negated);

/* Joins two operands. `len`: number of nodes before those of the left one. */
static struct split_part part_join(struct rebuild *rebuild, enum filter_node_type type,
				   struct split_part left, struct split_part right, size_t len)
{
	enum split_answer decides = type == FILTER_AND ? ANSWER_NO : ANSWER_YES;

	if (right.answer == decides)
		rebuild->out->nodes.len = len; /* drop the nodes of the left side */
	if (right.answer == decides || left.answer != ANSWER_ASK)
		return right;
	if (right.answer != ANSWER_ASK)
		return left;
	return part_node(rebuild, (struct filter_node){
					  .type = type,
					  .left = left.node,
					  .right = right.node,
				  });
}

static struct split_part part_pair(struct rebuild *rebuild, const struct filter_node *node,
				   bool negated)
{
	enum split_answer decides = node->type == FILTER_AND ? ANSWER_NO : ANSWER_YES;
	size_t len = rebuild->out->nodes.len;
	struct split_part left = part_make(rebuild, node->left, negated);

	if (left.answer == decides)
		return left;
	return part_join(rebuild, node->type, left, part_make(rebuild, node->right, negated), len);
}

/* Parts with a known answer leave no nodes, so every node but the last is the child of another. */
static struct split_part part_make(struct rebuild *rebuild, uint32_t index, bool negated)
{
	const struct filter_node *node = &rebuild->nodes[index];
	struct split_part part;

	switch (node->type) {
	case FILTER_AND:
	case FILTER_OR:
		return part_pair(rebuild, node, negated);
	case FILTER_NOT:
		part = part_make(rebuild, node->left, !negated);
		if (part.answer != ANSWER_ASK)
			return part_known(part.answer == ANSWER_NO);
		return part_node(rebuild,
				 (struct filter_node){.type = FILTER_NOT, .left = part.node});
	case FILTER_TEST:
		return part_test(rebuild, node, negated);
	case FILTER_SAMPLE:
		return node->keep == node->of ? part_known(true) : part_node(rebuild, *node);
	default:
		return part_known(node->type == FILTER_TRUE);
	}
}

static bool asks_dur(const struct rebuild *rebuild, uint32_t index)
{
	const struct filter_node *node = &rebuild->nodes[index];

	switch (node->type) {
	case FILTER_AND:
	case FILTER_OR:
		return asks_dur(rebuild, node->left) || asks_dur(rebuild, node->right);
	case FILTER_NOT:
		return asks_dur(rebuild, node->left);
	case FILTER_TEST:
		return rebuild->filter->predicates.data[node->predicate].field == FILTER_DUR;
	default:
		return false;
	}
}

static struct split_part part_rest(struct rebuild *rebuild, uint32_t index)
{
	const struct filter_node *node = &rebuild->nodes[index];
	size_t len = rebuild->out->nodes.len;
	struct split_part left;

	if (!asks_dur(rebuild, index))
		return part_known(true);
	if (node->type != FILTER_AND)
		return part_make(rebuild, index, false);
	left = part_rest(rebuild, node->left);
	return part_join(rebuild, node->type, left, part_rest(rebuild, node->right), len);
}

/* Adds the root of a tree whose answer is known. */
static bool rebuild_end(struct rebuild *rebuild, struct split_part part)
{
	if (part.answer != ANSWER_ASK)
		part_node(rebuild,
			  (struct filter_node){.type = part.answer == ANSWER_YES ? FILTER_TRUE
										 : FILTER_FALSE});
	if (rebuild->failed)
		residual_free(rebuild->out);
	return !rebuild->failed;
}

bool residual_make(struct residual *residual, const struct filter_expr *filter,
		   const struct site_info *site)
{
	struct rebuild rebuild = {
		.out = residual, .nodes = filter->nodes.data, .filter = filter, .site = site};

	*residual = (struct residual){0};
	return rebuild_end(&rebuild, part_make(&rebuild, filter->root, false));
}

bool residual_bound(struct residual *bound, const struct filter_expr *filter,
		    const struct residual *residual, const struct site_info *site, bool upper)
{
	struct rebuild rebuild = {.out = bound,
				  .nodes = residual->nodes.data,
				  .filter = filter,
				  .bound = site,
				  .upper = upper};

	*bound = (struct residual){0};
	return rebuild_end(&rebuild, part_make(&rebuild, (uint32_t)residual->nodes.len - 1, false));
}

bool residual_rest(struct residual *rest, const struct filter_expr *filter,
		   const struct residual *residual)
{
	struct rebuild rebuild = {.out = rest, .nodes = residual->nodes.data, .filter = filter};

	*rest = (struct residual){0};
	return rebuild_end(&rebuild, part_rest(&rebuild, (uint32_t)residual->nodes.len - 1));
}

bool residual_asks_end(const struct filter_expr *filter, const struct residual *residual,
		       const struct site_info *site)
{
	for (size_t i = 0; i < residual->nodes.len; i++)
		if (residual->nodes.data[i].type == FILTER_TEST &&
		    asks_end(&filter->predicates.data[residual->nodes.data[i].predicate], site))
			return true;
	return false;
}

void residual_free(struct residual *residual)
{
	vec_free(&residual->nodes);
}

bool residual_uses(const struct filter_expr *filter, const struct residual *residual,
		   enum filter_field field)
{
	for (size_t i = 0; i < residual->nodes.len; i++)
		if (residual->nodes.data[i].type == FILTER_TEST &&
		    filter->predicates.data[residual->nodes.data[i].predicate].field == field)
			return true;
	return false;
}
