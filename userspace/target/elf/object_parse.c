// SPDX-License-Identifier: Apache-2.0
#include "target/elf/object_parse.h"

#include <elf.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/elf/elflimits.h"
#include "target/worker/filecopy.h"
#include "util/keymap.h"

/* The decoded descriptor of a note (include/waffle/abi.h). */
struct note {
	uint64_t probe, semaphore, meta, func;
	uint32_t meta_size, line, kind, version;
};

/* Loadable segments of a file; linkers make a dozen. Each address lookup scans them all. */
#define LOADS_MAX 128

struct object_elf {
	Elf *elf;
	GElf_Ehdr header;
	GElf_Phdr loads[LOADS_MAX];
	size_t load_count;
	struct file_copy copy;
};

/* Maps a link-time address to a file offset. Returns how many bytes follow there, at least `size`.
 * 0: the file does not contain them. */
static uint64_t elf_range(const struct object_elf *file, uint64_t addr, uint64_t size,
			  uint64_t *offset)
{
	uint64_t end = (uint64_t)file->copy.at_first.st_size;

	for (size_t i = 0; i < file->load_count; i++) {
		const GElf_Phdr *load = &file->loads[i];
		uint64_t before = addr - load->p_vaddr, left;

		if (addr < load->p_vaddr || before > load->p_filesz || load->p_offset > end ||
		    before > end - load->p_offset)
			continue;
		*offset = load->p_offset + before;
		left = load->p_filesz - before < end - *offset ? load->p_filesz - before
							       : end - *offset;
		if (left && left >= size)
			return left;
	}
	return 0;
}

/* Maps `size` bytes at a link-time address to a file offset. False: they are not in the file. */
static bool elf_offset(const struct object_elf *file, uint64_t addr, uint64_t size,
		       uint64_t *offset)
{
	return elf_range(file, addr, size, offset) != 0;
}

/* Copies the bytes at an address. False: they are not in the file. */
static bool elf_bytes(struct object_elf *file, uint64_t addr, void *to, size_t size)
{
	uint64_t offset;

	return !size || (elf_offset(file, addr, size, &offset) &&
			 file_copy_get(&file->copy, offset, to, size));
}

static uint64_t read_word(const unsigned char *at, unsigned bytes, bool big)
{
	uint64_t word = 0;

	for (unsigned i = 0; i < bytes; i++)
		word = word << 8 | at[big ? i : bytes - 1 - i];
	return word;
}

static struct note note_decode(const unsigned char *desc, bool big)
{
	return (struct note){
		.probe = read_word(desc, 8, big),
		.semaphore = read_word(desc + 16, 8, big),
		.meta = read_word(desc + 24, 8, big),
		.func = read_word(desc + 32, 8, big),
		.meta_size = (uint32_t)read_word(desc + 40, 4, big),
		.line = (uint32_t)read_word(desc + 44, 4, big),
		.kind = (uint32_t)read_word(desc + 48, 4, big),
		.version = (uint32_t)read_word(desc + 52, 4, big),
	};
}

/* The next NUL-terminated string of a site's meta. NULL: there is none. */
static const char *meta_next(const char **at, const char *end)
{
	const char *text = *at;
	const char *nul = text < end ? memchr(text, '\0', (size_t)(end - text)) : NULL;

	if (!nul)
		return NULL;
	*at = nul + 1;
	return text;
}

static const char *keep(struct object *object, const char *text)
{
	return strtab_get(object->strings, strtab_add(object->strings, text, strlen(text)));
}

/* Limit of a function name. */
#define FUNC_MAX 512
/* Limit of all strings of a site: its names, its file and its keys. */
#define META_MAX 32768

static const char *site_func(struct object *object, struct object_elf *file, uint64_t addr)
{
	uint64_t offset, left = addr ? elf_range(file, addr, 1, &offset) : 0;
	size_t size = left < FUNC_MAX - 1 ? (size_t)left : FUNC_MAX - 1;
	char name[FUNC_MAX];

	if (!size || !file_copy_get(&file->copy, offset, name, size) || !memchr(name, '\0', size))
		return "";
	return keep(object, name);
}
static bool site_parse(struct object *object, struct object_elf *file, const struct note *note,
		       struct site_info *site)
{
	char meta[META_MAX];
	const char *at = meta, *end, *text;

	if (note->kind >= WAFFLE_SITE_KIND_COUNT || note->meta_size > sizeof(meta) ||
	    !elf_bytes(file, note->meta, meta, note->meta_size))
		return false;
	end = meta + note->meta_size;
	*site = (struct site_info){.line = note->line, .kind = (uint16_t)note->kind};
	if (!(text = meta_next(&at, end)))
		return false;
	site->name = keep(object, text);
	if (!(text = meta_next(&at, end)))
		return false;
	site->file = keep(object, text);
	if (!(text = meta_next(&at, end)))
		return false;
	site->category = keep(object, text);
	while ((text = meta_next(&at, end)) && text[0]) {
		if (site->key_count == WAFFLE_KEYS_MAX || !strchr("iudbpsnSE", text[0]))
			return false;
		site->keys[site->key_count++] =
			(struct site_key){.type = text[0], .name = keep(object, text + 1)};
	}
	site->func = site_func(object, file, note->func);
	site->object = object->path;
	return true;
}

/* Returns the index of a site and adds the site if it is new. `seen` maps what a site consists of
 * to its index. Strings of one object are interned, so equal strings have equal addresses. */
static uint32_t site_index(struct object *object, struct keymap *seen, const struct site_info *site)
{
	uint64_t key[5 + 2 * WAFFLE_KEYS_MAX] = {(uintptr_t)site->name, (uintptr_t)site->file,
						 (uintptr_t)site->category, (uintptr_t)site->func,
						 (uint64_t)site->kind << 32 | site->line};
	size_t len = 5;
	uint32_t at;

	for (unsigned i = 0; i < site->key_count; i++) {
		key[len++] = (unsigned char)site->keys[i].type;
		key[len++] = (uintptr_t)site->keys[i].name;
	}
	at = keymap_get(seen, key, len * sizeof(*key));
	if (at != MAP_NONE)
		return at;
	at = (uint32_t)object->sites.len;
	if (!keymap_set(seen, key, len * sizeof(*key), at) || !vec_push(&object->sites, *site))
		return MAP_NONE;
	return at;
}

/* Whether an address lies in code. */
static bool elf_executable(const struct object_elf *file, uint64_t addr)
{
	for (size_t i = 0; i < file->load_count; i++) {
		const GElf_Phdr *load = &file->loads[i];

		if (load->p_flags & PF_X && addr >= load->p_vaddr &&
		    addr - load->p_vaddr < load->p_filesz)
			return true;
	}
	return false;
}

/* Whether the file has the nop of a site at this address. Nothing else may ever be probed. */
static bool elf_nop(struct object_elf *file, uint64_t addr)
{
	static const unsigned char x86[] = {0x90}, arm64[] = {0x1f, 0x20, 0x03, 0xd5};
	bool arm = file->header.e_machine == EM_AARCH64;
	size_t size = arm ? sizeof(arm64) : sizeof(x86);
	unsigned char code[sizeof(arm64)];

	return elf_bytes(file, addr, code, size) && !memcmp(code, arm ? arm64 : x86, size);
}

/*
 * Adds the site of a note. False: out of memory. A malformed note is only counted. A note may
 * outlive its code (--gc-sections) and then refers to nothing, which is no error.
 */
static bool note_add(struct object *object, struct object_elf *file, struct keymap *seen,
		     const struct note *note)
{
	struct object_probe probe = {.site = OBJECT_SPAN_END};
	struct site_info site;

	if (!elf_executable(file, note->probe))
		return true;
	if (!elf_nop(file, note->probe) || !elf_offset(file, note->probe, 1, &probe.offset) ||
	    (note->semaphore && !elf_offset(file, note->semaphore, 2, &probe.semaphore_offset))) {
		object->bad_notes++;
		return true;
	}
	if (note->kind != WAFFLE_SITE_SPAN_END) {
		if (!site_parse(object, file, note, &site)) {
			object->bad_notes++;
			return true;
		}
		probe.site = site_index(object, seen, &site);
		if (probe.site == MAP_NONE)
			return false;
		object->other_version |= note->version && note->version != WAFFLE_SITE_VERSION;
	}
	return vec_push(&object->probes, probe);
}

/* Reads the note of libwaffle, unless there was one. */
static void transport_read(struct object *object, struct object_elf *file,
			   const unsigned char *desc)
{
	bool big = object->big_endian;
	uint64_t ring = read_word(desc, 8, big), usdt = read_word(desc + 16, 8, big);
	struct object_transport found = {.version = (uint32_t)read_word(desc + 32, 4, big)};

	if (object->transport.version || !elf_executable(file, ring))
		return;
	if (!elf_nop(file, ring) || !elf_nop(file, usdt) ||
	    !elf_offset(file, ring, 1, &found.ring) || !elf_offset(file, usdt, 1, &found.usdt) ||
	    !elf_offset(file, read_word(desc + 8, 8, big), 2, &found.ring_semaphore) ||
	    !elf_offset(file, read_word(desc + 24, 8, big), 2, &found.usdt_semaphore))
		object->bad_notes++;
	else
		object->transport = found;
}

static bool section_read(struct object *object, struct object_elf *file, struct keymap *seen,
			 Elf_Data *data)
{
	size_t at = 0, next, name, desc;
	GElf_Nhdr header;

	while (at < data->d_size && (next = gelf_getnote(data, at, &header, &name, &desc)) > 0) {
		const char *bytes = data->d_buf;

		bool ours = header.n_namesz == sizeof(WAFFLE_NOTE_OWNER) &&
			    !memcmp(bytes + name, WAFFLE_NOTE_OWNER, sizeof(WAFFLE_NOTE_OWNER));

		object->simulation |= ours && header.n_type == WAFFLE_NOTE_SIMULATION;
		if (ours && header.n_type == WAFFLE_NOTE_TRANSPORT &&
		    header.n_descsz >= WAFFLE_NOTE_TRANSPORT_BYTES)
			transport_read(object, file, (const unsigned char *)bytes + desc);
		if (ours && header.n_type == WAFFLE_NOTE_SITE &&
		    header.n_descsz >= WAFFLE_NOTE_DESC_BYTES) {
			struct note note = note_decode((const unsigned char *)bytes + desc,
						       object->big_endian);

			if (!note_add(object, file, seen, &note))
				return false;
		}
		at = next;
	}
	if (at < data->d_size)
		object->bad_notes++;
	return true;
}

static int sections_read(struct object *object, struct object_elf *file, struct error *err)
{
	Elf_Scn *section = NULL;
	struct keymap seen = {0};
	bool ok = true;
	size_t names;

	if (elf_getshdrstrndx(file->elf, &names))
		return 0; /* without section headers there are no notes */
	while (ok && (section = elf_nextscn(file->elf, section))) {
		GElf_Shdr header;
		const char *name;
		Elf_Data *data;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_NOTE)
			continue;
		name = elf_strptr(file->elf, names, header.sh_name);
		if (!name || strcmp(name, WAFFLE_NOTE_SECTION) != 0)
			continue;
		data = elf_getdata(section, NULL);
		if (data && data->d_buf)
			ok = section_read(object, file, &seen, data);
	}
	keymap_free(&seen);
	return ok ? 0 : error_set(err, ENOMEM, "%s: out of memory", object->path);
}

static bool segment_has(const GElf_Phdr *segment, uint64_t page, uint64_t size)
{
	return segment->p_filesz && segment->p_offset / size <= page / size &&
	       (segment->p_offset + segment->p_filesz - 1) / size >= page / size;
}

/* Finds a page that several writable segments share, such as the last page of one and the first of
 * the next. */
static struct object_page elf_doubled_page(const struct object_elf *file)
{
	uint64_t size = (uint64_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < file->load_count; i++) {
		struct object_page page = {.offset = file->loads[i].p_offset / size * size};
		unsigned writable = 0;

		for (size_t j = 0; j < file->load_count; j++) {
			if (!segment_has(&file->loads[j], page.offset, size))
				continue;
			page.mappings++;
			writable += (file->loads[j].p_flags & PF_W) != 0;
		}
		if (writable > 1)
			return page;
	}
	return (struct object_page){0};
}

static int loads_read(const struct object *object, struct object_elf *file, struct error *err)
{
	size_t count;

	if (elf_getphdrnum(file->elf, &count))
		return error_set(err, ENOEXEC, "%s: not an ELF file", object->path);
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr *load = &file->loads[file->load_count];

		if (file->load_count == LOADS_MAX)
			return error_set(err, ENOTSUP,
					 "%s: it has %d loadable segments or more; its sites are "
					 "not read",
					 object->path, LOADS_MAX);
		if (gelf_getphdr(file->elf, (int)i, load) && load->p_type == PT_LOAD)
			file->load_count++;
	}
	return 0;
}

/*
 * Does not use ELF_C_READ_MMAP, so that libelf reads each section into private memory. If the file
 * is probed in all processes, the kernel puts its breakpoints into file mappings, too
 * (kernel/events/uprobes.c, valid_vma). Then the nops would not be nops.
 */
static int elf_read(struct object *object, struct object_elf *file, struct error *err)
{
	int result;

	elf_version(EV_CURRENT);
	file->elf = elf_limited_begin(file->copy.fd);
	if (!file->elf || elf_kind(file->elf) != ELF_K_ELF ||
	    !gelf_getehdr(file->elf, &file->header))
		return error_set(err, ENOEXEC, "%s: not an ELF file", object->path);
	if (gelf_getclass(file->elf) != ELFCLASS64)
		return error_set(err, ENOTSUP,
				 "%s: a 32-bit file: sites and functions of 64-bit programs only "
				 "can be traced",
				 object->path);
	object->big_endian = file->header.e_ident[EI_DATA] == ELFDATA2MSB;
	object->machine = file->header.e_machine;
	result = loads_read(object, file, err);
	if (result)
		return result;
	object->doubled = elf_doubled_page(file);
	return sections_read(object, file, err);
}

static int object_fill(struct object *object, int fd, struct error *err)
{
	struct object_elf file = {0};
	int result = file_copy_open(&file.copy, fd), state;

	if (result)
		return error_set(err, result == -EINVAL ? ENOEXEC : -result, "%s: %s", object->path,
				 result == -EINVAL ? "not an ELF file" : strerror(-result));
	object->dev = file.copy.at_first.st_dev;
	object->ino = file.copy.at_first.st_ino;
	result = elf_read(object, &file, err);
	elf_end(file.elf);
	state = file_copy_state(&file.copy);
	file_copy_close(&file.copy);
	if (result == -ENOMEM || !state)
		return result;
	/* The file changed meanwhile, so the result is worthless, even if it is an error. */
	*err = (struct error)ERROR_INIT;
	return error_set(err, -state, "%s: %s", object->path,
			 state == -EFBIG ? "its sites are spread over too much of it"
					 : "it changed while it was read");
}

int object_parse(struct object **object, int fd, const char *path, struct error *err)
{
	struct object *made;
	int result;

	*object = NULL;
	result = object_new(&made, path, err);
	if (result)
		return result;
	result = object_fill(made, fd, err);
	if (result)
		object_free(made);
	else
		*object = made;
	return result;
}
