// SPDX-License-Identifier: Apache-2.0
#include "target/dwarf/cfi_entries_internal.h"

#include <dwarf.h>
#include <gelf.h>
#include <string.h>

#include "target/elf/elflimits.h"

/* Encodings of an address: LSB, "DWARF Exception Header Encoding". */
#define ENCODING_FORMAT 0x0f
#define ENCODING_RELATIVE 0x70
#define ENCODING_OMIT 0xff

static const struct cfi_machine x86_64 = {.fp = 6, .sp = 7, .ra = 16};
static const struct cfi_machine aarch64 = {.fp = 29, .sp = 31, .ra = 30, .ra_in_register = true};

static const struct cfi_machine *machine_of(const struct elf_file *file)
{
	GElf_Ehdr header;

	if (!gelf_getehdr(file->elf, &header) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_ident[EI_DATA] != ELFDATA2LSB)
		return NULL;
	if (header.e_machine == EM_X86_64)
		return &x86_64;
	return header.e_machine == EM_AARCH64 ? &aarch64 : NULL;
}

static bool section_find(struct cfi_section *section, const struct elf_file *file, const char *name)
{
	GElf_Shdr header;
	Elf_Scn *scn = elf_section_named(file->elf, name, &header);
	Elf_Data *data;

	if (!scn || header.sh_type == SHT_NOBITS)
		return false;
	section->cut =
		header.sh_size > CFI_SECTION_MAX ||
		(header.sh_flags & SHF_COMPRESSED && !elf_debug_limited(file->elf, file->fd));
	if (section->cut || (header.sh_flags & SHF_COMPRESSED && elf_compress(scn, 0, 0) < 0))
		return false;
	data = elf_rawdata(scn, NULL);
	if (!data || !data->d_buf || !data->d_size)
		return false;
	section->data = data->d_buf;
	section->size = data->d_size;
	section->address = header.sh_addr;
	return true;
}

static uint64_t read_encoded(const struct cfi_section *section, struct cfi_bytes *bytes,
			     uint8_t encoding)
{
	uint64_t here = section->address + (uint64_t)(bytes->at - section->data), value;

	switch (encoding & ENCODING_FORMAT) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		value = cfi_fixed(bytes, 8);
		break;
	case DW_EH_PE_udata4:
		value = cfi_fixed(bytes, 4);
		break;
	case DW_EH_PE_sdata4:
		value = (uint64_t)(int32_t)cfi_fixed(bytes, 4);
		break;
	case DW_EH_PE_udata2:
		value = cfi_fixed(bytes, 2);
		break;
	case DW_EH_PE_sdata2:
		value = (uint64_t)(int16_t)cfi_fixed(bytes, 2);
		break;
	case DW_EH_PE_uleb128:
		value = cfi_uleb(bytes);
		break;
	case DW_EH_PE_sleb128:
		value = (uint64_t)cfi_sleb(bytes);
		break;
	default:
		bytes->bad = true;
		return 0;
	}
	if ((encoding & ENCODING_RELATIVE) == DW_EH_PE_pcrel)
		return value + here;
	if (encoding & ENCODING_RELATIVE || encoding & DW_EH_PE_indirect)
		bytes->bad = true;
	return value;
}

/* Reads what the letters of a CIE's augmentation string announce: "zPLR", "zRS". */
static void read_augmentation(const struct cfi_section *section, struct cfi_common_entry *entry,
			      const char *letters, struct cfi_bytes *bytes)
{
	uint64_t size = cfi_uleb(bytes);
	struct cfi_bytes data = *bytes;

	cfi_skip(bytes, size);
	entry->sized = true;
	for (; *letters && !data.bad; letters++) {
		uint8_t encoding;

		switch (*letters) {
		case 'R':
			entry->encoding = (uint8_t)cfi_fixed(&data, 1);
			break;
		case 'L':
			cfi_fixed(&data, 1);
			break;
		case 'P':
			encoding = (uint8_t)cfi_fixed(&data, 1);
			if (encoding != ENCODING_OMIT) /* the personality is not used here */
				read_encoded(section, &data, encoding & ENCODING_FORMAT);
			break;
		case 'S':
			entry->common.signal = true;
			break;
		default: /* 'B', 'G' of aarch64 have no data */
			break;
		}
	}
	bytes->bad = bytes->bad || data.bad;
}

/* `bytes` starts after the CIE's id. */
static void read_common(const struct cfi_section *section, struct cfi_common_entry *entry,
			struct cfi_bytes bytes)
{
	uint64_t version = cfi_fixed(&bytes, 1);
	const char *letters = (const char *)bytes.at;
	size_t len = strnlen(letters, (size_t)(bytes.end - bytes.at));

	*entry = (struct cfi_common_entry){.common.machine = section->machine, .bad = true};
	cfi_skip(&bytes, len + 1);
	if (bytes.bad || (version != 1 && version != 3 && version != 4))
		return;
	if (version == 4 && (cfi_fixed(&bytes, 1) != 8 || cfi_fixed(&bytes, 1)))
		return; /* unsupported: other address sizes, segments */
	entry->common.code_align = cfi_uleb(&bytes);
	entry->common.data_align = cfi_sleb(&bytes);
	if ((version == 1 ? cfi_fixed(&bytes, 1) : cfi_uleb(&bytes)) != section->machine->ra)
		return;
	if (*letters == 'z')
		read_augmentation(section, entry, letters + 1, &bytes);
	else if (*letters)
		return;
	entry->bad = bytes.bad || !cfi_run_common(&entry->common, bytes);
}

static void read_function(struct cfi_section *section, uint32_t common, struct cfi_bytes bytes,
			  cfi_entry_fn take, void *arg)
{
	const struct cfi_common_entry *by = &section->commons.data[common];
	uint64_t from, size;

	from = read_encoded(section, &bytes, by->encoding);
	size = read_encoded(section, &bytes, by->encoding & ENCODING_FORMAT);
	if (by->sized)
		cfi_skip(&bytes, cfi_uleb(&bytes));
	if (bytes.bad || from + size < from)
		section->bad++;
	else if (from && size && /* else the linker discarded the function */
		 !take(section, &(struct cfi_entry){from, from + size, common, bytes}, arg))
		section->bad++;
}

/* Index of the CIE at an offset, which is read once. MAP_NONE: there is no usable CIE. */
static uint32_t common_at(struct cfi_section *section, uint64_t offset)
{
	uint32_t known = map_get(&section->at, offset);
	struct cfi_common_entry entry;
	struct cfi_bytes bytes;
	uint64_t size;

	if (known != MAP_NONE)
		return section->commons.data[known].bad ? MAP_NONE : known;
	if (offset >= section->size)
		return MAP_NONE;
	bytes = (struct cfi_bytes){.at = section->data + offset,
				   .end = section->data + section->size};
	size = cfi_fixed(&bytes, 4);
	if (bytes.bad || size > (size_t)(bytes.end - bytes.at))
		return MAP_NONE;
	bytes.end = bytes.at + size;
	if (cfi_fixed(&bytes, 4) != (section->debug ? UINT32_MAX : 0))
		return MAP_NONE;
	read_common(section, &entry, bytes);
	if (!vec_push(&section->commons, entry) ||
	    !map_set(&section->at, offset, (uint32_t)section->commons.len - 1)) {
		section->no_memory = true;
		return MAP_NONE;
	}
	return entry.bad ? MAP_NONE : (uint32_t)section->commons.len - 1;
}

static void read_entry(struct cfi_section *section, struct cfi_bytes bytes, cfi_entry_fn take,
		       void *arg)
{
	uint64_t at = (uint64_t)(bytes.at - section->data), number = cfi_fixed(&bytes, 4);
	uint32_t common;

	if (bytes.bad || number == (section->debug ? UINT32_MAX : 0))
		return; /* a CIE is read when an FDE refers to it */
	common = section->debug ? common_at(section, number)
		 : number <= at ? common_at(section, at - number)
				: MAP_NONE;
	if (common == MAP_NONE)
		section->bad++;
	else
		read_function(section, common, bytes, take, arg);
}

void cfi_section_each(struct cfi_section *section, cfi_entry_fn take, void *arg)
{
	struct cfi_bytes bytes = {.at = section->data, .end = section->data + section->size};

	while (bytes.at < bytes.end && !section->no_memory && !section->cut) {
		uint64_t size = cfi_fixed(&bytes, 4);
		struct cfi_bytes entry;

		if (bytes.bad || (!size && !section->debug))
			return;
		if (size == UINT32_MAX) { /* 64-bit DWARF, which linkers do not write here */
			cfi_skip(&bytes, cfi_fixed(&bytes, 8));
			section->bad++;
			continue;
		}
		entry = bytes;
		cfi_skip(&bytes, size);
		if (bytes.bad)
			return;
		entry.end = bytes.at;
		read_entry(section, entry, take, arg);
	}
}

bool cfi_section_open(struct cfi_section *section, const struct elf_file *file,
		      enum cfi_section_kind kind)
{
	static const char *const names[CFI_SECTIONS] = {
		[CFI_EH_FRAME] = ".eh_frame",
		[CFI_DEBUG_FRAME] = ".debug_frame",
	};

	*section =
		(struct cfi_section){.machine = machine_of(file), .debug = kind == CFI_DEBUG_FRAME};
	return section->machine && section_find(section, file, names[kind]);
}

void cfi_section_close(struct cfi_section *section)
{
	map_free(&section->at);
	vec_free(&section->commons);
}
