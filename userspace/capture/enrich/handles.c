// SPDX-License-Identifier: Apache-2.0
#include "capture/enrich/handles.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target/elf/demangle.h"
#include "target/elf/elffile.h"
#include "target/worker/worker.h"
#include "util/keymap.h"

#define VARIABLE "8__handle"

#define HIP_KERNELS_MAX 65536 /* of a file */

struct handles_search {
	const struct elf_file *file;
	struct wire_out *found;
	struct keymap hip; /* mangled names of the kernels that have a stub of HIP */
};

/* ---- HIP ---- */

/*
 * Notes the kernel of a stub. In "_ZN2ns21__device_stub__vecaddIfEEvPT_i" the number before the
 * prefix is the length of the name with it. The kernel is "_ZN2ns6vecaddIfEEvPT_i". Digits before
 * the number may belong to another name, so all readings of them are noted: a reading that is wrong
 * names no variable.
 */
static void stub_note(struct handles_search *search, const char *symbol)
{
	const char *prefix = strstr(symbol, HANDLES_STUB_HIP);
	const char *rest = prefix ? prefix + strlen(HANDLES_STUB_HIP) : NULL;
	char kernel[4096];

	if (!rest || !*rest || search->hip.len >= HIP_KERNELS_MAX)
		return;
	if (prefix == symbol) /* a function of C */
		keymap_set(&search->hip, rest, strlen(rest), 1);
	for (const char *at = prefix; at > symbol && isdigit((unsigned char)at[-1]);) {
		unsigned long length = strtoul(--at, NULL, 10);
		int bytes;

		if (*at == '0' || length <= strlen(HANDLES_STUB_HIP) || length > strlen(prefix))
			continue;
		bytes = snprintf(kernel, sizeof(kernel), "%.*s%lu%s", (int)(at - symbol), symbol,
				 length - strlen(HANDLES_STUB_HIP), rest);
		if (bytes > 0 && (size_t)bytes < sizeof(kernel))
			keymap_set(&search->hip, kernel, (size_t)bytes, 1);
	}
}

/* ---- CUDA ---- */

/*
 * "_ZZ33__device_stub__Z5saxpyifPfS_ifPfS_E8__handle": the number is the length of the function's
 * name. Extracts the mangled name of the kernel. False: the symbol is not such a variable.
 */
static bool kernel_of(const char *symbol, char *kernel, size_t size)
{
	const char *at = symbol, *stub;
	size_t len = strlen(symbol), stub_len = strlen(HANDLES_STUB);
	unsigned long name_len;
	char *end;

	if (strncmp(at, "_ZZ", 3) || len < strlen(VARIABLE))
		return false;
	stub = strstr(at, HANDLES_STUB);
	/* A static stub has an L before its length. Several statics of one name are numbered. */
	if (!stub || !strstr(stub, VARIABLE))
		return false;
	at += 3 + (at[3] == 'L');
	name_len = strtoul(at, &end, 10);
	if (end != stub || name_len <= stub_len || name_len > strlen(stub) ||
	    name_len - stub_len >= size)
		return false;
	memcpy(kernel, stub + stub_len, name_len - stub_len);
	kernel[name_len - stub_len] = '\0';
	return true;
}

/* ---- both ---- */

static void variable_put(struct handles_search *search, const GElf_Sym *symbol, const char *name)
{
	bool hip = keymap_get(&search->hip, name, strlen(name)) != MAP_NONE;
	char kernel[4096], plain[DEMANGLE_MAX];
	const char *shown = hip ? name : kernel;

	if (symbol->st_size != 8 || (!hip && !kernel_of(name, kernel, sizeof(kernel))))
		return;
	if (!strncmp(shown, "_Z", 2))
		shown = demangle(shown, plain) ?: shown;
	else if (!hip && *shown == '_')
		shown++;
	wire_put_text(search->found, shown);
	wire_put_u64(search->found, symbol->st_value);
	wire_put_u64(search->found, hip);
}

/* A function, if `stubs` is set; otherwise a variable. */
static void symbol_read(struct handles_search *search, const GElf_Sym *symbol, const char *name,
			bool stubs)
{
	if (!name || symbol->st_shndx == SHN_UNDEF ||
	    GELF_ST_TYPE(symbol->st_info) != (stubs ? STT_FUNC : STT_OBJECT))
		return;
	if (stubs)
		stub_note(search, name);
	else
		variable_put(search, symbol, name);
}

static void symbols_read(struct handles_search *search, Elf_Scn *section, const GElf_Shdr *header,
			 bool stubs)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t size = gelf_fsize(search->file->elf, ELF_T_SYM, 1, EV_CURRENT);
	GElf_Sym symbol;

	for (size_t i = 0; data && size && i < data->d_size / size && i < INT32_MAX; i++)
		if (gelf_getsym(data, (int)i, &symbol))
			symbol_read(search, &symbol,
				    elf_strptr(search->file->elf, header->sh_link, symbol.st_name),
				    stubs);
}

/* Reads the tables of one type. False: the file has none. */
static bool tables_read(struct handles_search *search, uint32_t type, bool stubs)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	bool found = false;

	while ((section = elf_nextscn(search->file->elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_type == type) {
			found = true;
			symbols_read(search, section, &header, stubs);
		}
	return found;
}

/* A stripped file still has what it exports. The stubs come first: they tell which variables are
 * kernels. */
static void file_search(struct handles_search *search)
{
	uint32_t type = tables_read(search, SHT_SYMTAB, true) ? SHT_SYMTAB : SHT_DYNSYM;

	if (type == SHT_DYNSYM)
		tables_read(search, type, true);
	tables_read(search, type, false);
	keymap_free(&search->hip);
}

/* Writes the link-time address of the byte at `offset`, followed by each variable: its kernel's
 * name, its link-time address, and 1 if this address is the handle, 0 if it holds the handle. */
static int file_put(struct wire_out *found, int fd, uint64_t offset)
{
	struct handles_search search = {.found = found};
	struct elf_segments segments;
	struct elf_file file;
	uint64_t linked;
	int result, own = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	result = own < 0 ? -ENOEXEC : elf_file_open_fd(&file, own, "handles");
	if (result)
		return result;
	elf_file_segments(&file, &segments);
	search.file = &file;
	if (elf_segments_address(&segments, offset, &linked)) {
		wire_put_u64(found, linked);
		file_search(&search);
	}
	elf_file_close(&file);
	return found->no_memory ? -ENOMEM : 0;
}

int handles_serve(struct wire_in *request, int fd, struct wire_out *reply, void *arg)
{
	uint64_t offset = wire_get_u64(request);

	(void)arg;
	return wire_in_done(request) ? file_put(reply, fd, offset) : -EINVAL;
}

int handles_find(int fd, const struct image *image, uint64_t address, uint64_t offset,
		 void (*each)(uint64_t handle, const char *name, void *arg), void *arg)
{
	struct wire_out request = {0}, found = {0};
	struct error problem = ERROR_INIT;
	struct wire_in in;
	uint64_t bias;
	int result;

	wire_put_u64(&request, offset);
	if (worker_is_there())
		result = worker_call(WORKER_FOR_NAMES, WORKER_HANDLES, &request, fd,
				     "names of kernels", &found, &problem);
	else
		result = file_put(&found, fd, offset);
	in = wire_in(found.bytes.data, result ? 0 : found.bytes.len);
	bias = address - wire_get_u64(&in);
	while (!in.bad && in.at < in.end) {
		const char *name = wire_get_text(&in);
		uint64_t variable = wire_get_u64(&in) + bias, handle = variable;
		bool is_handle = wire_get_u64(&in);

		if (!name || in.bad)
			break;
		if (!is_handle && !(image && image_read(image, variable, &handle, sizeof(handle))))
			continue;
		if (handle && *name)
			each(handle, name, arg);
	}
	wire_out_free(&request);
	wire_out_free(&found);
	return result == -ENOMEM ? result : 0;
}
