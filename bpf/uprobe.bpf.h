/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * How a program at a uprobe is written: UPROBE(name) { … } with the registers in `ctx`.
 *
 * Such a program may be preempted on kernels with preemption, also lazy, and the next thread may
 * run the same program on this CPU. Since Linux 6.13 (commit a76ab5731e32) the JIT gives programs
 * of this type one stack for each CPU if they use 64 bytes or more, on the assumption that they do
 * not nest. Two threads then write into one stack, and the kernel crashes. The verifier gives no
 * such stack to a program with a tail call (check_max_stack_depth()), so each has one. It looks for
 * the call before it removes code that cannot be reached, so the call costs nothing.
 */
#ifndef WAFFLE_UPROBE_BPF_H
#define WAFFLE_UPROBE_BPF_H

/* Always empty. */
struct no_programs_map {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
};
extern struct no_programs_map no_programs SEC(".maps");
extern const volatile bool never; /* false, which the verifier knows and the compiler does not */

#define UPROBE_IN(section, name)                                                                   \
	static __always_inline int name##_body(struct pt_regs *ctx);                               \
	SEC(section) int name(struct pt_regs *ctx)                                                 \
	{                                                                                          \
		if (never)                                                                         \
			bpf_tail_call(ctx, &no_programs, 0);                                       \
		return name##_body(ctx);                                                           \
	}                                                                                          \
	static __always_inline int name##_body(struct pt_regs *ctx)
#define UPROBE(name) UPROBE_IN("uprobe.multi", name)
#define URETPROBE(name) UPROBE_IN("uretprobe.multi", name)

#endif
