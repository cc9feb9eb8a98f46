// SPDX-License-Identifier: Apache-2.0
#include "target/process/output_name.h"

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

static int rank_text(char *text, size_t size, const char *option, pid_t pid, uint32_t *target_rank,
		     struct error *err)
{
	struct process_rank rank;
	bool own = process_rank_read(&rank, getpid());
	char whose[64] = "this process has no";

	if (pid != getpid())
		snprintf(whose, sizeof(whose), "neither waffle-bpf nor process %d has a", pid);
	if (!own && !process_rank_read(&rank, pid))
		return error_set(err, ENODATA,
				 "%s: %%r is unknown: %s rank from Open MPI, MPICH, Slurm or "
				 "torchrun in its environment; start it with mpirun, srun or "
				 "torchrun, or write %%p",
				 option, whose);
	if (!own)
		*target_rank = rank.rank;
	snprintf(text, size, "%u", rank.rank);
	return 0;
}

static int part_text(char letter, char *text, size_t size, const char *option, pid_t pid,
		     uint32_t *target_rank, struct error *err)
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
		return rank_text(text, size, option, pid, target_rank, err);
	case '\0':
		return error_set(err, EINVAL, "%s: the name ends with %%; write %%%% for one",
				 option);
	default:
		return error_set(err, EINVAL,
				 "%s: %%%c is not known; write %%h for the host, %%p for the pid, "
				 "%%r for the rank or %%%% for %%",
				 option, letter);
	}
}

int output_name_expand(char *path, size_t size, const char *option, const char *pattern, pid_t pid,
		       uint32_t *target_rank, struct error *err)
{
	size_t len = 0;

	*target_rank = PROCESS_RANK_NONE;
	for (const char *at = pattern; *at; at++) {
		char part[256] = {*at};
		int ret = *at == '%' ? part_text(*++at, part, sizeof(part), option, pid,
						 target_rank, err)
				     : 0;

		if (ret)
			return ret;
		if (len + strlen(part) >= size)
			return error_set(err, ENAMETOOLONG, "%s: the name is too long", option);
		memcpy(path + len, part, strlen(part));
		len += strlen(part);
	}
	path[len] = '\0';
	return 0;
}

bool output_name_has_pid(const char *pattern)
{
	for (const char *at = pattern; (at = strchr(at, '%')); at += 2)
		if (at[1] == 'p')
			return true;
		else if (!at[1])
			break;
	return false;
}
