// SPDX-License-Identifier: Apache-2.0
/* Whether one link can arm many probes of one process: uprobe.multi, from Linux 6.6 on. */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <unistd.h>

#include "kernel/kernel.h"

/* Tries a link on a path that is no regular file; returns the kernel's error. */
static int link_try(int program, uint32_t pid)
{
	const unsigned long offset = 0;
	LIBBPF_OPTS(bpf_link_create_opts, options, .uprobe_multi.path = "/",
		    .uprobe_multi.offsets = &offset, .uprobe_multi.cnt = 1,
		    .uprobe_multi.pid = pid);
	int link = bpf_link_create(program, -1, BPF_TRACE_UPROBE_MULTI, &options);

	if (link >= 0)
		close(link);
	return link;
}

int uprobe_multi_try(void)
{
	static const struct bpf_insn nothing[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = BPF_TRACE_UPROBE_MULTI);
	int program, result;

	/* For tests: behave as on older kernels. */
	if (getenv("WAFFLE_UPROBE_SINGLE"))
		return 0;
	program = bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "GPL", nothing,
				sizeof(nothing) / sizeof(nothing[0]), &options);
	if (program < 0)
		return program == -EINVAL ? 0 : program;
	/* A kernel with uprobe.multi returns EBADF; others return EINVAL before they check the
	 * path. The first such kernels took the pid for a thread's, so that only hits of the main
	 * thread counted. Since the fix (46ba0e49b642, Linux 6.10 and 6.6.33) a negative pid is
	 * EINVAL. */
	result = link_try(program, 0) == -EBADF && link_try(program, (uint32_t)-1) == -EINVAL;
	close(program);
	return result;
}
