// SPDX-License-Identifier: Apache-2.0
#include "probe/spec/call_set.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/find/tracepoint.h"
#include "probe/spec/builtin_specs_internal.h"
#include "util/input.h"

int call_set_open(struct call_set **set, struct error *err)
{
	struct call_set *made = calloc(1, sizeof(*made));

	*set = NULL;
	if (made)
		made->tables.strings = strtab_new();
	if (!made || !made->tables.strings) {
		free(made);
		return error_set(err, ENOMEM, "out of memory");
	}
	made->kernel = probe_site_kernel_running();
	*set = made;
	return 0;
}

void call_set_free(struct call_set *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < set->entries.len; i++)
		spec_free(&set->entries.data[i]->spec);
	for (size_t i = 0; i < set->blocks.len; i++)
		free(set->blocks.data[i]);
	vec_free(&set->entries);
	vec_free(&set->blocks);
	vec_free(&set->names);
	vec_free(&set->groups);
	vec_free(&set->libraries);
	vec_free(&set->tracepoints);
	vec_free(&set->tables.enums);
	vec_free(&set->tables.enum_names);
	vec_free(&set->tables.sequences);
	keymap_free(&set->heads);
	strtab_free(set->tables.strings);
	free(set);
}

bool call_set_wants_stacks(const struct call_set *set)
{
	for (size_t i = 0; i < set->entries.len; i++)
		if (set->entries.data[i]->spec.flags & WAFFLE_CALL_STACK)
			return true;
	return false;
}

static int index_names(struct call_set *set, uint32_t entry, struct error *err)
{
	const struct call_spec *spec = &set->entries.data[entry]->spec;

	if (spec->type != SPEC_UPROBE)
		return 0;
	for (uint8_t side = 0; side < 1 + spec->pair; side++)
		for (uint8_t i = 0; i < spec->sides[side].names.count; i++) {
			const struct spec_pattern *pattern = &spec->sides[side].names.list[i];
			size_t len = strlen(pattern->text);
			struct set_name name = {
				.which = {entry, side, i},
				.next = keymap_get(&set->heads, pattern->text, len)};

			if (pattern->glob)
				continue;
			if (!vec_push(&set->names, name) ||
			    !keymap_set(&set->heads, pattern->text, len,
					(uint32_t)set->names.len - 1))
				return error_set(err, ENOMEM, "out of memory");
		}
	return 0;
}

static int add_tracepoints(struct call_set *set, const struct call_spec *spec, struct error *err)
{
	size_t before = set->tracepoints.len, room = WAFFLE_FETCH_PROGRAMS_MAX - set->calls;
	int result =
		tracepoints_add(&set->tracepoints, before + room, set->tables.strings, spec, err);

	set->calls += (uint32_t)(set->tracepoints.len - before);
	return result;
}

/* An entry has 28 KB, of which most stay zero. calloc() takes a block of this many entries from the
 * kernel as zero pages, and only pages that are written take memory and time. */
#define ENTRIES_OF_BLOCK 32

/* Memory for the next entry, which is zero. NULL: out of memory. */
static struct set_entry *entry_memory(struct call_set *set)
{
	size_t at = set->entries.len;
	struct set_entry *block;

	if (set->blocks.len <= at / ENTRIES_OF_BLOCK) {
		block = calloc(ENTRIES_OF_BLOCK, sizeof(*block));
		if (!block || !vec_push(&set->blocks, block)) {
			free(block);
			return NULL;
		}
	}
	return &set->blocks.data[at / ENTRIES_OF_BLOCK][at % ENTRIES_OF_BLOCK];
}

static int add(struct call_set *set, const char *text, const char *where, uint32_t group,
	       bool quiet, struct error *err)
{
	struct set_entry *entry;
	int result;

	if (spec_is_enum(text))
		return spec_parse_enum(&set->tables, text, where, err);
	entry = entry_memory(set);
	if (!entry)
		return error_set(err, ENOMEM, "out of memory");
	result = spec_parse(&entry->spec, &set->tables, text, where, err);
	if (!result && entry->spec.type == SPEC_TRACEPOINT)
		result = add_tracepoints(set, &entry->spec, err);
	entry->spec.group = group;
	entry->spec.quiet = quiet;
	if (!result && !vec_push(&set->entries, entry))
		result = error_set(err, ENOMEM, "out of memory");
	if (result) {
		spec_free(&entry->spec);
		memset(entry, 0, sizeof(*entry));
		return result;
	}
	return index_names(set, (uint32_t)set->entries.len - 1, err);
}

/* Number of a new group. MAP_NONE with a message: out of memory. */
static uint32_t group_new(struct call_set *set, const char *ready_set, struct error *err)
{
	if (vec_push(&set->groups, (struct set_group){.name = ready_set}))
		return (uint32_t)set->groups.len - 1;
	error_set(err, ENOMEM, "out of memory");
	return MAP_NONE;
}

int call_set_add(struct call_set *set, const char *text, const char *where, struct error *err)
{
	uint32_t group = group_new(set, NULL, err);

	return group == MAP_NONE ? -ENOMEM : add(set, text, where, group, false, err);
}

/* Removes a comment: '#' at the start or after a space, outside quotes. */
static void strip_comment(char *line)
{
	bool quoted = false;

	for (char *at = line; *at; at++) {
		quoted ^= *at == '"';
		if (*at == '#' && !quoted && (at == line || isspace((unsigned char)at[-1]))) {
			*at = '\0';
			return;
		}
	}
}

static bool is_blank(const char *line)
{
	return !line[strspn(line, " \t\r\n")];
}

/*
 * Adds the descriptions of a text, which is modified: one per line, where lines that start with a
 * space continue the previous one. They become rows of `group`. MAP_NONE: each gets its own group.
 */
static int add_lines(struct call_set *set, char *text, const char *name, uint32_t group,
		     struct error *err)
{
	char where[300], *line = text, *next, *end;
	uint32_t number = 0, first;
	int result = 0;

	while (!result && line) {
		first = ++number;
		end = strchr(line, '\n');
		next = end ? end + 1 : NULL;
		if (end)
			*end = '\0';
		strip_comment(line);
		while (next && (*next == ' ' || *next == '\t') && !is_blank(line)) {
			char *more = next, *at = line + strlen(line);

			end = strchr(more, '\n');
			next = end ? end + 1 : NULL;
			if (end)
				*end = '\0';
			strip_comment(more);
			*at++ = ' ';
			memmove(at, more, strlen(more) + 1);
			number++;
		}
		snprintf(where, sizeof(where), "%.250s:%u", name, first);
		if (!is_blank(line)) {
			line += strspn(line, " \t");
			line[strcspn(line, "\r")] = '\0';
			result = group != MAP_NONE ? add(set, line, where, group, true, err)
						   : call_set_add(set, line, where, err);
		}
		line = next;
	}
	return result;
}

static int add_rows(struct call_set *set, const struct call_rows *rows, const char *ready_set,
		    struct error *err)
{
	uint32_t group = group_new(set, ready_set, err);
	char *text = strdup(rows->text);
	int result = -ENOMEM;

	if (text && group != MAP_NONE)
		result = add_lines(set, text, rows->name, group, err);
	else
		error_set(err, ENOMEM, "out of memory");
	free(text);
	return result;
}

int call_set_add_table(struct call_set *set, enum call_table table, struct error *err)
{
	size_t first = set->entries.len;
	int result = add_rows(set, &call_tables[table], NULL, err);

	for (size_t i = first; i < set->entries.len; i++) {
		const struct set_entry *entry = set->entries.data[i];

		/* The others are C interfaces, so no exception passes through them. */
		if (table != CALL_TABLE_TORCH && table != CALL_TABLE_JAX)
			set->entries.data[i]->spec.flags |= WAFFLE_CALL_NOUNWIND;
		set->groups.data[entry->spec.group].table = true;
	}
	return result;
}

#define FILE_BYTES_MAX (1 << 20)

static char *read_file(const char *path, struct error *err)
{
	char *text = malloc(FILE_BYTES_MAX + 1);
	ssize_t len = text ? input_read(path, text, FILE_BYTES_MAX) : -ENOMEM;

	if (len < 0 || len == FILE_BYTES_MAX || memchr(text, '\0', (size_t)len)) {
		error_set(err, len < 0 ? (int)-len : EINVAL, "%s: %s", path,
			  len < 0 ? input_error((int)-len)
			  : len == FILE_BYTES_MAX
				  ? "more than the megabyte of a file of descriptions"
				  : "not a text file, it has a NUL byte");
		free(text);
		return NULL;
	}
	text[len] = '\0';
	return text;
}

/* A word like "mpi" that cannot be a path. */
static bool is_plain_name(const char *text)
{
	return *text && !strpbrk(text, "./");
}

static int add_ready_set(struct call_set *set, const char *name, struct error *err)
{
	char known[200] = "";

	for (unsigned i = 0; i < CALL_READY_SETS; i++) {
		if (!strcmp(call_ready_sets[i].name, name))
			return add_rows(set, &call_ready_sets[i], call_ready_sets[i].name, err);
		snprintf(known + strlen(known), sizeof(known) - strlen(known), " %s",
			 call_ready_sets[i].name);
	}
	return error_set(
		err, ENOENT,
		"%s: no such set of probes: expected one of%s, or the path of a file, such "
		"as ./%s",
		source_show(name, strlen(name)).text, known, source_show(name, strlen(name)).text);
}

int call_set_add_file(struct call_set *set, const char *path, struct error *err)
{
	char *text;
	int result;

	if (is_plain_name(path))
		return add_ready_set(set, path, err);
	text = read_file(path, err);

	if (!text)
		return -EINVAL;
	result = add_lines(set, text, path, MAP_NONE, err);
	free(text);
	return result;
}

size_t call_set_tracepoints(const struct call_set *set, const struct call_tracepoint **list)
{
	*list = set->tracepoints.data;
	return set->tracepoints.len;
}

const struct waffle_enum *call_set_enums(const struct call_set *set, uint32_t *count)
{
	*count = (uint32_t)set->tables.enums.len;
	return set->tables.enums.data;
}

/* Appends suggestions to a line: "; did you mean a, b". */
static void add_suggestions(char *line, size_t size, const struct set_suggestions *similar,
			    const char *before)
{
	size_t len = strlen(line);

	for (uint32_t i = 0; i < similar->count; i++) {
		snprintf(line + len, size - len, "%s%s", i ? ", " : before, similar->names[i]);
		len = strlen(line);
	}
}

static struct source_shown names_shown(const struct call_spec *spec, const struct spec_names *names)
{
	return source_show(spec->source.text + names->from, names->to - names->from);
}

/* Where files were searched for. */
static const char *const scopes[] = {
	[CALL_SCOPE_TRACED] = "in a traced process",
	[CALL_SCOPE_FOLLOWED] = "in a traced process",
	[CALL_SCOPE_PROCESS] = "in the process",
	[CALL_SCOPE_FILES] = "among those given",
};

/* Replaces control characters, since names and paths of untrusted files must not control the
 * terminal. `fault`: the line is an error message, which may have several lines. */
static void say_text(call_say say, const char *line, bool fault, bool missing, void *arg)
{
	char clean[sizeof(((struct error *)0)->message)];

	snprintf(clean, sizeof(clean), "%s", line);
	for (char *at = clean; *at; at++)
		if (((unsigned char)*at < ' ' && !(fault && *at == '\n')) || *at == 127)
			*at = '?';
	say(clean, missing, arg);
}

static void say_clean(call_say say, const char *line, bool missing, void *arg)
{
	say_text(say, line, false, missing, arg);
}

static void say_fault(call_say say, const char *message, bool missing, void *arg)
{
	say_text(say, message, true, missing, arg);
}

/* Whether a program that starts later may have the described call. */
static bool may_come(const struct set_entry *entry, enum call_scope scope)
{
	const struct spec_names *libs = &entry->spec.libs;

	for (uint32_t i = 0; scope == CALL_SCOPE_FOLLOWED && i < libs->count; i++)
		if (!strcmp(libs->list[i].text, "exe"))
			return true;
	return false;
}

/* Whether the failure is final and concerns an option of the command line. */
static bool is_missing(const struct set_entry *entry, enum call_scope scope)
{
	bool final =
		entry->state.looked || (scope != CALL_SCOPE_TRACED && scope != CALL_SCOPE_FOLLOWED);

	return final && !may_come(entry, scope) && !strcmp(entry->spec.source.origin, "--probe");
}

static void say_no_file(const struct set_entry *entry, enum call_scope scope, call_say say,
			void *arg)
{
	const struct call_spec *spec = &entry->spec;
	const char *pending = entry->state.pending;
	bool traced = scope == CALL_SCOPE_TRACED || scope == CALL_SCOPE_FOLLOWED;
	char line[1024];

	/* Programs often have another file name than the user expects, so suggest 'exe'. */
	snprintf(line, sizeof(line), "%s: no file '%s' %s%s%s%s", spec->source.origin,
		 names_shown(spec, &spec->libs).text, scopes[scope],
		 pending  ? " yet; if it opens "
		 : traced ? "; 'exe' is the program's own"
			  : "",
		 pending ? pending : "",
		 pending ? " its calls are recorded from the first one on" : "");
	say_clean(say, line, is_missing(entry, scope), arg);
}

static void say_ifunc(const struct set_entry *entry, const char *name,
		      const struct set_suggestions *similar, enum call_scope scope, call_say say,
		      void *arg)
{
	char line[1024];

	snprintf(line, sizeof(line),
		 "%s: '%s' of %s is chosen from several functions when it is loaded, by what the "
		 "CPU can do: describe one of those%s",
		 entry->spec.source.origin, name, entry->state.looked,
		 similar->count ? "" : ", whose names have been stripped here");
	add_suggestions(line, sizeof(line), similar, ", such as ");
	say_clean(say, line, is_missing(entry, scope), arg);
}

static void say_no_name(const struct set_entry *entry, const char *name,
			const struct set_suggestions *similar, bool missing, enum call_scope scope,
			call_say say, void *arg)
{
	const struct spec_state *state = &entry->state;
	bool usdt = entry->spec.type == SPEC_USDT, provider = usdt && !state->provider;
	char line[1024];

	snprintf(line, sizeof(line), "%s: no %s '%s' in %s%s", entry->spec.source.origin,
		 provider ? "USDT probe of a provider"
		 : usdt   ? "USDT probe"
			  : "function",
		 name, state->looked,
		 state->stripped && !usdt
			 ? ", which is stripped: only the functions that it exports are known"
			 : "");
	add_suggestions(line, sizeof(line), similar, "; did you mean ");
	if (may_come(entry, scope))
		snprintf(line + strlen(line), sizeof(line) - strlen(line), CALL_MAY_COME);
	say_clean(say, line, missing, arg);
}

/* Reports the names of a side that were not found. The description fails if no alternative was
 * found. If some of it was found and it covers several files, a later file may have the rest. */
static void say_side(const struct set_entry *entry, unsigned side, enum call_scope scope,
		     call_say say, void *arg)
{
	const struct spec_names *libs = &entry->spec.libs, *names = &entry->spec.sides[side].names;
	const struct set_named *named = entry->state.names[side];
	bool final = !entry->state.found || (libs->count == 1 && !libs->list[0].glob);
	bool missing = final && is_missing(entry, scope);

	for (unsigned i = 0; i < names->count; i++)
		missing &= !named[i].matched;
	for (unsigned i = 0; i < names->count; i++) {
		const char *text = names->list[i].text;
		struct source_shown name = source_show(text, strlen(text));

		if (named[i].ifunc)
			say_ifunc(entry, name.text, &named[i].similar, scope, say, arg);
		else if (!named[i].matched)
			say_no_name(entry, name.text, &named[i].similar, missing, scope, say, arg);
	}
}

static bool has_ifunc(const struct set_entry *entry)
{
	bool has = false;

	for (unsigned side = 0; side < 2; side++)
		for (unsigned i = 0; i < SPEC_NAMES_MAX; i++)
			has |= entry->state.names[side][i].ifunc;
	return has;
}

static void say_entry(const struct set_entry *entry, enum call_scope scope, call_say say, void *arg)
{
	const struct call_spec *spec = &entry->spec;
	const struct spec_state *state = &entry->state;

	if (!state->looked)
		say_no_file(entry, scope, say, arg);
	else if (!state->found && state->trouble && !has_ifunc(entry))
		say_fault(say, state->trouble, is_missing(entry, scope), arg);
	else if (spec->type == SPEC_USDT && !state->provider)
		say_no_name(entry, names_shown(spec, &spec->provider).text, &state->providers,
			    is_missing(entry, scope), scope, say, arg);
	else
		for (unsigned side = 0; side < 1u + spec->pair; side++)
			say_side(entry, side, scope, say, arg);
}

/* The file exists but has no probes of the described provider. */
static bool built_without(const struct set_entry *entry)
{
	return entry->spec.type == SPEC_USDT && entry->state.looked && !entry->state.provider;
}

/* The described functions may be in the file, but it is stripped. */
static bool in_stripped(const struct set_entry *entry)
{
	return entry->spec.type == SPEC_UPROBE && entry->state.looked && entry->state.stripped;
}

static const struct set_entry *one_of_group(const struct call_set *set, size_t group,
					    bool (*is)(const struct set_entry *entry))
{
	for (size_t i = 0; i < set->entries.len; i++)
		if (set->entries.data[i]->spec.group == group && is(set->entries.data[i]))
			return set->entries.data[i];
	return NULL;
}

static void say_group(const struct call_set *set, size_t group, enum call_scope scope, call_say say,
		      void *arg)
{
	const struct set_entry *without = one_of_group(set, group, built_without);
	const struct set_entry *stripped = one_of_group(set, group, in_stripped);
	const char *name = set->groups.data[group].name;
	char line[1024];

	if (without)
		snprintf(line, sizeof(line),
			 "%s: %s has no USDT probes of '%s': it was built without them", name,
			 without->state.looked, without->spec.provider.list[0].text);
	else if (stripped)
		snprintf(line, sizeof(line),
			 "%s: nothing that this set describes is %s, as far as is known: %s is "
			 "stripped, and only the functions that it exports have names",
			 name, scopes[scope], stripped->state.looked);
	else
		snprintf(line, sizeof(line), "%s: nothing that this set describes is %s", name,
			 scopes[scope]);
	say_clean(say, line, false, arg);
}

void call_set_unfound(const struct call_set *set, enum call_scope scope, call_say say, void *arg)
{
	for (size_t i = 0; i < set->entries.len; i++) {
		const struct set_entry *entry = set->entries.data[i];

		if (entry->state.found && entry->state.trouble)
			say_fault(say, entry->state.trouble, false, arg);
		if (entry->state.refusal)
			say_fault(say, entry->state.refusal,
				  !entry->state.found && is_missing(entry, scope), arg);
		else if (!entry->spec.quiet && entry->spec.type != SPEC_TRACEPOINT)
			say_entry(entry, scope, say, arg);
		if (entry->state.found)
			set->groups.data[entry->spec.group].found = true;
	}
	for (unsigned i = 0; i < SET_INSIDES; i++)
		if (set->stripped[i])
			say_clean(say, set->stripped[i], false, arg);
	for (size_t i = 0; i < set->groups.len; i++)
		if (set->groups.data[i].name && !set->groups.data[i].found)
			say_group(set, i, scope, say, arg);
}

bool call_set_is_described(const struct call_set *set)
{
	for (size_t i = 0; i < set->entries.len; i++)
		if (!set->groups.data[set->entries.data[i]->spec.group].table)
			return true;
	return false;
}
