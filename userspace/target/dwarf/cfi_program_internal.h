/* SPDX-License-Identifier: Apache-2.0 */
/* Executes the instructions of call frame information. Internal to cfi*.c. */
#ifndef WAFFLE_TARGET_DWARF_CFI_PROGRAM_INTERNAL_H
#define WAFFLE_TARGET_DWARF_CFI_PROGRAM_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/unwind.h"

/* A cursor over bytes. Reading past the end yields zeros and sets `bad`. */
struct cfi_bytes {
	const unsigned char *at, *end;
	bool bad;
};

uint64_t cfi_fixed(struct cfi_bytes *bytes, unsigned size);
uint64_t cfi_uleb(struct cfi_bytes *bytes);
int64_t cfi_sleb(struct cfi_bytes *bytes);
void cfi_skip(struct cfi_bytes *bytes, uint64_t count);

/* DWARF numbers of the registers that unwinding follows. */
struct cfi_machine {
	uint64_t fp, sp, ra;
	/* aarch64: a function that has called none keeps the return address in a register. */
	bool ra_in_register;
};

enum cfi_place_kind { CFI_SAME, CFI_AT_CFA, CFI_AT_FP, CFI_LOST, CFI_UNDEFINED };
struct cfi_place {
	enum cfi_place_kind kind;
	int64_t offset; /* bytes */
};

enum cfi_cfa_kind { CFI_CFA_NONE, CFI_CFA_SP, CFI_CFA_FP, CFI_CFA_FP_DEREF, CFI_CFA_PLT };
struct cfi_state {
	enum cfi_cfa_kind kind;
	int64_t offset; /* bytes */
	struct cfi_place fp, ra;
};

/* The part of a CIE that its FDEs share. */
struct cfi_common {
	const struct cfi_machine *machine;
	uint64_t code_align;
	int64_t data_align;
	bool signal;              /* a signal frame, made by the kernel */
	struct cfi_state initial; /* state after the CIE's own instructions */
};

/* Receives the rules that apply from an address on. False stops. */
typedef bool (*cfi_row_fn)(uint64_t pc, const struct waffle_unwind_row *row, void *arg);

/* Runs the instructions of a CIE and sets `initial`. */
bool cfi_run_common(struct cfi_common *common, struct cfi_bytes program);
/* Runs the instructions of an FDE for [from, to). Emits a row wherever the rules change. */
bool cfi_run(const struct cfi_common *common, struct cfi_bytes program, uint64_t from, uint64_t to,
	     cfi_row_fn row, void *arg);

#endif
