// SPDX-License-Identifier: Apache-2.0
/* Finds functions by their symbols. */
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/find/find_internal.h"
#include "probe/spec/func_name.h"
#include "target/elf/symtab.h"
#include "util/suggest.h"

#define PART_MAX 300

/* A name of a description that a symbol has to be compared with, because it is a pattern or may be
 * demangled. */
struct symbol_pattern {
	struct set_which which;
	const struct spec_pattern *name;
	char part[PART_MAX]; /* what each matching mangled name contains */
};
struct symbol_patterns {
	VEC(struct symbol_pattern) list;
};

/* A symbol table during the search. */
struct symbol_table {
	struct find *find;
	const struct symbol_patterns *patterns;
	struct find_hits *hits;
	Elf *elf;
	Elf_Data *data;
	size_t strings, count;
};

struct symbol {
	const char *name;
	uint64_t address, size;
	unsigned type;
	uint8_t rank;
};

enum { RANK_LOCAL = 0, RANK_SHARED = 8, RANK_UNDERSCORES_MAX = 7 };

static bool symbol_get(const struct symbol_table *table, size_t at, struct symbol *symbol)
{
	GElf_Sym raw;
	unsigned underscores;

	if (at > INT_MAX || !gelf_getsym(table->data, (int)at, &raw) || raw.st_shndx == SHN_UNDEF ||
	    raw.st_shndx == SHN_ABS || !raw.st_value)
		return false;
	symbol->type = GELF_ST_TYPE(raw.st_info);
	if (symbol->type != STT_FUNC && symbol->type != STT_GNU_IFUNC && symbol->type != STT_NOTYPE)
		return false;
	symbol->name = elf_strptr(table->elf, table->strings, raw.st_name);
	if (!symbol->name || !symbol->name[0] || symbol->name[0] == '$')
		return false;
	symbol->address = raw.st_value;
	symbol->size = raw.st_size;
	underscores = symbol_underscores(symbol->name);
	symbol->rank =
		(uint8_t)((GELF_ST_BIND(raw.st_info) != STB_LOCAL ? RANK_SHARED : RANK_LOCAL) +
			  RANK_UNDERSCORES_MAX -
			  (underscores < RANK_UNDERSCORES_MAX ? underscores
							      : RANK_UNDERSCORES_MAX));
	return true;
}

static bool is_wanted(const struct find *find, uint32_t entry)
{
	for (size_t i = 0; i < find->wanted.len; i++)
		if (find->wanted.data[i] == entry)
			return true;
	return false;
}

/* Rejects a part of a function that is only reached by jumps. A return probe there would take other
 * data on the stack for the return address, and overwrite it. */
static void refuse_fragment(struct find *find, struct set_which which, const char *name)
{
	struct set_entry *entry = find->set->entries.data[which.entry];
	struct error problem = ERROR_INIT;

	entry->state.names[which.side][which.at].matched = true;
	error_set(&problem, EINVAL,
		  "%s: '%s' of %s is no function but a part of one that it jumps to: describe the "
		  "function",
		  entry->spec.source.origin, name, find->object->path);
	find_trouble(find, entry, &problem);
}

/* Go's names have their package before a dot. In C only compiler-made names contain a dot. */
static bool symbol_is_go(const char *name)
{
	return strchr(name, '.') && func_part(name) == FUNC_WHOLE;
}

static struct set_named *which_named(const struct find *find, struct set_which which)
{
	return &find->set->entries.data[which.entry]->state.names[which.side][which.at];
}

/* Reads the file's call frame information for its first hit. Most files have none. */
static int frames_read(struct find *find)
{
	if (find->frames_tried)
		return 0;
	find->frames_tried = true;
	return cfi_index_open(&find->frames, &find->file);
}

static int add_hit(struct symbol_table *table, const struct symbol *symbol, const char *name,
		   struct set_which which, bool exact)
{
	struct find *find = table->find;
	struct set_named *named = which_named(find, which);
	struct find_hit hit = {.entry = which.entry,
			       .side = which.side,
			       .rank = symbol->rank,
			       .address = symbol->address,
			       .size = symbol->size,
			       .go = find->go && symbol_is_go(symbol->name)};

	if (symbol->type == STT_GNU_IFUNC) {
		named->ifunc |= exact;
		return 0;
	}
	/* A label without a type is code only if it lies in code. Patterns do not match labels. */
	if (!find_offset(find, symbol->address, &hit.offset) ||
	    (symbol->type == STT_NOTYPE && !exact))
		return 0;
	if (frames_read(find))
		return -ENOMEM;
	if (cfi_index_stack(find->frames, symbol->address) == CFI_STACK_USED) {
		if (exact)
			refuse_fragment(find, which, name);
		return 0;
	}
	named->matched = true;
	hit.name = strtab_get(find->object->strings,
			      strtab_add(find->object->strings, name, strlen(name)));
	return vec_push(&table->hits->list, hit) ? 0 : -ENOMEM;
}

/* A symbol to match. Its name is demangled on demand. */
struct match {
	struct symbol_table *table;
	const struct symbol *symbol;
	enum func_part part;
	bool tried, mangled;
	struct func_name name;
};

/* Matches descriptions that name this symbol literally. */
static int match_exact(struct match *match)
{
	struct find *find = match->table->find;
	const char *symbol = match->symbol->name;
	struct call_set *set = find->set;
	int result = 0;

	for (uint32_t at = keymap_get(&set->heads, symbol, strlen(symbol));
	     at != MAP_NONE && !result; at = set->names.data[at].next) {
		const struct set_name *name = &set->names.data[at];

		if (!is_wanted(find, name->which.entry))
			continue;
		if (match->part == FUNC_FRAGMENT)
			refuse_fragment(find, name->which, symbol);
		else
			result = add_hit(match->table, match->symbol, symbol, name->which, true);
	}
	return result;
}

/* Extracts a part of the mangled name: "5parse" for "ns::parse<int>". Every matching mangled name
 * contains it. It is empty if there is no such part. */
static void mangled_part(const char *name, char part[PART_MAX])
{
	size_t len = strcspn(name, "<([ ");
	const char *last = name;

	part[0] = '\0';
	if (name[len] == ' ')
		return;
	for (const char *at = name; (at = strstr(at, "::")) && at < name + len; at += 2)
		last = at + 2;
	last += *last == '~';
	len -= (size_t)(last - name);
	if (!len || !strncmp(last, "operator", 8) || !strncmp(name, "std::", 5) ||
	    snprintf(part, PART_MAX, "%zu%.*s", len, (int)len, last) >= PART_MAX)
		part[0] = '\0';
}

/* Does not clear the struct: its name is large, and few symbols need it. */
static void match_begin(struct match *match, struct symbol_table *table,
			const struct symbol *symbol)
{
	match->table = table;
	match->symbol = symbol;
	match->part = func_part(symbol->name);
	match->tried = match->mangled = false;
}

static bool match_read(struct match *match)
{
	if (!match->tried)
		match->mangled = func_name_read(&match->name, match->symbol->name);
	match->tried = true;
	return match->mangled;
}

static int match_glob(struct match *match, const struct symbol_pattern *pattern)
{
	const char *name = match->symbol->name;
	char text[DEMANGLE_MAX];
	size_t len = strlen(name);

	/* The arguments of a clone are unknown. */
	if (match->part == FUNC_CLONE && !strchr(pattern->name->text, '.'))
		return 0;
	if (!strncmp(name, "_Z", 2)) {
		if (!match_read(match) || match->name.clone)
			return 0;
		len = func_name_put(&match->name, false, text);
		name = text;
	}
	return glob_matches(pattern->name->glob, name, len)
		       ? add_hit(match->table, match->symbol, name, pattern->which, false)
		       : 0;
}

static int match_written(struct match *match, const struct symbol_pattern *pattern)
{
	const char *written = pattern->name->text;
	char text[DEMANGLE_MAX];

	if (strncmp(match->symbol->name, "_Z", 2) != 0 ||
	    !strstr(match->symbol->name, pattern->part) || !match_read(match) ||
	    !func_name_is(&match->name, written))
		return 0;
	func_name_put(&match->name, func_name_has_args(written), text);
	return add_hit(match->table, match->symbol, text, pattern->which, true);
}

/* Matches descriptions with patterns and, for C++, names that have to be demangled. */
static int match_patterns(struct match *match)
{
	const struct symbol_patterns *patterns = match->table->patterns;
	int result = 0;

	for (size_t i = 0; i < patterns->list.len && !result; i++) {
		const struct symbol_pattern *pattern = &patterns->list.data[i];

		result = pattern->name->glob ? match_glob(match, pattern)
					     : match_written(match, pattern);
	}
	return result;
}

static int table_match(struct symbol_table *table)
{
	int result = 0;

	for (size_t i = 0; i < table->count && !result; i++) {
		struct symbol symbol;
		struct match match;

		if (!symbol_get(table, i, &symbol))
			continue;
		match_begin(&match, table, &symbol);
		result = match_exact(&match);
		if (!result && match.part != FUNC_FRAGMENT)
			result = match_patterns(&match);
	}
	return result;
}

void find_suggest(struct find *find, struct set_suggestions *similar, const char *word,
		  const char *name)
{
	unsigned distance = suggest_distance(word, name);
	uint32_t at = similar->count;

	for (const char *byte = name; *byte; byte++)
		if ((unsigned char)*byte < ' ' || *byte == 127)
			return; /* untrusted control characters must not reach a terminal */
	for (uint32_t i = 0; i < similar->count; i++)
		if (!strcmp(similar->names[i], name))
			return;
	while (at > 0) {
		unsigned other = suggest_distance(word, similar->names[at - 1]);

		if (other < distance ||
		    (other == distance && strcmp(similar->names[at - 1], name) < 0))
			break;
		if (at < SET_SUGGESTIONS_MAX)
			similar->names[at] = similar->names[at - 1];
		at--;
	}
	if (at == SET_SUGGESTIONS_MAX)
		return;
	similar->names[at] = set_keep(find->set, name);
	if (similar->count < SET_SUGGESTIONS_MAX)
		similar->count++;
}

/* Whether a symbol is an implementation from which an ifunc chooses: __memcpy_avx_unaligned for
 * memcpy. */
static bool is_choice(const struct symbol *symbol, const char *name)
{
	size_t len = strlen(name);
	const char *plain = symbol->name + symbol_underscores(symbol->name);

	return symbol->type == STT_FUNC && !strncmp(plain, name, len) && plain[len] == '_';
}

/* Adds the demangled name of a similar C++ function. For a clone it adds the symbol itself, since
 * only the complete name matches. */
static void suggest_written(struct match *match, struct set_named *named, const char *word)
{
	char text[DEMANGLE_MAX];

	if (!match_read(match) || !func_name_is_similar(&match->name, word))
		return;
	if (!match->name.clone)
		func_name_put(&match->name, func_name_has_args(word), text);
	find_suggest(match->table->find, &named->similar, word,
		     match->name.clone ? match->symbol->name : text);
}

static void suggest_named(struct match *match, struct set_named *named, const char *word)
{
	const struct symbol *symbol = match->symbol;

	if (named->ifunc ? is_choice(symbol, word)
			 : !named->matched && suggest_similar(word, symbol->name))
		find_suggest(match->table->find, &named->similar, word, symbol->name);
	else if (!named->ifunc && !named->matched)
		suggest_written(match, named, word);
}

static void near_entry(struct match *match, struct set_entry *entry)
{
	const struct call_spec *spec = &entry->spec;

	if (spec->type != SPEC_UPROBE || spec->quiet)
		return;
	for (unsigned side = 0; side < 1u + spec->pair; side++)
		for (unsigned i = 0; i < spec->sides[side].names.count; i++)
			if (!spec->sides[side].names.list[i].glob)
				suggest_named(match, &entry->state.names[side][i],
					      spec->sides[side].names.list[i].text);
}

/* Collects names similar to those that were not found. */
static void table_suggest(struct symbol_table *table)
{
	struct find *find = table->find;

	for (size_t i = 0; i < table->count; i++) {
		struct symbol symbol;
		struct match match;

		if (!symbol_get(table, i, &symbol) || symbol.type == STT_NOTYPE ||
		    func_part(symbol.name) == FUNC_FRAGMENT)
			continue;
		match_begin(&match, table, &symbol);
		for (size_t k = 0; k < find->wanted.len; k++)
			near_entry(&match, find->set->entries.data[find->wanted.data[k]]);
	}
}

/* Searches the symbol tables of a type (SHT_SYMTAB, SHT_DYNSYM) for the described functions or,
 * without `patterns`, for similar names. Sets *any if there is such a table. 0 or -ENOMEM. */
static int tables_each(struct find *find, struct find_hits *hits,
		       const struct symbol_patterns *patterns, Elf *elf, uint32_t type, bool *any)
{
	size_t size = gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT);
	Elf_Scn *section = NULL;
	int result = 0;

	while (!result && size && (section = elf_nextscn(elf, section))) {
		struct symbol_table table = {
			.find = find, .hits = hits, .patterns = patterns, .elf = elf};
		GElf_Shdr header;

		if (!gelf_getshdr(section, &header) || header.sh_type != type)
			continue;
		table.data = elf_getdata(section, NULL);
		table.strings = header.sh_link;
		if (!table.data)
			continue;
		table.count = table.data->d_size / size;
		*any = true;
		if (patterns)
			result = table_match(&table);
		else
			table_suggest(&table);
	}
	return result;
}

static int files_each(struct find *find, struct find_hits *hits,
		      const struct symbol_patterns *patterns)
{
	bool symtab = false, dynsym = false;
	int result = tables_each(find, hits, patterns, find->file.elf, SHT_SYMTAB, &symtab);

	if (!result && !symtab && find->debug.elf)
		result = tables_each(find, hits, patterns, find->debug.elf, SHT_SYMTAB, &symtab);
	find->stripped = !symtab;
	return result ?: tables_each(find, hits, patterns, find->file.elf, SHT_DYNSYM, &dynsym);
}

/* Whether a name is missing for which suggestions are useful. */
static bool lacks_name(const struct set_entry *entry)
{
	const struct call_spec *spec = &entry->spec;
	bool lacks = false;

	for (unsigned side = 0; side < 1u + spec->pair; side++)
		for (unsigned i = 0; i < spec->sides[side].names.count; i++)
			lacks |= entry->state.names[side][i].ifunc ||
				 !entry->state.names[side][i].matched;
	return lacks && !spec->quiet;
}

static void looked_in(const struct find *find, struct spec_state *state)
{
	state->looked = set_keep(find->set, find->object->path);
	state->stripped = find->stripped;
}

static bool patterns_add(struct symbol_patterns *patterns, struct set_which which,
			 const struct spec_pattern *name)
{
	struct symbol_pattern added = {.which = which, .name = name};

	mangled_part(name->text, added.part);
	return vec_push(&patterns->list, added);
}

/* Collects the names that each symbol is compared with. Most rows of tables are of C, and match
 * exactly or not at all. False: out of memory. */
static bool patterns_collect(struct symbol_patterns *patterns, const struct find *find)
{
	bool good = true;

	for (size_t i = 0; i < find->wanted.len; i++) {
		uint32_t entry = find->wanted.data[i];
		const struct call_spec *spec = &find->set->entries.data[entry]->spec;

		if (spec->type != SPEC_UPROBE)
			continue;
		for (uint8_t side = 0; side < 1 + spec->pair; side++)
			for (uint8_t k = 0; k < spec->sides[side].names.count && good; k++) {
				const struct spec_pattern *name = &spec->sides[side].names.list[k];

				if (!spec->quiet || strstr(name->text, "::"))
					good = patterns_add(
						patterns, (struct set_which){entry, side, k}, name);
			}
	}
	return good;
}

int find_symbols(struct find *find, struct find_hits *hits)
{
	struct symbol_patterns patterns = {0};
	bool missing = false;
	int result =
		patterns_collect(&patterns, find) ? files_each(find, hits, &patterns) : -ENOMEM;

	vec_free(&patterns.list);
	if (result)
		return error_set(find->err, ENOMEM, "out of memory");
	for (size_t i = 0; i < hits->list.len; i++) {
		struct set_entry *entry = find->set->entries.data[hits->list.data[i].entry];

		entry->state.found++;
		looked_in(find, &entry->state);
	}
	for (size_t i = 0; i < find->wanted.len; i++) {
		struct set_entry *entry = find->set->entries.data[find->wanted.data[i]];

		if (entry->spec.type != SPEC_UPROBE)
			continue;
		if (!entry->state.found)
			looked_in(find, &entry->state);
		missing |= lacks_name(entry);
	}
	if (missing)
		files_each(find, hits, NULL);
	return 0;
}
