// SPDX-License-Identifier: Apache-2.0
/*
 * Searches a text for the part of a pattern between two stars, with the algorithm Shift-Or. See
 * Baeza-Yates and Gonnet, "A new approach to text searching", CACM 35, 1992. The state has a bit
 * for each token, not counting stars. A bit is 0 if the tokens up to it match the bytes before the
 * current position. A table tells for each byte which tokens do not match it. Once the last bit of
 * a part is 0 it stays 0: the next part may begin anywhere after it.
 *
 * The verifier follows each step up to the longest text, so a step has few instructions and no
 * branches. The last word of a text is taken apart from its low end. That needs a little-endian
 * machine, as all machines that waffle supports are (include/waffle/arch.h).
 */
#include <errno.h>
#include <string.h>

#include "filter/codegen/codegen_parts_internal.h"

#define STATE_BITS 64u
#define WORDS_MAX (FILTER_TEXT_MAX / STATE_BITS)
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are taken apart as little-endian");

struct code_search {
	unsigned words;           /* of the state */
	unsigned last;            /* the bit that is 0 when everything was found */
	uint64_t stay[WORDS_MAX]; /* the last bit of each part */
	uint32_t table;           /* offset in the program's table, in bytes */
};

static unsigned count_words(size_t count)
{
	return (unsigned)((count + STATE_BITS - 1) / STATE_BITS);
}

unsigned search_stack(size_t count)
{
	return 8 * count_words(count);
}

/* Adds words to the table and returns their index. Equal words are stored once. */
static uint32_t table_add(struct codegen *gen, const uint64_t *words, size_t count)
{
	struct filter_code *code = gen->as.code;

	for (size_t i = 0; i + count <= code->table.len; i++)
		if (!memcmp(&code->table.data[i], words, count * sizeof(*words)))
			return (uint32_t)i;
	if (!vec_reserve(&code->table, count)) {
		gen->as.err = -ENOMEM;
		return 0;
	}
	memcpy(&code->table.data[code->table.len], words, count * sizeof(*words));
	code->table.len += count;
	return (uint32_t)(code->table.len - count);
}

static void search_make(struct codegen *gen, struct code_search *search,
			const struct glob_token *tokens, size_t count)
{
	uint64_t table[256 * WORDS_MAX] = {0};
	unsigned bits = 0;

	*search = (struct code_search){0};
	for (size_t i = 0; i < count; i++)
		bits += tokens[i].type != GLOB_STAR;
	search->words = count_words(bits);
	bits = 0;
	for (size_t i = 0; i < count; i++) {
		if (tokens[i].type == GLOB_STAR)
			continue;
		for (unsigned byte = 0; byte < 256; byte++)
			if (!glob_token_takes(&tokens[i], (unsigned char)byte))
				table[byte * search->words + bits / STATE_BITS] |=
					1ull << bits % STATE_BITS;
		if (i + 1 == count || tokens[i + 1].type == GLOB_STAR)
			search->stay[bits / STATE_BITS] |= 1ull << bits % STATE_BITS;
		bits++;
	}
	search->last = bits - 1;
	search->table = 8 * table_add(gen, table, (size_t)256 * search->words);
}

/* Whether the complement of `stay` fits in an instruction. */
static bool stay_is_short(const struct code_search *search)
{
	return search->stay[0] <= INT32_MAX;
}

/* One step with the byte in r5. r3 is the state and r4 the table. With a single part its last bit
 * need not stay 0; r0 collects all states instead. */
static void step_emit(struct codegen *gen, const struct code_search *search, bool one_part)
{
	struct assembler *as = &gen->as;

	asm_alu_imm(as, BPF_LSH, BPF_REG_5, 3);
	asm_alu(as, BPF_ADD, BPF_REG_5, BPF_REG_4);
	asm_load(as, BPF_DW, BPF_REG_5, BPF_REG_5, 0);
	if (!one_part && stay_is_short(search)) {
		asm_mov(as, BPF_REG_0, BPF_REG_3);
		asm_alu_imm(as, BPF_OR, BPF_REG_0, ~(int32_t)search->stay[0]);
	} else if (!one_part) {
		asm_load(as, BPF_DW, BPF_REG_0, BPF_REG_10, gen->states);
		asm_alu(as, BPF_OR, BPF_REG_0, BPF_REG_3);
	}
	asm_alu_imm(as, BPF_LSH, BPF_REG_3, 1);
	asm_alu(as, BPF_OR, BPF_REG_3, BPF_REG_5);
	if (one_part)
		asm_alu(as, BPF_AND, BPF_REG_0, BPF_REG_3);
	else
		asm_alu(as, BPF_AND, BPF_REG_3, BPF_REG_0);
}

static void test_bit(struct assembler *as, unsigned reg, unsigned bit, struct code_exits exits)
{
	if (bit)
		asm_alu_imm(as, BPF_RSH, reg, (int32_t)bit);
	asm_branch_imm(as, BPF_JSET, reg, 1, exits.no);
	asm_jump(as, exits.yes);
}

/* A search for up to 64 tokens, eight bytes at a time. It loads the word with the last bytes before
 * their number is known. So the verifier checks their loop once and not for each position. */
static void search_short(struct codegen *gen, const struct code_search *search,
			 struct code_exits exits)
{
	struct assembler *as = &gen->as;
	bool one_part = search->stay[0] == 1ull << search->last;
	uint32_t words = asm_label(as), tail = asm_label(as), done = asm_label(as);

	if (!one_part && !stay_is_short(search)) {
		asm_const(as, BPF_REG_1, ~search->stay[0]);
		asm_store(as, BPF_DW, BPF_REG_10, gen->states, BPF_REG_1);
	}
	asm_map(as, BPF_REG_4, CODE_RELOC_TABLE, search->table);
	asm_mov(as, BPF_REG_1, BPF_REG_10);
	asm_alu_imm(as, BPF_ADD, BPF_REG_1, gen->text);
	asm_const(as, BPF_REG_3, UINT64_MAX);
	asm_const(as, BPF_REG_0, UINT64_MAX);
	asm_place(as, words);
	asm_load(as, BPF_DW, BPF_REG_9, BPF_REG_1, 0);
	asm_branch_imm(as, BPF_JLT, BPF_REG_2, 8, tail);
	for (int i = 0; i < 8; i++) {
		asm_load(as, BPF_B, BPF_REG_5, BPF_REG_1, i);
		step_emit(gen, search, one_part);
	}
	asm_alu_imm(as, BPF_ADD, BPF_REG_1, 8);
	asm_alu_imm(as, BPF_SUB, BPF_REG_2, 8);
	asm_jump(as, words);
	asm_place(as, tail);
	asm_branch_imm(as, BPF_JLT, BPF_REG_2, 1, done);
	asm_mov(as, BPF_REG_5, BPF_REG_9);
	asm_alu_imm(as, BPF_AND, BPF_REG_5, 255);
	asm_alu_imm(as, BPF_RSH, BPF_REG_9, 8);
	step_emit(gen, search, one_part);
	asm_alu_imm(as, BPF_SUB, BPF_REG_2, 1);
	asm_jump(as, tail);
	asm_place(as, done);
	test_bit(as, one_part ? BPF_REG_0 : BPF_REG_3, search->last, exits);
	gen->search_work += WAFFLE_STR_MAX / 8 * (8 * (one_part ? 7 : 9) + 5) + 128;
}

/* One step of a word of the state. r5: the byte's row of the table; r9: the bit carried over from
 * the word before. */
static void step_word(struct codegen *gen, const struct code_search *search, unsigned word)
{
	struct assembler *as = &gen->as;
	int slot = gen->states + 8 * (int)word;
	bool more = word + 1 < search->words;

	asm_load(as, BPF_DW, BPF_REG_3, BPF_REG_10, slot);
	if (more) {
		asm_mov(as, BPF_REG_4, BPF_REG_3);
		asm_alu_imm(as, BPF_RSH, BPF_REG_4, 63);
	}
	asm_alu_imm(as, BPF_LSH, BPF_REG_3, 1);
	if (word)
		asm_alu(as, BPF_OR, BPF_REG_3, BPF_REG_9);
	asm_load(as, BPF_DW, BPF_REG_0, BPF_REG_5, 8 * (int)word);
	asm_alu(as, BPF_OR, BPF_REG_3, BPF_REG_0);
	if (search->stay[word]) {
		asm_const(as, BPF_REG_0, ~search->stay[word]);
		asm_load(as, BPF_DW, BPF_REG_9, BPF_REG_10, slot);
		asm_alu(as, BPF_OR, BPF_REG_0, BPF_REG_9);
		asm_alu(as, BPF_AND, BPF_REG_3, BPF_REG_0);
	}
	asm_store(as, BPF_DW, BPF_REG_10, slot, BPF_REG_3);
	if (more)
		asm_mov(as, BPF_REG_9, BPF_REG_4);
}

/* A search for more than 64 tokens: the state is on the stack. */
static void search_long(struct codegen *gen, const struct code_search *search,
			struct code_exits exits)
{
	struct assembler *as = &gen->as;
	uint32_t bytes = asm_label(as), done = asm_label(as);

	for (unsigned i = 0; i < search->words; i++)
		asm_store_imm(as, BPF_DW, BPF_REG_10, gen->states + 8 * (int)i, -1);
	asm_mov(as, BPF_REG_1, BPF_REG_10);
	asm_alu_imm(as, BPF_ADD, BPF_REG_1, gen->text);
	asm_place(as, bytes);
	asm_branch_imm(as, BPF_JLT, BPF_REG_2, 1, done);
	asm_load(as, BPF_B, BPF_REG_5, BPF_REG_1, 0);
	asm_alu_imm(as, BPF_MUL, BPF_REG_5, 8 * (int)search->words);
	asm_map(as, BPF_REG_4, CODE_RELOC_TABLE, search->table);
	asm_alu(as, BPF_ADD, BPF_REG_5, BPF_REG_4);
	for (unsigned i = 0; i < search->words; i++)
		step_word(gen, search, i);
	asm_alu_imm(as, BPF_ADD, BPF_REG_1, 1);
	asm_alu_imm(as, BPF_SUB, BPF_REG_2, 1);
	asm_jump(as, bytes);
	asm_place(as, done);
	asm_load(as, BPF_DW, BPF_REG_3, BPF_REG_10, gen->states + 8 * (int)(search->words - 1));
	test_bit(as, BPF_REG_3, search->last % STATE_BITS, exits);
	gen->search_work += WAFFLE_STR_MAX * (11 * search->words + 7);
}

void search_emit(struct codegen *gen, const struct glob_token *tokens, size_t count,
		 struct code_exits exits)
{
	struct code_search search;

	search_make(gen, &search, tokens, count);
	if (gen->as.err)
		return;
	if (search.words == 1)
		search_short(gen, &search, exits);
	else
		search_long(gen, &search, exits);
	if (gen->search_work > SEARCH_WORK_MAX)
		gen->as.err = -E2BIG;
}

uint32_t search_set(struct codegen *gen, const uint64_t set[4])
{
	return 8 * table_add(gen, set, 4);
}
