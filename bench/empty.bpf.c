// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* The least that a probe can cost: a program that does nothing, and one that only counts. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

__u64 switches;

SEC("uprobe.multi")
int empty(void *ctx)
{
	return 0;
}

SEC("raw_tp/sched_switch")
int count(void *ctx)
{
	__sync_fetch_and_add(&switches, 1);
	return 0;
}
