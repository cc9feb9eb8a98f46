// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as an ELF file: looking up its symbols, lines and inlined functions does not fault.
 * Also as notes, and as a mangled name.
 */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "probe/spec/func_name.h"
#include "capture/enrich/handles.h"
#include "target/dwarf/cfi.h"
#include "target/dwarf/cfi_index.h"
#include "target/elf/demangle.h"
#include "target/elf/demangle_rust_internal.h"
#include "target/elf/symbols.h"
#include "require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_frames(const struct symbol_frames *frames)
{
	size_t length = 0;

	require(!frames->count || (frames->located && frames->source != SYMBOL_NONE));
	for (uint32_t i = 0; i < frames->count; i++) {
		if (frames->list[i].function)
			length += strlen(frames->list[i].function);
		if (frames->list[i].file)
			length += strlen(frames->list[i].file);
		require(frames->list[i].offset <= frames->address);
	}
	require(length < SIZE_MAX);
}

/* Looks up addresses in all pages that a small file can have, and some beyond. */
static void look_up(struct symbolizer *symbolizer, uint32_t module)
{
	struct symbol_frames frames;
	uint64_t offset;

	for (uint64_t at = 0; at < 0x6000; at += 61) {
		if (!symbolizer_offset(symbolizer, module, at, &frames))
			check_frames(&frames);
		if (!symbolizer_address(symbolizer, module, 0x400000 + at, &frames))
			check_frames(&frames);
		symbolizer_variable(symbolizer, module, at, &offset);
	}
}

/* Reads the tables for unwinding. */
static void read_unwinding(const char *path)
{
	struct cfi_function function;
	struct cfi_index *index;
	struct cfi_table table;
	struct elf_file file;

	if (elf_file_open(&file, path))
		return;
	require(!cfi_index_open(&index, &file));
	require(!cfi_table_read(&table, &file));
	for (size_t i = 1; i < table.count; i++)
		require(table.rows[i].pc > table.rows[i - 1].pc);
	for (size_t i = 0; i < table.count; i += 7)
		require(!cfi_table_find(&table, table.base + table.rows[i].pc) ||
			cfi_table_find(&table, table.base + table.rows[i].pc) == &table.rows[i]);
	for (size_t i = 0; i < table.count; i += 5) {
		uint64_t address = table.base + table.rows[i].pc;

		if (cfi_index_find(index, address, &function))
			require(function.from <= address && address < function.to);
		else
			require(cfi_index_stack(index, address) == CFI_STACK_UNKNOWN);
	}
	cfi_index_close(index);
	cfi_table_free(&table);
	elf_file_close(&file);
}

static void see_handle(uint64_t handle, const char *name, void *arg)
{
	(void)arg;
	require(handle && strlen(name));
}

/* `data`: the file as in a process's memory. */
static void read_object(int fd, const uint8_t *data)
{
	struct image image;
	struct symbol_module_state state;
	struct symbolizer *symbolizer;
	struct build_id id;
	char path[64];
	uint32_t module;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	require(!symbolizer_open(&symbolizer,
				 &(struct symbolizer_options){.debug_dir = "/nowhere"}));
	require(!symbolizer_add(symbolizer, &(struct symbol_module){.path = path}, &module));
	if (!symbolizer_module(symbolizer, module, &state) && state.file == SYMBOL_FILE_UNCHECKED &&
	    !build_id_read(fd, &id))
		require(build_id_equal(&id, &state.build_id));
	look_up(symbolizer, module);
	symbolizer_close(symbolizer);
	read_unwinding(path);
	require(!image_open(&image, getpid()));
	handles_find(fd, &image, (uintptr_t)data, 0, see_handle, NULL);
	image_close(&image);
}

static void read_function_name(const char *symbol)
{
	struct func_name name;
	char text[DEMANGLE_MAX];

	func_part(symbol);
	if (!func_name_read(&name, symbol))
		return;
	for (int args = 0; args < 2; args++) {
		size_t len = func_name_put(&name, args, text);

		require(len < sizeof(text) && strlen(text) == len);
		func_name_is(&name, text);
		func_name_is_similar(&name, text);
		func_name_has_args(text);
	}
}

/* The mutations of a fuzzer rarely begin like a name of Rust. */
static void read_rust_name(const char *text)
{
	char symbol[512], demangled[DEMANGLE_MAX];

	snprintf(symbol, sizeof(symbol), "_R%s%s", isupper((unsigned char)*text) ? "" : "NvC1a",
		 text);
	if (demangle_rust(symbol, demangled, sizeof(demangled)))
		require(strlen(demangled) < sizeof(demangled));
	snprintf(demangled, sizeof(demangled), "%s::h0123456789abcdef", text);
	demangle_rust_old(demangled);
}

static void read_text(const uint8_t *data, size_t size)
{
	struct build_id id;
	char demangled[DEMANGLE_MAX], *text;

	build_id_from_notes(&id, data, size);
	text = strndup((const char *)data, size);
	require(text);
	if (demangle(text, demangled))
		require(strlen(demangled) < DEMANGLE_MAX);
	read_rust_name(text);
	read_function_name(text);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	if (size > 4 && !memcmp(data, "\177ELF", 4))
		read_object(fd, data);
	else
		read_text(data, size);
	close(fd);
	return 0;
}
