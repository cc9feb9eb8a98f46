// SPDX-License-Identifier: Apache-2.0
/* Searches an ELF file for calls and adds the results to the object. */
#include "probe/args/struct_offsets.h"
#include "probe/find/find_internal.h"
#include "probe/find/find_remote_internal.h"

#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
static void put_code(const struct find *find, uint64_t probe,
		     struct waffle_fetch_program *fetch_program)
{
	for (uint32_t i = 0; i < find->segments.count; i++) {
		const struct elf_segment *segment = &find->segments.list[i];

		if (probe < segment->address || probe - segment->address >= segment->size)
			continue;
		fetch_program->code_before = (uint32_t)(probe - segment->address);
		fetch_program->code_behind = (uint32_t)(segment->size - fetch_program->code_before);
	}
}

static int make_call(struct find *find, const struct find_hit *hit, const struct call_spec *spec,
		     struct fetch_program_made *made, struct error *err)
{
	struct fetch_program_made begin;
	struct call_at at;
	const struct abi *abi = hit->go ? abi_find_go(find->object->machine) : find->abi;
	int result;

	if (!abi)
		return error_set(err, ENOTSUP,
				 "%s: %s: the calling convention of machine %u is not known",
				 spec->source.origin, find->object->path, find->object->machine);
	find->code_of = (struct structs_code){.address = hit->address};
	call_at_function(&at, abi, &spec->sides[0]);
	result = fetch_program_make(hit->side ? &begin : made, spec, &at, &find->lookup, err);
	if (!result && made->fetch_program.flags & WAFFLE_CALL_OUTER && !hit->side)
		put_code(find, hit->address + hit->place.shift, &made->fetch_program);
	if (!result && hit->side) {
		call_at_function(&at, abi, &spec->sides[1]);
		result = fetch_program_make_end(made, spec, &at, &find->lookup, &begin, err);
	} else if (!result && spec->pair) {
		struct fetch_program_made end;

		/* Keys that only the end knows are the last keys of the span. */
		call_at_function(&at, abi, &spec->sides[1]);
		result = fetch_program_make_end(&end, spec, &at, &find->lookup, made, err);
		for (unsigned i = 0; i < end.key_count && !result; i++)
			if (made->key_count < WAFFLE_KEYS_MAX)
				made->keys[made->key_count++] = end.keys[i];
	}
	if (spec->pair) {
		made->fetch_program.pair = pair_number(hit);
		made->fetch_program.flags |= hit->side ? WAFFLE_CALL_END : WAFFLE_CALL_PAIR;
	}
	made->fetch_program.flags |= WAFFLE_CALL_FUNCTION;
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
		    const struct return_sites *returns)
{
	int result = 0;

	if (!returns)
		return add_probe(find, hit, site, OBJECT_PROBE_LEAVE);
	for (uint32_t i = 0; i < returns->count && !result; i++)
		result = add_return(find, hit, site, returns->list[i]);
	return result;
}

static int add_site(struct find *find, const struct find_hit *hit, const struct call_spec *spec,
		    const struct return_sites *returns)
{
	struct set_entry *entry = find->set->entries.data[hit->entry];
	struct error problem = ERROR_INIT;
	struct fetch_program_made made = {.key_count = 0};
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
	struct return_sites returns;
	struct call_spec *event;
	int result;

	if (find->set->calls >= WAFFLE_FETCH_PROGRAMS_MAX) {
		find_no_room(entry, hit->name);
		return 0;
	}
	hit->place = find_probe_site(find, hit);
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

	return struct_offset_find(&find->file, find->object->machine, name, offset);
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
	find->go = elf_file_is_go(&find->file);
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

	find.lookup = (struct fetch_program_lookup){lookup_fields, offset_of, &find};
	result = find_open(&find, fd) ?: find_wanted(&find, lists, &functions, &usdt);
	if (!result && find.wanted.len)
		elf_file_find_debug(&find.debug, &find.file, &find.file.build_id, find.debug_dir);
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
	find_report(&find);
	vec_free(&find.wanted);
	dwarf_file_close(&find.dwarf);
	symtab_free(&find.code);
	cfi_index_close(find.frames);
	elf_file_close(&find.debug);
	elf_file_close(&find.file);
	return result;
}
