/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * One step of a walk over a stack. Who includes this says before how it reads a word of the stack:
 * WAFFLE_UNWIND_READ(context, word, address), non-zero: it can't be read.
 */
#ifndef WAFFLE_UNWIND_STEP_H
#define WAFFLE_UNWIND_STEP_H

#include "unwind.h"

/* From a frame to its caller's, as `row` says. False: there is no caller, or none to be found. */
static inline int waffle_unwind_step(void *context, const struct waffle_unwind_row *row,
				     struct waffle_unwind_regs *regs)
{
	__u32 rule = row->rule & WAFFLE_UNWIND_RULE_BITS;
	__u64 cfa, ra = 0, fp = regs->fp, ra_at;

	switch (rule) {
	case WAFFLE_UNWIND_SP:
		cfa = regs->sp + 8ull * row->cfa;
		break;
	case WAFFLE_UNWIND_FP:
		cfa = regs->fp + 8ull * row->cfa;
		break;
	case WAFFLE_UNWIND_FP_DEREF:
		if (WAFFLE_UNWIND_READ(context, &cfa, regs->fp + 8ll * (__s16)row->cfa))
			return 0;
		break;
#if defined(__x86_64__) || defined(__TARGET_ARCH_x86)
	case WAFFLE_UNWIND_PLT:
		cfa = regs->sp + 8 + ((regs->ip & 15) >= row->cfa ? 8 : 0);
		break;
	case WAFFLE_UNWIND_SIGNAL:
		if (WAFFLE_UNWIND_READ(context, &ra, regs->sp + WAFFLE_SIGNAL_IP) ||
		    WAFFLE_UNWIND_READ(context, &fp, regs->sp + WAFFLE_SIGNAL_FP) ||
		    WAFFLE_UNWIND_READ(context, &cfa, regs->sp + WAFFLE_SIGNAL_SP))
			return 0;
		regs->ip = ra;
		regs->sp = cfa; /* may go anywhere: sigaltstack(2) */
		regs->fp = fp;
		regs->exact = 1;
		return ra != 0;
#endif
	case WAFFLE_UNWIND_UNKNOWN:
		if (regs->fp < regs->sp || regs->fp & 7)
			return 0;
		cfa = regs->fp + 16;
		break;
	default:
		return 0;
	}
#if defined(__x86_64__) || defined(__TARGET_ARCH_x86)
	ra_at = cfa - 8;
	if (cfa <= regs->sp || WAFFLE_UNWIND_READ(context, &ra, ra_at))
		return 0;
	if (rule == WAFFLE_UNWIND_UNKNOWN) {
		if (WAFFLE_UNWIND_READ(context, &fp, regs->fp))
			return 0;
	} else if (row->rule & WAFFLE_UNWIND_FP_SAVED) {
		if (WAFFLE_UNWIND_READ(context, &fp, cfa + 8ll * row->fp))
			return 0;
	} else if (row->rule & WAFFLE_UNWIND_FP_AT_FP) {
		if (WAFFLE_UNWIND_READ(context, &fp, regs->fp + 8ll * row->fp))
			return 0;
	}
#else
	if (rule == WAFFLE_UNWIND_UNKNOWN) {
		if (WAFFLE_UNWIND_READ(context, &fp, regs->fp) ||
		    WAFFLE_UNWIND_READ(context, &ra, regs->fp + 8))
			return 0;
	} else {
		ra_at = cfa + 8ll * row->fp;
		if (row->rule & WAFFLE_UNWIND_FP_SAVED) {
			if (WAFFLE_UNWIND_READ(context, &fp, ra_at))
				return 0;
			ra_at += 8;
		}
		if (row->rule & WAFFLE_UNWIND_RA_SAVED) {
			if (WAFFLE_UNWIND_READ(context, &ra, ra_at))
				return 0;
		} else {
			ra = regs->lr;
		}
	}
	ra &= (1ull << WAFFLE_UNWIND_USER_BITS) - 1;
	/* Only the innermost function may have its caller in a register. */
	if (cfa < regs->sp || (cfa == regs->sp && ra == regs->ip))
		return 0;
	regs->lr = 0;
#endif
	if (row->rule & WAFFLE_UNWIND_FP_LOST)
		fp = 0;
	regs->ip = ra;
	regs->sp = cfa;
	regs->fp = fp;
	regs->exact = 0;
	return ra != 0;
}
#endif
