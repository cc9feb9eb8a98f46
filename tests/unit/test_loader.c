// SPDX-License-Identifier: Apache-2.0
/* Data that tells the dynamic loader where libraries are, whole and damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target/loader/loader.h"

/* ---- the cache ---- */

static const char header[] = "glibc-ld.so.cache1.1";

/* A cache of two libraries behind a header of the old format. */
static size_t cache_make(char *cache)
{
	static const char strings[] = "liba.so.1\0/lib/liba.so.1\0libb.so\0/opt/b/libb.so";
	static const uint32_t paths[] = {10, 33};
	const uint32_t words[] = {2, sizeof(strings), 0, 0, 0, 0, 0};
	const uint32_t first = 20 + sizeof(words) + 2 * 24;
	char *at = cache;

	memset(at, 0, 16);
	at = (char *)memcpy(at, "ld.so-1.7.0", 11) + 16;
	at = (char *)memcpy(at, header, 20) + 20;
	at = (char *)memcpy(at, words, sizeof(words)) + sizeof(words);
	for (unsigned i = 0; i < 2; i++) {
		const uint32_t entry[6] = {0x303, first, first + paths[i], 0, 0, 0};

		at = (char *)memcpy(at, entry, sizeof(entry)) + sizeof(entry);
	}
	memcpy(at, strings, sizeof(strings));
	return (size_t)(at - cache) + sizeof(strings);
}

struct seen {
	unsigned count;
	char text[256];
};

static void see(const char *path, void *arg)
{
	struct seen *seen = arg;
	size_t len = strlen(seen->text);

	seen->count++;
	snprintf(seen->text + len, sizeof(seen->text) - len, "%s ", path);
}

static void test_cache_tells_the_path_of_each_library(void **state)
{
	char cache[512];
	struct seen seen = {0};

	(void)state;
	loader_cache_each(cache, cache_make(cache), see, &seen);
	assert_int_equal(seen.count, 2);
	assert_string_equal(seen.text, "/lib/liba.so.1 /opt/b/libb.so ");
}

static void test_cache_cut_at_any_byte_tells_whole_paths_only(void **state)
{
	char whole[512];
	size_t size = cache_make(whole);

	(void)state;
	for (size_t cut = 0; cut < size; cut++) {
		char *cache = malloc(cut + 1); /* what is behind is not read */
		struct seen seen = {0};

		assert_non_null(cache);
		memcpy(cache, whole, cut);
		loader_cache_each(cache, cut, see, &seen);
		assert_true(!seen.count ||
			    (seen.count == 1 && !strcmp(seen.text, "/lib/liba.so.1 ")));
		free(cache);
	}
}

static void test_cache_with_offsets_that_lead_out_has_no_paths(void **state)
{
	char cache[512];
	size_t size = cache_make(cache);
	struct seen seen = {0};
	const uint32_t out = UINT32_MAX;

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		memcpy(cache + 16 + 48 + i * 24 + 8, &out, sizeof(out));
	memcpy(cache + 16 + 20, &out, sizeof(out)); /* the number of entries */
	loader_cache_each(cache, size, see, &seen);
	assert_int_equal(seen.count, 0);
}

/* ---- the runpath ---- */

#define TEXT "$ORIGIN/../lib:/opt/x"

struct elf {
	Elf64_Ehdr header;
	Elf64_Phdr segments[2];
	Elf64_Dyn dynamic[4];
	char strings[1 + sizeof(TEXT)];
};

/* The layout of a linker, with addresses that differ from offsets. */
static struct elf elf_make(int64_t tag)
{
	const uint64_t base = 0x400000;
	struct elf elf = {
		.header = {.e_phoff = offsetof(struct elf, segments),
			   .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = 2},
		.segments = {{.p_type = PT_LOAD, .p_vaddr = base, .p_filesz = sizeof(struct elf)},
			     {.p_type = PT_DYNAMIC,
			      .p_offset = offsetof(struct elf, dynamic),
			      .p_filesz = sizeof(((struct elf *)0)->dynamic)}},
		.dynamic = {{.d_tag = tag, .d_un.d_val = 1},
			    {.d_tag = DT_STRTAB,
			     .d_un.d_ptr = base + offsetof(struct elf, strings)}},
		.strings = "\0" TEXT,
	};
	const uint16_t order = 1;

	memcpy(elf.header.e_ident, ELFMAG, SELFMAG);
	elf.header.e_ident[EI_CLASS] = ELFCLASS64;
	elf.header.e_ident[EI_DATA] = *(const uint8_t *)&order ? ELFDATA2LSB : ELFDATA2MSB;
	return elf;
}

/* To be freed. */
static char *runpath_of(const void *bytes, size_t size)
{
	FILE *file = tmpfile();
	char *runpath;

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fflush(file), 0);
	runpath = loader_runpath(fileno(file));
	fclose(file);
	return runpath;
}

static void test_runpath_and_rpath_are_read(void **state)
{
	static const int64_t tags[] = {DT_RUNPATH, DT_RPATH};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct elf elf = elf_make(tags[i]);
		char *runpath = runpath_of(&elf, sizeof(elf));

		assert_non_null(runpath);
		assert_string_equal(runpath, TEXT);
		free(runpath);
	}
}

static void test_file_without_a_runpath_has_none(void **state)
{
	struct elf elf = elf_make(DT_SONAME);

	(void)state;
	assert_null(runpath_of(&elf, sizeof(elf)));
	assert_null(runpath_of("#!/bin/sh\n", 10));
	assert_null(runpath_of("", 0));
}

static void test_elf_file_that_is_cut_or_leads_out_has_no_runpath(void **state)
{
	struct elf elf = elf_make(DT_RUNPATH);

	(void)state;
	for (size_t cut = 0; cut < offsetof(struct elf, strings) + sizeof(TEXT); cut++)
		assert_null(runpath_of(&elf, cut));
	elf.dynamic[0].d_un.d_val = UINT64_MAX;
	assert_null(runpath_of(&elf, sizeof(elf)));
	elf = elf_make(DT_RUNPATH);
	elf.segments[1].p_filesz = UINT64_MAX;
	assert_null(runpath_of(&elf, sizeof(elf)));
	elf = elf_make(DT_RUNPATH);
	elf.header.e_phoff = UINT64_MAX - 8;
	assert_null(runpath_of(&elf, sizeof(elf)));
	elf = elf_make(DT_RUNPATH);
	elf.header.e_phnum = UINT16_MAX;
	assert_null(runpath_of(&elf, sizeof(elf)));
}

/* ---- lists of folders ---- */

static bool see_folder(const char *folder, void *arg)
{
	see(folder, arg);
	return ((struct seen *)arg)->count == 6;
}

static const char *folders_of(const char *list, const char *origin)
{
	static struct seen seen;
	const struct loader_base base = {origin, "/work", NULL};

	seen = (struct seen){0};
	loader_folders_each(list, &base, see_folder, &seen);
	return seen.text;
}

static void test_list_of_folders_is_read_as_by_the_loader(void **state)
{
	(void)state;
	assert_string_equal(folders_of("", "/a/b"), "");
	assert_string_equal(folders_of("/x:/y;/z", "/a/b"), "/x /y /z ");
	assert_string_equal(folders_of("$ORIGIN:$ORIGIN/../l:${ORIGIN}x", "/a/b"),
			    "/a /a/../l /ax ");
	assert_string_equal(folders_of("$ORIGIN:$ORIGIN/l", "/b"), "/ /l ");
	/* Relative ones, and empty ones, are where the process works. */
	assert_string_equal(folders_of("l::.:/x", "/a/b"), "/work/l /work/ /work/. /x ");
	/* Folders with tokens of unknown value are left out. */
	assert_string_equal(folders_of("/x/$LIB:$PLATFORM:/y", "/a/b"), "/y ");
	assert_string_equal(folders_of("$ORIGIN/l:/y", ""), "/y ");
	/* Until it is enough. */
	assert_string_equal(folders_of("/1:/2:/3:/4:/5:/6:/7", ""), "/1 /2 /3 /4 /5 /6 ");
}

static void test_file_tells_the_libraries_that_it_needs(void **state)
{
	struct elf elf = elf_make(DT_NEEDED);
	struct loader_file read;
	FILE *file = tmpfile();

	(void)state;
	elf.header.e_machine = EM_AARCH64;
	elf.dynamic[2] = (Elf64_Dyn){.d_tag = DT_NEEDED, .d_un.d_val = 9};
	assert_non_null(file);
	assert_int_equal(fwrite(&elf, 1, sizeof(elf), file), sizeof(elf));
	assert_int_equal(fflush(file), 0);
	assert_true(loader_file_read(&read, fileno(file)));
	assert_int_equal(read.machine, EM_AARCH64);
	assert_null(read.rpath);
	assert_null(read.runpath);
	assert_int_equal(read.needed.len, 2);
	assert_string_equal(read.needed.data[0], TEXT);
	assert_string_equal(read.needed.data[1], &TEXT[8]);
	loader_file_free(&read);
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cache_tells_the_path_of_each_library),
		cmocka_unit_test(test_cache_cut_at_any_byte_tells_whole_paths_only),
		cmocka_unit_test(test_cache_with_offsets_that_lead_out_has_no_paths),
		cmocka_unit_test(test_runpath_and_rpath_are_read),
		cmocka_unit_test(test_file_without_a_runpath_has_none),
		cmocka_unit_test(test_elf_file_that_is_cut_or_leads_out_has_no_runpath),
		cmocka_unit_test(test_list_of_folders_is_read_as_by_the_loader),
		cmocka_unit_test(test_file_tells_the_libraries_that_it_needs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
