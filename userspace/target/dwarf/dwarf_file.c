// SPDX-License-Identifier: Apache-2.0
#include "target/dwarf/dwarf_file.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/dwarf/dwarf_text.h"
#include "target/elf/elflimits.h"

#define DEBUG_DIR "/usr/lib/debug"

/* An ELF file with an empty .debug_info. */
static const struct {
	Elf64_Ehdr header;
	Elf64_Shdr sections[3];
	char names[32];
	char info[8];
} empty_file = {
	.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
			       ELFDATA2LSB,
#else
			       ELFDATA2MSB,
#endif
			       EV_CURRENT},
		   .e_type = ET_EXEC,
		   .e_machine = EM_X86_64,
		   .e_version = EV_CURRENT,
		   .e_shoff = sizeof(Elf64_Ehdr),
		   .e_ehsize = sizeof(Elf64_Ehdr),
		   .e_shentsize = sizeof(Elf64_Shdr),
		   .e_shnum = 3,
		   .e_shstrndx = 1},
	.sections = {{0},
		     {.sh_name = 1,
		      .sh_type = SHT_STRTAB,
		      .sh_offset = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Shdr),
		      .sh_size = 32,
		      .sh_addralign = 1},
		     {.sh_name = 11,
		      .sh_type = SHT_PROGBITS,
		      .sh_offset = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Shdr) + 32,
		      .sh_size = 8,
		      .sh_addralign = 1}},
	.names = "\0.shstrtab\0.debug_info",
};

/* The path that libdw would derive for the file. NULL: unknown. */
static char *path_of(int fd)
{
	char link[32], path[PATH_MAX];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, sizeof(path));
	return len > 0 && (size_t)len < sizeof(path) && path[0] == '/' ? strndup(path, (size_t)len)
								       : NULL;
}

/* Length of the directory part of a path, with the slash. */
static int folder_len(const char *path)
{
	return path ? (int)(strrchr(path, '/') + 1 - path) : 0;
}

static bool try_common(struct dwarf_file *file, const struct build_id *id, const char *path)
{
	struct elf_file *common = &file->common_file;

	if (elf_file_open_common(common, path))
		return false;
	if (build_id_equal(&common->build_id, id) && elf_debug_limited(common->elf, common->fd))
		file->common = dwarf_begin_elf(common->elf, DWARF_C_READ, NULL);
	if (!file->common)
		elf_file_close(common);
	return file->common;
}

static bool find_common(struct dwarf_file *file, const struct build_id *id, const char *name,
			const char *debug_dir)
{
	char text[BUILD_ID_TEXT], path[PATH_MAX];
	bool relative = name[0] != '/';

	build_id_text(text, id);
	snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", debug_dir, text, text + 2);
	if (try_common(file, id, path))
		return true;
	if (relative && !file->path)
		return false;
	snprintf(path, sizeof(path), "%.*s%s", relative ? folder_len(file->path) : 0,
		 relative ? file->path : "", name);
	if (try_common(file, id, path))
		return true;
	if (strncmp(name, DEBUG_DIR "/", sizeof(DEBUG_DIR)) != 0)
		return false;
	snprintf(path, sizeof(path), "%s%s", debug_dir, name + strlen(DEBUG_DIR));
	return try_common(file, id, path);
}

/* Once an alternate file is set, libdw does not search for one itself. So a missing one is replaced
 * by the empty file. */
static void open_common(struct dwarf_file *file, const char *debug_dir)
{
	const char *name;
	const void *bytes;
	struct build_id id;
	ssize_t size = dwelf_dwarf_gnu_debugaltlink(file->dwarf, &name, &bytes);

	if (size > 0 &&
	    !(build_id_set(&id, bytes, (size_t)size) && find_common(file, &id, name, debug_dir)))
		file->lacking = strdup(name);
	if (file->common)
		dwarf_setalt(file->common, file->empty);
	dwarf_setalt(file->dwarf, file->common ? file->common : file->empty);
}

int dwarf_file_open(struct dwarf_file *file, const struct elf_file *elf, const char *debug_dir)
{
	*file = (struct dwarf_file)DWARF_FILE_INIT;
	if (!elf_debug_limited(elf->elf, elf->fd))
		return -EFBIG;
	file->dwarf = dwarf_begin_elf(elf->elf, DWARF_C_READ, NULL);
	if (!file->dwarf)
		return -ENODATA;
	file->empty_elf = elf_memory((char *)&empty_file, sizeof(empty_file));
	if (file->empty_elf)
		file->empty = dwarf_begin_elf(file->empty_elf, DWARF_C_READ, NULL);
	if (!file->empty) {
		dwarf_file_close(file);
		return -ENOMEM;
	}
	file->path = path_of(elf->fd);
	open_common(file, debug_dir);
	return 0;
}

void dwarf_file_close(struct dwarf_file *file)
{
	dwarf_end(file->dwarf);
	dwarf_end(file->common);
	dwarf_end(file->empty);
	elf_end(file->empty_elf);
	elf_file_close(&file->common_file);
	free(file->path);
	free(file->lacking);
	*file = (struct dwarf_file)DWARF_FILE_INIT;
}

static bool plain_or_none(const char *path)
{
	struct stat stat_of;

	return stat(path, &stat_of) || S_ISREG(stat_of.st_mode);
}

const char *dwarf_file_split_name(Dwarf_Die *unit)
{
	static const unsigned names[] = {DW_AT_dwo_name, DW_AT_GNU_dwo_name};
	const char *name = NULL;

	for (unsigned i = 0; i < 2 && !name; i++)
		name = dwarf_text(unit, names[i]);
	return name;
}

/* Whether all files that libdw would open for a skeleton are regular. These are FILE.dwp, and the
 * .dwo file, both in the file's directory and in the compilation directory. */
static bool split_is_plain(const struct dwarf_file *file, Dwarf_Die *unit)
{
	int len = folder_len(file->path);
	const char *name = dwarf_file_split_name(unit), *folder;
	char path[3 * PATH_MAX];

	folder = dwarf_text(unit, DW_AT_comp_dir);
	if (!name || strlen(name) >= PATH_MAX || (folder && strlen(folder) >= PATH_MAX))
		return false;
	snprintf(path, sizeof(path), "%s.dwp", file->path ? file->path : "");
	if (!plain_or_none(path))
		return false;
	if (name[0] == '/')
		return plain_or_none(name);
	snprintf(path, sizeof(path), "%.*s%s", len, file->path ? file->path : "", name);
	if (!plain_or_none(path))
		return false;
	if (folder && folder[0] == '/')
		len = 0;
	snprintf(path, sizeof(path), "%.*s%s/%s", len, file->path ? file->path : "",
		 folder ? folder : ".", name);
	return plain_or_none(path);
}

bool dwarf_file_unit(struct dwarf_file *file, Dwarf_Die *unit)
{
	Dwarf_Die split;
	uint8_t type;

	if (dwarf_cu_info(unit->cu, NULL, &type, NULL, NULL, NULL, NULL, NULL))
		return false;
	if (type != DW_UT_skeleton)
		return true;
	if (!dwarf_unit_texts_end(unit) || !split_is_plain(file, unit) ||
	    dwarf_cu_info(unit->cu, NULL, NULL, NULL, &split, NULL, NULL, NULL) || !split.addr)
		return false;
	dwarf_setalt(dwarf_cu_getdwarf(split.cu), file->empty);
	*unit = split;
	return true;
}
