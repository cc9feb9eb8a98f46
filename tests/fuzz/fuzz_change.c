// SPDX-License-Identifier: Apache-2.0
/*
 * An ELF file or a capture that changes between two reads, in any way. The reader returns an error
 * or the original contents, and reads nothing beyond the end. The input's first bytes say what
 * changes and when; the rest is the file.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "checksums.h"
#include "store/store.h"
#include "target/dwarf/cfi.h"
#include "target/dwarf/cfi_index.h"
#include "target/loader/loader.h"
#include "target/elf/object_read.h"
#include "target/process/program_facts.h"
#include "target/elf/symbols.h"
#include "require.h"

#define CHANGES_MAX 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
ssize_t pread(int fd, void *to, size_t bytes, off_t offset);
ssize_t pread64(int fd, void *to, size_t bytes, off_t offset);

/* After `reads` more reads, writes `bytes` at an offset, or truncates the file there. */
struct change {
	uint8_t reads;
	uint8_t bytes[3];
	uint16_t offset;
	uint8_t cut, unused;
};

static struct {
	int fd;
	size_t count, at;
	unsigned reads;
	struct change list[CHANGES_MAX];
} changes;

static void read_comes(void)
{
	const struct change *change = &changes.list[changes.at];

	if (changes.at == changes.count || changes.reads++ < change->reads)
		return;
	changes.at++;
	changes.reads = 0;
	if (change->cut & 1)
		require(!ftruncate(changes.fd, change->offset));
	else
		require(pwrite(changes.fd, change->bytes, sizeof(change->bytes), change->offset) ==
			sizeof(change->bytes));
}

/* Replaces the functions of the C library, which are two names of one function. */
ssize_t pread(int fd, void *to, size_t bytes, off_t offset)
{
	read_comes();
	return syscall(SYS_pread64, fd, to, bytes, offset);
}

ssize_t pread64(int fd, void *to, size_t bytes, off_t offset)
{
	return pread(fd, to, bytes, offset);
}

static void read_object(int fd)
{
	struct error err = ERROR_INIT;
	struct loader_file loader;
	struct object *object;

	if (!object_read(&object, fd, "fuzz", &err)) {
		for (size_t i = 0; i < object->probes.len; i++)
			require(object->probes.data[i].site == OBJECT_SPAN_END ||
				object->probes.data[i].site < object->sites.len);
		object_free(object);
	} else {
		require(err.message[0]);
	}
	if (loader_file_read(&loader, fd))
		loader_file_free(&loader);
}

static void read_unwinding(int fd)
{
	struct cfi_index *index;
	struct cfi_table table;
	struct elf_file file;

	if (elf_file_open_fd(&file, dup(fd), "fuzz"))
		return;
	require(!cfi_index_open(&index, &file));
	require(!cfi_table_read(&table, &file));
	for (size_t i = 1; i < table.count; i++)
		require(table.rows[i].pc > table.rows[i - 1].pc);
	cfi_index_close(index);
	cfi_table_free(&table);
	elf_file_close(&file);
}

static void read_symbols(int fd)
{
	struct symbolizer_options options = {.debug_dir = "/nowhere"};
	struct symbolizer *symbolizer;
	struct symbol_frames frames;
	uint32_t module;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	require(!symbolizer_open(&symbolizer, &options));
	require(!symbolizer_add(symbolizer, &(struct symbol_module){.path = path}, &module));
	for (uint64_t at = 0; at < 0x6000; at += 253) {
		symbolizer_offset(symbolizer, module, at, &frames);
		symbolizer_before(symbolizer, module, at);
	}
	symbolizer_close(symbolizer);
}

static void read_facts(int fd)
{
	struct program_facts facts;
	int result = program_facts_read(&facts, dup(fd), "fuzz");

	require(result == -ENOEXEC || !result);
	require(result ||
		(facts.build_id.size <= BUILD_ID_MAX && facts.segments.count <= ELF_SEGMENTS_MAX));
}

static void read_capture(int fd)
{
	struct error err = ERROR_INIT;
	struct store_reader *reader;
	const struct waffle_rec *rec;
	char path[64];
	int result;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (store_reader_open(&reader, path, &err)) {
		require(err.message[0]);
		return;
	}
	result = store_reader_seek(reader, STORE_ALL, &err);
	while (!result && (result = store_reader_next(reader, &rec, &err)) > 0) {
		require(record_size(rec, RECORD_BYTES_MAX));
		result = 0;
	}
	require(result == 0 || err.message[0]);
	store_reader_close(reader);
}

/* Runs the readers of a kind of file. Each starts with the original file. */
static void read_with(void (*const *readers)(int fd), size_t count, const void *data, size_t size)
{
	for (size_t i = 0; i < count; i++) {
		changes.at = changes.reads = 0;
		changes.fd = memfd_create("fuzz", MFD_CLOEXEC);
		require(changes.fd >= 0 && write(changes.fd, data, size) == (ssize_t)size);
		readers[i](changes.fd);
		close(changes.fd);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const of_elf[])(int fd) = {read_object, read_unwinding, read_symbols,
						 read_facts};
	static void (*const of_capture[])(int fd) = {read_capture};
	unsigned char *copy;

	memset(&changes, 0, sizeof(changes));
	if (!size || size < 1 + (data[0] % CHANGES_MAX) * sizeof(struct change))
		return 0;
	changes.count = data[0] % CHANGES_MAX;
	memcpy(changes.list, data + 1, changes.count * sizeof(struct change));
	data += 1 + changes.count * sizeof(struct change);
	size -= 1 + changes.count * sizeof(struct change);
	if (size > 4 && !memcmp(data, "\177ELF", 4)) {
		read_with(of_elf, 4, data, size);
		return 0;
	}
	copy = malloc(size + 1);
	require(copy);
	memcpy(copy, data, size);
	mend_checksums(copy, size);
	read_with(of_capture, 1, copy, size);
	free(copy);
	return 0;
}
