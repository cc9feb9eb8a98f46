// SPDX-License-Identifier: Apache-2.0
/* CUDA's runtime linked into a program, as nvcc does it by default: without the program's symbols
 * its functions can't be found, and people should know why. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "call/find.h"

/* What a program with kernels calls first, wherever the runtime is. */
#define REGISTERS "__cudaRegisterFatBinary"

static bool imports(const struct find *find, const char *name)
{
	GElf_Sym symbol;

	return elf_file_dynamic_symbol(&find->file, name, &symbol) && symbol.st_shndx == SHN_UNDEF;
}

void find_static_runtime(struct find *find)
{
	bool wanted = false;
	char line[PATH_MAX + 200];

	for (size_t i = 0; i < find->wanted.len; i++)
		wanted |= find->set->entries.data[find->wanted.data[i]]->spec.role ==
			  SITE_ROLE_LAUNCH;
	if (!wanted || !find->is_exe || !find->stripped ||
	    !elf_file_has_section(&find->file, ".nv_fatbin") || imports(find, REGISTERS))
		return;
	snprintf(line, sizeof(line),
		 "%s has CUDA's runtime linked into it and is stripped: of its launches and copies "
		 "only those are seen that the driver is called for; keep its symbols, or install "
		 "its debug file",
		 find->object->path);
	find->set->stripped = set_keep(find->set, line);
}
