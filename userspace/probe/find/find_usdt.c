// SPDX-License-Identifier: Apache-2.0
/* Finds the USDT probes that descriptions name. */
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "probe/find/find_internal.h"
#include "probe/find/usdt_internal.h"
#include "util/suggest.h"

/* File offset of the two bytes of a semaphore, which may lie in data. */
static bool semaphore_offset(const struct find *find, uint64_t address, uint64_t *offset)
{
	size_t count;

	if (elf_getphdrnum(find->file.elf, &count))
		return false;
	for (size_t i = 0; i < count && i < INT_MAX; i++) {
		GElf_Phdr segment;

		if (!gelf_getphdr(find->file.elf, (int)i, &segment) || segment.p_type != PT_LOAD ||
		    address < segment.p_vaddr || segment.p_filesz < 2 ||
		    address - segment.p_vaddr > segment.p_filesz - 2)
			continue;
		*offset = segment.p_offset + (address - segment.p_vaddr);
		return true;
	}
	return false;
}

/* Finds the symbol of an operand, a variable of the program. */
static bool find_variable(const char *name, size_t len, uint64_t *address, void *arg)
{
	struct find *find = arg;
	Elf *elfs[] = {find->file.elf, find->debug.elf};
	size_t size = gelf_fsize(find->file.elf, ELF_T_SYM, 1, EV_CURRENT);

	for (unsigned i = 0; i < 2 && elfs[i] && size; i++) {
		Elf_Scn *section = NULL;

		while ((section = elf_nextscn(elfs[i], section))) {
			GElf_Shdr header;
			Elf_Data *data;

			if (!gelf_getshdr(section, &header) ||
			    (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM) ||
			    !(data = elf_getdata(section, NULL)))
				continue;
			for (size_t k = 0; k < data->d_size / size && k < INT_MAX; k++) {
				const char *text;
				GElf_Sym symbol;

				if (!gelf_getsym(data, (int)k, &symbol) ||
				    symbol.st_shndx == SHN_UNDEF)
					continue;
				text = elf_strptr(elfs[i], header.sh_link, symbol.st_name);
				if (!text || strlen(text) != len || memcmp(text, name, len) != 0)
					continue;
				*address = symbol.st_value;
				return true;
			}
		}
	}
	return false;
}

/* Rejects a parameter declared as an integer if the argument is a floating-point number, and the
 * reverse. */
static void refuse_other_kinds(const struct spec_side *side, struct call_at *at)
{
	for (unsigned i = 0; i < side->param_count && i < at->count; i++) {
		struct place_arg *arg = &at->args[i];
		bool is_float = side->params[i].type.kind == TYPE_FLOAT;

		if (!side->params[i].name || arg->unread || is_float == arg->is_float)
			continue;
		arg->unread = is_float ? "is no double" : "is a double";
		arg->at.count = 0;
	}
}

/* Reports a value that the user named. */
static void tell_value(struct find *find, struct set_entry *entry, const struct call_value *value,
		       const struct call_at *at, const struct usdt_note *note)
{
	bool there = value->index < at->count;
	struct error err = ERROR_INIT;

	source_fault(&entry->spec.source, value->from, value->to, &err,
		     there ? "argument %u of %s %s: '%s'" : "there is no argument %u of %s%s: '%s'",
		     value->index + 1u, source_show(note->name, strlen(note->name)).text,
		     there ? at->args[value->index].unread : "",
		     source_show(note->arguments, strlen(note->arguments)).text);
	find_trouble(find, entry, &err);
}

/* Reports values that cannot be read. If none are listed, these are all arguments of the note. */
static void tell_unreadable(struct find *find, struct set_entry *entry,
			    const struct spec_side *side, const struct call_at *at,
			    const struct usdt_note *note)
{
	bool all = side->raw || (!side->listed && !side->value_count);

	for (unsigned i = 0; i < side->value_count && !all; i++) {
		const struct call_value *value = &side->values[i];

		if ((value->base == VALUE_PARAM || value->base == VALUE_RAW) &&
		    (value->index >= at->count || at->args[value->index].unread))
			tell_value(find, entry, value, at, note);
	}
	/* At the end of a pair only listed values are recorded. */
	for (unsigned i = 0; i < at->count && all && side == &entry->spec.sides[0]; i++)
		if (at->args[i].unread)
			find_unread(find, entry, i + 1, note->name, at->args[i].unread);
}

/* Collects the keys that only the end of a pair knows, from the first matching probe. */
struct end_keys {
	struct find *find;
	const struct call_spec *spec;
	struct fetch_program_made *begin;
};

static int end_keys_add(const struct usdt_note *note, void *arg)
{
	struct end_keys *keys = arg;
	struct call_at at = {.abi = keys->find->abi};
	struct error ignored = ERROR_INIT;
	struct fetch_program_made end;

	if (!spec_names_match(&keys->spec->provider, note->provider) ||
	    !spec_names_match(&keys->spec->sides[1].names, note->name) ||
	    usdt_arguments(&at, note, find_variable, keys->find) < 0 ||
	    fetch_program_make_end(&end, keys->spec, &at, &keys->find->lookup, keys->begin,
				   &ignored))
		return 0;
	for (unsigned i = 0; i < end.key_count; i++)
		if (keys->begin->key_count < WAFFLE_KEYS_MAX)
			keys->begin->keys[keys->begin->key_count++] = end.keys[i];
	return 1;
}

static int make_probe(struct find *find, struct set_entry *entry, uint32_t number, unsigned side,
		      const struct usdt_note *note, struct fetch_program_made *made,
		      struct error *err)
{
	const struct call_spec *spec = &entry->spec;
	struct call_at at = {.abi = find->abi};
	struct fetch_program_made begin = {.key_count = 0};
	uint32_t ignored = 0;
	int result;

	if (usdt_arguments(&at, note, find_variable, find) < 0)
		return error_set(err, EINVAL, "%s: %s: arguments of %s:%s are not understood: '%s'",
				 spec->source.origin, find->object->path,
				 source_show(note->provider, strlen(note->provider)).text,
				 source_show(note->name, strlen(note->name)).text,
				 source_show(note->arguments, strlen(note->arguments)).text);
	refuse_other_kinds(&spec->sides[side], &at);
	tell_unreadable(find, entry, &spec->sides[side], &at, note);
	find->code_of = (struct structs_code){.address = note->address};
	if (side) {
		/* A key that the begin has under the same name is not recorded again. */
		for (unsigned i = 0; i < spec->sides[0].value_count; i++)
			begin.keys[begin.key_count++ % WAFFLE_KEYS_MAX].name =
				spec->sides[0].values[i].name;
		if (begin.key_count > WAFFLE_KEYS_MAX)
			begin.key_count = WAFFLE_KEYS_MAX;
		result = fetch_program_make_end(made, spec, &at, &find->lookup, &begin, err);
	} else {
		result = fetch_program_make(made, spec, &at, &find->lookup, err);
		if (!result && spec->pair) {
			struct end_keys keys = {find, spec, made};

			usdt_each(find->file.elf, end_keys_add, &keys, &ignored);
		}
	}
	if (spec->pair) {
		made->fetch_program.pair = number + 1;
		made->fetch_program.flags |= side ? WAFFLE_CALL_END : WAFFLE_CALL_PAIR;
	}
	return result;
}

static void mark_matched(struct set_entry *entry, unsigned side, const char *name)
{
	const struct spec_names *names = &entry->spec.sides[side].names;

	for (unsigned i = 0; i < names->count; i++)
		entry->state.names[side][i].matched |= spec_pattern_matches(&names->list[i], name);
}

static int add_probe(struct find *find, uint32_t number, unsigned side,
		     const struct usdt_note *note)
{
	struct set_entry *entry = find->set->entries.data[number];
	struct object_probe probe = {0};
	struct error problem = ERROR_INIT;
	struct fetch_program_made made;
	const char *name;
	int result;

	if (!find_offset(find, note->address, &probe.offset) ||
	    (note->semaphore &&
	     !semaphore_offset(find, note->semaphore, &probe.semaphore_offset))) {
		find->object->bad_notes++;
		return 0;
	}
	mark_matched(entry, side, note->name);
	name = strtab_get(find->object->strings,
			  strtab_add(find->object->strings, note->name, strlen(note->name)));
	probe.cost = find_cost(find, note->address, probe.offset);
	if (probe.cost == OBJECT_COST_REFUSED) {
		find_refused(entry, name);
		return 0;
	}
	if (make_probe(find, entry, number, side, note, &made, &problem)) {
		find_trouble(find, entry, &problem);
		return 0;
	}
	probe.type = side ? OBJECT_PROBE_END : find_instant(&made);
	result = find_site(find, entry, name, &made,
			   side               ? WAFFLE_SITE_SPAN_END
			   : entry->spec.pair ? WAFFLE_SITE_SPAN
					      : WAFFLE_SITE_EVENT,
			   &probe.site);
	entry->state.found++;
	entry->state.looked = set_keep(find->set, find->object->path);
	entry->state.probed++;
	if (result || probe.site == MAP_NONE)
		return result;
	return vec_push(&find->object->probes, probe)
		       ? 0
		       : error_set(find->err, ENOMEM, "out of memory");
}

/* Collects a note as a suggestion for a name that was not found. */
static void note_suggest(struct find *find, struct set_entry *entry, const struct usdt_note *note)
{
	const char *provider = entry->spec.provider.list[0].text;

	if (!spec_names_match(&entry->spec.provider, note->provider)) {
		if (!entry->state.provider && suggest_similar(provider, note->provider))
			find_suggest(find, &entry->state.providers, provider, note->provider);
		return;
	}
	for (unsigned side = 0; side < 1u + entry->spec.pair; side++)
		for (unsigned i = 0; i < entry->spec.sides[side].names.count; i++) {
			const char *text = entry->spec.sides[side].names.list[i].text;
			struct set_named *named = &entry->state.names[side][i];

			if (!named->matched && suggest_similar(text, note->name))
				find_suggest(find, &named->similar, text, note->name);
		}
}

static int match_note(const struct usdt_note *note, void *arg)
{
	struct find *find = arg;
	int result = 0;

	for (size_t i = 0; i < find->wanted.len && !result; i++) {
		struct set_entry *entry = find->set->entries.data[find->wanted.data[i]];

		if (entry->spec.type != SPEC_USDT)
			continue;
		entry->state.provider |= spec_names_match(&entry->spec.provider, note->provider);
		for (unsigned side = 0; side < 1u + entry->spec.pair && !result; side++) {
			if (!spec_names_match(&entry->spec.provider, note->provider) ||
			    !spec_names_match(&entry->spec.sides[side].names, note->name))
				continue;
			result = add_probe(find, find->wanted.data[i], side, note);
		}
		if (!entry->spec.quiet && !result)
			note_suggest(find, entry, note);
	}
	return result;
}

int find_usdt(struct find *find)
{
	struct error problem = ERROR_INIT;
	int result = 0;

	for (size_t i = 0; i < find->wanted.len; i++) {
		struct set_entry *entry = find->set->entries.data[find->wanted.data[i]];

		if (entry->spec.type != SPEC_USDT)
			continue;
		if (!entry->state.found)
			entry->state.looked = set_keep(find->set, find->object->path);
		if (find->abi)
			continue;
		error_set(&problem, ENOTSUP,
			  "%s: %s: the places of arguments on machine %u are not known",
			  entry->spec.source.origin, find->object->path, find->object->machine);
		find_trouble(find, entry, &problem);
	}
	if (find->abi)
		result = usdt_each(find->file.elf, match_note, find, &find->object->bad_notes);
	return result;
}
