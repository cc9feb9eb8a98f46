// SPDX-License-Identifier: Apache-2.0
/* The hosts and jobs of processes. Until a model has several hosts, all its processes are on one.
 */
#include <string.h>

#include "model/comm/comm_internal.h"

/* No process has more ancestors than this. */
#define ANCESTORS_MAX 64

uint32_t comm_host(const struct model *model, uint32_t pid)
{
	(void)model;
	(void)pid;
	return 0;
}

bool comm_hosts_comparable(const struct model *model, uint32_t host, uint32_t other)
{
	(void)model;
	return host == other;
}

static const struct model_process *process_of(const struct model *model, uint32_t pid)
{
	for (size_t i = 0; i < model->processes.len; i++)
		if (model->processes.data[i].pid == pid)
			return &model->processes.data[i];
	return NULL;
}

/* Whether a process starts the ranks of a job: mpirun and what it starts on each host. */
static bool is_launcher(const struct model *model, const struct model_process *process)
{
	static const char *const names[] = {
		"mpirun",       "mpiexec", "orterun",         "prterun",
		"prted",        "orted",   "hydra_pmi_proxy", "hydra_bstrap_proxy",
		"mpiexec.hydra"};
	const char *line = strtab_get(model->strings, process->cmdline);
	size_t len = strcspn(line, " ");
	const char *base = memrchr(line, '/', len);

	if (base) {
		len -= (size_t)(base + 1 - line);
		line = base + 1;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(line, names[i], strlen(names[i])) &&
		    (len == strlen(names[i]) || line[strlen(names[i])] == '.'))
			return true;
	return false;
}

uint64_t comm_job(const struct model *model, uint32_t pid)
{
	const struct model_process *process = process_of(model, pid);
	uint64_t job = 0;

	/* The launcher that is the farthest ancestor: one may start another. */
	for (unsigned i = 0; process && i < ANCESTORS_MAX; i++) {
		if (is_launcher(model, process))
			job = process->pid;
		process = process_of(model, process->ppid);
	}
	return job;
}
