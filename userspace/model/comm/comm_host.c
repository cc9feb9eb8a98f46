// SPDX-License-Identifier: Apache-2.0
/* The hosts and jobs of processes. */
#include <string.h>

#include "model/comm/comm_internal.h"
#include "util/hash.h"

/* No process has more ancestors than this. */
#define ANCESTORS_MAX 64

uint32_t comm_host(const struct model *model, uint32_t pid)
{
	uint32_t host = store_pid_host(pid);

	return host < model->host_count ? host : 0;
}

bool comm_hosts_comparable(const struct model *model, uint32_t host, uint32_t other)
{
	return model_hosts_comparable(model, host, other);
}

const struct model_process *comm_process(const struct model *model, uint32_t pid)
{
	uint32_t index = map_get(&model->pids, pid);

	return index < model->processes.len ? &model->processes.data[index] : NULL;
}

/* Whether a process starts the ranks of a job: mpirun and what it starts on each host. */
static bool is_launcher(const struct model *model, const struct model_process *process)
{
	static const char *const names[] = {
		"mpirun", "mpiexec", "orterun",         "prterun",
		"prted",  "orted",   "hydra_pmi_proxy", "hydra_bstrap_proxy",
	};
	const char *line = strtab_get(model->strings, process->cmdline);
	size_t len = strcspn(line, " ");
	const char *base = memrchr(line, '/', len);

	if (base) {
		len -= (size_t)(base + 1 - line);
		line = base + 1;
	}
	/* There are names such as mpirun.openmpi. */
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(line, names[i], strlen(names[i])) &&
		    (len == strlen(names[i]) || line[strlen(names[i])] == '.'))
			return true;
	return false;
}

struct comm_job comm_job(const struct model *model, uint32_t pid)
{
	const struct model_process *process = comm_process(model, pid);
	struct comm_job job = {.name = process ? process->job : 0};

	/* Two jobs of MPICH have no names, but perhaps different sizes. */
	if (process && !job.name)
		job.world_size = process->world_size;
	/* Each host has its own launcher. Of several launchers the farthest ancestor counts, since
	 * one may start another. */
	for (unsigned i = 0; process && model->host_count == 1 && i < ANCESTORS_MAX; i++) {
		if (is_launcher(model, process))
			job.launcher = process->pid;
		process = comm_process(model, process->ppid);
	}
	return job;
}

uint64_t comm_job_hash(const struct model *model, struct comm_job job)
{
	uint64_t hash = hash_text(HASH_BEGIN, strtab_get(model->strings, job.name));

	return hash_bytes(hash, &job.launcher, sizeof(job.launcher));
}
