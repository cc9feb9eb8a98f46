/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the iterator `mmap_lock_waits` writes (mmap_lock.bpf.c). */
#ifndef WAFFLE_BPF_MMAP_LOCK_H
#define WAFFLE_BPF_MMAP_LOCK_H

#include "record.h"

/* A blocked thread that may hold the mmap_lock of its process. */
struct waffle_mmap_lock_wait {
	__u64 switches; /* how often the thread has left a CPU: the same number is the same wait */
	__u32 tid, tgid;
	__s32 syscall; /* -1: none, or one of a 32-bit program */
	__u32 owner;   /* 1: the lock names this thread as the last one that took it */
	char comm[WAFFLE_COMM_BYTES];
};

#endif
