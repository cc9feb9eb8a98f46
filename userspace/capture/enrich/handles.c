// SPDX-License-Identifier: Apache-2.0
#include "capture/enrich/handles.h"

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

#define VARIABLE "8__handle"

struct handles_search {
	const struct elf_file *file;
	struct wire_out *found;
};

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

static void variable_put(const struct handles_search *search, const GElf_Sym *symbol,
			 const char *name)
{
	char kernel[4096], plain[DEMANGLE_MAX];
	const char *shown = kernel;

	if (!name || GELF_ST_TYPE(symbol->st_info) != STT_OBJECT || symbol->st_size != 8 ||
	    !kernel_of(name, kernel, sizeof(kernel)))
		return;
	if (!strncmp(kernel, "_Z", 2))
		shown = demangle(kernel, plain) ?: kernel;
	else if (*kernel == '_')
		shown = kernel + 1;
	wire_put_text(search->found, shown);
	wire_put_u64(search->found, symbol->st_value);
}

static void symbols_read(const struct handles_search *search, Elf_Scn *section,
			 const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t size = gelf_fsize(search->file->elf, ELF_T_SYM, 1, EV_CURRENT);
	GElf_Sym symbol;

	for (size_t i = 0; data && size && i < data->d_size / size && i < INT32_MAX; i++)
		if (gelf_getsym(data, (int)i, &symbol))
			variable_put(
				search, &symbol,
				elf_strptr(search->file->elf, header->sh_link, symbol.st_name));
}

static void file_search(const struct handles_search *search)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(search->file->elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_SYMTAB)
			symbols_read(search, section, &header);
}

/* Writes the link-time address of the byte at `offset`, followed by each variable: its kernel's
 * name and its link-time address. */
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
		uint64_t variable = wire_get_u64(&in), handle;

		if (name && !in.bad &&
		    image_read(image, variable + bias, &handle, sizeof(handle)) && handle)
			each(handle, name, arg);
	}
	wire_out_free(&request);
	wire_out_free(&found);
	return result == -ENOMEM ? result : 0;
}

#define NAME_MAX_BYTES 4096

char *handles_text(const struct image *image, uint64_t address)
{
	char text[NAME_MAX_BYTES];
	size_t got = image_read_some(image, address, text, sizeof(text));

	return memchr(text, '\0', got) ? strdup(text) : NULL;
}
