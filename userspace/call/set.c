// SPDX-License-Identifier: Apache-2.0
#include "call/set.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "call/table.h"

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
	made->kernel = place_kernel_running();
	*set = made;
	return 0;
}

void call_set_free(struct call_set *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < set->entries.len; i++) {
		spec_free(&set->entries.data[i]->spec);
		free(set->entries.data[i]);
	}
	vec_free(&set->entries);
	vec_free(&set->names);
	vec_free(&set->tracepoints);
	vec_free(&set->tables.enums);
	vec_free(&set->tables.enum_names);
	vec_free(&set->tables.sequences);
	map_free(&set->heads);
	strtab_free(set->tables.strings);
	free(set);
}

uint64_t set_hash(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325ull; /* FNV-1a */

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3ull;
	return hash;
}

const char *set_keep(struct call_set *set, const char *text)
{
	return strtab_get(set->tables.strings, strtab_add(set->tables.strings, text, strlen(text)));
}

const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* "libcudart" is libcudart.so.12 and libcudart-80664282.so.10.2. */
static bool lib_is(const struct spec_pattern *lib, const char *path, const char *base)
{
	size_t len = strlen(lib->text);

	if (strchr(lib->text, '/'))
		base = path;
	if (lib->glob)
		return glob_matches(lib->glob, base, strlen(base));
	return !strncmp(base, lib->text, len) &&
	       (!base[len] || (base != path && (base[len] == '-' || base[len] == '.')));
}

bool set_lib_matches(const struct call_spec *spec, const char *path, bool is_exe)
{
	const char *base = path_base(path);

	for (unsigned i = 0; i < spec->libs.count; i++)
		if (strcmp(spec->libs.list[i].text, "exe") != 0
			    ? lib_is(&spec->libs.list[i], path, base)
			    : is_exe)
			return true;
	return false;
}

bool call_set_wants(const struct call_set *set, const char *path)
{
	for (size_t i = 0; i < set->entries.len; i++)
		if (set_lib_matches(&set->entries.data[i]->spec, path, true))
			return true;
	return false;
}

static int index_names(struct call_set *set, uint32_t entry, struct error *err)
{
	const struct call_spec *spec = &set->entries.data[entry]->spec;

	if (spec->type != SPEC_UPROBE)
		return 0;
	for (uint8_t side = 0; side < 1 + spec->pair; side++)
		for (unsigned i = 0; i < spec->sides[side].names.count; i++) {
			const struct spec_pattern *pattern = &spec->sides[side].names.list[i];
			uint64_t hash = set_hash(pattern->text);
			struct set_name name = {.name = pattern->text,
						.entry = entry,
						.side = side,
						.next = map_get(&set->heads, hash)};

			if (pattern->glob)
				continue;
			if (!vec_push(&set->names, name) ||
			    !map_set(&set->heads, hash, (uint32_t)set->names.len - 1))
				return error_set(err, ENOMEM, "out of memory");
		}
	return 0;
}

static int add(struct call_set *set, const char *text, const char *where, uint32_t group,
	       bool quiet, struct error *err)
{
	struct set_entry *entry;
	int result;

	if (spec_is_enum(text))
		return spec_parse_enum(&set->tables, text, where, err);
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return error_set(err, ENOMEM, "out of memory");
	result = spec_parse(&entry->spec, &set->tables, text, where, err);
	entry->spec.group = group;
	entry->spec.quiet = quiet;
	if (!result && !vec_push(&set->entries, entry))
		result = error_set(err, ENOMEM, "out of memory");
	if (result) {
		spec_free(&entry->spec);
		free(entry);
		return result;
	}
	return index_names(set, (uint32_t)set->entries.len - 1, err);
}

int call_set_add(struct call_set *set, const char *text, const char *where, struct error *err)
{
	return add(set, text, where, ++set->groups, false, err);
}

/* Takes off a comment: '#' at the begin or behind a blank, outside of quotes. */
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

/* The descriptions of a text, in place: a line each, and lines that begin with a blank go on. */
static int add_lines(struct call_set *set, char *text, const char *name, bool quiet,
		     struct error *err)
{
	uint32_t group = ++set->groups, number = 0, first;
	char where[300], *line = text, *next, *end;
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
			result = add(set, line, where, group, quiet, err);
		}
		line = next;
	}
	return result;
}

int call_set_add_table(struct call_set *set, enum call_table table, struct error *err)
{
	const struct call_rows *rows = &call_tables[table];
	char *text = strdup(rows->text);
	int result = text ? add_lines(set, text, rows->name, true, err)
			  : error_set(err, ENOMEM, "out of memory");

	free(text);
	return result;
}

#define FILE_BYTES_MAX (1 << 20)

static char *read_file(const char *path, struct error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	char *text = fd >= 0 ? malloc(FILE_BYTES_MAX + 1) : NULL;
	size_t len = 0;
	ssize_t got = 1;

	if (fd < 0) {
		error_set(err, errno, "%s: %s", path, strerror(errno));
		return NULL;
	}
	while (text && got > 0 && len < FILE_BYTES_MAX) {
		got = read(fd, text + len, FILE_BYTES_MAX - len);
		if (got > 0)
			len += (size_t)got;
	}
	if (!text || got < 0 || len == FILE_BYTES_MAX || memchr(text, '\0', len)) {
		error_set(err, EINVAL, "%s: %s", path,
			  !text     ? "out of memory"
			  : got < 0 ? strerror(errno)
			  : len == FILE_BYTES_MAX
				  ? "more than the megabyte of a file of descriptions"
				  : "not a text file, it has a NUL byte");
		free(text);
		text = NULL;
	} else {
		text[len] = '\0';
	}
	close(fd);
	return text;
}

int call_set_add_file(struct call_set *set, const char *path, struct error *err)
{
	char *text = read_file(path, err);
	int result;

	if (!text)
		return -EINVAL;
	result = add_lines(set, text, path, false, err);
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

/* What was wanted, for people: "function 'x' in libc.so.6". */
static void say_entry(const struct set_entry *entry, call_say say, void *arg)
{
	const struct call_spec *spec = &entry->spec;
	const struct spec_state *state = &entry->state;
	const char *what = spec->type != SPEC_USDT ? "function"
			   : state->provider       ? "USDT probe"
						   : "USDT probe of a provider";
	struct source_shown name = source_show(spec->source.text + spec->sides[0].names.from,
					       spec->sides[0].names.to - spec->sides[0].names.from);
	struct source_shown lib =
		source_show(spec->source.text + spec->libs.from, spec->libs.to - spec->libs.from);
	char line[1024];
	int len;

	if (!state->looked) {
		snprintf(line, sizeof(line), "%s: no file '%s' in a traced process",
			 spec->source.origin, lib.text);
	} else if (state->trouble) {
		snprintf(line, sizeof(line), "%s", state->trouble);
	} else if (state->ifunc) {
		snprintf(line, sizeof(line),
			 "%s: '%s' of %s is chosen when the program is loaded, by what the CPU can "
			 "do: describe those that it is chosen from",
			 spec->source.origin, name.text, state->looked);
	} else {
		len = snprintf(
			line, sizeof(line), "%s: no %s '%s' in %s%s", spec->source.origin, what,
			name.text, state->looked,
			state->stripped && spec->type == SPEC_UPROBE
				? ", which is stripped: of its functions only those are known "
				  "that it exports"
				: "");
		for (uint32_t i = 0; i < state->near_count && len < (int)sizeof(line); i++)
			len += snprintf(line + len, sizeof(line) - (size_t)len, "%s%s",
					i              ? ", "
					: state->ifunc ? ""
						       : "; near: ",
					state->near[i]);
	}
	say(line, state->looked && !strcmp(spec->source.origin, "--probe"), arg);
}

void call_set_unfound(const struct call_set *set, call_say say, void *arg)
{
	for (size_t i = 0; i < set->entries.len; i++) {
		const struct set_entry *entry = set->entries.data[i];

		if (entry->state.found && entry->state.trouble)
			say(entry->state.trouble, false, arg);
		else if (!entry->state.found && !entry->spec.quiet &&
			 entry->spec.type != SPEC_TRACEPOINT)
			say_entry(entry, say, arg);
	}
}
