/* SPDX-License-Identifier: Apache-2.0 */
/* A generated program (codegen.h), and how it is to be made. */
#ifndef WAFFLE_FILTER_CODEGEN_CODE_H
#define WAFFLE_FILTER_CODEGEN_CODE_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/vec.h"

enum codegen_verdict { CODEGEN_REJECT, CODEGEN_ACCEPT, CODEGEN_DEFER };

/*
 * Relocations. The loader stores the fd of a map in the imm of the first instruction of a
 * BPF_LD_IMM64 pair. Everything else is set already.
 */
enum code_reloc_type {
	CODE_RELOC_OPEN,     /* map of open spans */
	CODE_RELOC_DEFERRED, /* map of deferred spans of the class's size */
	CODE_RELOC_NEXT,     /* program array */
	CODE_RELOC_CALLS,    /* map of the threads' calls: bpf/call.h */
	/* Array with `table`, as BPF_PSEUDO_MAP_VALUE; the imm of the second instruction has the
	 * offset. */
	CODE_RELOC_TABLE,
};

struct code_reloc {
	uint32_t insn;
	enum code_reloc_type type;
};

struct filter_code {
	VEC(struct bpf_insn) insns;
	VEC(struct code_reloc) relocs;
	VEC(uint64_t) table; /* constant words that instructions read; empty: no map is needed */
	uint32_t predicates; /* number of predicates in the program */
};

struct codegen_options {
	bool at_end; /* the program at a span's end, which reads a deferred span */
	/* The program of a call, at its start or its end. It reads the call from a slot of struct
	 * waffle_call_thread, at offset `slot`, and ignores the context. */
	bool call;
	bool begins; /* with at_end and call: the program at a call's start */
	uint16_t slot;
	/* Offsets of the probe's registers in the program's context (include/waffle/abi.h). */
	uint16_t id_offset, frame_offset, size_offset;
	/*
	 * What a verdict does: the slot of the program array to call, or CODEGEN_EXIT to return 0.
	 * With `verdict_as_result`, which tests use, there are no tail calls and the program
	 * returns the verdict.
	 */
	bool verdict_as_result;
	int on_reject, on_accept, on_defer;
};
#define CODEGEN_EXIT (-1)

void filter_code_free(struct filter_code *code);
bool filter_code_equal(const struct filter_code *a, const struct filter_code *b);

#endif
