// SPDX-License-Identifier: Apache-2.0
#include "target/dwarf/dwarf_text.h"

#include <dwarf.h>
#include <gelf.h>
#include <string.h>

/* Whether a section has the string with its zero byte. */
static bool has_text(Elf_Scn *section, const char *text)
{
	const Elf_Data *data = elf_rawdata(section, NULL); /* what libdw has, if it has read it */
	const char *start = data ? data->d_buf : NULL;

	return start && text >= start && text < start + data->d_size &&
	       memchr(text, '\0', data->d_size - (size_t)(text - start));
}

static bool text_ends(const Dwarf_Attribute *attribute)
{
	Elf *elf = dwarf_getelf(dwarf_cu_getdwarf(attribute->cu));
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return false;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name = gelf_getshdr(section, &header)
					   ? elf_strptr(elf, names, header.sh_name)
					   : NULL;

		/* Only these have entries; others should not be read in vain. */
		if (name && (strstr(name, "debug_info") || strstr(name, "debug_types")) &&
		    has_text(section, (const char *)attribute->valp))
			return true;
	}
	return false;
}

static bool is_safe(Dwarf_Attribute *attribute)
{
	return dwarf_whatform(attribute) != DW_FORM_string || text_ends(attribute);
}

const char *dwarf_text(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;

	if (!dwarf_attr_integrate(die, name, &attribute) || !is_safe(&attribute))
		return NULL;
	return dwarf_formstring(&attribute);
}

bool dwarf_unit_texts_end(Dwarf_Die *unit)
{
	static const unsigned names[] = {DW_AT_name, DW_AT_comp_dir, DW_AT_dwo_name,
					 DW_AT_GNU_dwo_name};
	Dwarf_Attribute attribute;

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (dwarf_attr(unit, names[i], &attribute) && !is_safe(&attribute))
			return false;
	return true;
}
