// SPDX-License-Identifier: Apache-2.0
/*
 * Compares texts. It reads only as much of a string in a frame as the comparison needs: only its
 * length if that differs, the first bytes for "abc*", the last ones for "*abc". A comm is on the
 * stack already.
 */
#include <stdlib.h>
#include <string.h>

#include "filter/codegen/codegen_parts_internal.h"

/* The text to compare: a string whose address is in r9. */
struct code_text {
	int word;       /* slot with the length in its low 9 bits (comm: 4) */
	bool comm;      /* in the kernel's memory, and without NULs */
	unsigned ahead; /* of a key: number of bytes that are on the stack already, after `word` */
};

/* ---- bytes on the stack ---- */

static void load_byte(struct assembler *as, int slot)
{
	asm_load(as, BPF_B, BPF_REG_1, BPF_REG_10, slot);
}

/* Bytes to read at once at an offset, since reads of the stack must be aligned. */
static unsigned chunk_bytes(size_t at, size_t left)
{
	unsigned bytes = 8;

	while (bytes > left || at % bytes)
		bytes /= 2;
	return bytes;
}

/* Falls through if the `len` bytes at `slot` + `at` equal these; else jumps to `differ`. */
static void bytes_emit(struct assembler *as, int slot, size_t at, const unsigned char *bytes,
		       size_t len, uint32_t differ)
{
	static const unsigned char sizes[] = {[1] = BPF_B, [2] = BPF_H, [4] = BPF_W, [8] = BPF_DW};
	uint64_t word;
	unsigned chunk;

	for (size_t i = 0; i < len; i += chunk) {
		chunk = chunk_bytes(at + i, len - i);
		word = 0;
		memcpy(&word, bytes + i, chunk);
		asm_load(as, sizes[chunk], BPF_REG_1, BPF_REG_10, slot + (int)(at + i));
		if (chunk == 8)
			asm_branch_const(as, BPF_JNE, BPF_REG_1, word, BPF_REG_2, differ);
		else
			asm_branch32_imm(as, BPF_JNE, BPF_REG_1, (int32_t)(uint32_t)word, differ);
	}
}

/* Whether a set consists of all bytes from `low` to `high`. */
static bool set_is_range(const struct glob_token *token, unsigned *low, unsigned *high)
{
	unsigned count = 0;

	*low = 256;
	*high = 0;
	for (unsigned i = 0; i < 256; i++) {
		if (!glob_token_takes(token, (unsigned char)i))
			continue;
		*low = *low == 256 ? i : *low;
		*high = i;
		count++;
	}
	return count && *high - *low + 1 == count;
}

/* Jumps to `differ` unless the set contains the byte in r1. */
static void set_emit(struct codegen *gen, const struct glob_token *token, uint32_t differ)
{
	struct assembler *as = &gen->as;
	unsigned low, high;

	if (set_is_range(token, &low, &high)) {
		if (low)
			asm_branch_imm(as, BPF_JLT, BPF_REG_1, (int32_t)low, differ);
		if (high < 255)
			asm_branch_imm(as, BPF_JGT, BPF_REG_1, (int32_t)high, differ);
		return;
	}
	asm_mov(as, BPF_REG_2, BPF_REG_1);
	asm_alu_imm(as, BPF_RSH, BPF_REG_2, 6);
	asm_alu_imm(as, BPF_LSH, BPF_REG_2, 3);
	asm_map(as, BPF_REG_3, CODE_RELOC_TABLE, search_set(gen, token->set));
	asm_alu(as, BPF_ADD, BPF_REG_3, BPF_REG_2);
	asm_load(as, BPF_DW, BPF_REG_3, BPF_REG_3, 0);
	asm_alu_imm(as, BPF_AND, BPF_REG_1, 63);
	asm_alu(as, BPF_RSH, BPF_REG_3, BPF_REG_1);
	asm_alu_imm(as, BPF_AND, BPF_REG_3, 1);
	asm_branch_imm(as, BPF_JEQ, BPF_REG_3, 0, differ);
}

static size_t bytes_of_tokens(const struct glob_token *tokens, size_t count, unsigned char *bytes)
{
	size_t len = 0;

	while (len < count && tokens[len].type == GLOB_BYTE) {
		bytes[len] = tokens[len].byte;
		len++;
	}
	return len;
}

/* Falls through if the tokens, none of them a star, match the bytes from `slot` on. `no_nul`: the
 * text ends at a NUL, which no token matches. */
static void tokens_emit(struct codegen *gen, int slot, const struct glob_token *tokens,
			size_t count, bool no_nul, uint32_t differ)
{
	struct assembler *as = &gen->as;
	unsigned char bytes[FILTER_TEXT_MAX];
	size_t len;

	for (size_t i = 0; i < count; i += len ? len : 1) {
		const struct glob_token *token = &tokens[i];

		len = bytes_of_tokens(token, count - i, bytes);
		bytes_emit(as, slot, i, bytes, len, differ);
		if (len || (token->type == GLOB_ANY_ONE && !no_nul))
			continue;
		load_byte(as, slot + (int)i);
		if (no_nul && glob_token_takes(token, 0))
			asm_branch_imm(as, BPF_JEQ, BPF_REG_1, 0, differ);
		if (token->type == GLOB_SET)
			set_emit(gen, token, differ);
	}
}

/* ---- patterns ---- */

/* prefix * (middle *) suffix; without a star, prefix is the whole pattern. */
struct text_pattern {
	const struct glob_token *prefix, *middle, *suffix;
	size_t prefix_len, middle_len, suffix_len;
	bool star;
	int least; /* length in bytes of the shortest text that matches */
};

static struct text_pattern pattern_split(const struct glob *glob)
{
	struct text_pattern pattern = {.prefix = glob->tokens};
	size_t last = glob->len;

	while (pattern.prefix_len < glob->len && glob->tokens[pattern.prefix_len].type != GLOB_STAR)
		pattern.prefix_len++;
	pattern.star = pattern.prefix_len < glob->len;
	for (size_t i = 0; i < glob->len; i++)
		pattern.least += glob->tokens[i].type != GLOB_STAR;
	if (!pattern.star)
		return pattern;
	while (glob->tokens[last - 1].type != GLOB_STAR)
		last--;
	pattern.suffix = &glob->tokens[last];
	pattern.suffix_len = glob->len - last;
	pattern.middle = &glob->tokens[pattern.prefix_len + 1];
	if (last - 1 > pattern.prefix_len)
		pattern.middle_len = last - 2 - pattern.prefix_len;
	return pattern;
}

/* Whether the tokens match any bytes, so that only their number matters. */
static bool tokens_take_all(const struct glob_token *tokens, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (tokens[i].type != GLOB_ANY_ONE && tokens[i].type != GLOB_STAR)
			return false;
	return true;
}

bool text_searches(const struct glob *glob)
{
	struct text_pattern pattern = pattern_split(glob);

	return !tokens_take_all(pattern.middle, pattern.middle_len);
}

static void load_len(struct codegen *gen, const struct code_text *text, unsigned reg)
{
	asm_load(&gen->as, BPF_DW, reg, BPF_REG_10, text->word);
	codegen_forget(gen, reg);
	asm_alu_imm(&gen->as, BPF_AND, reg,
		    text->comm ? WAFFLE_COMM_BYTES - 1 : 2 * WAFFLE_STR_MAX - 1);
}

/*
 * The verifier allows to read a text of unknown length only into an initialised buffer. This runs
 * before a predicate branches, so that later predicates can rely on it.
 */
static void text_clear(struct codegen *gen)
{
	if (gen->have & HAVE_TEXT)
		return;
	for (int i = 0; i < TEXT_BUFFER_BYTES; i += 8)
		asm_store_imm(&gen->as, BPF_DW, BPF_REG_10, gen->text + i, 0);
	gen->have |= HAVE_TEXT;
}

/* Loads the length of the part between prefix and suffix into r2. The verifier can't know its
 * bounds. */
static void load_middle_len(struct codegen *gen, const struct code_text *text,
			    const struct text_pattern *pattern, uint32_t no)
{
	int ends = (int)(pattern->prefix_len + pattern->suffix_len);

	load_len(gen, text, BPF_REG_2);
	if (ends)
		asm_alu_imm(&gen->as, BPF_SUB, BPF_REG_2, ends);
	asm_branch_imm(&gen->as, BPF_JGT, BPF_REG_2, WAFFLE_STR_MAX, no);
}

static void middle_emit(struct codegen *gen, const struct code_text *text,
			const struct text_pattern *pattern, uint32_t no, struct code_exits exits)
{
	struct assembler *as = &gen->as;

	load_middle_len(gen, text, pattern, no);
	asm_mov(as, BPF_REG_3, REG_TEXT);
	if (pattern->prefix_len)
		asm_alu_imm(as, BPF_ADD, BPF_REG_3, (int32_t)pattern->prefix_len);
	frame_read_text(gen, 0, text->comm, no);
	load_middle_len(gen, text, pattern, no);
	search_emit(gen, pattern->middle, pattern->middle_len, exits);
}

/* Slot of a text's first bytes, which are read unless they are on the stack already. */
static int text_begin(struct codegen *gen, const struct code_text *text, unsigned bytes,
		      uint32_t no)
{
	if (bytes <= text->ahead)
		return text->word + 8;
	asm_mov(&gen->as, BPF_REG_3, REG_TEXT);
	frame_read_text(gen, bytes, text->comm, no);
	return gen->text;
}

/* `no`: label for a missing text; `exits`: labels for a match or none. */
static void pattern_emit(struct codegen *gen, const struct code_text *text,
			 const struct text_pattern *pattern, uint32_t no, struct code_exits exits)
{
	struct assembler *as = &gen->as;
	int slot;

	if (!pattern->star || pattern->least) {
		load_len(gen, text, BPF_REG_1);
		asm_branch_imm(as, pattern->star ? BPF_JLT : BPF_JNE, BPF_REG_1, pattern->least,
			       exits.no);
	}
	if (!tokens_take_all(pattern->prefix, pattern->prefix_len)) {
		slot = text_begin(gen, text, (unsigned)pattern->prefix_len, no);
		tokens_emit(gen, slot, pattern->prefix, pattern->prefix_len, false, exits.no);
	}
	if (!tokens_take_all(pattern->suffix, pattern->suffix_len)) {
		load_len(gen, text, BPF_REG_3);
		asm_alu_imm(as, BPF_SUB, BPF_REG_3, (int32_t)pattern->suffix_len);
		asm_alu(as, BPF_ADD, BPF_REG_3, REG_TEXT);
		frame_read_text(gen, (unsigned)pattern->suffix_len, text->comm, no);
		tokens_emit(gen, gen->text, pattern->suffix, pattern->suffix_len, false, exits.no);
	}
	if (tokens_take_all(pattern->middle, pattern->middle_len))
		asm_jump(as, exits.yes);
	else
		middle_emit(gen, text, pattern, no, exits);
}

/* ---- equality ---- */

static int by_length(const void *a, const void *b)
{
	const struct filter_literal *const *left = a, *const *right = b;

	return ((*left)->text_len > (*right)->text_len) - ((*left)->text_len < (*right)->text_len);
}

/* The text literals of a predicate up to a length, the shortest first. */
static unsigned literals_sort(const struct filter_expr *filter,
			      const struct filter_predicate *predicate, size_t longest,
			      const struct filter_literal *sorted[FILTER_LITERALS_MAX])
{
	const struct filter_literal *literal = &filter->literals.data[predicate->literal];
	unsigned count = 0;

	for (uint32_t i = 0; i < predicate->count && count < FILTER_LITERALS_MAX; i++, literal++)
		if (literal->type == FILTER_LITERAL_TEXT && literal->text_len <= longest)
			sorted[count++] = literal;
	qsort(sorted, count, sizeof(*sorted), by_length);
	return count;
}

/* Compares with literals of one length. Falls through if the length in r1 differs. */
static void equal_length(struct codegen *gen, const struct code_text *text,
			 const struct filter_literal *const *literals, unsigned count, uint32_t no,
			 struct code_exits exits)
{
	struct assembler *as = &gen->as;
	unsigned len = literals[0]->text_len;
	uint32_t other = asm_label(as), differ;
	int slot;

	asm_branch_imm(as, BPF_JNE, BPF_REG_1, (int32_t)len, other);
	slot = text_begin(gen, text, len, no);
	for (unsigned i = 0; i < count; i++) {
		differ = asm_label(as);
		bytes_emit(as, slot, 0, (const unsigned char *)literals[i]->text, len, differ);
		asm_jump(as, exits.yes);
		asm_place(as, differ);
	}
	asm_jump(as, exits.no); /* all other literals have other lengths */
	asm_place(as, other);
}

/* The word of the string is in r1: its length, and the flag of a truncated text, which equals
 * nothing. */
static void equal_emit(struct codegen *gen, const struct code_text *text,
		       const struct filter_predicate *predicate, uint32_t no,
		       struct code_exits exits)
{
	const struct filter_literal *literals[FILTER_LITERALS_MAX];
	unsigned count = literals_sort(gen->filter, predicate, WAFFLE_STR_MAX, literals);

	asm_alu_imm(&gen->as, BPF_LSH, BPF_REG_1, 64 - STRING_BITS);
	asm_alu_imm(&gen->as, BPF_RSH, BPF_REG_1, 64 - STRING_BITS);
	for (unsigned i = 0, next; i < count; i = next) {
		for (next = i + 1; next < count; next++)
			if (literals[next]->text_len != literals[i]->text_len)
				break;
		equal_length(gen, text, &literals[i], next - i, no, exits);
	}
	asm_jump(&gen->as, exits.no);
}

static struct code_exits exits_for(enum filter_op op, struct code_exits exits)
{
	if (op == FILTER_NE || op == FILTER_NOT_MATCH)
		return (struct code_exits){.yes = exits.no, .no = exits.yes};
	return exits;
}

void text_key(struct codegen *gen, const struct filter_predicate *predicate, unsigned key,
	      struct code_exits exits)
{
	struct code_exits inner = exits_for(predicate->op, exits);
	const struct glob *glob = gen->filter->literals.data[predicate->literal].glob;
	struct code_text text;
	struct text_pattern pattern;

	if (glob && text_searches(glob))
		text_clear(gen);
	frame_string(gen, key, exits.no);
	text = (struct code_text){.word = frame_key_slot(gen, key), .ahead = gen->frame.ahead[key]};
	if (predicate->op != FILTER_MATCH && predicate->op != FILTER_NOT_MATCH) {
		equal_emit(gen, &text, predicate, exits.no, inner);
		return;
	}
	pattern = pattern_split(glob);
	pattern_emit(gen, &text, &pattern, exits.no, inner);
}

/* ---- comm ---- */

static void comm_need(struct codegen *gen)
{
	struct assembler *as = &gen->as;
	int deferred = DEFERRED(comm);

	if (gen->have & HAVE_COMM)
		return;
	gen->have |= HAVE_COMM;
	if (!gen->options->at_end) {
		asm_mov(as, BPF_REG_1, BPF_REG_10);
		asm_alu_imm(as, BPF_ADD, BPF_REG_1, gen->comm);
		asm_const(as, BPF_REG_2, WAFFLE_COMM_BYTES);
		asm_call(as, BPF_FUNC_get_current_comm);
		return;
	}
	for (int i = 0; i < WAFFLE_COMM_BYTES; i += 8) {
		asm_load(as, BPF_DW, BPF_REG_1, REG_FRAME, deferred + i);
		asm_store(as, BPF_DW, BPF_REG_10, gen->comm + i, BPF_REG_1);
	}
}

/*
 * Computes into `dst` the number of bytes before the first NUL in the 8 bytes of `word`, and
 * overwrites r2 and r3. The lowest bit of (w - 0x01…) & ~w & 0x80… is the top bit of the first NUL
 * ("Bit Twiddling Hacks", Anderson). There are no branches, since the verifier would follow each
 * length separately.
 */
static void word_len_emit(struct assembler *as, unsigned dst, unsigned word)
{
	const uint64_t ones = 0x0101010101010101ull;

	asm_const(as, BPF_REG_3, ones);
	asm_mov(as, dst, word);
	asm_alu(as, BPF_SUB, dst, BPF_REG_3);
	asm_mov(as, BPF_REG_2, word);
	asm_alu_imm(as, BPF_XOR, BPF_REG_2, -1);
	asm_alu(as, BPF_AND, dst, BPF_REG_2);
	asm_const(as, BPF_REG_2, ones << 7);
	asm_alu(as, BPF_AND, dst, BPF_REG_2);
	asm_mov(as, BPF_REG_2, dst);
	asm_insn(as, (struct bpf_insn){.code = BPF_ALU64 | BPF_NEG, .dst_reg = BPF_REG_2});
	asm_alu(as, BPF_AND, dst, BPF_REG_2);
	/* Bit 8n + 7 is set, or none. Count n bytes below it, or 8. */
	asm_alu_imm(as, BPF_RSH, dst, 7);
	asm_alu_imm(as, BPF_SUB, dst, 1);
	asm_alu(as, BPF_AND, dst, BPF_REG_3);
	asm_alu(as, BPF_MUL, dst, BPF_REG_3);
	asm_alu_imm(as, BPF_RSH, dst, 56);
}

static void comm_len_emit(struct codegen *gen)
{
	struct assembler *as = &gen->as;

	asm_load(as, BPF_DW, BPF_REG_4, BPF_REG_10, gen->comm);
	word_len_emit(as, BPF_REG_0, BPF_REG_4);
	asm_load(as, BPF_DW, BPF_REG_4, BPF_REG_10, gen->comm + 8);
	word_len_emit(as, BPF_REG_1, BPF_REG_4);
	/* The second word counts only if the first has no NUL, that is, a length of 8. */
	asm_mov(as, BPF_REG_2, BPF_REG_0);
	asm_alu_imm(as, BPF_RSH, BPF_REG_2, 3);
	asm_alu(as, BPF_MUL, BPF_REG_1, BPF_REG_2);
	asm_alu(as, BPF_ADD, BPF_REG_0, BPF_REG_1);
	asm_alu_imm(as, BPF_AND, BPF_REG_0, WAFFLE_COMM_BYTES - 1);
	asm_store(as, BPF_DW, BPF_REG_10, gen->comm_len, BPF_REG_0);
	asm_mov(as, REG_TEXT, BPF_REG_10);
	asm_alu_imm(as, BPF_ADD, REG_TEXT, gen->comm);
}

static void comm_equal(struct codegen *gen, const struct filter_predicate *predicate,
		       struct code_exits exits)
{
	const struct filter_literal *literals[FILTER_LITERALS_MAX];
	unsigned count = literals_sort(gen->filter, predicate, WAFFLE_COMM_BYTES - 1, literals);
	unsigned char bytes[WAFFLE_COMM_BYTES];
	uint32_t differ;

	for (unsigned i = 0; i < count; i++) {
		memset(bytes, 0, sizeof(bytes));
		memcpy(bytes, literals[i]->text, literals[i]->text_len);
		differ = asm_label(&gen->as);
		bytes_emit(&gen->as, gen->comm, 0, bytes, literals[i]->text_len + 1u, differ);
		asm_jump(&gen->as, exits.yes);
		asm_place(&gen->as, differ);
	}
	asm_jump(&gen->as, exits.no);
}

void text_comm(struct codegen *gen, const struct filter_predicate *predicate,
	       struct code_exits exits)
{
	const struct code_text text = {.word = gen->comm_len, .comm = true};
	const struct glob *glob = gen->filter->literals.data[predicate->literal].glob;
	struct text_pattern pattern;

	comm_need(gen);
	exits = exits_for(predicate->op, exits);
	if (predicate->op != FILTER_MATCH && predicate->op != FILTER_NOT_MATCH) {
		comm_equal(gen, predicate, exits);
		return;
	}
	pattern = pattern_split(glob);
	if (pattern.star && (pattern.middle_len || pattern.suffix_len)) {
		if (text_searches(glob))
			text_clear(gen);
		comm_len_emit(gen);
		pattern_emit(gen, &text, &pattern, exits.no, exits);
		return;
	}
	tokens_emit(gen, gen->comm, pattern.prefix, pattern.prefix_len, true, exits.no);
	if (!pattern.star) {
		load_byte(&gen->as, gen->comm + (int)pattern.prefix_len);
		asm_branch_imm(&gen->as, BPF_JNE, BPF_REG_1, 0, exits.no);
	}
	asm_jump(&gen->as, exits.yes);
}

/* ---- resources of a predicate ---- */

unsigned text_ahead(const struct filter_expr *filter, const struct filter_predicate *predicate)
{
	const struct filter_literal *literal = &filter->literals.data[predicate->literal];
	struct text_pattern pattern;
	unsigned longest = 0;

	if (literal->glob) {
		pattern = pattern_split(literal->glob);
		return tokens_take_all(pattern.prefix, pattern.prefix_len)
			       ? 0
			       : (unsigned)pattern.prefix_len;
	}
	for (uint32_t i = 0; i < predicate->count; i++, literal++)
		if (literal->type == FILTER_LITERAL_TEXT && literal->text_len > longest)
			longest = literal->text_len;
	return longest;
}

unsigned text_cost(const struct filter_expr *filter, const struct filter_predicate *predicate)
{
	const struct filter_literal *literal = &filter->literals.data[predicate->literal];

	if (!literal->glob)
		return 20 + 2 * predicate->count;
	return text_searches(literal->glob) ? 300 : 25;
}
