// SPDX-License-Identifier: Apache-2.0
#include "call/table.h"

/* The files as they are, each with a NUL behind it. */
#define ROWS(name)                                                                                 \
	extern const char rows_##name[];                                                           \
	__asm__(".pushsection .rodata\n"                                                           \
		"rows_" #name ": .incbin \"userspace/call/" #name ".probes\"\n"                    \
		".byte 0\n"                                                                        \
		".popsection\n")

ROWS(cuda);
ROWS(nccl);

const struct call_rows call_tables[] = {
	[CALL_TABLE_CUDA] = {"cuda.probes", rows_cuda},
	[CALL_TABLE_NCCL] = {"nccl.probes", rows_nccl},
};
