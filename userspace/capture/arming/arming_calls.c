// SPDX-License-Identifier: Apache-2.0
/* Arms calls: announces each to the kernel and the capture beforehand. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/arming/arming_internal.h"
#include "capture/enrich/code_names.h"
#include "capture/redact.h"

int arming_register(struct arming *arming, const struct site_info *site,
		    const struct waffle_fetch_program *fetch_program, struct error *err)
{
	struct arming_site row = {.info = site, .original = site, .number = WAFFLE_SITE_UNKNOWN};
	struct redaction *redaction = arming->options->redaction;

	if (redaction)
		row.redacted = redact_keys(redaction, site);
	if (row.redacted) {
		row.kept = malloc(sizeof(*row.kept));
		if (!row.kept)
			return error_set(err, ENOMEM, "out of memory");
		redact_site(row.kept, site, row.redacted);
		row.info = row.kept;
	}
	row.concerns = fetch_program && code_names_concern(row.info);
	if (vec_push(&arming->sites, row))
		return 0;
	free(row.kept);
	return error_set(err, ENOMEM, "out of memory");
}

int arming_announce(struct arming *arming, uint32_t first, size_t count, struct error *err)
{
	for (size_t i = 0; i < count; i++) {
		struct arming_site *row = &arming->sites.data[first + i];
		struct error problem = ERROR_INIT;
		int result = store_writer_add_site(arming->writer, row->info, &problem);

		if (result && result != -E2BIG)
			return error_set(err, -result, "%s", problem.message);
		if (result) {
			/* Its hits count as lost. */
			if (!arming->warning[0])
				snprintf(arming->warning, sizeof(arming->warning),
					 "%s; it is not recorded", problem.message);
			continue;
		}
		row->number = (uint32_t)arming->announced++;
		arming->concerns_functions |= row->concerns;
	}
	return 0;
}

uint32_t arming_add_name(struct arming *arming, const struct site_info *site)
{
	uint32_t number = (uint32_t)arming->sites.len;
	struct error ignored = ERROR_INIT;

	/* An error of the writer is found with its next record. */
	if (arming_register(arming, site, NULL, &ignored))
		return WAFFLE_SITE_UNKNOWN;
	arming_announce(arming, number, 1, &ignored);
	return arming->sites.data[number].number == WAFFLE_SITE_UNKNOWN ? WAFFLE_SITE_UNKNOWN
									: number;
}

int arming_classes(struct arming *arming, struct error *err)
{
	struct plan *plan = arming->plan;
	int result = 0;

	for (uint32_t i = kernel_class_count(arming->kernel);
	     !result && !plan->is_static && i < plan->classes.len; i++)
		result = kernel_class_load(arming->kernel, i, &plan->classes.data[i], err);
	return result;
}

static int enums_set(struct arming *arming)
{
	uint32_t count;
	const struct waffle_enum *enums = call_set_enums(arming->options->calls, &count);

	return kernel_enums_set(arming->kernel, enums, count);
}

static int fetch_programs_failed(int code, struct error *err)
{
	return error_set(err, -code, "loading descriptions of calls into the kernel: %s",
			 strerror(-code));
}

/* Marks a site that cannot be armed, regardless of the plan. */
static int site_leave_dormant(struct armed_file *file, uint32_t site)
{
	size_t count = file->object->sites.len;

	if (!file->uses) {
		file->uses = calloc(count, sizeof(*file->uses));
		if (!file->uses)
			return -ENOMEM;
		for (size_t i = 0; i < count; i++)
			file->uses[i].use = PLAN_MATCHES;
	}
	file->uses[site].use = PLAN_DORMANT;
	return 0;
}

int arming_fetch_programs(struct arming *arming, struct armed_file *file, struct error *err)
{
	struct object *object = file->object;
	int result = object->calls.len ? enums_set(arming) : 0;

	for (size_t i = 0; !result && i < object->calls.len; i++) {
		const struct object_call *call = &object->calls.data[i];

		/* The end of a pair is always armed. It only ends what the begin has recorded. */
		if (file->uses && file->uses[call->site].use == PLAN_DORMANT &&
		    !(call->fetch_program.flags & WAFFLE_CALL_END))
			continue;
		result = kernel_fetch_program_set(arming->kernel, file->first_site + call->site,
						  &call->fetch_program);
		if (result != -E2BIG)
			continue;
		if (!arming->warning[0])
			snprintf(arming->warning, sizeof(arming->warning),
				 "%s: some calls are not recorded: there are more than %d",
				 object->path, WAFFLE_FETCH_PROGRAMS_MAX);
		result = site_leave_dormant(file, call->site);
	}
	return result ? fetch_programs_failed(result, err) : 0;
}

/* Whether a mapping has this byte of the file as code. */
static bool mapping_has(const struct mapping *mapping, const struct armed_file *file,
			uint64_t offset)
{
	return mapping->executable && mapping->ino == file->ino && offset >= mapping->offset &&
	       offset - mapping->offset < mapping->end - mapping->start;
}

/* Number of the file's probes that lie in none of the process's mappings. */
static size_t probes_moved(const struct mappings *mappings, const struct armed_file *file)
{
	size_t count = file->object ? file->object->probes.len : 0, moved = 0, at = 0;

	for (size_t k = 0; k < count; k++) {
		uint64_t offset = file->object->probes.data[k].offset;

		/* Usually the same mapping as for the previous probe has it. */
		if (at < mappings->list.len && mapping_has(&mappings->list.data[at], file, offset))
			continue;
		for (at = 0; at < mappings->list.len; at++)
			if (mapping_has(&mappings->list.data[at], file, offset))
				break;
		moved += at == mappings->list.len;
	}
	return moved;
}

void arming_warn_moved(struct arming *arming, const struct arming_process *process,
		       const struct mappings *mappings)
{
	for (size_t i = 0; i < process->files.list.len && !arming->warning[0]; i++) {
		const struct armed_file *file = &arming->files.data[process->files.list.data[i]];
		size_t moved = probes_moved(mappings, file);

		if (moved)
			snprintf(arming->warning, sizeof(arming->warning),
				 "pid %d: %zu of %zu probes of %s see nothing: the process has "
				 "replaced the file's pages there, as programs do that copy their "
				 "code to huge pages; switch that off in the program",
				 process->pid, moved, file->object->probes.len, file->object->path);
	}
}

/* If a tracepoint cannot be attached, this is a warning, as for a file that cannot be armed. */
static int tracepoint_arm(struct arming *arming, const struct call_tracepoint *tracepoint,
			  uint32_t number, const struct arm_use *use, struct error *err)
{
	struct waffle_fetch_program fetch_program = tracepoint->fetch_program;
	int result;

	if (stack_choice_has(arming->options->stacks, &tracepoint->site))
		fetch_program.flags |= WAFFLE_CALL_STACK;
	result = kernel_fetch_program_set(arming->kernel, number, &fetch_program);
	if (result)
		return fetch_programs_failed(result, err);
	result = kernel_tracepoint_attach(arming->kernel, tracepoint->id, number, use);
	if (!result)
		armed_count(&arming->counts, &tracepoint->site);
	else if (!arming->warning[0])
		snprintf(arming->warning, sizeof(arming->warning), "tracepoint %s: %s",
			 tracepoint->name, strerror(-result));
	return 0;
}

int arming_tracepoints(struct arming *arming, struct error *err)
{
	const struct call_tracepoint *list = NULL;
	size_t count = 0;
	int result = 0;

	if (arming->options->calls)
		count = call_set_tracepoints(arming->options->calls, &list);
	if (count)
		result = enums_set(arming);
	if (result)
		return fetch_programs_failed(result, err);
	for (size_t i = 0; !result && i < count; i++) {
		uint32_t number = (uint32_t)arming->sites.len;
		struct arm_use use = {.use = PLAN_MATCHES};

		result = arming_register(arming, &list[i].site, &list[i].fetch_program, err)
				 ?: arming_announce(arming, number, 1, err);
		if (!result && arming->plan)
			result = plan_site(arming->plan, &list[i].site, &use.use, &use.class, err)
					 ?: arming_classes(arming, err);
		arming->matching += use.use == PLAN_MATCHES;
		if (result || use.use == PLAN_DORMANT)
			continue;
		result = tracepoint_arm(arming, &list[i], number, arming->plan ? &use : NULL, err);
	}
	return result;
}
