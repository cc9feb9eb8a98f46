// SPDX-License-Identifier: Apache-2.0
/* The table of functions of a Go program. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "go_file.h"
#include "target/elf/elffile.h"
#include "target/elf/elflimits.h"
#include "target/elf/symtab.h"

#define HEADER_BYTES (8 + 8 * 8)
#define ROW_BYTES 8
#define DESCRIPTION_BYTES 8 /* the reader needs no more of a function's description */

/* Functions of 16 bytes each. */
struct go_program {
	uint32_t functions;
	uint64_t text;     /* 0: only the module has it */
	const char *names; /* with its NULs */
	size_t names_bytes;
	const uint32_t *names_at; /* each function's; NULL: all have the first name */
};

static void put(char *bytes, size_t at, size_t size, uint64_t number)
{
	memcpy(bytes + at, &number, size);
}

/* Writes the table of the program to `bytes`, or only returns its size. */
static size_t table_write(const struct go_program *program, char *bytes)
{
	size_t names = HEADER_BYTES, table = names + program->names_bytes;
	size_t described = ROW_BYTES * ((size_t)program->functions + 1);
	const uint64_t words[] = {program->functions, 0, program->text, names, 0, 0, 0, table};

	if (!bytes)
		return table + described + DESCRIPTION_BYTES * program->functions;
	put(bytes, 0, 8, 0x08010000fffffff1);
	for (size_t i = 0; i < 8; i++)
		put(bytes, 8 + 8 * i, 8, words[i]);
	memcpy(bytes + names, program->names, program->names_bytes);
	for (size_t i = 0; i <= program->functions; i++)
		put(bytes, table + ROW_BYTES * i, 4, 16 * i);
	for (size_t i = 0; i < program->functions; i++) {
		size_t at = described + DESCRIPTION_BYTES * i;

		put(bytes, table + ROW_BYTES * i + 4, 4, at);
		put(bytes, table + at + 4, 4, program->names_at ? program->names_at[i] : 0);
	}
	return 0;
}

/* Returns a descriptor of a file. */
static int program_file(const struct go_program *program)
{
	size_t size = table_write(program, NULL);
	char *bytes = calloc(1, size);
	int fd;

	assert_non_null(bytes);
	table_write(program, bytes);
	fd = go_file(bytes, size);
	free(bytes);
	return fd;
}

/* Returns what symtab_read_go() does. After 0, free it and close the file. */
static int read_file(int fd, struct symtab *symtab, struct elf_file *file)
{
	int result;

	assert_int_equal(elf_file_open_fd(file, fd, "go"), 0);
	result = symtab_read_go(symtab, file->elf);
	if (result)
		elf_file_close(file);
	return result;
}

static int read_program(const struct go_program *program, struct symtab *symtab,
			struct elf_file *file)
{
	return read_file(program_file(program), symtab, file);
}

static void check_functions(uint64_t text)
{
	static const char names[] = "main.main\0main.(*Server).Serve";
	static const uint32_t names_at[] = {10, 0};
	const struct go_program program = {.functions = 2,
					   .text = text,
					   .names = names,
					   .names_bytes = sizeof(names),
					   .names_at = names_at};
	struct elf_file file;
	struct symtab symtab;
	uint64_t start;

	assert_int_equal(read_program(&program, &symtab, &file), 0);
	assert_string_equal(symtab_find(&symtab, GO_FILE_TEXT + 4, &start), "main.(*Server).Serve");
	assert_int_equal(start, GO_FILE_TEXT);
	assert_string_equal(symtab_find(&symtab, GO_FILE_TEXT + 16, &start), "main.main");
	assert_null(symtab_find(&symtab, GO_FILE_TEXT + 32, &start));
	symtab_free(&symtab);
	elf_file_close(&file);
}

static void test_functions_have_their_names(void **state)
{
	(void)state;
	check_functions(GO_FILE_TEXT);
}

static void test_address_of_the_code_may_be_in_the_module(void **state)
{
	(void)state;
	check_functions(0);
}

static void test_table_with_a_name_behind_its_end_is_not_used(void **state)
{
	static const uint32_t names_at[] = {0xffff};
	const struct go_program program = {.functions = 1,
					   .text = GO_FILE_TEXT,
					   .names = "main",
					   .names_bytes = 5,
					   .names_at = names_at};
	struct elf_file file;
	struct symtab symtab;

	(void)state;
	assert_int_equal(read_program(&program, &symtab, &file), -ENOENT);
}

/* To search each name for its end would take minutes. Then the alarm ends this program. */
static void test_many_functions_may_have_one_long_name(void **state)
{
	const size_t bytes = 16u << 20;
	char *names = malloc(bytes);
	struct go_program program = {
		.functions = 1u << 18, .text = GO_FILE_TEXT, .names = names, .names_bytes = bytes};
	struct elf_file file;
	struct symtab symtab;

	(void)state;
	assert_non_null(names);
	memset(names, 'a', bytes);
	names[bytes - 1] = '\0';
	alarm(20);
	assert_int_equal(read_program(&program, &symtab, &file), 0);
	alarm(0);
	assert_int_equal(symtab.list.len, program.functions);
	symtab_free(&symtab);
	elf_file_close(&file);
	free(names);
}

/* All but its beginning is a hole of the file. */
static void test_table_that_is_too_large_is_not_read(void **state)
{
	static const char name[] = "main.main";
	const struct go_program program = {
		.functions = 1, .text = GO_FILE_TEXT, .names = name, .names_bytes = sizeof(name)};
	const uint64_t size = ELF_TABLES_MAX + 1;
	int fd = program_file(&program);
	struct elf_file file;
	struct symtab symtab;

	(void)state;
	assert_int_equal(pwrite(fd, &size, 8, offsetof(struct go_file_head, sections[2].sh_size)),
			 8);
	assert_int_equal(ftruncate(fd, (off_t)(sizeof(struct go_file_head) + size)), 0);
	assert_int_equal(read_file(fd, &symtab, &file), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions_have_their_names),
		cmocka_unit_test(test_address_of_the_code_may_be_in_the_module),
		cmocka_unit_test(test_table_with_a_name_behind_its_end_is_not_used),
		cmocka_unit_test(test_many_functions_may_have_one_long_name),
		cmocka_unit_test(test_table_that_is_too_large_is_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
