// SPDX-License-Identifier: Apache-2.0
#include "target/process/rank.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

/* A longer environment is read up to here. Launchers add far less, and a capture reads that of each
 * process that starts. */
#define ENVIRONMENT_MAX (128u << 10)
#define RANKS_MAX (1u << 24) /* no job has more */

enum variable {
	VARIABLE_NONE,
	RANK,
	WORLD_SIZE,
	TORCHELASTIC_RUN_ID,
	OMPI_COMM_WORLD_RANK,
	OMPI_COMM_WORLD_SIZE,
	PMIX_NAMESPACE,
	PMI_RANK,
	PMI_SIZE,
	SLURM_PROCID,
	SLURM_NTASKS,
	SLURM_JOB_ID,
	VARIABLE_COUNT
};

static const struct variable_name {
	const char *text;
	size_t len;
} variable_names[VARIABLE_COUNT] = {
#define NAME(name) [name] = {#name, sizeof(#name) - 1}
	NAME(RANK),
	NAME(WORLD_SIZE),
	NAME(TORCHELASTIC_RUN_ID),
	NAME(OMPI_COMM_WORLD_RANK),
	NAME(OMPI_COMM_WORLD_SIZE),
	NAME(PMIX_NAMESPACE),
	NAME(PMI_RANK),
	NAME(PMI_SIZE),
	NAME(SLURM_PROCID),
	NAME(SLURM_NTASKS),
	NAME(SLURM_JOB_ID),
#undef NAME
};

struct launcher {
	const char *name; /* in front of the number of the job */
	enum variable rank, size, job;
	bool wants_job; /* without a job the variables are not this launcher's */
};

/* The first one that matches counts. mpirun and torchrun may run under Slurm, whose variables they
 * pass on. They are then those of the node's launcher. */
static const struct launcher launchers[] = {
	{"torchrun", RANK, WORLD_SIZE, TORCHELASTIC_RUN_ID, true},
	{"openmpi", OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE, PMIX_NAMESPACE, false},
	{"pmi", PMI_RANK, PMI_SIZE, VARIABLE_NONE, false},
	{"env", RANK, WORLD_SIZE, VARIABLE_NONE, false},
	{"slurm", SLURM_PROCID, SLURM_NTASKS, SLURM_JOB_ID, false},
};

/* Finds the value of a string such as "RANK=3" among `values`. Of two with one name, the first
 * counts. */
static void value_keep(const char *values[VARIABLE_COUNT], const char *text, size_t len)
{
	for (unsigned i = 1; i < VARIABLE_COUNT; i++) {
		const struct variable_name *name = &variable_names[i];

		if (*text == *name->text && len > name->len && text[name->len] == '=' &&
		    !memcmp(text, name->text, name->len)) {
			if (!values[i])
				values[i] = text + name->len + 1;
			return;
		}
	}
}

/* Only strings that end within `bytes` are looked at. */
static void values_find(const char *values[VARIABLE_COUNT], const char *environment, size_t bytes)
{
	const char *end = environment + bytes, *next;

	for (const char *at = environment;
	     at < end && (next = memchr(at, '\0', (size_t)(end - at))); at = next + 1)
		value_keep(values, at, (size_t)(next - at));
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
	const char *values[VARIABLE_COUNT] = {NULL};

	values_find(values, environment, bytes);
	for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
		const struct launcher *launcher = &launchers[i];
		const char *job = values[launcher->job];

		*rank = (struct process_rank){.rank = PROCESS_RANK_NONE};
		if ((launcher->wants_job && !job) || !number(values[launcher->rank], &rank->rank) ||
		    !number(values[launcher->size], &rank->world_size) ||
		    rank->rank >= rank->world_size)
			continue;
		if (is_job(job))
			snprintf(rank->job, sizeof(rank->job), "%s:%s", launcher->name, job);
		return true;
	}
	*rank = (struct process_rank){.rank = PROCESS_RANK_NONE};
	return false;
}

/* The pairs of the auxiliary vector have 8 bytes a number, or 4 in a 32-bit process. Types are
 * small numbers, so one of the two layouts has none that is too large. */
#define AUXV_TYPE_MAX 1024

static uint64_t auxv_number(const unsigned char *at, size_t size)
{
	uint32_t narrow;
	uint64_t wide;

	memcpy(&narrow, at, sizeof(narrow));
	if (size == sizeof(narrow))
		return narrow;
	memcpy(&wide, at, sizeof(wide));
	return wide;
}

/* 1: the program gained rights; 0: it did not; -1: this is not the layout. */
static int auxv_secure(const unsigned char *auxv, size_t bytes, size_t size)
{
	int secure = -1;

	for (size_t at = 0; at + 2 * size <= bytes; at += 2 * size) {
		uint64_t type = auxv_number(auxv + at, size);

		if (type == AT_NULL)
			return secure;
		if (type > AUXV_TYPE_MAX)
			return -1;
		if (type == AT_SECURE)
			secure = auxv_number(auxv + at + size, size) != 0;
	}
	return -1;
}

/* Whether the program that a process runs gained rights when it was started. That stays true after
 * setuid(0), when the user ids no longer show it. */
static bool has_gained(pid_t pid)
{
	unsigned char auxv[4096];
	char name[64];
	ssize_t bytes;
	int fd, secure;

	snprintf(name, sizeof(name), "/proc/%d/auxv", pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	bytes = fd < 0 ? -1 : read(fd, auxv, sizeof(auxv));
	if (fd >= 0)
		close(fd);
	if (bytes <= 0)
		return true;
	secure = auxv_secure(auxv, (size_t)bytes, 8);
	if (secure < 0)
		secure = auxv_secure(auxv, (size_t)bytes, 4);
	return secure != 0;
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
	return !fstat(fd, &status) && (status.st_uid || !uid) && !has_gained(pid);
}

bool process_rank_read(struct process_rank *rank, pid_t pid)
{
	char name[64], *text = malloc(ENVIRONMENT_MAX);
	size_t len = 0;
	ssize_t got = 1;
	bool allowed;
	int fd;

	*rank = (struct process_rank){.rank = PROCESS_RANK_NONE};
	snprintf(name, sizeof(name), "/proc/%d/environ", pid);
	fd = text ? open(name, O_RDONLY | O_CLOEXEC) : -1;
	allowed = fd >= 0 && may_read(fd, pid);
	while (allowed && len < ENVIRONMENT_MAX &&
	       (got = read(fd, text + len, ENVIRONMENT_MAX - len)) > 0)
		len += (size_t)got;
	if (fd >= 0)
		close(fd);
	if (len)
		process_rank_parse(rank, text, len);
	free(text);
	return rank->rank != PROCESS_RANK_NONE;
}
