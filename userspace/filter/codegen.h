/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BPF instructions from what is left of an expression at a site. Two programs: at the hit, which
 * reads the frame from the traced process, and (for a span whose duration is asked) at its end,
 * which reads what bpf/filter.bpf.c has held. No interpreter: each predicate is the few
 * instructions it needs, strings that are searched for take a loop over their bytes.
 *
 * A program ends with a tail call into the program that does what was decided (enum waffle_next,
 * bpf/filter.h) or, where nothing is to be done, with exit.
 */
#ifndef WAFFLE_FILTER_CODEGEN_H
#define WAFFLE_FILTER_CODEGEN_H

#include <linux/bpf.h>

#include "bpf/call.h"
#include "bpf/filter.h"
#include "filter/split.h"

enum codegen_verdict { CODEGEN_REJECT, CODEGEN_ACCEPT, CODEGEN_HOLD };

/*
 * What an instruction pair (BPF_LD_IMM64) needs of the loader: the fd of a map in the imm of the
 * first instruction. All else is set.
 */
enum code_reloc_type {
	CODE_RELOC_OPEN,  /* fd of the map of open spans */
	CODE_RELOC_HELD,  /* fd of the map of held spans of this size */
	CODE_RELOC_NEXT,  /* fd of the program array */
	CODE_RELOC_CALLS, /* fd of the threads' calls: bpf/call.h */
	CODE_RELOC_TABLE, /* fd of the array with `table`, as BPF_PSEUDO_MAP_VALUE; imm of the
			     second instruction is the offset already */
};

struct code_reloc {
	uint32_t insn;
	enum code_reloc_type type;
};

struct filter_code {
	VEC(struct bpf_insn) insns;
	VEC(struct code_reloc) relocs;
	VEC(uint64_t) table; /* constant words that instructions read; empty: no map needed */
	uint32_t predicates; /* evaluated by it */
};

struct codegen_options {
	bool at_end; /* the program at a span's end: what is asked about is held */
	/* Of a call, at its begin as well as at its end: what is asked about is held in a slot of
	 * struct waffle_call_thread, at offset `slot`. The context is not looked at. */
	bool call;
	bool begins; /* with both: the program at a call's begin */
	uint16_t slot;
	/* Where the program's context has the registers of the probe (include/waffle/abi.h). */
	uint16_t id_offset, frame_offset, size_offset;
	/*
	 * What a verdict does: the slot of the program array to go to, or CODEGEN_EXIT: return 0.
	 * With `verdict_as_result` there are no tail calls and the program returns the verdict
	 * (tests).
	 */
	bool verdict_as_result;
	int on_reject, on_accept, on_hold;
};
#define CODEGEN_EXIT (-1)

/* Offsets of pt_regs for this machine; other fields are 0 and CODEGEN_EXIT. */
struct codegen_options codegen_options_default(void);

/*
 * The bit of a predicate on parent.name in waffle_open.name_bits is its index in
 * filter->predicates. -ENOMEM, or -E2BIG: a program would be too long: more than SEARCH_WORK_MAX
 * (codegen_parts.h) of patterns with text between two stars, or a jump of more than 32767
 * instructions.
 */
int codegen(struct filter_code *code, const struct filter_expr *filter,
	    const struct residual *residual, const struct site_info *site,
	    const struct codegen_options *options);
void filter_code_free(struct filter_code *code);
bool filter_code_equal(const struct filter_code *a, const struct filter_code *b);

/* Bit i: the name of a site makes predicate i, on parent.name, true for its children. */
uint64_t codegen_name_bits(const struct filter_expr *filter, const struct site_info *site);

/* One instruction as bpftool writes it, "r1 = *(u64 *)(r6 +96)"; returns the instructions taken (2
 * for a BPF_LD_IMM64). */
#define DISASM_TEXT 96
unsigned disasm(char text[DISASM_TEXT], const struct filter_code *code, uint32_t insn);

#endif
