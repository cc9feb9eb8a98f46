// SPDX-License-Identifier: Apache-2.0
#include "probe/spec/builtin_specs_internal.h"

/* Embeds files unchanged, with a terminating NUL. */
#define ROWS_OF(name, files)                                                                       \
	extern const char rows_##name[];                                                           \
	__asm__(".pushsection .rodata\n"                                                           \
		"rows_" #name ": " files ".byte 0\n"                                               \
		".popsection\n")
#define ROWS_FILE(name) ".incbin \"probes/" #name ".probes\"\n"
#define ROWS(name) ROWS_OF(name, ROWS_FILE(name))

ROWS(cuda);
ROWS(hip);
ROWS(nccl);
ROWS(malloc);
ROWS(mpi);
ROWS_OF(mpi_all, ROWS_FILE(mpi) ROWS_FILE(mpi_polls));
ROWS(openssl);
ROWS(postgresql);
ROWS(pthread);
ROWS(python);
ROWS(torch);
ROWS(jax);
ROWS(roctx);

const struct call_rows call_tables[] = {
	[CALL_TABLE_CUDA] = {"cuda.probes", rows_cuda},
	[CALL_TABLE_HIP] = {"hip.probes", rows_hip},
	[CALL_TABLE_NCCL] = {"nccl.probes", rows_nccl},
	[CALL_TABLE_TORCH] = {"torch.probes", rows_torch},
	[CALL_TABLE_JAX] = {"jax.probes", rows_jax},
	[CALL_TABLE_MPI] = {"mpi.probes", rows_mpi},
};

const struct call_rows call_ready_sets[CALL_READY_SETS] = {
	{"malloc", rows_malloc},         {"mpi", rows_mpi_all},     {"openssl", rows_openssl},
	{"postgresql", rows_postgresql}, {"pthread", rows_pthread}, {"python", rows_python},
	{"roctx", rows_roctx},
};
