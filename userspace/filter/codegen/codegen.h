/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generates BPF instructions from the part of an expression that is undecided at a site. There are
 * two programs. The one at the hit reads the frame from the traced process. The one at the span's
 * end exists only if the expression uses facts known only then, such as the duration. It reads what
 * bpf/filter.bpf.c has deferred since the hit. There is no interpreter: a predicate
 * becomes the few instructions that it needs, and a text search becomes a loop over its bytes.
 *
 * A program ends with a tail call into the program that carries out the decision (enum waffle_next,
 * bpf/filter.h). If there is nothing to do, it exits.
 */
#ifndef WAFFLE_FILTER_CODEGEN_CODEGEN_H
#define WAFFLE_FILTER_CODEGEN_CODEGEN_H

#include "bpf/call.h"
#include "bpf/filter.h"
#include "filter/codegen/code.h"
#include "filter/split.h"

/* Offsets in pt_regs of this machine; on_* are CODEGEN_EXIT and all other fields 0. */
struct codegen_options codegen_options_default(void);

/*
 * Generates a program. For a predicate on parent.name, its index in filter->predicates is its bit
 * in waffle_open.name_bits. Returns 0, -ENOMEM, or -E2BIG if the program would be too long. That is
 * the case if text searches exceed SEARCH_WORK_MAX (codegen_parts_internal.h), or a jump exceeds
 * 32767 instructions.
 */
int codegen(struct filter_code *code, const struct filter_expr *filter,
	    const struct residual *residual, const struct site_info *site,
	    const struct codegen_options *options);
/* Bit i is set if the name of a site makes predicate i, on parent.name, true for its children. */
uint64_t codegen_name_bits(const struct filter_expr *filter, const struct site_info *site);

#endif
