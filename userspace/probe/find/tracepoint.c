// SPDX-License-Identifier: Apache-2.0
#include "probe/find/tracepoint.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probe/find/tracefs.h"
#include "probe/spec/parse.h"

#define FORMAT_BYTES 65536 /* of a format file */
#define CONTEXT_MIN 8      /* BPF programs cannot read these first bytes of the record */

/* The value after "key:" in a line of a format. */
static bool line_number(const char *line, const char *key, uint32_t *number)
{
	const char *at = strstr(line, key);
	unsigned long value;
	char *end;

	if (!at)
		return false;
	value = strtoul(at + strlen(key), &end, 10);
	*number = (uint32_t)value;
	return end != at + strlen(key) && *end == ';' && value <= UINT32_MAX;
}

/* Splits "__data_loc char[] filename", "char comm[16]" or "unsigned int len" into type and name, in
 * place. */
static bool field_declare(struct tracepoint_field *field, char *text)
{
	char *name, *bracket;

	if (!strncmp(text, "__data_loc ", 11)) {
		field->located = true;
		text += 11;
	} else if (!strncmp(text, "__rel_loc ", 10)) {
		field->located = field->located_relative = true;
		text += 10;
	}
	name = strrchr(text, ' ');
	if (!name)
		return false;
	*name++ = '\0';
	bracket = strchr(name, '[');
	if (bracket) {
		*bracket = '\0';
		field->elements = (uint32_t)strtoul(bracket + 1, NULL, 10);
		field->elements += !field->elements;
	} else if ((bracket = strchr(text, '['))) {
		*bracket = '\0';
		field->elements = 1;
	}
	field->type = text;
	field->name = name;
	return *name;
}

static bool field_parse(struct tracepoint_field *field, char *line)
{
	char *end = strchr(line, ';');
	uint32_t is_signed;

	*field = (struct tracepoint_field){0};
	if (!end || !line_number(end, "offset:", &field->offset) ||
	    !line_number(end, "size:", &field->size) || !line_number(end, "signed:", &is_signed))
		return false;
	field->is_signed = is_signed;
	*end = '\0';
	return field_declare(field, line);
}

bool tracepoint_parse(struct tracepoint_format *format, char *text)
{
	bool has_id = false;
	char *next;

	*format = (struct tracepoint_format){0};
	for (char *line = text; line; line = next) {
		struct tracepoint_field *field = &format->fields[format->count];

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		line += strspn(line, " \t");
		if (!strncmp(line, "ID:", 3)) {
			format->id = strtoull(line + 3, NULL, 10);
			has_id = true;
		} else if (!strncmp(line, "field:", 6) && format->count < TRACEPOINT_FIELDS_MAX &&
			   field_parse(field, line + 6) && field->offset >= CONTEXT_MIN) {
			format->count++;
		}
	}
	return has_id;
}

static bool is_text(const struct tracepoint_field *field)
{
	return field->elements && (!strcmp(field->type, "char") || !strcmp(field->type, "u8") ||
				   !strcmp(field->type, "const char"));
}

/* False: waffle cannot show the type of this field. */
static bool field_fetch(const struct tracepoint_field *field, struct waffle_fetch *fetch,
			char *letter)
{
	bool pointer = strchr(field->type, '*');

	*fetch = (struct waffle_fetch){.from = WAFFLE_FETCH_CONTEXT, .flags = WAFFLE_FETCH_KERNEL};
	fetch->offset[0] = (int32_t)field->offset;
	if (field->located) {
		if (!is_text(field))
			return false;
		fetch->from = WAFFLE_FETCH_DATA_LOC;
		fetch->constant = field->offset;
		fetch->offset[0] = field->located_relative ? (int32_t)field->offset + 4 : 0;
		fetch->format = WAFFLE_FORMAT_STR;
		fetch->bytes = 8;
		*letter = WAFFLE_KEY_STR;
		return true;
	}
	if (is_text(field)) {
		fetch->format = WAFFLE_FORMAT_BYTES;
		fetch->bytes = field->size < WAFFLE_STR_MAX ? (uint8_t)field->size : 0;
		*letter = WAFFLE_KEY_STR;
		return true;
	}
	if (field->elements ||
	    (field->size != 1 && field->size != 2 && field->size != 4 && field->size != 8))
		return false;
	fetch->format = WAFFLE_FORMAT_WORD;
	fetch->loads = 1;
	fetch->bytes = (uint8_t)field->size;
	fetch->flags |= field->is_signed ? WAFFLE_FETCH_SIGNED : 0;
	*letter = pointer                       ? WAFFLE_KEY_PTR
		  : strstr(field->type, "bool") ? WAFFLE_KEY_BOOL
		  : field->is_signed            ? WAFFLE_KEY_I64
						: WAFFLE_KEY_U64;
	return true;
}

static bool push_field(struct fetch_program_made *made, const struct tracepoint_field *field,
		       const char *name)
{
	struct waffle_fetch fetch;
	char letter;

	if (!field_fetch(field, &fetch, &letter))
		return false;
	made->keys[made->key_count++] = (struct site_key){.type = letter, .name = name};
	made->fetch_program.fetches[made->fetch_program.begins++] = fetch;
	return true;
}

static int push_listed(struct fetch_program_made *made, const struct call_spec *spec,
		       const struct call_param *param, const struct tracepoint_format *format,
		       const char *name, struct error *err)
{
	struct suggestions similar = {.len = 0};

	for (unsigned i = 0; i < made->key_count; i++)
		if (!strcmp(made->keys[i].name, param->name))
			return source_fault(&spec->source, param->from, param->to, err,
					    "two values are named '%s'", param->name);
	for (unsigned i = 0; i < format->count; i++) {
		if (strcmp(format->fields[i].name, param->type.name) != 0) {
			suggestions_add(&similar, param->type.name, format->fields[i].name);
			continue;
		}
		if (made->key_count == WAFFLE_KEYS_MAX)
			return source_fault(&spec->source, param->from, param->to, err,
					    "a call has at most 16 values");
		if (push_field(made, &format->fields[i], param->name))
			return 0;
		return source_fault(&spec->source, param->from, param->to, err,
				    "a field of type '%s' can't be shown", format->fields[i].type);
	}
	return source_fault(&spec->source, param->from, param->to, err, "no field '%s' in %s%s",
			    param->type.name, name, similar.text);
}

int tracepoint_fetch_program(struct fetch_program_made *made, const struct call_spec *spec,
			     const struct tracepoint_format *format, const char *name,
			     struct error *err)
{
	const struct spec_side *side = &spec->sides[0];
	int result = 0;

	*made = (struct fetch_program_made){.fetch_program = {.flags = spec->flags}};
	for (unsigned i = 0; i < side->param_count && !result; i++)
		result = push_listed(made, spec, &side->params[i], format, name, err);
	for (unsigned i = 0; !side->listed && i < format->count; i++)
		if (made->key_count < WAFFLE_KEYS_MAX)
			push_field(made, &format->fields[i], format->fields[i].name);
	return result;
}

/* State of the walk over the directories of categories and tracepoints. */
struct points {
	tracepoint_list *list;
	size_t most, before; /* the most that the list may have, and how many it had */
	struct strtab *strings;
	const struct call_spec *spec;
	struct error *err;
	struct suggestions similar;
	bool category; /* a category has the wanted name */
};

static const char *keep(struct points *points, const char *text)
{
	return strtab_get(points->strings, strtab_add(points->strings, text, strlen(text)));
}

static int point_add(struct points *points, const char *category, const char *name,
		     struct tracepoint_format *format)
{
	const struct call_spec *spec = points->spec;
	struct call_tracepoint point = {.id = format->id};
	struct fetch_program_made made;
	char whole[512];
	int result;

	snprintf(whole, sizeof(whole), "%.250s:%.250s", category, name);
	result = tracepoint_fetch_program(&made, spec, format, whole, points->err);
	if (result)
		return result;
	if (points->list->len >= points->most)
		return error_set(points->err, E2BIG, "%s: more than %d calls are described",
				 spec->source.origin, WAFFLE_FETCH_PROGRAMS_MAX);
	point.name = keep(points, whole);
	point.fetch_program = made.fetch_program;
	point.site = (struct site_info){.name = spec_name(spec, name, points->strings),
					.category = spec->category ? spec->category
								   : keep(points, category),
					.file = "",
					.func = "",
					.object = "kernel",
					.kind = WAFFLE_SITE_EVENT,
					.role = spec->role,
					.call = true,
					.key_count = made.key_count,
					.begin_keys = made.key_count};
	for (unsigned i = 0; i < made.key_count; i++) {
		point.site.keys[i].type = made.keys[i].type;
		point.site.keys[i].name = keep(points, made.keys[i].name);
	}
	if (!vec_push(points->list, point))
		return error_set(points->err, ENOMEM, "out of memory");
	return 0;
}

/* Reads the file "format" in the tracepoint's directory. */
static int point_read(struct points *points, int folder, const char *category, const char *name)
{
	int fd = openat(folder, "format", O_RDONLY | O_CLOEXEC), result = 0;
	struct tracepoint_format *format = malloc(sizeof(*format));
	char *text = malloc(FORMAT_BYTES);
	ssize_t len = fd >= 0 && text ? read(fd, text, FORMAT_BYTES - 1) : -1;

	if (!text || !format) {
		result = error_set(points->err, ENOMEM, "out of memory");
	} else if (len > 0) {
		text[len] = '\0';
		if (tracepoint_parse(format, text))
			result = point_add(points, category, name, format);
	}
	if (fd >= 0)
		close(fd);
	free(text);
	free(format);
	return result;
}

/* One level of the tree: which directories are wanted, and how to process an open one. */
struct format_level {
	bool (*wants)(struct points *points, const char *name);
	int (*visit)(struct points *points, int folder, const char *category, const char *name);
};

/* Visits the wanted directories in `parent`, sorted by name. */
static int folders_visit(struct points *points, int parent, const struct format_level *level,
			 const char *category)
{
	struct dirent **list;
	int count = scandirat(parent, ".", &list, NULL, alphasort), result = 0;

	for (int i = 0; i < count; i++) {
		const char *name = list[i]->d_name;
		int folder = -1;

		if (!result && list[i]->d_type == DT_DIR && name[0] != '.' &&
		    level->wants(points, name))
			folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (folder >= 0) {
			result = level->visit(points, folder, category, name);
			close(folder);
		}
		free(list[i]);
	}
	if (count >= 0)
		free(list);
	return result;
}

static bool point_wanted(struct points *points, const char *name)
{
	const struct spec_names *names = &points->spec->sides[0].names;

	if (spec_names_match(names, name))
		return true;
	suggestions_add(&points->similar, names->list[0].text, name);
	return false;
}

/* Suggestions are categories until one has the wanted name, then tracepoints. */
static bool category_wanted(struct points *points, const char *name)
{
	const struct spec_names *provider = &points->spec->provider;

	if (!spec_names_match(provider, name)) {
		if (!points->category)
			suggestions_add(&points->similar, provider->list[0].text, name);
		return false;
	}
	if (!points->category)
		points->similar = (struct suggestions){.len = 0};
	points->category = true;
	return true;
}

static int category_visit(struct points *points, int folder, const char *none, const char *name)
{
	static const struct format_level level = {point_wanted, point_read};

	(void)none;
	return folders_visit(points, folder, &level, name);
}

/* Whether one of the tracepoints just added has that field. */
static bool has_field(const void *arg, const char *key, size_t len, struct suggestions *similar)
{
	const struct points *points = arg;

	for (size_t i = points->before; i < points->list->len; i++) {
		const struct site_info *site = &points->list->data[i].site;

		for (unsigned k = 0; k < site->key_count; k++)
			if (template_key_is(site->keys[k].name, key, len, similar))
				return true;
	}
	return false;
}

int tracepoints_add(tracepoint_list *list, size_t most, struct strtab *strings,
		    const struct call_spec *spec, struct error *err)
{
	static const struct format_level categories = {category_wanted, category_visit};
	struct points points = {.list = list,
				.most = most,
				.before = list->len,
				.strings = strings,
				.spec = spec,
				.err = err};
	const struct spec_names *names = &spec->sides[0].names;
	int events = tracefs_open_events(err), result;

	if (events < 0)
		return events;
	result = folders_visit(&points, events, &categories, NULL);
	close(events);
	if (result || list->len > points.before)
		return result ?: template_check(spec, has_field, &points, err);
	if (!points.category)
		names = &spec->provider;
	return source_fault(&spec->source, names->from, names->to, err, "no %s '%s'%s",
			    points.category ? "tracepoint" : "category of tracepoints",
			    names->list[0].text, points.similar.text);
}
