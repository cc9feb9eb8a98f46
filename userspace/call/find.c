// SPDX-License-Identifier: Apache-2.0
/* Searches an ELF file for calls and adds the results to the object. */
#include "call/find.h"
#include "call/derive.h"
#include "call/find_remote.h"
#include "target/worker.h"

#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_BYTES 512

bool find_offset(const struct find *find, uint64_t address, uint64_t *offset)
{
	for (uint32_t i = 0; i < find->segments.count; i++) {
		const struct elf_segment *segment = &find->segments.list[i];

		if (address < segment->address || address - segment->address >= segment->size)
			continue;
		*offset = segment->offset + (address - segment->address);
		return true;
	}
	return false;
}

static const char *keep(struct find *find, const char *text)
{
	return strtab_get(find->object->strings,
			  strtab_add(find->object->strings, text, strlen(text)));
}

/* Whether this is a program: with fixed addresses, or a position-independent executable. */
static bool elf_is_program(Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Ehdr header;

	if (!gelf_getehdr(elf, &header))
		return false;
	if (header.e_type == ET_EXEC)
		return true;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr shdr;
		Elf_Data *data;
		GElf_Dyn dyn;

		if (!gelf_getshdr(section, &shdr) || shdr.sh_type != SHT_DYNAMIC)
			continue;
		data = elf_getdata(section, NULL);
		for (int i = 0; data && gelf_getdyn(data, i, &dyn) && dyn.d_tag != DT_NULL; i++)
			if (dyn.d_tag == DT_FLAGS_1)
				return dyn.d_un.d_val & DF_1_PIE;
	}
	return false;
}

/* The default category: the library's name up to the first '.' or '-', or the provider. */
static const char *site_category(struct find *find, const struct call_spec *spec)
{
	const char *base = path_base(find->object->path);
	char text[NAME_BYTES];

	if (spec->category)
		return keep(find, spec->category);
	if (spec->type == SPEC_USDT && spec->provider.count == 1 && !spec->provider.list[0].glob)
		return keep(find, spec->provider.list[0].text);
	snprintf(text, sizeof(text), "%.*s", (int)strcspn(base, ".-"), base);
	return keep(find, text);
}

static bool same_site(const struct object *object, const struct object_call *call,
		      const struct site_info *site, const struct recipe_made *made)
{
	const struct site_info *other = &object->sites.data[call->site];

	/* Strings of one object are interned, so equal strings have equal addresses. */
	return other->name == site->name && other->func == site->func &&
	       other->category == site->category && other->kind == site->kind &&
	       other->role == site->role && other->key_count == site->key_count &&
	       !memcmp(other->keys, site->keys, site->key_count * sizeof(site->keys[0])) &&
	       !memcmp(&call->recipe, &made->recipe, sizeof(made->recipe));
}

int find_site(struct find *find, struct set_entry *entry, const char *func,
	      const struct recipe_made *made, unsigned kind, uint32_t *number)
{
	struct object *object = find->object;
	struct site_info site = {.name = spec_name(&entry->spec, func, object->strings),
				 .category = site_category(find, &entry->spec),
				 .file = "",
				 .func = func,
				 .object = object->path,
				 .kind = (uint16_t)kind,
				 .role = entry->spec.role,
				 .call = true,
				 .simulated = object->simulation,
				 .keyed = entry->spec.pair && made->recipe.keys,
				 .key_count = made->key_count,
				 .begin_keys = made->begin_keys};
	struct object_call call = {.site = (uint32_t)object->sites.len, .recipe = made->recipe};

	for (unsigned i = 0; i < made->key_count; i++) {
		site.keys[i].type = made->keys[i].type;
		site.keys[i].name = keep(find, made->keys[i].name);
	}
	for (size_t i = 0; i < object->calls.len; i++)
		if (same_site(object, &object->calls.data[i], &site, made)) {
			*number = object->calls.data[i].site;
			return 0;
		}
	if (find->set->calls >= WAFFLE_RECIPES_MAX) {
		find_no_room(entry, func);
		*number = MAP_NONE;
		return 0;
	}
	if (!vec_push(&object->sites, site) || !vec_push(&object->calls, call))
		return error_set(find->err, ENOMEM, "out of memory");
	find->set->calls++;
	*number = call.site;
	return 0;
}

#define INSTRUCTION_BYTES_MAX 16

/* Reads the file itself, not a mapping, where the kernel may have inserted breakpoints. */
static size_t read_code(struct find *find, uint8_t *code, size_t size, uint64_t offset)
{
	ssize_t got = pread(find->file.fd, code, size, (off_t)offset);

	return got > 0 ? (size_t)got : 0;
}

uint8_t find_cost(struct find *find, uint64_t address, uint64_t offset)
{
	uint8_t code[INSTRUCTION_BYTES_MAX];
	size_t size = read_code(find, code, sizeof(code), offset);

	return (uint8_t)place_cost(&find->set->kernel, find->object->machine, code, size, address);
}

static struct place find_place(struct find *find, const struct find_hit *hit)
{
	uint8_t code[PLACE_BYTES_MAX];
	bool whole = hit->size && hit->size <= sizeof(code);
	size_t size = read_code(find, code, whole ? hit->size : INSTRUCTION_BYTES_MAX, hit->offset);

	if (hit->go)
		return place_go(&find->set->kernel, find->object->machine, code, size,
				hit->address);
	return place_function(&find->set->kernel, find->object->machine, code, size,
			      whole && size == hit->size, hit->address);
}

static int add_probe(struct find *find, const struct find_hit *hit, uint32_t site, unsigned type)
{
	struct object_probe probe = {.site = site,
				     .type = (uint8_t)type,
				     .offset = hit->offset + hit->place.shift,
				     .shift = hit->place.shift,
				     .cost = hit->place.cost};

	return vec_push(&find->object->probes, probe)
		       ? 0
		       : error_set(find->err, ENOMEM, "out of memory");
}

/* The number that both ends of a description's pairs share. */
static uint32_t pair_number(const struct find_hit *hit)
{
	return hit->entry + 1;
}

/* Stores the extent of the object's code around the probe, with which BPF recognises calls from
 * inside the object. */
static void put_code(const struct find *find, uint64_t probe, struct waffle_recipe *recipe)
{
	for (uint32_t i = 0; i < find->segments.count; i++) {
		const struct elf_segment *segment = &find->segments.list[i];

		if (probe < segment->address || probe - segment->address >= segment->size)
			continue;
		recipe->code_before = (uint32_t)(probe - segment->address);
		recipe->code_behind = (uint32_t)(segment->size - recipe->code_before);
	}
}

static int make_call(struct find *find, const struct find_hit *hit, const struct call_spec *spec,
		     struct recipe_made *made, struct error *err)
{
	struct recipe_made begin;
	struct call_at at;
	const struct abi *abi = hit->go ? abi_find_go(find->object->machine) : find->abi;
	int result;

	if (!abi)
		return error_set(err, ENOTSUP,
				 "%s: %s: of machine %u the rules for arguments "
				 "are not known",
				 spec->source.origin, find->object->path, find->object->machine);
	find->code_of = (struct structs_code){.address = hit->address};
	call_at_function(&at, abi, &spec->sides[0]);
	result = recipe_make(hit->side ? &begin : made, spec, &at, &find->lookup, err);
	if (!result && made->recipe.flags & WAFFLE_CALL_OUTER && !hit->side)
		put_code(find, hit->address + hit->place.shift, &made->recipe);
	if (!result && hit->side) {
		call_at_function(&at, abi, &spec->sides[1]);
		result = recipe_make_end(made, spec, &at, &find->lookup, &begin, err);
	} else if (!result && spec->pair) {
		struct recipe_made end;

		/* Keys that only the end knows are the last keys of the span. */
		call_at_function(&at, abi, &spec->sides[1]);
		result = recipe_make_end(&end, spec, &at, &find->lookup, made, err);
		for (unsigned i = 0; i < end.key_count && !result; i++)
			if (made->key_count < WAFFLE_KEYS_MAX)
				made->keys[made->key_count++] = end.keys[i];
	}
	if (spec->pair) {
		made->recipe.pair = pair_number(hit);
		made->recipe.flags |= hit->side ? WAFFLE_CALL_END : WAFFLE_CALL_PAIR;
	}
	made->recipe.flags |= WAFFLE_CALL_FUNCTION;
	return result;
}

static int add_return(struct find *find, const struct find_hit *hit, uint32_t site,
		      uint64_t address)
{
	struct object_probe probe = {.site = site, .type = OBJECT_PROBE_RETURN};

	if (!find_offset(find, address, &probe.offset))
		return 0;
	/* `shift` stays 0 in another part of the function, since an offset would be meaningless
	 * there. */
	if (address > hit->address && address - hit->address <= UINT16_MAX)
		probe.shift = (uint16_t)(address - hit->address);
	probe.cost = find_cost(find, address, probe.offset);
	return vec_push(&find->object->probes, probe)
		       ? 0
		       : error_set(find->err, ENOMEM, "out of memory");
}

/* `returns`: return instructions to probe. NULL: use a return probe. */
static int add_ends(struct find *find, const struct find_hit *hit, uint32_t site,
		    const struct returns *returns)
{
	int result = 0;

	if (!returns)
		return add_probe(find, hit, site, OBJECT_PROBE_LEAVE);
	for (uint32_t i = 0; i < returns->count && !result; i++)
		result = add_return(find, hit, site, returns->list[i]);
	return result;
}

uint8_t find_instant(const struct recipe_made *made)
{
	return made->recipe.flags & WAFFLE_CALL_INNER ? OBJECT_PROBE_INNER : OBJECT_PROBE_INSTANT;
}

static int add_site(struct find *find, const struct find_hit *hit, const struct call_spec *spec,
		    const struct returns *returns)
{
	struct set_entry *entry = find->set->entries.data[hit->entry];
	struct error problem = ERROR_INIT;
	struct recipe_made made = {.key_count = 0};
	uint32_t site = MAP_NONE;
	int result;

	if (make_call(find, hit, spec, &made, &problem)) {
		find_trouble(find, entry, &problem);
		entry->state.found = 0;
		return 0;
	}
	result = find_site(find, entry, hit->name, &made,
			   hit->side     ? WAFFLE_SITE_SPAN_END
			   : spec->event ? WAFFLE_SITE_EVENT
					 : WAFFLE_SITE_SPAN,
			   &site);
	if (result || site == MAP_NONE)
		return result;
	if (hit->side)
		return add_probe(find, hit, site, OBJECT_PROBE_END);
	if (spec->event || spec->pair)
		return add_probe(find, hit, site, find_instant(&made));
	return add_probe(find, hit, site, OBJECT_PROBE_ENTER) ?: add_ends(find, hit, site, returns);
}

/* A span whose end cannot be observed without risk for the program is recorded as an event. */
static int add_function(struct find *find, struct find_hit *hit)
{
	struct set_entry *entry = find->set->entries.data[hit->entry];
	const struct call_spec *spec = &entry->spec;
	enum find_end end = FIND_END_TRAMPOLINE;
	struct returns returns;
	struct call_spec *event;
	int result;

	if (find->set->calls >= WAFFLE_RECIPES_MAX) {
		find_no_room(entry, hit->name);
		return 0;
	}
	hit->place = find_place(find, hit);
	if (hit->place.cost == OBJECT_COST_REFUSED) {
		find_refused(entry, hit->name);
		return 0;
	}
	entry->state.probed++;
	if (!spec->event && !spec->pair)
		end = find_end_of(find, hit, spec, &returns);
	if (end != FIND_END_UNSEEN)
		return add_site(find, hit, spec, end == FIND_END_RETURNS ? &returns : NULL);
	find_endless(find, hit, spec);
	event = find_as_event(spec);
	if (!event)
		return error_set(find->err, ENOMEM, "out of memory");
	result = add_site(find, hit, event, NULL);
	free(event);
	return result;
}

static int compare_hits(const void *a, const void *b, void *arg)
{
	const struct find_hit *left = a, *right = b;
	struct find *find = arg;
	uint32_t left_group = find->set->entries.data[left->entry]->spec.group;
	uint32_t right_group = find->set->entries.data[right->entry]->spec.group;

	if (left_group != right_group)
		return left_group < right_group ? -1 : 1;
	if (left->address != right->address)
		return left->address < right->address ? -1 : 1;
	if (left->entry != right->entry)
		return left->entry < right->entry ? -1 : 1;
	if (left->side != right->side)
		return left->side < right->side ? -1 : 1;
	if (left->rank != right->rank)
		return left->rank > right->rank ? -1 : 1;
	return strcmp(left->name, right->name);
}

static int compare_entries(const void *a, const void *b)
{
	const struct find_hit *left = a, *right = b;

	if (left->entry != right->entry)
		return left->entry < right->entry ? -1 : 1;
	if (left->side != right->side)
		return left->side < right->side ? -1 : 1;
	return left->address < right->address ? -1 : left->address > right->address;
}

/* Among several names of one address, keeps the first row's and the best: ncclX before pncclX. */
static void deduplicate(struct find *find, struct find_hits *hits)
{
	struct find_hit *list = hits->list.data;
	size_t kept = 0;

	qsort_r(list, hits->list.len, sizeof(*list), compare_hits, find);
	for (size_t i = 0; i < hits->list.len; i++) {
		struct set_entry **entries = find->set->entries.data;

		/* The two ends of a pair may be the same function. */
		if (kept && list[kept - 1].address == list[i].address &&
		    list[kept - 1].side == list[i].side &&
		    entries[list[kept - 1].entry]->spec.group == entries[list[i].entry]->spec.group)
			continue;
		list[kept++] = list[i];
	}
	hits->list.len = kept;
	qsort(list, kept, sizeof(*list), compare_entries);
}

static int find_functions(struct find *find)
{
	struct find_hits hits = {0};
	int result = find_symbols(find, &hits);

	if (!result && hits.list.len)
		deduplicate(find, &hits);
	for (size_t i = 0; i < hits.list.len && !result; i++)
		result = add_function(find, &hits.list.data[i]);
	vec_free(&hits.list);
	return result;
}

/* Selects the descriptions here, since only the tracer can resolve their paths in the view of the
 * process. Whether the file is a program is found later, by its reader. */
static bool lists_make(struct find_lists *lists, const struct call_set *set, const char *path)
{
	for (unsigned exe = 0; exe < 2; exe++) {
		struct set_file file = {.path = path, .is_exe = exe, .process = set->process};

		for (uint32_t i = 0; i < set->entries.len; i++) {
			const struct call_spec *spec = &set->entries.data[i]->spec;

			if (spec->type != SPEC_TRACEPOINT && set_lib_matches(spec, &file) &&
			    !vec_push(&lists->of[exe], i))
				return false;
		}
	}
	return true;
}

static int find_wanted(struct find *find, const struct find_lists *lists, bool *functions,
		       bool *usdt)
{
	for (size_t i = 0; i < lists->of[find->is_exe].len; i++) {
		uint32_t entry = lists->of[find->is_exe].data[i];
		const struct call_spec *spec = &find->set->entries.data[entry]->spec;

		if (!vec_push(&find->wanted, entry))
			return error_set(find->err, ENOMEM, "out of memory");
		*functions |= spec->type == SPEC_UPROBE;
		*usdt |= spec->type == SPEC_USDT;
	}
	return 0;
}

static bool offset_of(void *arg, const char *name, int32_t *offset)
{
	const struct find *find = arg;

	return derive_offset(&find->file, find->object->machine, name, offset);
}

static int find_open(struct find *find, int fd)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	int result = own < 0 ? -errno : elf_file_open_fd(&find->file, own, find->object->path);

	if (result)
		return error_set(find->err, -result, "%s: %s", find->object->path,
				 result == -ENOEXEC ? "not an ELF file" : strerror(-result));
	find->is_exe = elf_is_program(find->file.elf);
	elf_file_segments(&find->file, &find->segments);
	find->go = elf_file_has_section(&find->file, ".gopclntab") ||
		   elf_file_has_section(&find->file, ".go.buildinfo");
	return 0;
}

static int lookup_fields(void *arg, const struct call_spec *spec, const char *where,
			 struct call_value *value, unsigned first, struct error *err)
{
	struct find *find = arg;
	const struct elf_file *file = elf_file_has_debug(&find->file) ? &find->file : &find->debug;

	/* Without DWARF or memory it stays closed, and fields_resolve() reports that. */
	if (!find->dwarf_tried && file->elf)
		dwarf_file_open(&find->dwarf, file, find->debug_dir);
	find->dwarf_tried = true;
	return fields_resolve(&find->dwarf, &find->code_of, where, value, first, &spec->source,
			      find->object->path, err);
}

int find_in_file(struct call_set *set, struct object *object, int fd,
		 const struct find_lists *lists, struct error *err)
{
	const char *debug_dir = getenv("WAFFLE_DEBUG_DIR");
	struct find find = {.set = set,
			    .object = object,
			    .file = ELF_FILE_INIT,
			    .debug = ELF_FILE_INIT,
			    .debug_dir = debug_dir && *debug_dir ? debug_dir : "/usr/lib/debug",
			    .dwarf = DWARF_FILE_INIT,
			    .abi = abi_find(object->machine),
			    .err = err};
	bool functions = false, usdt = false;
	size_t probes = object->probes.len;
	int result;

	find.lookup = (struct recipe_lookup){lookup_fields, offset_of, &find};
	result = find_open(&find, fd) ?: find_wanted(&find, lists, &functions, &usdt);
	if (!result && find.wanted.len)
		elf_file_find_debug(&find.debug, &find.file, &find.file.build_id, find.debug_dir);
	if (!result && functions && cfi_index_open(&find.frames, &find.file))
		result = error_set(err, ENOMEM, "out of memory");
	if (!result && functions)
		result = find_functions(&find);
	if (!result && functions)
		find_static(&find);
	if (!result && usdt)
		result = find_usdt(&find);
	if (!result && (elf_file_changed(&find.file) || elf_file_changed(&find.debug))) {
		object->probes.len = probes; /* the file changed, so any probe may be wrong */
		result = error_set(err, ESTALE, "%s: it changed while it was read", object->path);
	}
	find_say(&find);
	vec_free(&find.wanted);
	dwarf_file_close(&find.dwarf);
	symtab_free(&find.code);
	cfi_index_close(find.frames);
	elf_file_close(&find.debug);
	elf_file_close(&find.file);
	return result;
}

int find_alone(struct call_set *set, struct object *object, int fd, struct error *err)
{
	struct find_lists lists = {0};
	int result = 0;

	if (!lists_make(&lists, set, object->path))
		result = error_set(err, ENOMEM, "out of memory");
	else if (worker_is_there())
		result = find_remote(set, object, fd, &lists, err);
	else
		result = find_in_file(set, object, fd, &lists, err);
	vec_free(&lists.of[0]);
	vec_free(&lists.of[1]);
	return result;
}
