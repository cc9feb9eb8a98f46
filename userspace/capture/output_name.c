// SPDX-License-Identifier: Apache-2.0
#include "capture/output_name_internal.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "target/process/rank.h"

void output_name_clean(char *text)
{
	if (!strcmp(text, ".") || !strcmp(text, ".."))
		memset(text, '_', strlen(text));
	for (char *at = text; *at; at++)
		if (*at == '/' || (unsigned char)*at < ' ')
			*at = '_';
}

static void host_name(char *text, size_t size)
{
	if (gethostname(text, size - 1))
		*text = '\0';
	text[size - 1] = '\0';
	output_name_clean(text);
}

static int rank_text(char *text, size_t size, pid_t pid, uint32_t *target_rank, struct error *err)
{
	struct process_rank rank;
	bool own = process_rank_read(&rank, getpid());

	if (!own && !process_rank_read(&rank, pid))
		return error_set(
			err, ENODATA,
			"-o: %%r is unknown: neither waffle-bpf nor process %d has a rank "
			"from Open MPI, MPICH, Slurm or torchrun in its environment; start "
			"it with mpirun, srun or torchrun, or write %%p",
			pid);
	if (!own)
		*target_rank = rank.rank;
	snprintf(text, size, "%u", rank.rank);
	return 0;
}

static int part_text(char letter, char *text, size_t size, pid_t pid, uint32_t *target_rank,
		     struct error *err)
{
	switch (letter) {
	case '%':
		snprintf(text, size, "%%");
		return 0;
	case 'h':
		host_name(text, size);
		return 0;
	case 'p':
		snprintf(text, size, "%d", pid);
		return 0;
	case 'r':
		return rank_text(text, size, pid, target_rank, err);
	case '\0':
		return error_set(err, EINVAL, "-o: the name ends with %%; write %%%% for one");
	default:
		return error_set(err, EINVAL,
				 "-o: %%%c is not known; write %%h for the host, %%p for the pid, "
				 "%%r for the rank or %%%% for %%",
				 letter);
	}
}

int output_name_expand(char *path, size_t size, const char *pattern, pid_t pid,
		       uint32_t *target_rank, struct error *err)
{
	size_t len = 0;

	*target_rank = PROCESS_RANK_NONE;
	for (const char *at = pattern; *at; at++) {
		char part[256] = {*at};
		int ret = *at == '%' ? part_text(*++at, part, sizeof(part), pid, target_rank, err)
				     : 0;

		if (ret)
			return ret;
		if (len + strlen(part) >= size)
			return error_set(err, ENAMETOOLONG, "-o: the name is too long");
		memcpy(path + len, part, strlen(part));
		len += strlen(part);
	}
	path[len] = '\0';
	return 0;
}
