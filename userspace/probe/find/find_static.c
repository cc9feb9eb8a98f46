// SPDX-License-Identifier: Apache-2.0
/* Detects CUDA's runtime and NCCL linked into a stripped program. Their functions cannot be found
 * there, and the user should know why. */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "probe/find/find_internal.h"

/* How to recognise a library inside a stripped program. */
struct inside {
	enum site_role role; /* role of a row in the library's table */
	const char *symbol;  /* if the program has this dynamic symbol, it uses a shared library */
	const char
		*text; /* in .rodata, then a version, then `behind`; NULL: .nv_fatbin is enough */
	const char *behind;
	const char *name, *lost;
};

static const struct inside insides[] = {
	/* Programs with kernels call this first, whether the runtime is linked in or not. */
	{SITE_ROLE_LAUNCH, "__cudaRegisterFatBinary", NULL, NULL, "CUDA's runtime",
	 "only those of its launches and copies are seen that call the driver"},
	/* NCCL logs this at its start: "NCCL version 2.32.3+cuda12.9". */
	{SITE_ROLE_COLLECTIVE, "ncclCommInitRank", "NCCL version ", "+cuda", "NCCL",
	 "none of its collectives and messages is seen"},
};
_Static_assert(sizeof(insides) / sizeof(insides[0]) == SET_INSIDES, "a message for each");

static bool is_wanted(const struct find *find, enum site_role role)
{
	for (size_t i = 0; i < find->wanted.len; i++)
		if (find->set->entries.data[find->wanted.data[i]]->spec.role == role)
			return true;
	return false;
}

/* Whether [at, end) has the row's text, with a version. */
static bool text_is(const struct inside *inside, const char *at, const char *end)
{
	const char *stop = memchr(at, '\0', (size_t)(end - at));
	size_t len = strlen(inside->text);

	return stop && (size_t)(stop - at) > len && isdigit((unsigned char)at[len]) &&
	       strstr(at + len, inside->behind);
}

#define TEXTS_MAX (256u << 20) /* limit of constants to search */

static bool has_text(const struct find *find, const struct inside *inside)
{
	GElf_Shdr header;
	Elf_Scn *section = elf_section_named(find->file.elf, ".rodata", &header);
	bool small = section && header.sh_size <= TEXTS_MAX;
	Elf_Data *data = small ? elf_getdata(section, NULL) : NULL;
	const char *at = data ? data->d_buf : NULL, *end = at ? at + data->d_size : NULL;

	for (; at && (at = memmem(at, (size_t)(end - at), inside->text, strlen(inside->text)));
	     at++)
		if (text_is(inside, at, end))
			return true;
	return false;
}

void find_static(struct find *find)
{
	char line[PATH_MAX + 200];
	GElf_Sym symbol;

	/* Both libraries contain kernels, or are useless without them. */
	if (!find->is_exe || !find->stripped || !elf_file_has_section(&find->file, ".nv_fatbin"))
		return;
	for (unsigned i = 0; i < SET_INSIDES; i++) {
		const struct inside *inside = &insides[i];

		if (!is_wanted(find, inside->role) ||
		    elf_file_dynamic_symbol(&find->file, inside->symbol, &symbol) ||
		    (inside->text && !has_text(find, inside)))
			continue;
		snprintf(line, sizeof(line),
			 "%s has %s linked into it and is stripped: %s; keep its symbols, or "
			 "install its debug file",
			 find->object->path, inside->name, inside->lost);
		find->set->stripped[i] = set_keep(find->set, line);
	}
}
