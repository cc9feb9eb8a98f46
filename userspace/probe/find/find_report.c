// SPDX-License-Identifier: Apache-2.0
/* Reports functions that were found but cannot be probed as described. */
#include "probe/find/find_internal.h"
#include "util/units.h"

#include <stdio.h>
#include <string.h>

#define ARGUMENT_BYTES (sizeof(struct source_shown) + 40)

void find_trouble(struct find *find, struct set_entry *entry, const struct error *err)
{
	if (!entry->state.trouble)
		entry->state.trouble = set_keep(find->set, err->message);
}

void find_refused(struct set_entry *entry, const char *name)
{
	if (!entry->state.refused.count++)
		entry->state.refused.first = name;
}

void find_endless(struct find *find, const struct find_hit *hit, const struct call_spec *spec)
{
	struct spec_state *state = &find->set->entries.data[hit->entry]->state;

	if (!state->endless.count++)
		state->endless.first = hit->name;
	state->endless_could |= !(spec->flags & WAFFLE_CALL_NOUNWIND) && !find->go &&
				cfi_index_stack(find->frames, hit->address) != CFI_STACK_NONE;
}

/* Only the first of several functions is named, since all names might fill a page. */
static void report_endless(struct find *find, struct set_entry *entry)
{
	struct spec_state *state = &entry->state;
	bool many = state->endless.count > 1;
	struct error problem = ERROR_INIT;
	char others[UNITS_TEXT];

	error_set(&problem, ENOTSUP,
		  "%s: %s%s of %s %s recorded when %s only: where %s not known%s%s",
		  entry->spec.source.origin, state->endless.first,
		  units_format_more(others, state->endless.count - 1), find->object->path,
		  many ? "are" : "is", many ? "they begin" : "it begins",
		  many ? "they end is" : "it ends is",
		  find->go ? ", as Go moves calls from thread to thread" : " for certain",
		  state->endless_could
			  ? "; 'nounwind' takes a return probe: add it if no exception "
			    "and no pthread_cancel() passes them"
			  : "");
	find_trouble(find, entry, &problem);
}

static void report_refused(struct find *find, struct set_entry *entry)
{
	static const char *const at[][2] = {
		[SPEC_UPROBE] = {"the instruction that it begins with, or a loop begins there",
				 "the instructions that they begin with, or a loop begins there"},
		[SPEC_USDT] = {"the instruction that it stands on; describe the function around "
			       "it ('uprobe:')",
			       "the instructions that they stand on; describe the functions around "
			       "them ('uprobe:')"},
	};
	struct spec_state *state = &entry->state;
	struct error problem = ERROR_INIT;
	char others[UNITS_TEXT];

	error_set(&problem, ENOTSUP, "%s: %s%s of %s can't be probed: no probe is right at %s%s",
		  entry->spec.source.origin, state->refused.first,
		  units_format_more(others, state->refused.count - 1), find->object->path,
		  at[entry->spec.type][state->refused.count > 1],
		  state->probed && !state->no_room.count
			  ? "; all others that are described are probed"
			  : "");
	if (!state->refusal)
		state->refusal = set_keep(find->set, problem.message);
	if (!state->probed)
		state->found = 0;
}

void find_no_room(struct set_entry *entry, const char *name)
{
	if (!entry->state.no_room.count++)
		entry->state.no_room.first = name;
}

void find_unread(struct find *find, struct set_entry *entry, unsigned number, const char *name,
		 const char *why)
{
	struct spec_state *state = &entry->state;
	char first[ARGUMENT_BYTES];

	if (state->unread.count++)
		return;
	snprintf(first, sizeof(first), "argument %u of %s", number,
		 source_show(name, strlen(name)).text);
	state->unread.first = set_keep(find->set, first);
	state->unread.why = why;
}

static void report_unread(struct find *find, struct set_entry *entry)
{
	struct spec_state *state = &entry->state;
	struct error problem = ERROR_INIT;
	char others[UNITS_TEXT];

	error_set(&problem, ENOTSUP, "%s: %s%s of %s %s left out: %s%s", entry->spec.source.origin,
		  state->unread.first, units_format_more(others, state->unread.count - 1),
		  find->object->path, state->unread.count > 1 ? "are" : "is",
		  state->unread.count > 1 ? "the first one " : "it ", state->unread.why);
	find_trouble(find, entry, &problem);
}

static void report_no_room(struct find *find, struct set_entry *entry)
{
	struct spec_state *state = &entry->state;
	struct error problem = ERROR_INIT;
	char others[UNITS_TEXT];

	error_set(&problem, E2BIG,
		  "%s: %s%s of %s %s not probed: there is room for %d calls in all; use narrower "
		  "patterns",
		  entry->spec.source.origin, state->no_room.first,
		  units_format_more(others, state->no_room.count - 1), find->object->path,
		  state->no_room.count > 1 ? "are" : "is", WAFFLE_FETCH_PROGRAMS_MAX);
	find_trouble(find, entry, &problem);
}

void find_report(struct find *find)
{
	for (size_t i = 0; i < find->wanted.len; i++) {
		struct set_entry *entry = find->set->entries.data[find->wanted.data[i]];
		struct spec_state *state = &entry->state;

		if (state->no_room.count)
			report_no_room(find, entry);
		if (state->endless.count)
			report_endless(find, entry);
		if (state->refused.count)
			report_refused(find, entry);
		if (state->unread.count)
			report_unread(find, entry);
		state->no_room.count = state->endless.count = state->refused.count = 0;
		state->unread.count = 0;
		state->endless_could = false;
	}
}
