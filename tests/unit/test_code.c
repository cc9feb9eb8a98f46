// SPDX-License-Identifier: Apache-2.0
/* Names of code: functions of this program, and files that are not what they seem to be. */
#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "usdt/frame/code.h"

static __attribute__((noinline)) int a_function(int n)
{
	__asm__ __volatile__("" : "+r"(n));
	return n * 3;
}

static void test_functions_have_their_names_and_offsets(void **state)
{
	struct code_name name;

	(void)state;
	assert_int_equal(a_function(1), 3);
	for (unsigned i = 0; i < 3; i++) {
		code_find((uintptr_t)a_function + i % 2, &name);
		assert_string_equal(name.function, "a_function");
		assert_non_null(strstr(name.file, "/test_code"));
		assert_int_equal(name.offset, i % 2);
	}
}

static void test_memory_that_is_no_file_has_no_name(void **state)
{
	struct code_name name;
	char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(page, MAP_FAILED);
	code_find((uintptr_t)page + 5, &name);
	assert_string_equal(name.function, "");
	munmap(page, 4096);
	code_find(16, &name);
	assert_string_equal(name.function, "");
	assert_string_equal(name.file, "");
	assert_int_equal(name.offset, 16);
}

/* A part of this program, with changes at places that headers have. */
static void test_damaged_files_are_read_within_their_bounds(void **state)
{
	char path[] = "/tmp/waffle-code-XXXXXX", own[16 << 10];
	int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), fd = mkstemp(path);
	ssize_t len = pread(self, own, sizeof(own), 0);
	struct code_name name;

	(void)state;
	assert_true(self >= 0 && fd >= 0 && len == sizeof(own));
	srand(7);
	for (unsigned round = 0; round < 2000; round++) {
		char copy[sizeof(own)], *mapped;

		memcpy(copy, own, sizeof(copy));
		/* Sections where there is something, so that they are looked at. */
		((Elf64_Ehdr *)copy)->e_shoff = (unsigned)rand() % 4096;
		for (unsigned i = 0; i < 40; i++)
			copy[(unsigned)rand() % (round % 2 ? 64 : 4096)] = (char)rand();
		memcpy(copy, ELFMAG, SELFMAG);
		copy[EI_CLASS] = ELFCLASS64;
		((Elf64_Ehdr *)copy)->e_phentsize = sizeof(Elf64_Phdr);
		((Elf64_Ehdr *)copy)->e_shentsize = sizeof(Elf64_Shdr);
		assert_int_equal(pwrite(fd, copy, sizeof(copy), 0), sizeof(copy));
		mapped = mmap(NULL, sizeof(copy), PROT_READ, MAP_PRIVATE, fd, 0);
		assert_ptr_not_equal(mapped, MAP_FAILED);
		code_find((uintptr_t)mapped + (unsigned)rand() % sizeof(copy), &name);
		assert_true(strnlen(name.function, sizeof(name.function)) < sizeof(name.function));
		assert_true(strnlen(name.file, sizeof(name.file)) < sizeof(name.file));
		munmap(mapped, sizeof(copy));
	}
	unlink(path);
	close(fd);
	close(self);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions_have_their_names_and_offsets),
		cmocka_unit_test(test_memory_that_is_no_file_has_no_name),
		cmocka_unit_test(test_damaged_files_are_read_within_their_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
