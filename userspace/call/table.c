// SPDX-License-Identifier: Apache-2.0
#include "call/table.h"

/* Embeds the files unchanged, each with a terminating NUL. */
#define ROWS(folder, name)                                                                         \
	extern const char rows_##name[];                                                           \
	__asm__(".pushsection .rodata\n"                                                           \
		"rows_" #name ": .incbin \"" folder #name ".probes\"\n"                            \
		".byte 0\n"                                                                        \
		".popsection\n")

ROWS("userspace/call/", cuda);
ROWS("userspace/call/", nccl);
ROWS("probes/", malloc);
ROWS("probes/", mpi);
ROWS("probes/", openssl);
ROWS("probes/", postgresql);
ROWS("probes/", pthread);
ROWS("probes/", python);

const struct call_rows call_tables[] = {
	[CALL_TABLE_CUDA] = {"cuda.probes", rows_cuda},
	[CALL_TABLE_NCCL] = {"nccl.probes", rows_nccl},
};

const struct call_rows call_ready_sets[CALL_READY_SETS] = {
	{"malloc", rows_malloc},         {"mpi", rows_mpi},         {"openssl", rows_openssl},
	{"postgresql", rows_postgresql}, {"pthread", rows_pthread}, {"python", rows_python},
};
