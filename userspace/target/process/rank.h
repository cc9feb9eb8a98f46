/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process is in an MPI or torch job: its rank, the number of ranks, and the job. Launchers
 * put these into the environment of the processes that they start:
 *
 *	torchrun            RANK, WORLD_SIZE, TORCHELASTIC_RUN_ID
 *	Open MPI            OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE, PMIX_NAMESPACE
 *	MPICH and others    PMI_RANK, PMI_SIZE
 *	Slurm               SLURM_PROCID, SLURM_NTASKS, SLURM_JOB_ID
 *
 * No other variable is looked at, and only the first 128 KiB of an environment. The process
 * controls its environment, so it is not trusted.
 */
#ifndef WAFFLE_TARGET_PROCESS_RANK_H
#define WAFFLE_TARGET_PROCESS_RANK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCESS_JOB_BYTES 256
#define PROCESS_RANK_NONE UINT32_MAX

struct process_rank {
	uint32_t rank;               /* PROCESS_RANK_NONE: unknown */
	uint32_t world_size;         /* 0: unknown */
	char job[PROCESS_JOB_BYTES]; /* "slurm:4711"; empty: unknown */
};

/* Reads them from an environment as in /proc/PID/environ: strings with a NUL after each. False: it
 * has none of them. A last string without a NUL is ignored. */
bool process_rank_parse(struct process_rank *rank, const char *environment, size_t bytes);
/* The same for a process. False, too, if the process has gained rights: then its environment is
 * private. */
bool process_rank_read(struct process_rank *rank, pid_t pid);

#endif
