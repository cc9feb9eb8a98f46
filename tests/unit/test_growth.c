// SPDX-License-Identifier: Apache-2.0
/* Contents of files and captures that others made: eight times as much takes about eight times as
 * long, not 64 times. */
#include <elf.h>
#include <errno.h>
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

#include "model_capture.h"

#include "calls_capture.h"

#include "capture/arming/arming_internal.h"
#include "growth.h"
#include "mpi_capture.h"
#include "render/job_ranks_internal.h"
#include "symbolize/stack_mappings.h"
#include "target/elf/object_read.h"
#include "target/elf/symbols.h"
#include "waffle/abi.h"

/* ---- sites of a file ---- */

struct __attribute__((packed)) site_note {
	Elf64_Nhdr header;
	char owner[8];
	uint64_t probe, test, semaphore, meta, func;
	uint32_t meta_size, line, kind, unused;
};

#define CODE 0x10000000ull
#define META_BYTES 32
#define FUNC_BYTES 512

/* A library with so many loadable segments, and sites that differ in their categories only. */
static int library_make(uint32_t segments, uint32_t sites)
{
	static const char names[] = "\0.note.waffle\0.shstrtab";
	uint64_t notes_size = (uint64_t)sites * sizeof(struct site_note);
	uint64_t content = sizeof(Elf64_Ehdr) + segments * sizeof(Elf64_Phdr);
	uint64_t content_size = FUNC_BYTES + (uint64_t)sites * META_BYTES;
	uint64_t notes = (content + content_size + 7) / 8 * 8, strings = notes + notes_size;
	uint64_t sections = (strings + sizeof(names) + 7) / 8 * 8;
	uint64_t size = sections + 3 * sizeof(Elf64_Shdr);
	int fd = memfd_create("library", MFD_CLOEXEC);
	unsigned char *file;
	Elf64_Ehdr *header;

	assert_true(fd >= 0 && !ftruncate(fd, (off_t)size));
	file = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(file, MAP_FAILED);
	header = (Elf64_Ehdr *)(void *)file;
	*header = (Elf64_Ehdr){.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					   ELFDATA2LSB, EV_CURRENT},
			       .e_type = ET_DYN,
			       .e_machine = EM_X86_64,
			       .e_version = EV_CURRENT,
			       .e_phoff = sizeof(Elf64_Ehdr),
			       .e_shoff = sections,
			       .e_ehsize = sizeof(Elf64_Ehdr),
			       .e_phentsize = sizeof(Elf64_Phdr),
			       .e_phnum = (Elf64_Half)segments,
			       .e_shentsize = sizeof(Elf64_Shdr),
			       .e_shnum = 3,
			       .e_shstrndx = 2};
	for (uint32_t i = 0; i < segments; i++) {
		bool similar = i + 1 == segments;
		Elf64_Phdr segment = {.p_type = PT_LOAD,
				      .p_flags = PF_R | PF_X,
				      .p_offset = content,
				      .p_vaddr = similar ? CODE : 2 * CODE,
				      .p_filesz = similar ? content_size : 16};

		memcpy(file + sizeof(*header) + i * sizeof(segment), &segment, sizeof(segment));
	}
	memset(file + content, 'f', FUNC_BYTES - 2);
	file[content] = 0x90;
	for (uint32_t i = 0; i < sites; i++) {
		struct site_note note = {.header = {7, 56, WAFFLE_NOTE_SITE},
					 .owner = WAFFLE_NOTE_OWNER,
					 .probe = CODE,
					 .test = CODE,
					 .meta = CODE + FUNC_BYTES + (uint64_t)i * META_BYTES,
					 .func = CODE + 1,
					 .meta_size = META_BYTES,
					 .line = 1};

		snprintf((char *)file + content + FUNC_BYTES + (uint64_t)i * META_BYTES, META_BYTES,
			 "name%cfile%c%u", 0, 0, i);
		memcpy(file + notes + i * sizeof(note), &note, sizeof(note));
	}
	memcpy(file + strings, names, sizeof(names));
	memcpy(file + sections + sizeof(Elf64_Shdr),
	       &(Elf64_Shdr){.sh_name = 1,
			     .sh_type = SHT_NOTE,
			     .sh_offset = notes,
			     .sh_size = notes_size,
			     .sh_addralign = 4},
	       sizeof(Elf64_Shdr));
	memcpy(file + sections + 2 * sizeof(Elf64_Shdr),
	       &(Elf64_Shdr){.sh_name = 14,
			     .sh_type = SHT_STRTAB,
			     .sh_offset = strings,
			     .sh_size = sizeof(names),
			     .sh_addralign = 1},
	       sizeof(Elf64_Shdr));
	munmap(file, size);
	return fd;
}

static uint64_t sites_read(uint32_t count)
{
	int fd = library_make(100, count);
	struct error err = ERROR_INIT;
	struct object *object;
	uint64_t begin = cpu_ns();

	assert_int_equal(object_read(&object, fd, "library", &err), 0);
	begin = cpu_ns() - begin;
	assert_int_equal(object->sites.len, count);
	assert_int_equal(strlen(object->sites.data[0].func), FUNC_BYTES - 3);
	object_free(object);
	close(fd);
	return begin;
}

static void test_sites_that_differ_in_little(void **state)
{
	(void)state;
	check_growth(sites_read, 3000);
}

static void test_file_of_very_many_segments_is_not_read(void **state)
{
	int fd = library_make(60000, 10000);
	struct error err = ERROR_INIT;
	struct object *object;
	uint64_t begin = cpu_ns();

	(void)state;
	assert_int_equal(object_read(&object, fd, "/its/path", &err), -ENOTSUP);
	assert_non_null(strstr(err.message, "/its/path: it has 128 loadable segments or more"));
	assert_true(cpu_ns() - begin < 5000000000ull); /* all of them would take a minute */
	close(fd);
}

/* ---- names with values ---- */

static uint64_t template_filled(uint32_t count)
{
	static char name[1u << 16];
	struct site_info site = {.name = name,
				 .category = "",
				 .file = "",
				 .func = "",
				 .object = "/lib/x.so",
				 .kind = WAFFLE_SITE_EVENT,
				 .call = true,
				 .key_count = 1,
				 .keys = {{WAFFLE_KEY_U64, "key"}}};
	const uint64_t value = 7;
	struct capture capture;
	struct error err = ERROR_INIT;
	uint64_t begin;

	assert_true(count + 2 < sizeof(name));
	memset(name, '{', count);
	name[count] = '}';
	name[count + 1] = '\0';
	capture_begin(&capture, true);
	assert_int_equal(store_writer_add_site(capture.writer, &site, &err), 0);
	for (unsigned i = 0; i < 40; i++)
		capture_hit(&capture, 2000 + i, 20, CAPTURE_SITES, i + 1, 0, 1, &value);
	begin = cpu_ns();
	assert_int_equal(model_site_count(capture_load(&capture, 9000)), CAPTURE_SITES + 2);
	begin = cpu_ns() - begin;
	capture_free(&capture);
	return begin;
}

static void test_template_of_braces(void **state)
{
	(void)state;
	check_growth(template_filled, 7000);
}

/* ---- mappings ---- */

static void add_mapping(struct capture *capture, struct store_mapping mapping)
{
	struct error err = ERROR_INIT;

	capture_must(store_writer_add_mapping(capture->writer, &mapping, &err), err);
}

/* The definition, in the order in which they were added. */
static const struct store_mapping *found_one_by_one(const struct stack_mappings *mappings,
						    uint32_t pid, uint64_t address, uint64_t ts)
{
	const struct store_mapping *found = NULL;

	for (uint32_t i = 0; i < stack_mappings_count(mappings); i++) {
		const struct store_mapping *mapping = stack_mappings_at(mappings, i);

		if (mapping->pid != pid)
			continue;
		if (found && mapping->ts > ts)
			break;
		if (address >= mapping->start && address < mapping->end)
			found = mapping;
	}
	return found && *found->path ? found : NULL;
}

static const struct store_mapping *before_one_by_one(const struct stack_mappings *mappings,
						     uint32_t pid, uint64_t address)
{
	const struct store_mapping *found = NULL;

	for (uint32_t i = 0; i < stack_mappings_count(mappings); i++) {
		const struct store_mapping *mapping = stack_mappings_at(mappings, i);

		if (mapping->pid == pid && *mapping->path && mapping->start <= address &&
		    (!found || mapping->start >= found->start))
			found = mapping;
	}
	return found;
}

static void test_mappings_are_found_as_one_by_one(void **state)
{
	unsigned seed = 1;

	(void)state;
	for (unsigned round = 0; round < 40; round++) {
		struct stack_mappings *mappings;
		struct capture capture;
		unsigned count = (unsigned)rand_r(&seed) % 40;

		capture_begin(&capture, true);
		for (unsigned i = 0; i < count; i++) {
			uint64_t start = (uint64_t)rand_r(&seed) % 30;
			char path[16];

			snprintf(path, sizeof(path), "/lib/%u", i % 7);
			if (!(i % 5))
				path[0] = '\0';
			add_mapping(&capture,
				    (struct store_mapping){
					    /* Times differ: sorting need not be stable. */
					    .ts = 1000 + i * 10 + (uint64_t)rand_r(&seed) % 10,
					    .pid = 1 + (uint32_t)rand_r(&seed) % 3,
					    .start = start,
					    .end = start + (uint64_t)rand_r(&seed) % 12,
					    .path = path});
		}
		capture_load(&capture, 9000);
		mappings = stack_mappings_open(capture.reader);
		for (unsigned i = 0; i < 500; i++) {
			uint32_t pid = (uint32_t)rand_r(&seed) % 5;
			uint64_t address = (uint64_t)rand_r(&seed) % 48;
			uint64_t ts = 900 + (uint64_t)rand_r(&seed) % 600;

			assert_ptr_equal(stack_mappings_find(mappings, pid, address, ts),
					 found_one_by_one(mappings, pid, address, ts));
			assert_ptr_equal(stack_mappings_before(mappings, pid, address),
					 before_one_by_one(mappings, pid, address));
		}
		stack_mappings_close(mappings);
		capture_free(&capture);
	}
}

/* All begin at one address; the last file alone is described. */
static uint64_t mappings_looked_up(uint32_t count)
{
	struct stack_mappings *mappings;
	struct capture capture;
	uint64_t begin;

	capture_begin(&capture, true);
	for (uint32_t i = 0; i < count; i++)
		add_mapping(&capture, (struct store_mapping){.ts = 1000 + i,
							     .pid = 10,
							     .start = 0x1000,
							     .end = 0x2000 + i,
							     .ino = i + 1 == count ? 0 : i,
							     .path = "/lib/x"});
	add_mapping(&capture, (struct store_mapping){.ts = 1000 + count,
						     .pid = 10,
						     .start = 0x100,
						     .end = 0x200,
						     .build_id = "1234",
						     .build_id_bytes = 4,
						     .path = "/lib/x"});
	capture_load(&capture, 9000000);
	mappings = stack_mappings_open(capture.reader);
	begin = cpu_ns();
	for (uint32_t i = 0; i < count; i++) {
		const struct store_mapping *found =
			stack_mappings_find(mappings, 10, 0x1800, 1000 + i);

		assert_int_equal(found->ts, 1000 + i);
		found = stack_mappings_described(mappings, found);
		assert_int_equal(found->build_id_bytes, i + 1 == count || !i ? 4 : 0);
	}
	begin = cpu_ns() - begin;
	stack_mappings_close(mappings);
	capture_free(&capture);
	return begin;
}

static void test_mappings_over_each_other(void **state)
{
	(void)state;
	check_growth(mappings_looked_up, 4000);
}

/* ---- jobs ---- */

/* A file that was merged from others: one process with as many threads as captures. */
static uint64_t threads_in_captures(uint32_t count)
{
	struct store_host host = {
		.name = "a", .boot_id = "b", .kernel = "", .machine = "", .cpu_count = 4};
	struct error err = ERROR_INIT;
	struct capture capture;
	uint64_t begin;

	capture_begin(&capture, true);
	capture_must(store_writer_add_host(capture.writer, &host, &err), err);
	for (uint32_t i = 0; i < count; i++) {
		struct store_capture one = {.file = "one",
					    .command = "",
					    .start_ts = CAPTURE_START + 10 + i * 10,
					    .end_ts = CAPTURE_START + 15 + i * 10,
					    .sched = true,
					    .process_count = 1};
		struct store_process process = {
			.pid = CAPTURE_PID, .ts = one.start_ts, .cmdline = "train"};

		capture_must(store_writer_add_process(capture.writer, &process, &err), err);
		capture_must(store_writer_add_capture(capture.writer, &one, &err), err);
	}
	for (uint32_t i = 0; i < count; i++)
		capture_task(&capture, CAPTURE_START + 10, 100 + i, 1, "train");
	for (uint32_t i = 0; i < count; i++)
		capture_span(&capture, CAPTURE_START + 11 + i, 100 + i, 1000 + i);
	begin = cpu_ns();
	assert_int_equal(capture_load(&capture, CAPTURE_START + 20 + count * 10)->threads.len,
			 count);
	begin = cpu_ns() - begin;
	capture_free(&capture);
	return begin;
}

static void test_threads_in_captures_of_a_job(void **state)
{
	(void)state;
	check_growth(threads_in_captures, 1000);
}

/* 100 losses on each of so many hosts. */
static uint64_t losses_on_hosts(uint32_t count)
{
	struct error err = ERROR_INIT;
	struct capture capture;
	uint64_t begin, ts = CAPTURE_START + 10;

	capture_begin(&capture, true);
	for (uint32_t i = 0; i < count; i++) {
		struct store_host host = {.name = "a",
					  .boot_id = "b",
					  .kernel = "",
					  .machine = "",
					  .cpu_base = i * 2,
					  .cpu_count = 1};

		capture_must(store_writer_add_host(capture.writer, &host, &err), err);
	}
	capture_state(&capture, ts, 100, WAFFLE_THREAD_RUNNING, false);
	for (uint32_t i = 0; i < count * 100; i++, ts += 10) {
		struct waffle_rec_loss loss = {
			.rec = {ts, 0, WAFFLE_REC_LOSS, (uint16_t)(i % count * 2)},
			.source = WAFFLE_SOURCE_SCHED,
			.from_ts = ts - 5,
			.count = 1};

		capture_add(&capture, &loss);
	}
	begin = cpu_ns();
	assert_int_equal(capture_load(&capture, ts)->losses.len, count * 100);
	begin = cpu_ns() - begin;
	capture_free(&capture);
	return begin;
}

static void test_losses_on_hosts_of_a_job(void **state)
{
	(void)state;
	check_growth(losses_on_hosts, 100);
}

/* There are as many threads as losses. */
static uint64_t losses_of_threads(uint32_t count)
{
	struct capture capture;
	uint64_t begin, ts = CAPTURE_START + 10;

	capture_begin(&capture, true);
	for (uint32_t i = 0; i < count; i++)
		capture_state(&capture, ts, 100 + i, WAFFLE_THREAD_RUNNING, false);
	for (uint32_t i = 0; i < count; i++, ts += 10)
		capture_loss(&capture, ts, ts + 5, WAFFLE_SOURCE_SCHED, 1);
	begin = cpu_ns();
	assert_int_equal(capture_load(&capture, ts)->losses.len, count);
	begin = cpu_ns() - begin;
	capture_free(&capture);
	return begin;
}

static void test_losses_of_many_threads(void **state)
{
	(void)state;
	check_growth(losses_of_threads, 3000);
}

/* Ranks that each send a message that rank 0 does not receive. */
static uint64_t messages_without_receives(uint32_t count)
{
	const struct model *model;
	struct model_comm *comm;
	struct mpi_job job;
	uint64_t begin;

	mpi_begin(&job, false);
	for (unsigned rank = 0; rank < count; rank++) {
		struct mpi_name world = mpi_world(&job, rank);

		mpi_init(&job, rank, count, 1100);
		if (rank)
			mpi_call(&job, rank, 2000, 2010, MPI_SITE_SEND, &world, 0, 5);
	}
	comm = mpi_load(&job, 9000, &model);
	model_comm_free(comm);
	begin = cpu_ns();
	comm = model_comm_new(model, NULL);
	begin = cpu_ns() - begin;
	assert_int_equal(model_collective_count(comm), count - 1);
	mpi_free(&job, comm);
	return begin;
}

static void test_messages_without_receives(void **state)
{
	(void)state;
	check_growth(messages_without_receives, 2000);
}

/* Processes that say that they are one rank. */
static uint64_t starts_of_a_rank(uint32_t count)
{
	struct error err = ERROR_INIT;
	FILE *out = fopen("/dev/null", "w");
	struct capture capture;
	uint64_t begin;

	assert_non_null(out);
	capture_begin(&capture, true);
	for (uint32_t i = 0; i < count; i++) {
		struct store_rank rank = {
			.ts = 5, .pid = i + 1, .rank = 0, .world_size = 2, .job = "slurm:1"};

		capture_must(store_writer_add_rank(capture.writer, &rank, &err), err);
	}
	capture_load(&capture, 9000);
	begin = cpu_ns();
	job_ranks_put(out, capture.model);
	begin = cpu_ns() - begin;
	capture_free(&capture);
	fclose(out);
	return begin;
}

static void test_starts_of_a_rank(void **state)
{
	(void)state;
	check_growth(starts_of_a_rank, 5000);
}

/* ---- modules ---- */

static uint64_t modules_added(uint32_t count)
{
	struct symbolizer *symbolizer;
	uint64_t begin = cpu_ns();
	uint32_t number;
	char path[32];

	assert_int_equal(symbolizer_open(&symbolizer, &(struct symbolizer_options){0}), 0);
	for (unsigned again = 0; again < 2; again++)
		for (uint32_t i = 0; i < count; i++) {
			snprintf(path, sizeof(path), "/no/such/%u", i);
			assert_int_equal(symbolizer_add(symbolizer,
							&(struct symbol_module){.path = path},
							&number),
					 0);
			assert_int_equal(number, i);
		}
	symbolizer_close(symbolizer);
	return cpu_ns() - begin;
}

static void test_modules_of_a_capture(void **state)
{
	(void)state;
	check_growth(modules_added, 3000);
}

/* ---- files that are armed ---- */

/* Measures look-ups among `count` files. */
static uint64_t files_found(uint32_t count)
{
	const struct session_options options = {0};
	struct error err = ERROR_INIT;
	struct arming *arming;
	struct stat *files = calloc(count, sizeof(*files));
	uint64_t begin;

	assert_non_null(files);
	assert_int_equal(arming_open(&arming, NULL, NULL, NULL, &options, NULL, &err), 0);
	for (uint32_t i = 0; i < count; i++) {
		int fd = memfd_create("file", MFD_CLOEXEC);

		assert_true(fd >= 0 && !fstat(fd, &files[i]));
		assert_int_equal(file_add(arming, fd, "/its/path", false, &err), i);
		assert_int_equal(file_add(arming, fd, "/its/path", false, &err), i);
		close(fd);
	}
	begin = cpu_ns();
	for (uint32_t i = 0; i < 200000; i++)
		assert_int_equal(
			file_find(arming, files[i % count].st_dev, files[i % count].st_ino),
			i % count);
	assert_int_equal(file_find(arming, files[0].st_dev + 1, files[0].st_ino), -1);
	begin = cpu_ns() - begin;
	arming_close(arming);
	free(files);
	return begin;
}

static void test_files_of_an_arming(void **state)
{
	uint64_t few = files_found(250), many = files_found(250 * TIMES);

	(void)state;
	if (many > 4 * few)
		fail_msg("%.1f ms among few, %.1f ms among many", (double)few / 1e6,
			 (double)many / 1e6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads_in_captures_of_a_job),
		cmocka_unit_test(test_losses_on_hosts_of_a_job),
		cmocka_unit_test(test_losses_of_many_threads),
		cmocka_unit_test(test_messages_without_receives),
		cmocka_unit_test(test_starts_of_a_rank),
		cmocka_unit_test(test_sites_that_differ_in_little),
		cmocka_unit_test(test_file_of_very_many_segments_is_not_read),
		cmocka_unit_test(test_template_of_braces),
		cmocka_unit_test(test_mappings_are_found_as_one_by_one),
		cmocka_unit_test(test_mappings_over_each_other),
		cmocka_unit_test(test_modules_of_a_capture),
		cmocka_unit_test(test_files_of_an_arming),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
