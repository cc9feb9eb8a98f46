/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Unwinding of code without frame pointers, the same in the kernel (stack.bpf.c) and in userspace
 * (target/dwarf/unwind.c). target/dwarf/cfi.c makes a table of a file's .eh_frame: rows sorted by
 * address, each with the rule from a function's frame to its caller's. Only three registers are
 * followed: instruction, stack and frame pointer.
 */
#ifndef WAFFLE_UNWIND_H
#define WAFFLE_UNWIND_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

/* The rule for the canonical frame address (CFA), which is the caller's stack pointer after the
 * return. */
enum waffle_unwind_rule {
	WAFFLE_UNWIND_UNKNOWN,  /* not covered by the table: frame pointers are tried */
	WAFFLE_UNWIND_END,      /* the outermost frame */
	WAFFLE_UNWIND_BAD,      /* a rule that no row can express */
	WAFFLE_UNWIND_SP,       /* stack pointer + 8 * cfa */
	WAFFLE_UNWIND_FP,       /* frame pointer + 8 * cfa */
	WAFFLE_UNWIND_FP_DEREF, /* the word at frame pointer + 8 * (signed) cfa: realigned stacks */
	/* x86-64, .plt: stack pointer + 8, and 8 more from byte `cfa` of each 16 bytes on */
	WAFFLE_UNWIND_PLT,
	WAFFLE_UNWIND_SIGNAL, /* the kernel put the registers there: struct rt_sigframe */
};

/* The rules for the caller's registers. On x86-64 the return address is always at CFA - 8. */
#define WAFFLE_UNWIND_RULE_BITS 0x0fu
#define WAFFLE_UNWIND_FP_SAVED 0x10u /* frame pointer at CFA + 8 * fp */
/* x86-64: at frame pointer + 8 * fp. aarch64: at the register that the CFA is computed from + 8 *
 * fp, as compilers save it at the lower end of a large frame. */
#define WAFFLE_UNWIND_FP_AT_REGISTER 0x20u
#define WAFFLE_UNWIND_FP_LOST 0x40u /* unknown */
/* aarch64: the return address is at CFA + 8 * fp, or a word after the frame pointer if that is
 * saved, too. Otherwise it is still in the link register. */
#define WAFFLE_UNWIND_RA_SAVED 0x80u

struct waffle_unwind_row {
	__u32 pc;  /* offset from the table's base; valid up to the next row's */
	__u16 cfa; /* words of 8 bytes, unsigned unless the rule says so */
	__s8 fp;   /* words of 8 bytes */
	__u8 rule; /* enum waffle_unwind_rule | WAFFLE_UNWIND_* */
};

/*
 * Rows and mappings are stored in pages, and pages in slabs: maps of one size, so that userspace
 * can add more while programs run. A table has consecutive pages; the rest of the last one is
 * filled with rows of the highest address.
 */
#define WAFFLE_UNWIND_PAGE_BYTES 4096
#define WAFFLE_UNWIND_PAGE_ROWS 512
#define WAFFLE_UNWIND_PAGE_MAPPINGS 128
#define WAFFLE_UNWIND_SLAB_PAGES 256
#define WAFFLE_UNWIND_SLABS_MAX 512 /* 512 MiB */

/* Code of a process, sorted by address. */
struct waffle_unwind_mapping {
	__u64 start, end;
	__u64 base;  /* address of the table's base in the process */
	__u32 page;  /* the first one of the table */
	__u32 pages; /* 0: no table, frame pointers are tried */
};

struct waffle_unwind_page {
	union {
		struct waffle_unwind_row rows[WAFFLE_UNWIND_PAGE_ROWS];
		struct waffle_unwind_mapping mappings[WAFFLE_UNWIND_PAGE_MAPPINGS];
	};
};
_Static_assert(sizeof(struct waffle_unwind_page) == WAFFLE_UNWIND_PAGE_BYTES, "a page");

struct waffle_unwind_regs {
	__u64 ip, sp, fp, lr; /* lr: aarch64 only */
	/* ip is the next instruction itself, not a return address. */
	__u64 exact;
};

/* Offsets at which the kernel saves registers before it calls a signal handler, from the stack
 * pointer after the handler's return. For x86-64, see struct ucontext in
 * arch/x86/include/asm/sigframe.h. */
#define WAFFLE_SIGNAL_FP 120
#define WAFFLE_SIGNAL_SP 160
#define WAFFLE_SIGNAL_IP 168

/* bits of an address; on aarch64 the others may sign a return address */
#define WAFFLE_UNWIND_USER_BITS 48

/* The address to look up for a frame. It is inside the call, which may be its function's last
 * instruction. */
static inline __u64 waffle_unwind_pc(const struct waffle_unwind_regs *regs)
{
	return regs->ip - !regs->exact;
}

#endif
