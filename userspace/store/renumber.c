// SPDX-License-Identifier: Apache-2.0
#include "store/renumber_internal.h"

#include <string.h>

#include "store/record_schema.h"
#include "util/search.h"

static bool clock_runs_alike(const struct store_clock *clock)
{
	return !clock->offset_ns && clock->drift == 0;
}

/* 0 is no time. */
static uint64_t time_of(const struct renumber *renumber, uint64_t ts)
{
	uint64_t corrected;

	if (!ts || clock_runs_alike(renumber->clock))
		return ts;
	corrected = store_clock_apply(renumber->clock, ts);
	return corrected ? corrected : 1;
}

static uint32_t pid_of(const struct renumber *renumber, uint32_t pid)
{
	return store_pid_of(renumber->host, store_pid_real(pid));
}

static uint32_t number_of(uint32_t base, uint32_t number)
{
	return number && number <= UINT32_MAX - base ? base + number : 0;
}

static uint32_t site_of(const struct renumber *renumber, uint32_t site)
{
	return site < renumber->site_count ? renumber->sites[site] : WAFFLE_SITE_UNKNOWN;
}

/* A CPU that the host does not have gets the number behind its last one. */
static uint16_t cpu_of(const struct renumber *renumber, uint16_t cpu)
{
	uint32_t count = renumber->cpu_count;

	return (uint16_t)(renumber->cpu_base + (cpu < count ? cpu : count));
}

static void field_change(const struct renumber *renumber, const struct record_field *field,
			 void *at)
{
	uint32_t *number = at;
	uint64_t *word = at;

	switch (field->form) {
	case RECORD_TIME:
		*word = time_of(renumber, *word);
		break;
	case RECORD_PID:
		*number = pid_of(renumber, *number);
		break;
	case RECORD_SITE:
		*number = site_of(renumber, *number);
		break;
	case RECORD_STACK:
		*number = number_of(renumber->stack_base, *number);
		break;
	case RECORD_OBJECT:
		*number = number_of(renumber->object_base, *number);
		break;
	case RECORD_INODE:
		*word = store_ino_of(renumber->host, *word);
		break;
	default:
		break;
	}
}

uint64_t renumber_time(const struct renumber *renumber, uint64_t ts)
{
	return renumber->keeps_all || ts > RECORD_TS_MAX ? ts
							 : store_clock_apply(renumber->clock, ts);
}

void renumber_record(const struct renumber *renumber, struct waffle_rec *rec)
{
	const struct record_kind *kind = &record_kinds[rec->kind];

	if (renumber->keeps_all)
		return;
	rec->ts = time_of(renumber, rec->ts);
	rec->tid = pid_of(renumber, rec->tid);
	rec->cpu = cpu_of(renumber, rec->cpu);
	for (unsigned i = 0; i < kind->field_count; i++)
		field_change(renumber, &kind->fields[i], (char *)rec + kind->fields[i].offset);
}

/* ---- tables ---- */

static void stacks_change(const struct renumber *renumber, struct dictionary *dictionary)
{
	for (size_t i = 0; i < dictionary->stacks.len; i++) {
		struct store_stack *stack = &dictionary->stacks.data[i];
		uint64_t *addresses = (uint64_t *)(uintptr_t)stack->addresses;

		for (uint32_t at = 0; !stack->pid && at < stack->count; at++)
			addresses[at] = store_kernel_address_of(renumber->host, addresses[at]);
		stack->pid = pid_of(renumber, stack->pid);
	}
}

void renumber_tables(const struct renumber *renumber, struct dictionary *dictionary)
{
	if (renumber->keeps_all || !renumber->host)
		return;
	stacks_change(renumber, dictionary);
	for (size_t i = 0; i < dictionary->processes.len; i++) {
		struct store_process *process = &dictionary->processes.data[i];

		process->pid = pid_of(renumber, process->pid);
		process->ppid = pid_of(renumber, process->ppid);
	}
	for (size_t i = 0; i < dictionary->objects.len; i++) {
		struct store_object *object = &dictionary->objects.data[i];

		object->pid = pid_of(renumber, object->pid);
		object->ino = store_ino_of(renumber->host, object->ino);
	}
	for (size_t i = 0; i < dictionary->mappings.len; i++) {
		struct store_mapping *mapping = &dictionary->mappings.data[i];

		mapping->pid = pid_of(renumber, mapping->pid);
		mapping->ino = store_ino_of(renumber->host, mapping->ino);
	}
	for (size_t i = 0; i < dictionary->symbols.len; i++)
		dictionary->symbols.data[i].address = store_kernel_address_of(
			renumber->host, dictionary->symbols.data[i].address);
	for (size_t i = 0; i < dictionary->names.len; i++)
		dictionary->names.data[i].pid = pid_of(renumber, dictionary->names.data[i].pid);
	for (size_t i = 0; i < dictionary->ranks.len; i++)
		dictionary->ranks.data[i].pid = pid_of(renumber, dictionary->ranks.data[i].pid);
	for (size_t i = 0; i < dictionary->attributes.len; i++)
		dictionary->attributes.data[i].pid =
			pid_of(renumber, dictionary->attributes.data[i].pid);
	for (size_t i = 0; i < dictionary->transports.len; i++)
		dictionary->transports.data[i].pid =
			pid_of(renumber, dictionary->transports.data[i].pid);
}

/* Calls `each` for every time in the tables, always in the same order. */
static bool table_times(struct dictionary *dictionary, bool (*each)(uint64_t *ts, void *arg),
			void *arg)
{
	bool good = true;

	for (size_t i = 0; good && i < dictionary->processes.len; i++)
		good = each(&dictionary->processes.data[i].ts, arg);
	for (size_t i = 0; good && i < dictionary->mappings.len; i++)
		good = each(&dictionary->mappings.data[i].ts, arg);
	for (size_t i = 0; good && i < dictionary->names.len; i++)
		good = each(&dictionary->names.data[i].since, arg);
	for (size_t i = 0; good && i < dictionary->ranks.len; i++)
		good = each(&dictionary->ranks.data[i].ts, arg);
	for (size_t i = 0; good && i < dictionary->attributes.len; i++)
		good = each(&dictionary->attributes.data[i].ts, arg);
	for (size_t i = 0; good && i < dictionary->transports.len; i++)
		good = each(&dictionary->transports.data[i].ts, arg);
	return good;
}

static bool time_keep(uint64_t *ts, void *arg)
{
	kept_times *kept = arg;

	return vec_push(kept, *ts);
}

struct time_change {
	const struct renumber *renumber;
	const uint64_t *kept;
};

static bool time_change(uint64_t *ts, void *arg)
{
	struct time_change *change = arg;

	*ts = time_of(change->renumber, *change->kept++);
	return true;
}

bool renumber_table_times(const struct renumber *renumber, struct dictionary *dictionary,
			  kept_times *kept)
{
	struct time_change change = {.renumber = renumber};

	if (renumber->keeps_all || (!kept->len && clock_runs_alike(renumber->clock)))
		return true;
	if (!kept->len && !table_times(dictionary, time_keep, kept))
		return false;
	change.kept = kept->data;
	return table_times(dictionary, time_change, &change);
}

/* ---- windows ---- */

/* The first time of the file that is at or after `ts` in the job. */
static uint64_t time_from(const struct renumber *renumber, uint64_t ts)
{
	return lower_bound((uint64_t)RECORD_TS_MAX, i, store_clock_apply(renumber->clock, i) < ts);
}

struct store_window renumber_window(const struct renumber *renumber, struct store_window window)
{
	if (renumber->keeps_all || clock_runs_alike(renumber->clock))
		return window;
	if (window.from_ts)
		window.from_ts = time_from(renumber, window.from_ts);
	if (window.to_ts < RECORD_TS_MAX) {
		uint64_t behind = time_from(renumber, window.to_ts + 1);

		window.to_ts = behind ? behind - 1 : 0;
	}
	return window;
}
