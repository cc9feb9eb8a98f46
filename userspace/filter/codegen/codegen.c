// SPDX-License-Identifier: Apache-2.0
/* Generates code for the tree, with short-circuit jumps and cheap predicates first, and the
 * prologues and verdicts. */
#include "filter/codegen/codegen.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "filter/codegen/codegen_parts_internal.h"
#include "filter/eval.h"

struct codegen_options codegen_options_default(void)
{
	/* struct pt_regs of the kernel (arch/x86/include/asm/ptrace.h, arch/arm64/…): arguments 1,
	 * 3 and 4. */
#if defined(__x86_64__)
	return (struct codegen_options){.id_offset = 14 * 8,
					.frame_offset = 12 * 8,
					.size_offset = 11 * 8,
					.on_reject = CODEGEN_EXIT,
					.on_accept = CODEGEN_EXIT,
					.on_defer = CODEGEN_EXIT};
#elif defined(__aarch64__)
	return (struct codegen_options){.id_offset = 0,
					.frame_offset = 2 * 8,
					.size_offset = 3 * 8,
					.on_reject = CODEGEN_EXIT,
					.on_accept = CODEGEN_EXIT,
					.on_defer = CODEGEN_EXIT};
#else
#error "no offsets of registers for this machine"
#endif
}

/* ---- the tree ---- */

static unsigned node_cost(const struct codegen *gen, const struct residual *tree, uint32_t index)
{
	const struct filter_node *node = &tree->nodes.data[index];
	const struct filter_predicate *predicate;
	unsigned key = 0, cost;

	switch (node->type) {
	case FILTER_AND:
	case FILTER_OR:
		return node_cost(gen, tree, node->left) + node_cost(gen, tree, node->right);
	case FILTER_NOT:
		return node_cost(gen, tree, node->left);
	case FILTER_TEST:
		predicate = &gen->filter->predicates.data[node->predicate];
		cost = codegen_field_cost(predicate->field);
		if (predicate->field == FILTER_COMM)
			return cost + text_cost(gen->filter, predicate) / 4;
		if (predicate->field != FILTER_KV)
			return cost;
		if (site_key_find(gen->site, predicate->key, &key)->type == WAFFLE_KEY_STR)
			cost += text_cost(gen->filter, predicate);
		return cost + 25u * gen->frame.run[key];
	default:
		return 15; /* sample() */
	}
}

struct code_operand {
	uint32_t node;
	unsigned cost;
};
typedef VEC(struct code_operand) operands_vec;

/* Collects the operands of a chain of one operator, in the order of the source. */
static void operands_gather(struct codegen *gen, const struct residual *tree, uint32_t index,
			    enum filter_node_type type, operands_vec *operands)
{
	const struct filter_node *node = &tree->nodes.data[index];
	struct code_operand operand = {.node = index};

	if (node->type == type) {
		operands_gather(gen, tree, node->left, type, operands);
		operands_gather(gen, tree, node->right, type, operands);
		return;
	}
	operand.cost = node_cost(gen, tree, index);
	if (!vec_push(operands, operand))
		gen->as.err = -ENOMEM;
}

/* Nodes are numbered in the order of the source, so operands of equal cost keep it. */
static int by_cost(const void *a, const void *b)
{
	const struct code_operand *left = a, *right = b;

	if (left->cost != right->cost)
		return left->cost < right->cost ? -1 : 1;
	return (left->node > right->node) - (left->node < right->node);
}

/* Data that has been read on every path to an exit. */
struct known_code {
	uint32_t yes, no;
};

static struct known_code node_emit(struct codegen *gen, const struct residual *tree, uint32_t index,
				   struct code_exits exits);

/* Predicates have no side effects, so the cheapest can be evaluated first. */
static struct known_code chain_emit(struct codegen *gen, const struct residual *tree,
				    uint32_t index, struct code_exits exits)
{
	enum filter_node_type type = tree->nodes.data[index].type;
	bool is_and = type == FILTER_AND;
	operands_vec operands = {0};
	uint32_t decided = ~0u;
	struct known_code known;

	operands_gather(gen, tree, index, type, &operands);
	qsort(operands.data, gen->as.err ? 0 : operands.len, sizeof(*operands.data), by_cost);
	for (size_t i = 0; !gen->as.err && i < operands.len; i++) {
		bool last = i + 1 == operands.len;
		uint32_t next = last ? is_and ? exits.yes : exits.no : asm_label(&gen->as);
		struct code_exits inner = {.yes = is_and ? next : exits.yes,
					   .no = is_and ? exits.no : next};

		known = node_emit(gen, tree, operands.data[i].node, inner);
		decided &= is_and ? known.no : known.yes;
		gen->have = is_and ? known.yes : known.no;
		if (!last)
			asm_place(&gen->as, next);
	}
	vec_free(&operands);
	return (struct known_code){.yes = is_and ? gen->have : decided,
				   .no = is_and ? decided : gen->have};
}

/* Emits code that ends with a jump to one of the exits. */
static struct known_code node_emit(struct codegen *gen, const struct residual *tree, uint32_t index,
				   struct code_exits exits)
{
	const struct filter_node *node = &tree->nodes.data[index];
	const struct filter_predicate *predicate;
	struct known_code known;

	switch (node->type) {
	case FILTER_AND:
	case FILTER_OR:
		return chain_emit(gen, tree, index, exits);
	case FILTER_NOT:
		known = node_emit(gen, tree, node->left,
				  (struct code_exits){.yes = exits.no, .no = exits.yes});
		return (struct known_code){.yes = known.no, .no = known.yes};
	case FILTER_TEST:
		predicate = &gen->filter->predicates.data[node->predicate];
		codegen_predicate(gen, predicate, exits);
		break;
	case FILTER_SAMPLE:
		codegen_sample(gen, node, exits);
		break;
	default:
		asm_jump(&gen->as, node->type == FILTER_TRUE ? exits.yes : exits.no);
		break;
	}
	return (struct known_code){.yes = gen->have, .no = gen->have};
}

/* ---- programs ---- */

/* What a tree needs of the stack and the frame. */
struct needs {
	uint32_t keys; /* a bit for each key */
	bool header, comm, parent, text, search;
	unsigned states;
	unsigned ahead[WAFFLE_KEYS_MAX];
};

static void needs_pattern(struct needs *needs, const struct glob *glob)
{
	unsigned bytes = search_stack(glob->len);

	if (!text_searches(glob))
		return;
	needs->search = true;
	needs->states = bytes > needs->states ? bytes : needs->states;
}

static void needs_predicate(struct codegen *gen, struct needs *needs,
			    const struct filter_predicate *predicate)
{
	const struct glob *glob = gen->filter->literals.data[predicate->literal].glob;
	unsigned key = 0, ahead;

	if (predicate->field == FILTER_KV) {
		if (site_key_find(gen->site, predicate->key, &key)->type == WAFFLE_KEY_STR) {
			needs->text = true;
			ahead = text_ahead(gen->filter, predicate);
			if (ahead > needs->ahead[key])
				needs->ahead[key] = ahead;
			if (glob)
				needs_pattern(needs, glob);
		}
		needs->keys |= 1u << key;
	} else if (predicate->field == FILTER_COMM) {
		needs->comm = true;
		if (glob) {
			needs->text = true;
			needs_pattern(needs, glob);
		}
	} else if (predicate->field == FILTER_DEPTH || predicate->field == FILTER_PARENT_NAME) {
		needs->parent = true;
	}
}

/* Gives the free stack to the first bytes of the first strings. */
static void ahead_share(struct codegen *gen, const struct needs *needs)
{
	unsigned used = (unsigned)-gen->stack + sizeof(struct waffle_frame), left = AHEAD_MAX;

	for (unsigned key = 0; key < gen->site->key_count && key < WAFFLE_KEYS_MAX; key++)
		used += key_bytes(gen->site->keys[key].type);
	if (used + left > STACK_BYTES)
		left = used < STACK_BYTES ? STACK_BYTES - used : 0;
	for (unsigned key = 0; key < WAFFLE_KEYS_MAX; key++) {
		if (!needs->ahead[key] || needs->ahead[key] > left)
			continue;
		gen->frame.ahead[key] = (uint8_t)needs->ahead[key];
		left -= (needs->ahead[key] + 7) & ~7u;
	}
}

static void frame_prepare(struct codegen *gen, const struct residual *tree)
{
	struct needs needs = {0};

	for (size_t i = 0; i < tree->nodes.len; i++) {
		const struct filter_node *node = &tree->nodes.data[i];

		if (node->type == FILTER_SAMPLE)
			needs.header = true;
		else if (node->type == FILTER_TEST)
			needs_predicate(gen, &needs,
					&gen->filter->predicates.data[node->predicate]);
	}
	if (gen->options->at_end && !gen->options->call)
		gen->id = codegen_stack(gen, 8);
	if (needs.comm) {
		gen->comm = codegen_stack(gen, WAFFLE_COMM_BYTES);
		gen->comm_len = codegen_stack(gen, 8);
	}
	if (needs.parent && !gen->options->at_end) {
		needs.header = true;
		gen->depth = codegen_stack(gen, 8);
		gen->name_bits = codegen_stack(gen, 8);
	}
	gen->states = codegen_stack(gen, needs.states);
	if (needs.text)
		gen->text = codegen_stack(gen, needs.search ? TEXT_BUFFER_BYTES : WAFFLE_STR_MAX);
	ahead_share(gen, &needs);
	frame_layout_make(gen, needs.keys, needs.header);
}

/* A frame that is too long for capture/ or has no header is treated as empty. */
static void size_check(struct codegen *gen)
{
	struct assembler *as = &gen->as;
	uint32_t empty = asm_label(as), fine = asm_label(as);

	asm_branch_imm(as, BPF_JGT, REG_SIZE, WAFFLE_FRAME_MAX, empty);
	asm_branch_imm(as, BPF_JGE, REG_SIZE, sizeof(struct waffle_frame), fine);
	asm_place(as, empty);
	asm_const(as, REG_SIZE, 0);
	asm_place(as, fine);
	codegen_forget(gen, REG_SIZE);
}

static void prologue_hit(struct codegen *gen)
{
	struct assembler *as = &gen->as;

	asm_mov(as, REG_CTX, BPF_REG_1);
	if (!gen->frame.run_count)
		return;
	asm_load(as, BPF_DW, REG_FRAME, REG_CTX, gen->options->frame_offset);
	asm_load(as, BPF_DW, REG_SIZE, REG_CTX, gen->options->size_offset);
	size_check(gen);
}

static void prologue_end(struct codegen *gen, uint32_t miss)
{
	struct assembler *as = &gen->as;

	asm_mov(as, REG_CTX, BPF_REG_1);
	asm_load(as, BPF_DW, BPF_REG_1, REG_CTX, gen->options->id_offset);
	asm_store(as, BPF_DW, BPF_REG_10, gen->id, BPF_REG_1);
	asm_map(as, BPF_REG_1, CODE_RELOC_DEFERRED, 0);
	asm_mov(as, BPF_REG_2, BPF_REG_10);
	asm_alu_imm(as, BPF_ADD, BPF_REG_2, gen->id);
	asm_call(as, BPF_FUNC_map_lookup_elem);
	asm_branch_imm(as, BPF_JEQ, BPF_REG_0, 0, miss);
	asm_mov(as, REG_FRAME, BPF_REG_0);
	asm_alu_imm(as, BPF_ADD, REG_FRAME, sizeof(struct waffle_deferred));
	if (!gen->frame.run_count)
		return;
	asm_load(as, BPF_W, REG_SIZE, REG_FRAME, DEFERRED(frame_bytes));
	size_check(gen);
}

static void prologue_call(struct codegen *gen, uint32_t miss)
{
	struct assembler *as = &gen->as;

	asm_mov(as, REG_CTX, BPF_REG_1);
	asm_call(as, BPF_FUNC_get_current_task_btf);
	asm_mov(as, BPF_REG_2, BPF_REG_0);
	asm_map(as, BPF_REG_1, CODE_RELOC_CALLS, 0);
	asm_const(as, BPF_REG_3, 0);
	asm_const(as, BPF_REG_4, 0);
	asm_call(as, BPF_FUNC_task_storage_get);
	asm_branch_imm(as, BPF_JEQ, BPF_REG_0, 0, miss);
	asm_mov(as, REG_FRAME, BPF_REG_0);
	asm_alu_imm(as, BPF_ADD, REG_FRAME,
		    (int32_t)(gen->options->slot + sizeof(struct waffle_deferred)));
	if (!gen->frame.run_count)
		return;
	asm_load(as, BPF_W, REG_SIZE, REG_FRAME, DEFERRED(frame_bytes));
	size_check(gen);
}

/* Labels of the ends of a program. */
struct verdicts {
	uint32_t label[CODEGEN_DEFER + 1];
	uint32_t out; /* nothing to do */
};

static int verdict_slot(const struct codegen *gen, enum codegen_verdict verdict)
{
	const int slots[] = {[CODEGEN_REJECT] = gen->options->on_reject,
			     [CODEGEN_ACCEPT] = gen->options->on_accept,
			     [CODEGEN_DEFER] = gen->options->on_defer};

	return slots[verdict];
}

static struct verdicts verdicts_make(struct codegen *gen)
{
	struct verdicts verdicts = {.out = asm_label(&gen->as)};

	for (unsigned i = 0; i <= CODEGEN_DEFER; i++)
		verdicts.label[i] = gen->options->verdict_as_result || verdict_slot(gen, i) >= 0
					    ? asm_label(&gen->as)
					    : verdicts.out;
	return verdicts;
}

static void verdicts_emit(struct codegen *gen, const struct verdicts *verdicts)
{
	struct assembler *as = &gen->as;

	for (unsigned i = 0; i <= CODEGEN_DEFER; i++) {
		if (verdicts->label[i] == verdicts->out)
			continue;
		asm_place(as, verdicts->label[i]);
		if (gen->options->verdict_as_result) {
			asm_const(as, BPF_REG_0, i);
			asm_exit(as);
			continue;
		}
		asm_mov(as, BPF_REG_1, REG_CTX);
		asm_map(as, BPF_REG_2, CODE_RELOC_NEXT, 0);
		asm_const(as, BPF_REG_3, (uint64_t)verdict_slot(gen, i));
		asm_call(as, BPF_FUNC_tail_call);
		asm_jump(as, verdicts->out); /* the program array has no such program */
	}
	asm_place(as, verdicts->out);
	asm_const(as, BPF_REG_0, CODEGEN_REJECT);
	asm_exit(as);
}

static void tree_emit(struct codegen *gen, const struct residual *tree, struct code_exits exits)
{
	struct known_code known = node_emit(gen, tree, (uint32_t)tree->nodes.len - 1, exits);

	gen->have = known.yes;
}

/*
 * At the start of a span or call: it is rejected if `upper` is false, accepted if `lower` is true,
 * and else deferred. A NULL `lower` accepts none, and `lower` == `upper` defers none.
 */
static int program_emit(struct codegen *gen, const struct residual *all,
			const struct residual *upper, const struct residual *lower)
{
	struct assembler *as = &gen->as;
	struct verdicts verdicts = verdicts_make(gen);
	uint32_t reject = verdicts.label[CODEGEN_REJECT], accept = verdicts.label[CODEGEN_ACCEPT];
	uint32_t defer = verdicts.label[CODEGEN_DEFER], maybe = asm_label(as);

	frame_prepare(gen, all);
	if (gen->options->call)
		prologue_call(gen, verdicts.out);
	else if (gen->options->at_end)
		prologue_end(gen, verdicts.out);
	else
		prologue_hit(gen);
	if (upper == lower) {
		tree_emit(gen, upper, (struct code_exits){.yes = accept, .no = reject});
	} else {
		tree_emit(gen, upper, (struct code_exits){.yes = maybe, .no = reject});
		asm_place(as, maybe);
		if (lower)
			tree_emit(gen, lower, (struct code_exits){.yes = accept, .no = defer});
		else
			asm_jump(as, defer);
	}
	verdicts_emit(gen, &verdicts);
	return assembler_finish(as);
}

static int codegen_bounds(struct filter_code *code, const struct codegen *from,
			  const struct residual *all, const struct residual *upper,
			  const struct residual *lower)
{
	struct codegen gen = *from;
	int err;

	*code = (struct filter_code){0};
	gen.as.code = code;
	for (size_t i = 0; i < upper->nodes.len; i++)
		code->predicates += upper->nodes.data[i].type == FILTER_TEST;
	err = program_emit(&gen, all, upper, lower);
	if (err)
		filter_code_free(code);
	return err;
}

int codegen(struct filter_code *code, const struct filter_expr *filter,
	    const struct residual *residual, const struct site_info *site,
	    const struct codegen_options *options)
{
	struct codegen gen = {.filter = filter, .site = site, .options = options};
	struct residual upper = {0}, lower = {0};
	int err;

	*code = (struct filter_code){0};
	if ((options->at_end && !options->begins) || !residual_asks_end(filter, residual, site))
		return codegen_bounds(code, &gen, residual, residual, residual);
	err = residual_bound(&upper, filter, residual, site, true) &&
			      residual_bound(&lower, filter, residual, site, false)
		      ? 0
		      : -ENOMEM;
	err = err ? err : codegen_bounds(code, &gen, residual, &upper, &lower);
	/* A span that would be accepted at once can be deferred until its end instead. */
	if (err == -E2BIG)
		err = codegen_bounds(code, &gen, residual, &upper, NULL);
	residual_free(&upper);
	residual_free(&lower);
	return err;
}
