/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* One step of a stack walk. The includer defines WAFFLE_UNWIND_READ(context, word, address), which
 * reads a word of the stack; non-zero: unreadable. */
#ifndef WAFFLE_UNWIND_STEP_H
#define WAFFLE_UNWIND_STEP_H

#include "unwind.h"

/* Finds a frame's CFA; false: there is none. */
static inline int waffle_unwind_cfa(void *context, const struct waffle_unwind_row *row,
				    const struct waffle_unwind_regs *regs, __u64 *cfa)
{
	switch (row->rule & WAFFLE_UNWIND_RULE_BITS) {
	case WAFFLE_UNWIND_SP:
		*cfa = regs->sp + 8ull * row->cfa;
		return 1;
	case WAFFLE_UNWIND_FP:
		*cfa = regs->fp + 8ull * row->cfa;
		return 1;
	case WAFFLE_UNWIND_FP_DEREF:
		return !WAFFLE_UNWIND_READ(context, cfa, regs->fp + 8ll * (__s16)row->cfa);
	case WAFFLE_UNWIND_PLT:
		*cfa = regs->sp + 8 + ((regs->ip & 15) >= row->cfa ? 8 : 0);
		return 1;
	case WAFFLE_UNWIND_UNKNOWN:
		*cfa = regs->fp + 16;
		return regs->fp >= regs->sp && !(regs->fp & 7);
	default:
		return 0;
	}
}

#if defined(__x86_64__) || defined(__TARGET_ARCH_x86)

/* Steps from a signal handler's frame to the code that it interrupted. */
static inline int waffle_unwind_signal(void *context, struct waffle_unwind_regs *regs)
{
	__u64 ip, sp, fp;

	if (WAFFLE_UNWIND_READ(context, &ip, regs->sp + WAFFLE_SIGNAL_IP) ||
	    WAFFLE_UNWIND_READ(context, &fp, regs->sp + WAFFLE_SIGNAL_FP) ||
	    WAFFLE_UNWIND_READ(context, &sp, regs->sp + WAFFLE_SIGNAL_SP))
		return 0;
	regs->ip = ip;
	regs->sp = sp; /* may go anywhere: sigaltstack(2) */
	regs->fp = fp;
	regs->exact = 1;
	return ip != 0;
}

/* Reads the caller's registers; false: they can't be read. */
static inline int waffle_unwind_saved(void *context, const struct waffle_unwind_row *row,
				      const struct waffle_unwind_regs *regs, __u64 cfa, __u64 *ra,
				      __u64 *fp)
{
	if (cfa <= regs->sp || WAFFLE_UNWIND_READ(context, ra, cfa - 8))
		return 0;
	if ((row->rule & WAFFLE_UNWIND_RULE_BITS) == WAFFLE_UNWIND_UNKNOWN)
		return !WAFFLE_UNWIND_READ(context, fp, regs->fp);
	if (row->rule & WAFFLE_UNWIND_FP_SAVED)
		return !WAFFLE_UNWIND_READ(context, fp, cfa + 8ll * row->fp);
	if (row->rule & WAFFLE_UNWIND_FP_AT_REGISTER)
		return !WAFFLE_UNWIND_READ(context, fp, regs->fp + 8ll * row->fp);
	return 1;
}

#else

static inline int waffle_unwind_signal(void *context, struct waffle_unwind_regs *regs)
{
	(void)context;
	(void)regs;
	return 0;
}

static inline int waffle_unwind_saved(void *context, const struct waffle_unwind_row *row,
				      const struct waffle_unwind_regs *regs, __u64 cfa, __u64 *ra,
				      __u64 *fp)
{
	__u64 at = cfa + 8ll * row->fp;

	*ra = regs->lr;
	if ((row->rule & WAFFLE_UNWIND_RULE_BITS) == WAFFLE_UNWIND_UNKNOWN) {
		if (WAFFLE_UNWIND_READ(context, fp, regs->fp) ||
		    WAFFLE_UNWIND_READ(context, ra, regs->fp + 8))
			return 0;
	} else {
		if (row->rule & WAFFLE_UNWIND_FP_AT_REGISTER)
			at -= 8ull * row->cfa;
		if (row->rule & (WAFFLE_UNWIND_FP_SAVED | WAFFLE_UNWIND_FP_AT_REGISTER)) {
			if (WAFFLE_UNWIND_READ(context, fp, at))
				return 0;
			at += 8;
		}
		if (row->rule & WAFFLE_UNWIND_RA_SAVED && WAFFLE_UNWIND_READ(context, ra, at))
			return 0;
	}
	*ra &= (1ull << WAFFLE_UNWIND_USER_BITS) - 1;
	/* Only the innermost function may have its caller in a register. */
	return cfa > regs->sp || (cfa == regs->sp && *ra != regs->ip);
}

#endif

/* The rule for a function that has just been called and that no table covers: its frame pointer is
 * not set up yet. */
static inline struct waffle_unwind_row waffle_unwind_entry(void)
{
	struct waffle_unwind_row row = {.rule = WAFFLE_UNWIND_SP};

#if defined(__x86_64__) || defined(__TARGET_ARCH_x86)
	row.cfa = 1; /* after the return address */
#endif
	return row;
}

/* Steps from a frame to its caller's by `row`. False: there is no caller, or it can't be found. */
static inline int waffle_unwind_step(void *context, const struct waffle_unwind_row *row,
				     struct waffle_unwind_regs *regs)
{
	__u64 cfa = 0, ra = 0, fp = regs->fp;

	if ((row->rule & WAFFLE_UNWIND_RULE_BITS) == WAFFLE_UNWIND_SIGNAL)
		return waffle_unwind_signal(context, regs);
	if (!waffle_unwind_cfa(context, row, regs, &cfa) ||
	    !waffle_unwind_saved(context, row, regs, cfa, &ra, &fp))
		return 0;
	regs->ip = ra;
	regs->sp = cfa;
	regs->fp = row->rule & WAFFLE_UNWIND_FP_LOST ? 0 : fp;
	regs->lr = 0;
	regs->exact = 0;
	return ra != 0;
}

#endif
