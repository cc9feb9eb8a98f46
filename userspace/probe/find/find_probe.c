// SPDX-License-Identifier: Apache-2.0
/* Chooses where to set the probe of a call, determines what it costs, and makes its site. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "probe/find/find_internal.h"
#include "util/path.h"

#define NAME_BYTES 512
#define INSTRUCTION_BYTES_MAX 16

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
		      const struct site_info *site, const struct fetch_program_made *made)
{
	const struct site_info *other = &object->sites.data[call->site];

	/* Strings of one object are interned, so equal strings have equal addresses. */
	return other->name == site->name && other->func == site->func &&
	       other->category == site->category && other->kind == site->kind &&
	       other->role == site->role && other->laps == site->laps &&
	       other->key_count == site->key_count &&
	       !memcmp(other->keys, site->keys, site->key_count * sizeof(site->keys[0])) &&
	       !memcmp(&call->fetch_program, &made->fetch_program, sizeof(made->fetch_program));
}

int find_site(struct find *find, struct set_entry *entry, const char *func,
	      const struct fetch_program_made *made, unsigned kind, uint32_t *number)
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
				 .keyed = entry->spec.pair && made->fetch_program.keys,
				 .laps = spec_laps(&entry->spec),
				 .key_count = made->key_count,
				 .begin_keys = made->begin_keys};
	struct object_call call = {.site = (uint32_t)object->sites.len,
				   .fetch_program = made->fetch_program};

	for (unsigned i = 0; i < made->key_count; i++) {
		site.keys[i].type = made->keys[i].type;
		site.keys[i].name = keep(find, made->keys[i].name);
	}
	for (size_t i = 0; i < object->calls.len; i++)
		if (same_site(object, &object->calls.data[i], &site, made)) {
			*number = object->calls.data[i].site;
			return 0;
		}
	if (find->set->calls >= WAFFLE_FETCH_PROGRAMS_MAX) {
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

	return (uint8_t)probe_site_cost(&find->set->kernel, find->object->machine, code, size,
					address);
}

struct probe_site find_probe_site(struct find *find, const struct find_hit *hit)
{
	uint8_t code[PROBE_SITE_BYTES_MAX];
	bool whole = hit->size && hit->size <= sizeof(code);
	size_t size = read_code(find, code, whole ? hit->size : INSTRUCTION_BYTES_MAX, hit->offset);

	if (hit->go)
		return probe_site_go(&find->set->kernel, find->object->machine, code, size,
				     hit->address);
	return probe_site_function(&find->set->kernel, find->object->machine, code, size,
				   whole && size == hit->size, hit->address);
}

uint8_t find_instant(const struct fetch_program_made *made)
{
	return made->fetch_program.flags & WAFFLE_CALL_INNER ? OBJECT_PROBE_INNER
							     : OBJECT_PROBE_INSTANT;
}
