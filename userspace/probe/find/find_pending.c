// SPDX-License-Identifier: Apache-2.0
/* Stores the search results of each file. They count at once, or when a process maps the file. */
#include <stdlib.h>
#include <string.h>

#include "probe/spec/call_set.h"

/* The states of all descriptions after searching one file. */
struct call_pending {
	size_t count;
	struct spec_state states[];
};

static bool library_add(struct call_set *set, const struct set_entry *entry, const char *name)
{
	const struct set_group *group = &set->groups.data[entry->spec.group];
	struct call_library *library = NULL;

	for (size_t i = 0; i < set->libraries.len && !library; i++)
		if (!strcmp(set->libraries.data[i].name, name))
			library = &set->libraries.data[i];
	if (!library) {
		if (!vec_push(&set->libraries, (struct call_library){.name = name}))
			return false;
		library = &set->libraries.data[set->libraries.len - 1];
	}
	library->asked |= !entry->spec.quiet;
	library->table |= group->table;
	return true;
}

static bool libraries_add(struct call_set *set, const struct set_entry *entry)
{
	const struct spec_names *libs = &entry->spec.libs;

	for (unsigned i = 0; entry->spec.type != SPEC_TRACEPOINT && i < libs->count; i++)
		if (!libs->list[i].glob && strcmp(libs->list[i].text, "exe") != 0 &&
		    !library_add(set, entry, libs->list[i].text))
			return false;
	return true;
}

size_t call_set_libraries(struct call_set *set, const struct call_library **list)
{
	bool made = set->libraries.len;

	for (size_t i = 0; !made && i < set->entries.len; i++)
		if (!libraries_add(set, set->entries.data[i]))
			break; /* out of memory: the list is incomplete */
	*list = set->libraries.data;
	return set->libraries.len;
}

bool call_library_is(const struct call_library *library, const char *path)
{
	return set_name_is(library->name, path);
}

static void states_swap(struct call_set *set, struct call_pending *pending)
{
	for (size_t i = 0; i < pending->count; i++) {
		struct spec_state *state = &set->entries.data[i]->state, other = *state;

		*state = pending->states[i];
		pending->states[i] = other;
	}
}

/* Searches a file with blank states, as if it was the first one. */
static int find_apart(struct call_set *set, struct object *object, int fd,
		      struct call_pending **found, struct error *err)
{
	size_t count = set->entries.len;
	struct call_pending *made = calloc(1, sizeof(*made) + count * sizeof(made->states[0]));
	int result;

	*found = NULL;
	if (!made)
		return error_set(err, ENOMEM, "out of memory");
	made->count = count;
	states_swap(set, made);
	result = find_alone(set, object, fd, err);
	states_swap(set, made);
	if (result)
		call_pending_free(made);
	else
		*found = made;
	return result;
}

int call_set_find(struct call_set *set, struct object *object, int fd, struct error *err)
{
	struct call_pending *found;
	int result = 0;

	if (!call_set_wants(set, object->path))
		return 0;
	result = find_apart(set, object, fd, &found, err);
	if (!result)
		call_set_mapped(set, found);
	if (!result)
		call_pending_free(found);
	return result;
}

int call_set_find_pending(struct call_set *set, struct object *object, int fd,
			  struct call_pending **pending, struct error *err)
{
	const char *stripped[SET_INSIDES];
	uint32_t calls = set->calls;
	struct call_pending *made;
	int result;

	*pending = NULL;
	if (!call_set_wants(set, object->path))
		return 0;
	memcpy(stripped, set->stripped, sizeof(stripped));
	result = find_apart(set, object, fd, &made, err);
	memcpy(set->stripped, stripped, sizeof(stripped));
	if (result)
		return result;
	if (set->calls > WAFFLE_FETCH_PROGRAMS_MAX / 2)
		result = error_set(err, E2BIG, "%s: too many calls to look for them ahead",
				   object->path);
	if (result) {
		set->calls = calls;
		call_pending_free(made);
		return result;
	}
	for (size_t i = 0; i < made->count; i++)
		if (made->states[i].found)
			set->entries.data[i]->state.pending = made->states[i].looked;
	*pending = made;
	return 0;
}

static void named_add(struct set_named *named, const struct set_named *more)
{
	named->matched |= more->matched;
	named->ifunc |= more->ifunc;
	if (!named->similar.count)
		named->similar = more->similar;
}

/* Adds the results of one more file. */
static void state_add(struct spec_state *state, const struct spec_state *more)
{
	if (!more->looked && !more->found)
		return;
	state->found += more->found;
	if (more->found || state->found == more->found) {
		state->looked = more->looked;
		state->stripped = more->stripped;
	}
	state->provider |= more->provider;
	state->probed += more->probed;
	if (!state->trouble)
		state->trouble = more->trouble;
	if (!state->refusal)
		state->refusal = more->refusal;
	if (!state->providers.count)
		state->providers = more->providers;
	for (unsigned side = 0; side < 2; side++)
		for (unsigned i = 0; i < SPEC_NAMES_MAX; i++)
			named_add(&state->names[side][i], &more->names[side][i]);
}

void call_set_mapped(struct call_set *set, const struct call_pending *pending)
{
	for (size_t i = 0; i < pending->count; i++)
		state_add(&set->entries.data[i]->state, &pending->states[i]);
}

void call_pending_free(struct call_pending *pending)
{
	free(pending);
}
