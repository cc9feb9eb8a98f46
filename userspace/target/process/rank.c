// SPDX-License-Identifier: Apache-2.0
#include "target/process/rank.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A longer environment is read up to here. */
#define ENVIRONMENT_MAX (1u << 20)
#define RANKS_MAX (1u << 24) /* no job has more */

struct launcher {
	const char *name; /* in front of the number of the job */
	const char *rank, *size, *job;
	bool wants_job; /* without a job the variables are not this launcher's */
};

/* The first one that matches counts. mpirun and torchrun may run under Slurm, whose variables they
 * pass on. They are then those of the node's launcher. */
static const struct launcher launchers[] = {
	{"torchrun", "RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID", true},
	{"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE", false},
	{"pmi", "PMI_RANK", "PMI_SIZE", NULL, false},
	{"env", "RANK", "WORLD_SIZE", NULL, false},
	{"slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_JOB_ID", false},
};

/* The value of a variable, or NULL. Only strings that end within `bytes` are looked at. */
static const char *variable(const char *environment, size_t bytes, const char *name)
{
	const char *at = environment, *end = environment + bytes, *next;
	size_t len = name ? strlen(name) : 0;

	for (; name && at < end && (next = memchr(at, '\0', (size_t)(end - at))); at = next + 1)
		if ((size_t)(next - at) > len && !memcmp(at, name, len) && at[len] == '=')
			return at + len + 1;
	return NULL;
}

static bool number(const char *text, uint32_t *value)
{
	char *end;
	unsigned long parsed;

	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	parsed = strtoul(text, &end, 10);
	if (errno || *end || parsed > RANKS_MAX)
		return false;
	*value = (uint32_t)parsed;
	return true;
}

/* torchrun without a given id has "none". */
static bool is_job(const char *job)
{
	return job && *job && strcmp(job, "none") != 0;
}

bool process_rank_parse(struct process_rank *rank, const char *environment, size_t bytes)
{
	for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
		const struct launcher *launcher = &launchers[i];
		const char *job = variable(environment, bytes, launcher->job);

		*rank = (struct process_rank){.rank = PROCESS_RANK_NONE};
		if ((launcher->wants_job && !job) ||
		    !number(variable(environment, bytes, launcher->rank), &rank->rank) ||
		    !number(variable(environment, bytes, launcher->size), &rank->world_size) ||
		    rank->rank >= rank->world_size)
			continue;
		if (is_job(job))
			snprintf(rank->job, sizeof(rank->job), "%s:%s", launcher->name, job);
		return true;
	}
	*rank = (struct process_rank){.rank = PROCESS_RANK_NONE};
	return false;
}

/* The kernel gives the files of a process that has gained rights to root. */
static bool may_read(int fd, pid_t pid)
{
	char name[64], line[256];
	unsigned uid = 0;
	struct stat status;
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%d/status", pid);
	file = fopen(name, "re");
	while (file && fgets(line, sizeof(line), file) && sscanf(line, "Uid: %u", &uid) != 1)
		;
	if (!file)
		return false;
	fclose(file);
	return !fstat(fd, &status) && (status.st_uid || !uid);
}

bool process_rank_read(struct process_rank *rank, pid_t pid)
{
	char name[64], *text = malloc(ENVIRONMENT_MAX);
	size_t len = 0;
	ssize_t got = 1;
	int fd;

	*rank = (struct process_rank){.rank = PROCESS_RANK_NONE};
	snprintf(name, sizeof(name), "/proc/%d/environ", pid);
	fd = text ? open(name, O_RDONLY | O_CLOEXEC) : -1;
	while (fd >= 0 && may_read(fd, pid) && len < ENVIRONMENT_MAX &&
	       (got = read(fd, text + len, ENVIRONMENT_MAX - len)) > 0)
		len += (size_t)got;
	if (fd >= 0)
		close(fd);
	if (len)
		process_rank_parse(rank, text, len);
	free(text);
	return rank->rank != PROCESS_RANK_NONE;
}
