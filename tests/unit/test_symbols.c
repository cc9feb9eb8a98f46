// SPDX-License-Identifier: Apache-2.0
/*
 * Looks up this program's own functions, in copies of its file that were stripped or damaged. Needs
 * objcopy.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "target/elf/debuginfod.h"
#include "target/elf/symbols.h"

#define SELF "/proc/self/exe"

/* The code to look up. `inner_line` and `outer_line` have its lines. */

__attribute__((noinline)) static uintptr_t here(void)
{
	/* Not the address of the next instruction but in the call itself. */
	return (uintptr_t)__builtin_return_address(0) - 1;
}

static volatile unsigned sink;
static unsigned inner_line, outer_line;

__attribute__((always_inline)) static inline uintptr_t inner_function(void)
{
	uintptr_t address = here();

	inner_line = __LINE__ - 2;
	return address;
}

__attribute__((noinline)) static uintptr_t outer_function(void)
{
	uintptr_t address = inner_function();

	outer_line = __LINE__ - 2;
	sink++;
	return address;
}

uintptr_t mangled_function(int number) __asm__("_ZN6waffle6decodeEi");
__attribute__((noinline)) uintptr_t mangled_function(int number)
{
	uintptr_t address = here();

	sink += (unsigned)number;
	return address;
}

unsigned some_locks[4] = {1, 2, 3, 4};
/* The bytes in the data of a Go program. */
__attribute__((aligned(16), used)) char go_mark[16] = "\xff Go buildinf:";
__attribute__((section(".some_section"), used)) unsigned in_a_section = 1;

/* The address at which this program was loaded. */
static int program_base(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	*(uintptr_t *)arg = info->dlpi_addr;
	return 1; /* the first is the program */
}

static uint64_t link_address(uintptr_t address)
{
	uintptr_t base = 0;

	dl_iterate_phdr(program_base, &base);
	return address - base;
}

/* The other way than elf_segments_address(). */
static uint64_t file_offset(uintptr_t address)
{
	uint64_t wanted = link_address(address), offset = UINT64_MAX;
	struct elf_file file;
	struct elf_segments segments;

	assert_int_equal(elf_file_open(&file, SELF), 0);
	elf_file_segments(&file, &segments);
	elf_file_close(&file);
	assert_true(segments.count >= 1);
	for (uint32_t i = 0; i < segments.count; i++)
		if (wanted >= segments.list[i].address &&
		    wanted - segments.list[i].address < segments.list[i].size)
			offset = wanted - segments.list[i].address + segments.list[i].offset;
	return offset;
}

struct fixture {
	char dir[64];
	struct build_id id; /* of this program */
	struct symbolizer *symbolizer;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	int fd = open(SELF, O_RDONLY | O_CLOEXEC);

	assert_non_null(fixture);
	strcpy(fixture->dir, "/tmp/test_symbols.XXXXXX");
	assert_non_null(mkdtemp(fixture->dir));
	build_id_read(fd, &fixture->id);
	close(fd);
	unsetenv("DEBUGINFOD_URLS");
	*state = fixture;
	return 0;
}

__attribute__((format(printf, 1, 2))) static int shell(const char *format, ...)
{
	char command[1024];
	va_list args;

	va_start(args, format);
	assert_in_range(vsnprintf(command, sizeof(command), format, args), 1, sizeof(command) - 1);
	va_end(args);
	return system(command); // NOLINT(bugprone-command-processor,cert-env33-c)
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	symbolizer_close(fixture->symbolizer);
	shell("rm -rf %s", fixture->dir);
	free(fixture);
	return 0;
}

/* A module of a symbolizer that looks for debug files in the fixture's folder. */
static uint32_t add_module(struct fixture *fixture, const char *path, const struct build_id *id)
{
	struct symbol_module module = {.path = path};
	uint32_t number = UINT32_MAX;

	if (!fixture->symbolizer)
		assert_int_equal(symbolizer_open(&fixture->symbolizer,
						 &(struct symbolizer_options){
							 .debug_dir = fixture->dir, .fetch = true}),
				 0);
	if (id)
		module.build_id = *id;
	assert_int_equal(symbolizer_add(fixture->symbolizer, &module, &number), 0);
	return number;
}

static struct symbol_frames look_up(struct fixture *fixture, uint32_t module, uintptr_t address)
{
	struct symbol_frames frames;

	assert_int_equal(
		symbolizer_address(fixture->symbolizer, module, link_address(address), &frames), 0);
	return frames;
}

static struct symbol_module_state module_state(struct fixture *fixture, uint32_t module)
{
	struct symbol_module_state state;

	assert_int_equal(symbolizer_module(fixture->symbolizer, module, &state), 0);
	return state;
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && !strcmp(text + len - end_len, end);
}

/* A stripped copy of this program, "DIR/name". */
static const char *strip_self(const struct fixture *fixture, const char *name, char path[128])
{
	snprintf(path, 128, "%s/%s", fixture->dir, name);
	assert_int_equal(shell("cp %s %s && objcopy --strip-all %s", "/proc/$PPID/exe", path, path),
			 0);
	return path;
}

static void check_inlined(const struct symbol_frames *frames, uintptr_t address)
{
	assert_int_equal(frames->count, 2);
	assert_int_equal(frames->source, SYMBOL_DWARF);
	assert_true(frames->located);
	assert_int_equal(frames->address, link_address(address));
	assert_string_equal(frames->list[0].function, "inner_function");
	assert_true(frames->list[0].inlined);
	assert_int_equal(frames->list[0].line, inner_line);
	assert_true(ends_with(frames->list[0].file, "tests/unit/test_symbols.c"));
	assert_string_equal(frames->list[1].function, "outer_function");
	assert_false(frames->list[1].inlined);
	assert_int_equal(frames->list[1].line, outer_line);
	assert_int_equal(frames->list[1].offset, address - (uintptr_t)outer_function);
}

static void test_inlined_function_is_a_frame_of_its_own_with_both_lines(void **state)
{
	uintptr_t address = outer_function();
	uint32_t module = add_module(*state, SELF, NULL);
	struct symbol_frames frames = look_up(*state, module, address);

	check_inlined(&frames, address);
	assert_int_equal(module_state(*state, module).file, SYMBOL_FILE_UNCHECKED);
}

static void test_file_offset_and_address_name_the_same_function(void **state)
{
	struct fixture *fixture = *state;
	uintptr_t address = outer_function();
	uint32_t module = add_module(fixture, SELF, NULL);
	struct symbol_frames frames;

	assert_int_equal(
		symbolizer_offset(fixture->symbolizer, module, file_offset(address), &frames), 0);
	check_inlined(&frames, address);
	assert_int_equal(symbolizer_offset(fixture->symbolizer, module, UINT64_MAX, &frames), 0);
	assert_false(frames.located);
	assert_int_equal(frames.count, 0);
	assert_int_equal(frames.address, UINT64_MAX);
}

static void test_mangled_name_is_shown_as_written_in_the_source(void **state)
{
	uintptr_t address = mangled_function(1);
	struct symbol_frames frames = look_up(*state, add_module(*state, SELF, NULL), address);

	assert_int_equal(frames.count, 1);
	assert_string_equal(frames.list[0].function, "waffle::decode(int)");
	assert_int_equal(frames.list[0].offset, address - (uintptr_t)mangled_function);
}

static void test_without_debug_information_the_symbol_table_names_functions(void **state)
{
	struct fixture *fixture = *state;
	uintptr_t address = outer_function(), mangled = mangled_function(1);
	struct symbol_frames frames;
	char path[128];
	uint32_t module;

	snprintf(path, sizeof(path), "%s/no-debug", fixture->dir);
	assert_int_equal(shell("cp /proc/$PPID/exe %s && objcopy --strip-debug %s", path, path), 0);
	module = add_module(fixture, path, NULL);
	frames = look_up(fixture, module, address);
	assert_int_equal(frames.count, 1);
	assert_int_equal(frames.source, SYMBOL_SYMTAB);
	assert_string_equal(frames.list[0].function, "outer_function");
	assert_int_equal(frames.list[0].offset, address - (uintptr_t)outer_function);
	assert_null(frames.list[0].file);
	assert_int_equal(frames.list[0].line, 0);
	assert_string_equal(look_up(fixture, module, mangled).list[0].function,
			    "waffle::decode(int)");
}

static void test_stripped_library_still_names_its_exported_functions(void **state)
{
	struct fixture *fixture = *state;
	struct symbol_frames frames;
	uint32_t module;
	Dl_info info;
	void *function = dlsym(RTLD_DEFAULT, "getenv");
	char path[128];

	assert_true(function && dladdr(function, &info));
	snprintf(path, sizeof(path), "%s/libc.so", fixture->dir);
	assert_int_equal(
		shell("cp %s %s && objcopy --strip-all %s 2>&1", info.dli_fname, path, path), 0);
	module = add_module(fixture, path, NULL);
	assert_int_equal(
		symbolizer_address(fixture->symbolizer, module,
				   (uintptr_t)info.dli_saddr - (uintptr_t)info.dli_fbase + 3,
				   &frames),
		0);
	assert_int_equal(frames.count, 1);
	assert_int_equal(frames.source, SYMBOL_DYNSYM);
	assert_int_equal(frames.list[0].offset, 3);
	assert_string_equal(frames.list[0].function, "getenv");
}

static void test_file_with_another_build_id_is_not_used(void **state)
{
	struct fixture *fixture = *state;
	struct build_id other = fixture->id;
	struct symbol_frames frames;
	uint32_t module;

	if (!fixture->id.size)
		skip();
	other.bytes[0] ^= 1;
	module = add_module(fixture, SELF, &other);
	frames = look_up(fixture, module, outer_function());
	assert_int_equal(frames.count, 0);
	assert_int_equal(module_state(fixture, module).file, SYMBOL_FILE_OTHER);

	module = add_module(fixture, SELF, &fixture->id);
	frames = look_up(fixture, module, outer_function());
	assert_int_equal(frames.count, 2);
	assert_int_equal(module_state(fixture, module).file, SYMBOL_FILE_USED);
}

/* Puts this program's debug file where its build-id says, in the folder or on its server. */
static void keep_debug_file(const struct fixture *fixture, bool served)
{
	char text[BUILD_ID_TEXT], path[256];

	build_id_text(text, &fixture->id);
	if (served)
		snprintf(path, sizeof(path), "%s/server/buildid/%s/debuginfo", fixture->dir, text);
	else
		snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", fixture->dir, text,
			 text + 2);
	assert_int_equal(shell("mkdir -p $(dirname %s) && "
			       "objcopy --only-keep-debug /proc/$PPID/exe %s",
			       path, path),
			 0);
}

static void test_detached_debug_file_is_found_by_build_id(void **state)
{
	struct fixture *fixture = *state;
	uintptr_t address = outer_function();
	struct symbol_frames frames;
	char path[128];
	uint32_t module;

	if (!fixture->id.size)
		skip();
	keep_debug_file(fixture, false);
	module = add_module(fixture, strip_self(fixture, "stripped", path), NULL);
	frames = look_up(fixture, module, address);
	check_inlined(&frames, address);
	assert_true(ends_with(module_state(fixture, module).debug_path, ".debug"));
}

static void test_file_that_is_gone_is_named_by_its_build_id_and_recorded_segments(void **state)
{
	struct fixture *fixture = *state;
	uintptr_t address = outer_function();
	struct symbol_module lost = {.path = "/nonexistent/program", .build_id = fixture->id};
	struct symbol_frames frames;
	struct elf_file self;
	uint32_t module;

	if (!fixture->id.size)
		skip();
	keep_debug_file(fixture, false);
	assert_int_equal(elf_file_open(&self, SELF), 0);
	elf_file_segments(&self, &lost.segments);
	elf_file_close(&self);
	add_module(fixture, SELF, NULL);
	assert_int_equal(symbolizer_add(fixture->symbolizer, &lost, &module), 0);
	assert_int_equal(
		symbolizer_offset(fixture->symbolizer, module, file_offset(address), &frames), 0);
	check_inlined(&frames, address);
	assert_int_equal(module_state(fixture, module).file, SYMBOL_FILE_MISSING);
}

static void test_debuglink_is_followed_if_its_checksum_is_right(void **state)
{
	struct fixture *fixture = *state;
	uintptr_t address = outer_function();
	struct symbol_frames frames;
	char path[128];

	strip_self(fixture, "linked", path);
	assert_int_equal(
		shell("cd %s && mkdir .debug && objcopy -R .note.gnu.build-id "
		      "--only-keep-debug /proc/$PPID/exe .debug/linked.debug && objcopy "
		      "-R .note.gnu.build-id --add-gnu-debuglink=.debug/linked.debug linked",
		      fixture->dir),
		0);
	frames = look_up(fixture, add_module(fixture, path, NULL), address);
	check_inlined(&frames, address);

	/* One byte more, and it is another file. */
	assert_int_equal(
		shell("cd %s && cp linked linked2 && echo >> .debug/linked.debug", fixture->dir),
		0);
	snprintf(path, sizeof(path), "%s/linked2", fixture->dir);
	frames = look_up(fixture, add_module(fixture, path, NULL), address);
	assert_int_not_equal(frames.source, SYMBOL_DWARF);
}

static void test_debug_file_is_fetched_from_a_debuginfod_server(void **state)
{
	struct fixture *fixture = *state;
	uintptr_t address = outer_function();
	struct debuginfod *there;
	struct symbol_frames frames;
	char path[128], text[256];
	uint32_t module;

	if (!fixture->id.size)
		skip();
	/* The client takes a folder for a server. */
	snprintf(text, sizeof(text), "file://%s/server", fixture->dir);
	setenv("DEBUGINFOD_URLS", text, 1);
	snprintf(text, sizeof(text), "%s/cache", fixture->dir);
	setenv("DEBUGINFOD_CACHE_PATH", text, 1);
	there = debuginfod_open();
	debuginfod_close(there);
	if (!there)
		skip();
	keep_debug_file(fixture, true);
	module = add_module(fixture, strip_self(fixture, "stripped", path), NULL);
	frames = look_up(fixture, module, address);
	check_inlined(&frames, address);
	assert_string_equal(module_state(fixture, module).debug_path, "debuginfod");
}

static void test_variable_is_named_with_the_offset_into_it(void **state)
{
	struct fixture *fixture = *state;
	uint32_t module = add_module(fixture, SELF, NULL);
	uint64_t address = link_address((uintptr_t)&some_locks[2]), offset = 0;

	assert_string_equal(symbolizer_variable(fixture->symbolizer, module, address, &offset),
			    "some_locks");
	assert_int_equal(offset, 8);
	assert_null(symbolizer_variable(fixture->symbolizer, module, UINT64_MAX - 5, &offset));
	assert_null(symbolizer_variable(fixture->symbolizer, module + 1, address, &offset));
	assert_true(symbolizer_has_variable(fixture->symbolizer, module, "some_locks"));
	assert_false(symbolizer_has_variable(fixture->symbolizer, module, "some_lock"));
	assert_false(symbolizer_has_variable(fixture->symbolizer, module + 1, "some_locks"));
}

static void test_a_stripped_go_program_is_known_by_its_sections(void **state)
{
	struct fixture *fixture = *state;
	char path[128];
	uint32_t module = add_module(fixture, strip_self(fixture, "stripped", path), NULL);

	/* With sections, what is in its data says nothing. */
	assert_false(symbolizer_is_go(fixture->symbolizer, module));
	strip_self(fixture, "go", path);
	assert_int_equal(shell("objcopy --rename-section .some_section=.go.buildinfo %s", path), 0);
	module = add_module(fixture, path, NULL);
	assert_true(symbolizer_is_go(fixture->symbolizer, module));
	assert_false(symbolizer_is_go(fixture->symbolizer, module + 1));
}

/* Packers take the section headers away. */
static void take_section_headers(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	Elf64_Ehdr header;

	assert_int_equal(pread(fd, &header, sizeof(header), 0), sizeof(header));
	header.e_shoff = 0;
	header.e_shnum = header.e_shstrndx = 0;
	assert_int_equal(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
	close(fd);
}

static void test_a_go_program_without_section_headers_is_known_by_its_data(void **state)
{
	struct fixture *fixture = *state;
	uint32_t module;
	char path[128];

	take_section_headers(strip_self(fixture, "bare", path));
	module = add_module(fixture, path, NULL); /* opens the symbolizer */
	assert_true(symbolizer_is_go(fixture->symbolizer, module));
	/* Another program of the kind. */
	strip_self(fixture, "other", path);
	assert_int_equal(
		shell("LC_ALL=C sed -i 's/\\xff Go buildinf:/\\xff No buildinf:/' %s", path), 0);
	take_section_headers(path);
	module = add_module(fixture, path, NULL);
	assert_false(symbolizer_is_go(fixture->symbolizer, module));
}

static void test_address_is_worked_out_once_and_a_module_added_once(void **state)
{
	struct fixture *fixture = *state;
	uint32_t module = add_module(fixture, SELF, NULL);
	struct symbol_frames frames = look_up(fixture, module, outer_function());

	assert_int_equal(add_module(fixture, SELF, NULL), module);
	assert_ptr_equal(look_up(fixture, module, outer_function()).list, frames.list);
	assert_int_equal(symbolizer_address(fixture->symbolizer, module + 1, 1, &frames), -EINVAL);
	assert_int_equal(frames.count, 0);
}

static void test_what_is_no_program_is_told_so(void **state)
{
	static const struct {
		const char *path;
		enum symbol_file file;
	} cases[] = {
		{"/etc/passwd", SYMBOL_FILE_BAD}, {"/dev/zero", SYMBOL_FILE_BAD},
		{"/", SYMBOL_FILE_BAD},           {"/nonexistent", SYMBOL_FILE_MISSING},
		{NULL, SYMBOL_FILE_MISSING},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t module = add_module(*state, cases[i].path, NULL);

		assert_int_equal(module_state(*state, module).file, cases[i].file);
		assert_int_equal(look_up(*state, module, outer_function()).count, 0);
	}
}

static uint32_t next_random(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed;
}

static unsigned char *read_self(size_t *size)
{
	FILE *file = fopen(SELF, "re");
	struct stat stat;
	unsigned char *bytes;

	assert_non_null(file);
	assert_int_equal(fstat(fileno(file), &stat), 0);
	*size = (size_t)stat.st_size;
	bytes = malloc(*size);
	assert_non_null(bytes);
	assert_int_equal(fread(bytes, 1, *size, file), *size);
	fclose(file);
	return bytes;
}

static void look_around(const char *path, const char *debug_dir)
{
	uint64_t address = link_address(outer_function());
	struct symbolizer *symbolizer;
	struct symbol_frames frames;
	uint64_t offset;
	uint32_t module;

	assert_int_equal(
		symbolizer_open(&symbolizer, &(struct symbolizer_options){.debug_dir = debug_dir}),
		0);
	assert_int_equal(symbolizer_add(symbolizer, &(struct symbol_module){.path = path}, &module),
			 0);
	for (uint64_t step = 0; step < 40; step++) {
		int err = symbolizer_address(symbolizer, module, address + step * 97, &frames);

		/* A size that is not true may ask for more memory than there is. */
		assert_true(!err || err == -ENOMEM);
		for (uint32_t i = 0; i < frames.count; i++) {
			assert_true(!frames.list[i].function || frames.list[i].function[0]);
			assert_true(frames.list[i].file || !frames.list[i].line || i);
		}
	}
	symbolizer_variable(symbolizer, module, link_address((uintptr_t)some_locks), &offset);
	symbolizer_close(symbolizer);
}

static void test_damaged_files_are_read_without_a_fault(void **state)
{
	struct fixture *fixture = *state;
	size_t size, bytes_left;
	unsigned char *bytes = read_self(&size);
	uint32_t seed = 4711;
	char path[128];

	snprintf(path, sizeof(path), "%s/damaged", fixture->dir);
	for (unsigned round = 0; round < 60; round++) {
		unsigned char was[16];
		size_t at[16];
		FILE *file = fopen(path, "we");

		assert_non_null(file);
		/* Every third one is cut; the others have bad bytes, in part where the headers are.
		 */
		bytes_left = round % 3 ? size : next_random(&seed) % size;
		for (unsigned i = 0; i < 16; i++) {
			size_t within = i % 4 ? size : 4096;

			at[i] = (i % 4 == 1 ? size - 4096 : 0) +
				next_random(&seed) % (i % 4 == 1 ? 4096 : within);
			was[i] = bytes[at[i]];
			bytes[at[i]] = (unsigned char)next_random(&seed);
		}
		memcpy(bytes, "\177ELF", 4);
		assert_int_equal(fwrite(bytes, 1, bytes_left, file), bytes_left);
		fclose(file);
		for (unsigned i = 16; i-- > 0;)
			bytes[at[i]] = was[i];
		look_around(path, fixture->dir);
	}
	free(bytes);
}

int main(void)
{
#define fixture_test(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		fixture_test(test_inlined_function_is_a_frame_of_its_own_with_both_lines),
		fixture_test(test_file_offset_and_address_name_the_same_function),
		fixture_test(test_mangled_name_is_shown_as_written_in_the_source),
		fixture_test(test_without_debug_information_the_symbol_table_names_functions),
		fixture_test(test_stripped_library_still_names_its_exported_functions),
		fixture_test(test_file_with_another_build_id_is_not_used),
		fixture_test(test_detached_debug_file_is_found_by_build_id),
		fixture_test(test_file_that_is_gone_is_named_by_its_build_id_and_recorded_segments),
		fixture_test(test_debuglink_is_followed_if_its_checksum_is_right),
		fixture_test(test_debug_file_is_fetched_from_a_debuginfod_server),
		fixture_test(test_variable_is_named_with_the_offset_into_it),
		fixture_test(test_a_stripped_go_program_is_known_by_its_sections),
		fixture_test(test_a_go_program_without_section_headers_is_known_by_its_data),
		fixture_test(test_address_is_worked_out_once_and_a_module_added_once),
		fixture_test(test_what_is_no_program_is_told_so),
		fixture_test(test_damaged_files_are_read_without_a_fault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
