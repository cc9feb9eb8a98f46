/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a program at a uprobe keeps the kernel's stack: it has a tail call (bpf/uprobe.bpf.h). */
#ifndef WAFFLE_TESTS_TAIL_CALL_H
#define WAFFLE_TESTS_TAIL_CALL_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>

static inline bool has_tail_call(const struct bpf_insn *insns, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (insns[i].code == (BPF_JMP | BPF_CALL) && !insns[i].src_reg &&
		    insns[i].imm == BPF_FUNC_tail_call)
			return true;
	return false;
}

#endif
