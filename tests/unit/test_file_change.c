// SPDX-License-Identifier: Apache-2.0
/*
 * Files whose owner writes to them while they are read, as any user may: that is an error of this
 * file and nothing else. And files that stand for more than there is room for.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zlib.h>
#include <cmocka.h>

#include "target/dwarf/cfi.h"
#include "target/dwarf/cfi_index.h"
#include "target/elf/elflimits.h"
#include "target/elf/object_read.h"
#include "target/elf/symbols.h"
#include "waffle.h"

ssize_t pread(int fd, void *to, size_t bytes, off_t offset);
int main(void);
extern const char __executable_start[]; /* the linker's: address 0 of the file */

/* ---- a file that changes at a certain read ---- */

static struct {
	int fd;
	unsigned reads; /* until it changes; 0: never */
	bool cut;
} change;

/* Replaces the function of the C library, also for libelf. */
ssize_t pread(int fd, void *to, size_t bytes, off_t offset)
{
	if (change.reads && !--change.reads) {
		if (change.cut)
			assert_int_equal(ftruncate(change.fd, 100), 0);
		else
			assert_int_equal(pwrite(change.fd, "\x90\x90\x90\x90", 4, 0x1000), 4);
	}
	return syscall(SYS_pread64, fd, to, bytes, offset);
}

struct contents {
	char *bytes;
	size_t size;
};

static struct contents self_read(void)
{
	struct contents self = {0};
	struct stat status;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0 && !fstat(fd, &status));
	self.size = (size_t)status.st_size;
	self.bytes = malloc(self.size);
	assert_non_null(self.bytes);
	assert_int_equal(read(fd, self.bytes, self.size), self.size);
	close(fd);
	return self;
}

static void file_fill(int fd, const struct contents *contents)
{
	assert_int_equal(pwrite(fd, contents->bytes, contents->size, 0), contents->size);
	assert_int_equal(ftruncate(fd, (off_t)contents->size), 0);
}

/* A file of the past: what happens now has another time, whatever the clock's steps are. */
static int file_make(const struct contents *contents)
{
	const struct timespec past[2] = {{1, 0}, {1, 0}};
	int fd = memfd_create("changing", MFD_CLOEXEC);

	assert_true(fd >= 0);
	file_fill(fd, contents);
	assert_int_equal(futimens(fd, past), 0);
	return fd;
}

/* Another file, which nobody writes to, is read as if the first one had not changed. */
static void other_file_reads(int fd)
{
	struct error err = ERROR_INIT;
	struct object *object;

	assert_int_equal(object_read(&object, fd, "/other/path", &err), 0);
	assert_int_equal(object->sites.len, 1);
	assert_string_equal(object->sites.data[0].name, "a site");
	object_free(object);
}

static void test_file_that_changes_at_any_read_is_an_error(void **state)
{
	struct contents self = self_read();
	int other = file_make(&self);

	(void)state;
	WAFFLE_EVENT("a site"); /* for the file to have one */
	for (unsigned at = 1; at < 40; at++) {
		struct error err = ERROR_INIT;
		struct object *object;
		int fd = file_make(&self), result;

		change.fd = fd;
		change.cut = at % 2;
		change.reads = at;
		result = object_read(&object, fd, "/its/path", &err);
		if (!result)
			assert_true(change.reads > 0); /* it did not read as often */
		else
			assert_string_equal(err.message, "/its/path: it changed while it was read");
		if (at == 1)
			assert_int_equal(result, -ESTALE);
		change.reads = 0;
		object_free(object);
		close(fd);
		if (at % 10 == 1) /* it is slow in an emulator */
			other_file_reads(other);
	}
	close(other);
	free(self.bytes);
}

/* A symbolizer, which may have read a file that changed, finds main() in another file. */
static void other_file_has_symbols(struct symbolizer *symbolizer, int fd)
{
	uint64_t address = (uintptr_t)main - (uintptr_t)__executable_start;
	struct symbol_frames frames;
	uint32_t number;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(symbolizer_add(symbolizer, &(struct symbol_module){.path = path}, &number),
			 0);
	assert_int_equal(symbolizer_address(symbolizer, number, address, &frames), 0);
	assert_true(frames.count > 0);
	assert_string_equal(frames.list[frames.count - 1].function, "main");
}

static void test_file_that_changes_while_symbols_are_read_has_none(void **state)
{
	struct contents self = self_read();
	int other = file_make(&self);
	unsigned bad = 0;

	(void)state;
	for (unsigned at = 1; at < 60; at++) {
		struct symbol_module_state module;
		struct symbolizer *symbolizer;
		struct symbol_frames frames;
		uint32_t number;
		char path[64];
		int fd = file_make(&self);

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		change.fd = fd;
		change.cut = at % 2;
		change.reads = at;
		assert_int_equal(symbolizer_open(&symbolizer, &(struct symbolizer_options){0}), 0);
		assert_int_equal(
			symbolizer_add(symbolizer, &(struct symbol_module){.path = path}, &number),
			0);
		assert_int_equal(symbolizer_module(symbolizer, number, &module), 0);
		if (!change.reads) {
			assert_int_equal(module.file, SYMBOL_FILE_BAD);
			bad++;
		}
		change.reads = 0;
		symbolizer_offset(symbolizer, number, 0x1000, &frames);
		if (module.file == SYMBOL_FILE_BAD)
			assert_int_equal(frames.count, 0);
		if (at % 10 == 1)
			other_file_has_symbols(symbolizer, other);
		symbolizer_close(symbolizer);
		close(fd);
	}
	assert_true(bad > 0);
	close(other);
	free(self.bytes);
}

/* ---- a file that changes all the time ---- */

struct writer {
	pthread_t thread;
	struct contents self;
	int fd;
	atomic_bool end;
};

/* The size is now right, now none, and there are always new bytes in the headers. */
static void *keep_writing(void *arg)
{
	struct writer *writer = arg;
	unsigned seed = 1;

	while (!atomic_load(&writer->end)) {
		char bytes[8];

		for (unsigned i = 0; i < sizeof(bytes); i++)
			bytes[i] = (char)rand_r(&seed);
		file_fill(writer->fd, &writer->self);
		for (unsigned i = 0; i < 100; i++)
			if (pwrite(writer->fd, bytes, sizeof(bytes),
				   16 + (off_t)((unsigned)rand_r(&seed) % 4096)) < 0)
				break;
		if (ftruncate(writer->fd, rand_r(&seed) % 2 ? 0 : (off_t)writer->self.size / 2))
			break;
	}
	return NULL;
}

static void read_all(int fd)
{
	struct error err = ERROR_INIT;
	struct cfi_index *index;
	struct cfi_table table;
	struct elf_file file;
	struct object *object;
	int own = dup(fd);

	if (object_read(&object, fd, "changing", &err))
		assert_true(err.message[0]);
	object_free(object);
	if (elf_file_open_fd(&file, own, "changing"))
		return;
	if (!cfi_table_read(&table, &file))
		cfi_table_free(&table);
	if (!cfi_index_open(&index, &file))
		cfi_index_close(index);
	elf_file_close(&file);
}

static void test_file_that_is_written_all_the_time_does_no_harm(void **state)
{
	struct writer writer = {.self = self_read()};
	int other = file_make(&writer.self);
	char path[64];

	(void)state;
	writer.fd = memfd_create("changing", MFD_CLOEXEC);
	assert_true(writer.fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", writer.fd);
	assert_int_equal(pthread_create(&writer.thread, NULL, keep_writing, &writer), 0);
	for (unsigned round = 0; round < 300; round++) {
		struct symbolizer *symbolizer;
		struct symbol_frames frames;
		uint32_t number;

		read_all(writer.fd);
		assert_int_equal(symbolizer_open(&symbolizer, &(struct symbolizer_options){0}), 0);
		assert_int_equal(
			symbolizer_add(symbolizer, &(struct symbol_module){.path = path}, &number),
			0);
		symbolizer_offset(symbolizer, number, 0x1000, &frames);
		if (round % 30 == 0) {
			other_file_reads(other);
			other_file_has_symbols(symbolizer, other);
		}
		symbolizer_close(symbolizer);
	}
	close(other);
	atomic_store(&writer.end, true);
	pthread_join(writer.thread, NULL);
	close(writer.fd);
	free(writer.self.bytes);
}

/* ---- files that stand for too much ---- */

#define NAMES "\0.shstrtab\0.debug_info\0.eh_frame\0.gnu_debuglink\0.symtab"
enum { NAME_SHSTRTAB = 1, NAME_DEBUG = 11, NAME_FRAMES = 23, NAME_LINK = 33, NAME_SYMTAB = 48 };

struct small {
	Elf64_Ehdr header;
	Elf64_Shdr sections[3]; /* none, names, one */
	char names[64];
};

static struct small small_make(void)
{
	struct small small = {
		.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT},
			   .e_type = ET_DYN,
			   .e_machine = EM_X86_64,
			   .e_version = EV_CURRENT,
			   .e_shoff = offsetof(struct small, sections),
			   .e_ehsize = sizeof(Elf64_Ehdr),
			   .e_shentsize = sizeof(Elf64_Shdr),
			   .e_shnum = 3,
			   .e_shstrndx = 1},
		.sections = {{0},
			     {.sh_name = NAME_SHSTRTAB,
			      .sh_type = SHT_STRTAB,
			      .sh_offset = offsetof(struct small, names),
			      .sh_size = 64,
			      .sh_addralign = 1}},
	};

	_Static_assert(sizeof(NAMES) <= sizeof(small.names), "room for the names");
	memcpy(small.names, NAMES, sizeof(NAMES));
	return small;
}

/* With `behind` behind it, and of any size. */
static int small_file(const struct small *small, const void *behind, size_t bytes, off_t size)
{
	int fd = memfd_create("small", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, small, sizeof(*small)), sizeof(*small));
	if (bytes)
		assert_int_equal(write(fd, behind, bytes), bytes);
	if (size)
		assert_int_equal(ftruncate(fd, size), 0);
	return fd;
}

/* 64 MiB of zeroes, which zlib makes a thousand times smaller. */
static void test_dwarf_that_unfolds_without_end_is_not_read(void **state)
{
	const size_t plain = 64u << 20;
	uLongf packed = compressBound(plain);
	char *zeroes = calloc(1, plain), *data = malloc(sizeof(Elf64_Chdr) + packed);
	struct small small = small_make();
	struct elf_file file;

	(void)state;
	assert_true(zeroes && data);
	assert_int_equal(
		compress2((Bytef *)data + sizeof(Elf64_Chdr), &packed, (Bytef *)zeroes, plain, 9),
		Z_OK);
	*(Elf64_Chdr *)(void *)data =
		(Elf64_Chdr){.ch_type = ELFCOMPRESS_ZLIB, .ch_size = plain, .ch_addralign = 1};
	small.sections[2] = (Elf64_Shdr){.sh_name = NAME_DEBUG,
					 .sh_type = SHT_PROGBITS,
					 .sh_flags = SHF_COMPRESSED,
					 .sh_offset = sizeof(small),
					 .sh_size = sizeof(Elf64_Chdr) + packed,
					 .sh_addralign = 8};
	assert_int_equal(elf_file_open_fd(&file,
					  small_file(&small, data, sizeof(Elf64_Chdr) + packed, 0),
					  "bomb"),
			 0);
	assert_true(elf_file_has_debug(&file));
	assert_false(elf_debug_limited(file.elf, file.fd));
	elf_file_close(&file);
	free(zeroes);
	free(data);
}

static void test_tables_of_a_sparse_file_are_not_read(void **state)
{
	const off_t sparse = (off_t)60 << 30;
	struct small small = small_make();
	struct elf_file file;
	struct build_id id;
	int fd;

	(void)state;
	small.sections[2] = (Elf64_Shdr){.sh_name = NAME_SYMTAB,
					 .sh_type = SHT_SYMTAB,
					 .sh_offset = sizeof(small),
					 .sh_size = (uint64_t)sparse - sizeof(small),
					 .sh_entsize = sizeof(Elf64_Sym),
					 .sh_addralign = 8};
	fd = small_file(&small, NULL, 0, sparse);
	assert_int_equal(build_id_read(fd, &id), -ENOEXEC);
	assert_int_equal(elf_file_open_fd(&file, fd, "sparse"), -ENOEXEC);
	/* More headers than libelf could make room for. */
	small.header.e_shnum = 0;
	small.sections[0].sh_size = 900u << 20;
	fd = small_file(&small, NULL, 0, sparse);
	assert_int_equal(elf_file_open_fd(&file, fd, "sparse"), -ENOEXEC);
}

/* The checksum is of all of a file. */
static void test_checksum_of_a_sparse_debug_file_is_not_made(void **state)
{
	static const char folder[] = "/tmp/waffle-change-XXXXXX";
	struct small small = small_make(), plain = small_make();
	char dir[sizeof(folder)], path[64], link[64];
	struct elf_file file, debug;
	const struct build_id none = {0};
	int fd;

	(void)state;
	memcpy(dir, folder, sizeof(folder));
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/program", dir);
	snprintf(link, sizeof(link), "%s/huge.debug", dir);
	small.sections[2] = (Elf64_Shdr){.sh_name = NAME_LINK,
					 .sh_type = SHT_PROGBITS,
					 .sh_offset = sizeof(small),
					 .sh_size = 16,
					 .sh_addralign = 4};
	plain.header.e_shnum = 2;
	fd = open(link, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, &plain, sizeof(plain)), sizeof(plain));
	assert_int_equal(ftruncate(fd, (off_t)60 << 30), 0);
	close(fd);
	assert_int_equal(
		elf_file_open_fd(&file, small_file(&small, "huge.debug\0\0\1\2\3\4", 16, 0), path),
		0);
	assert_int_equal(elf_file_find_debug(&debug, &file, &none, "/nowhere"), -ENOENT);
	elf_file_close(&file);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(rmdir(dir), 0);
}

/* Functions of one row each: 20 bytes an entry. */
static void test_unwinding_table_that_is_too_large_is_cut(void **state)
{
	static const unsigned char cie[] = {16,  0, 0, 0,    0,  0, 0,    0,    1, 'z',
					    'R', 0, 1, 0x78, 16, 1, 0x04, 0x0c, 7, 8};
	const size_t count = 5u << 20;
	struct small small = small_make();
	struct cfi_table table;
	struct elf_file file;
	unsigned char *frames = calloc(count + 1, 28);
	size_t at = sizeof(cie);

	(void)state;
	assert_non_null(frames);
	memcpy(frames, cie, sizeof(cie));
	for (size_t i = 0; i < count; i++) {
		uint32_t words[2] = {21, (uint32_t)(at + 4)};
		uint64_t range[2] = {0x1000 + 16 * i, 8};

		memcpy(frames + at, words, sizeof(words));
		memcpy(frames + at + 8, range, sizeof(range));
		at += 25;
	}
	small.sections[2] = (Elf64_Shdr){.sh_name = NAME_FRAMES,
					 .sh_type = SHT_PROGBITS,
					 .sh_offset = sizeof(small),
					 .sh_size = at,
					 .sh_addralign = 8};
	assert_int_equal(elf_file_open_fd(&file, small_file(&small, frames, at, 0), "frames"), 0);
	assert_int_equal(cfi_table_read(&table, &file), 0);
	assert_true(table.cut);
	assert_true(table.count > CFI_ROWS_MAX / 2 && table.count <= CFI_ROWS_MAX);
	/* The functions that were read are right. */
	assert_non_null(cfi_table_find(&table, 0x1000 + 16 * 100));
	assert_null(cfi_table_find(&table, 0x1000 + 16 * 100 + 8));
	assert_null(cfi_table_find(&table, 0x1000 + 16 * (count - 1)));
	cfi_table_free(&table);
	elf_file_close(&file);
	free(frames);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file_that_changes_at_any_read_is_an_error),
		cmocka_unit_test(test_file_that_changes_while_symbols_are_read_has_none),
		cmocka_unit_test(test_file_that_is_written_all_the_time_does_no_harm),
		cmocka_unit_test(test_dwarf_that_unfolds_without_end_is_not_read),
		cmocka_unit_test(test_tables_of_a_sparse_file_are_not_read),
		cmocka_unit_test(test_checksum_of_a_sparse_debug_file_is_not_made),
		cmocka_unit_test(test_unwinding_table_that_is_too_large_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
