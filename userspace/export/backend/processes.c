// SPDX-License-Identifier: Apache-2.0
#include "export/backend/processes_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/process/otlp_traces.h"
#include "util/memory.h"

#define ATTRIBUTES_MAX 13

struct process_entry {
	struct waffle_value values[ATTRIBUTES_MAX];
	size_t count;
	char instance[300], executable[128];
};

struct process_facts {
	const struct model *model;
	/* By the index of the process in the model; the last one is for unknown processes. Made
	 * when they are first asked for. */
	struct process_entry **entries;
};

void attribute_text(struct attribute_list *list, const char *key, const char *text)
{
	if (text && *text && list->count < list->max)
		list->values[list->count++] = (struct waffle_value){.key = key,
								    .type = WAFFLE_VALUE_TEXT,
								    .text = text,
								    .text_len = strlen(text)};
}

void attribute_number(struct attribute_list *list, const char *key, uint64_t value)
{
	if (list->count < list->max)
		list->values[list->count++] = (struct waffle_value){
			.key = key, .type = WAFFLE_VALUE_U64, .u64 = value, .text = ""};
}

void attribute_flag(struct attribute_list *list, const char *key, bool value)
{
	if (value && list->count < list->max)
		list->values[list->count++] = (struct waffle_value){
			.key = key, .type = WAFFLE_VALUE_BOOL, .u64 = 1, .text = ""};
}

/* The last part of the program's path. The arguments are left out: they may have secrets, and a
 * server has more readers than a capture. */
static void executable_name(char *name, size_t bytes, const char *cmdline)
{
	size_t len = strcspn(cmdline, " ");
	const char *slash = memrchr(cmdline, '/', len);

	if (slash) {
		len -= (size_t)(slash + 1 - cmdline);
		cmdline = slash + 1;
	}
	snprintf(name, bytes, "%.*s", (int)len, cmdline);
}

static void job_attributes(struct attribute_list *list, const struct model *model,
			   const struct model_process *process)
{
	if (process->rank != MODEL_NONE)
		attribute_number(list, "waffle.rank", process->rank);
	if (process->world_size)
		attribute_number(list, "waffle.world_size", process->world_size);
	attribute_text(list, "waffle.job", strtab_get(model->strings, process->job));
	attribute_text(list, STORE_CONTAINER_ID, strtab_get(model->strings, process->container));
}

static struct process_entry *entry_make(const struct model *model, uint32_t thread,
					const struct model_process *process)
{
	struct process_entry *entry = memory_zeroed(1, sizeof(*entry));
	struct attribute_list list = {entry->values, 0, ATTRIBUTES_MAX};
	const struct store_host *host = model->hosts[model_host_of(model, thread)];

	attribute_text(&list, "host.name", host->name);
	attribute_text(&list, "host.arch", otlp_arch_name(host->machine));
	attribute_text(&list, "os.type", "linux");
	attribute_text(&list, "os.version", host->kernel);
	attribute_flag(&list, "waffle.simulated", model_simulated(model));
	if (process) {
		uint32_t pid = model_pid_real(model, process->pid);

		snprintf(entry->instance, sizeof(entry->instance), "%s:%u", host->name, pid);
		attribute_text(&list, "service.instance.id", entry->instance);
		attribute_number(&list, "process.pid", pid);
		if (process->ppid)
			attribute_number(&list, "process.parent_pid",
					 model_pid_real(model, process->ppid));
		executable_name(entry->executable, sizeof(entry->executable),
				strtab_get(model->strings, process->cmdline));
		attribute_text(&list, "process.executable.name", entry->executable);
		job_attributes(&list, model, process);
	}
	entry->count = list.count;
	return entry;
}

struct process_facts *process_facts_open(const struct model *model)
{
	struct process_facts *facts = memory_zeroed(1, sizeof(*facts));

	facts->model = model;
	facts->entries = memory_zeroed(model->processes.len + 1, sizeof(*facts->entries));
	return facts;
}

void process_facts_close(struct process_facts *facts)
{
	for (size_t i = 0; i <= facts->model->processes.len; i++)
		free(facts->entries[i]);
	free(facts->entries);
	free(facts);
}

const struct waffle_value *process_facts_of(struct process_facts *facts, uint32_t thread,
					    size_t *count)
{
	const struct model_process *process = model_process_of(facts->model, thread);
	size_t index = process ? (size_t)(process - facts->model->processes.data)
			       : facts->model->processes.len;

	if (!facts->entries[index])
		facts->entries[index] = entry_make(facts->model, thread, process);
	*count = facts->entries[index]->count;
	return facts->entries[index]->values;
}
