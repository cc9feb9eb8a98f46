// SPDX-License-Identifier: Apache-2.0
/* Code for all predicates but texts: numbers, parents, keys, sample(). */
#include <stddef.h>

#include "filter/codegen/codegen.h"
#include "filter/codegen/codegen_parts_internal.h"
#include "filter/eval.h"

static void predicate_thread(struct codegen *gen, const struct filter_predicate *predicate,
			     struct code_exits exits)
{
	struct assembler *as = &gen->as;
	bool pid = predicate->field == FILTER_PID;

	if (gen->options->at_end) {
		asm_load(as, BPF_W, BPF_REG_1, REG_FRAME, pid ? DEFERRED(tgid) : DEFERRED(tid));
	} else {
		asm_call(as, BPF_FUNC_get_current_pid_tgid);
		if (pid) {
			asm_mov(as, BPF_REG_1, BPF_REG_0);
			asm_alu_imm(as, BPF_RSH, BPF_REG_1, 32);
		} else {
			asm_mov32(as, BPF_REG_1, BPF_REG_0);
		}
	}
	codegen_number(gen, predicate, NUMBER_UNSIGNED, exits);
}

static void predicate_cpu(struct codegen *gen, const struct filter_predicate *predicate,
			  struct code_exits exits)
{
	if (gen->options->at_end) {
		asm_load(&gen->as, BPF_W, BPF_REG_1, REG_FRAME, DEFERRED(cpu));
	} else {
		asm_call(&gen->as, BPF_FUNC_get_smp_processor_id);
		asm_mov32(&gen->as, BPF_REG_1, BPF_REG_0);
	}
	codegen_number(gen, predicate, NUMBER_UNSIGNED, exits);
}

/* Occurs only at the end: residual_bound() has removed it from the program at the hit. */
static void predicate_dur(struct codegen *gen, const struct filter_predicate *predicate,
			  struct code_exits exits)
{
	struct assembler *as = &gen->as;

	asm_load(as, BPF_DW, BPF_REG_1, REG_FRAME, DEFERRED(end_ts));
	asm_load(as, BPF_DW, BPF_REG_2, REG_FRAME, DEFERRED(ts));
	asm_alu(as, BPF_SUB, BPF_REG_1, BPF_REG_2);
	codegen_number(gen, predicate, NUMBER_UNSIGNED, exits);
}

/* ---- parents ---- */

/* Looks up the parent among the open spans, once. */
static void parent_need(struct codegen *gen)
{
	struct assembler *as = &gen->as;
	int parent = frame_header_slot(gen, offsetof(struct waffle_frame, parent));
	uint32_t done, unknown;

	frame_need(gen, 0);
	if (gen->have & HAVE_PARENT)
		return;
	gen->have |= HAVE_PARENT;
	done = asm_label(as);
	unknown = asm_label(as);
	asm_store_imm(as, BPF_DW, BPF_REG_10, gen->depth, 0);
	asm_store_imm(as, BPF_DW, BPF_REG_10, gen->name_bits, 0);
	asm_load(as, BPF_DW, BPF_REG_1, BPF_REG_10, parent);
	asm_branch_imm(as, BPF_JEQ, BPF_REG_1, 0, done);
	asm_store_imm(as, BPF_DW, BPF_REG_10, gen->depth, -1);
	asm_map(as, BPF_REG_1, CODE_RELOC_OPEN, 0);
	asm_mov(as, BPF_REG_2, BPF_REG_10);
	asm_alu_imm(as, BPF_ADD, BPF_REG_2, parent);
	asm_call(as, BPF_FUNC_map_lookup_elem);
	asm_branch_imm(as, BPF_JEQ, BPF_REG_0, 0, done);
	asm_load(as, BPF_DW, BPF_REG_1, BPF_REG_0, offsetof(struct waffle_open, name_bits));
	asm_store(as, BPF_DW, BPF_REG_10, gen->name_bits, BPF_REG_1);
	asm_load(as, BPF_W, BPF_REG_1, BPF_REG_0, offsetof(struct waffle_open, depth));
	asm_branch32_imm(as, BPF_JEQ, BPF_REG_1, (int32_t)WAFFLE_DEPTH_UNKNOWN, unknown);
	asm_alu_imm(as, BPF_ADD, BPF_REG_1, 1);
	asm_store(as, BPF_DW, BPF_REG_10, gen->depth, BPF_REG_1);
	asm_place(as, unknown);
	asm_place(as, done);
}

static void predicate_depth(struct codegen *gen, const struct filter_predicate *predicate,
			    struct code_exits exits)
{
	struct assembler *as = &gen->as;

	if (gen->options->at_end) {
		asm_load(as, BPF_W, BPF_REG_1, REG_FRAME, DEFERRED(depth));
		asm_branch32_imm(as, BPF_JEQ, BPF_REG_1, (int32_t)WAFFLE_DEPTH_UNKNOWN, exits.no);
	} else {
		parent_need(gen);
		asm_load(as, BPF_DW, BPF_REG_1, BPF_REG_10, gen->depth);
		codegen_forget(gen, BPF_REG_1);
		asm_branch_imm(as, BPF_JEQ, BPF_REG_1, -1, exits.no);
	}
	codegen_number(gen, predicate, NUMBER_UNSIGNED, exits);
}

/* When the parent's site was armed, its name decided this: a bit. */
static void predicate_parent_name(struct codegen *gen, const struct filter_predicate *predicate,
				  struct code_exits exits)
{
	struct assembler *as = &gen->as;
	ptrdiff_t bit = predicate - gen->filter->predicates.data;

	if (gen->options->at_end) {
		asm_load(as, BPF_W, BPF_REG_1, REG_FRAME, DEFERRED(has_parent));
		asm_branch_imm(as, BPF_JEQ, BPF_REG_1, 0, exits.no);
		asm_load(as, BPF_DW, BPF_REG_1, REG_FRAME, DEFERRED(parent_bits));
	} else {
		parent_need(gen);
		asm_load(as, BPF_DW, BPF_REG_1, BPF_REG_10, gen->name_bits);
		codegen_forget(gen, BPF_REG_1);
	}
	if (bit)
		asm_alu_imm(as, BPF_RSH, BPF_REG_1, (int32_t)bit);
	asm_branch_imm(as, BPF_JSET, BPF_REG_1, 1, exits.yes);
	asm_jump(as, exits.no);
}

uint64_t codegen_name_bits(const struct filter_expr *filter, const struct site_info *site)
{
	const struct filter_subject child = {.site = site, .depth = -1, .parent_name = site->name};
	uint64_t bits = 0;

	for (size_t i = 0; i < filter->predicates.len && i < 64; i++)
		if (filter->predicates.data[i].field == FILTER_PARENT_NAME &&
		    filter_eval_predicate(filter, &filter->predicates.data[i], &child) ==
			    FILTER_YES)
			bits |= 1ull << i;
	return bits;
}

/* ---- predicates ---- */

static void predicate_comm(struct codegen *gen, const struct filter_predicate *predicate,
			   struct code_exits exits)
{
	text_comm(gen, predicate, exits);
}

static void predicate_key(struct codegen *gen, const struct filter_predicate *predicate,
			  struct code_exits exits)
{
	unsigned index = 0;
	const struct site_key *key = site_key_find(gen->site, predicate->key, &index);

	if (key->type == WAFFLE_KEY_STR)
		text_key(gen, predicate, index, exits);
	else
		frame_number(gen, predicate, index, exits);
}

typedef void (*predicate_fn)(struct codegen *gen, const struct filter_predicate *predicate,
			     struct code_exits exits);

/* Fields that the site determines do not occur in a residual. */
static const struct {
	predicate_fn emit;
	unsigned cost; /* rough number of instructions; the cheapest is evaluated first */
} fields[] = {
	[FILTER_PID] = {predicate_thread, 3},
	[FILTER_TID] = {predicate_thread, 3},
	[FILTER_COMM] = {predicate_comm, 8},
	[FILTER_CPU] = {predicate_cpu, 2},
	[FILTER_DUR] = {predicate_dur, 2},
	[FILTER_DEPTH] = {predicate_depth, 20},
	[FILTER_PARENT_NAME] = {predicate_parent_name, 20},
	[FILTER_KV] = {predicate_key, 10},
};
_Static_assert(sizeof(fields) / sizeof(*fields) == FILTER_FIELD_COUNT, "every field");

void codegen_predicate(struct codegen *gen, const struct filter_predicate *predicate,
		       struct code_exits exits)
{
	fields[predicate->field].emit(gen, predicate, exits);
}

unsigned codegen_field_cost(enum filter_field field)
{
	return fields[field].cost;
}

/* filter_sample() defines the result. */
void codegen_sample(struct codegen *gen, const struct filter_node *node, struct code_exits exits)
{
	static const uint64_t factors[] = {0xff51afd7ed558ccdull, 0xc4ceb9fe1a85ec53ull};
	struct assembler *as = &gen->as;
	uint32_t mix = asm_label(as);

	frame_need(gen, 0);
	asm_load(as, BPF_DW, BPF_REG_1, BPF_REG_10,
		 frame_header_slot(gen, offsetof(struct waffle_frame, trace_lo)));
	asm_mov(as, BPF_REG_2, BPF_REG_1);
	asm_alu_imm(as, BPF_LSH, BPF_REG_1, 32);
	asm_alu_imm(as, BPF_RSH, BPF_REG_2, 32);
	asm_alu(as, BPF_OR, BPF_REG_1, BPF_REG_2);
	asm_load(as, BPF_DW, BPF_REG_2, BPF_REG_10,
		 frame_header_slot(gen, offsetof(struct waffle_frame, trace_hi)));
	asm_alu(as, BPF_XOR, BPF_REG_1, BPF_REG_2);
	asm_branch_imm(as, BPF_JNE, BPF_REG_1, 0, mix);
	asm_load(as, BPF_DW, BPF_REG_1, BPF_REG_10,
		 frame_header_slot(gen, offsetof(struct waffle_frame, id)));
	asm_branch_imm(as, BPF_JEQ, BPF_REG_1, 0, exits.yes);
	asm_place(as, mix);
	for (unsigned i = 0; i < 2; i++) {
		asm_mov(as, BPF_REG_2, BPF_REG_1);
		asm_alu_imm(as, BPF_RSH, BPF_REG_2, 33);
		asm_alu(as, BPF_XOR, BPF_REG_1, BPF_REG_2);
		asm_const(as, BPF_REG_2, factors[i]);
		asm_alu(as, BPF_MUL, BPF_REG_1, BPF_REG_2);
	}
	/* The last step of the definition changes only the low half, which is not used. */
	asm_alu_imm(as, BPF_RSH, BPF_REG_1, 32);
	asm_branch_const(as, BPF_JLT, BPF_REG_1, ((uint64_t)node->keep << 32) / node->of, BPF_REG_2,
			 exits.yes);
	asm_jump(as, exits.no);
}
