// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as the contents of /proc for a process (fake_proc.h), as its memory in an exec or with
 * a Python interpreter, and as the kernel's mapping events. The first byte of the input selects.
 */
#include <elf.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdlib.h>

#include "fake_proc.h"
#include "require.h"
#include "target/process/cgroup.h"
#include "target/process/descriptors.h"
#include "target/process/epoll_files.h"
#include "target/process/execve.h"
#include "target/process/image.h"
#include "target/process/jvm.h"
#include "target/process/mmap_watch.h"
#include "target/process/mounts.h"
#include "target/process/process.h"
#include "target/process/python.h"
#include "target/process/python_codes.h"
#include "target/process/rank.h"
#include "util/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fake_set(const void *bytes, size_t size)
{
	fake.bytes = bytes;
	fake.size = size;
	fake.folder = -1;
}

static bool is_text(const char *text, size_t size)
{
	return memchr(text, '\0', size);
}

/* ---- mappings ---- */

static void mappings_of(struct mappings *mappings, bool all)
{
	struct error err = ERROR_INIT;
	int result = all ? process_mappings_all(mappings, FAKE_PID, &err)
			 : process_mappings(mappings, FAKE_PID, &err);

	require(!result);
}

/* Formats mappings as the kernel does. */
static char *mappings_text(const struct mappings *mappings, size_t *size)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, size);

	require(out);
	for (size_t i = 0; i < mappings->list.len; i++) {
		const struct mapping *one = &mappings->list.data[i];

		fprintf(out, "%" PRIx64 "-%" PRIx64 " r-%cp %" PRIx64 " %x:%x %" PRIu64 " %s%s\n",
			one->start, one->end, one->executable ? 'x' : '-', one->offset,
			one->dev >> 20, one->dev & 0xfffff, one->ino, one->path,
			one->path[0] ? " (deleted)" : "");
	}
	require(!fclose(out));
	return text;
}

static void mappings_are_same(const struct mappings *left, const struct mappings *right)
{
	require(left->list.len == right->list.len);
	for (size_t i = 0; i < left->list.len; i++) {
		const struct mapping *a = &left->list.data[i], *b = &right->list.data[i];

		require(a->start == b->start && a->end == b->end && a->offset == b->offset &&
			a->ino == b->ino && a->dev == b->dev && a->executable == b->executable &&
			!strcmp(a->path, b->path));
	}
}

/* Mappings that are written and read again are equal. Programs are among them. */
static void read_maps(void)
{
	struct mappings all, again, programs;
	size_t size, count = 0;
	char *text;

	mappings_of(&all, true);
	mappings_of(&programs, false);
	text = mappings_text(&all, &size);
	fake_set(text, size);
	mappings_of(&again, true);
	mappings_are_same(&all, &again);
	for (size_t i = 0; i < all.list.len; i++) {
		const struct mapping *one = &all.list.data[i];

		require(!strchr(one->path, '\n'));
		count += one->executable && one->ino && one->path[0] == '/';
	}
	require(count == programs.list.len);
	mappings_free(&all);
	mappings_free(&again);
	mappings_free(&programs);
	free(text);
}

/* ---- names of the process ---- */

static void read_names(void)
{
	struct error err = ERROR_INIT;
	char comm[16], link[PATH_MAX], text[64];

	process_comm(FAKE_PID, comm);
	require(is_text(comm, sizeof(comm)) && !strchr(comm, '\n'));
	process_cmdline(FAKE_PID, text, sizeof(text));
	require(is_text(text, sizeof(text)) && text[0]);
	require(process_parent(FAKE_PID) >= 0);
	require(!process_check(FAKE_PID, &err) || err.message[0]);
	if (process_link(FAKE_PID, "exe", link))
		require(is_text(link, sizeof(link)));
}

/* Finds the first entry of a type before the end. */
static bool auxiliary_has(uint64_t type, uint64_t *value)
{
	for (size_t i = 0; i + 16 <= fake.size; i += 16) {
		uint64_t pair[2];

		memcpy(pair, (const char *)fake.bytes + i, sizeof(pair));
		if (pair[0] == AT_NULL)
			return false;
		*value = pair[1];
		if (pair[0] == type)
			return true;
	}
	return false;
}

static void read_environment(const struct image *image)
{
	const char *end, *value;
	size_t count = 0;
	char *text, **list = image_environment(image, &text);

	require(list && text);
	end = text + fake.size;
	for (; list[count]; count++)
		require(list[count] >= text && list[count] + strlen(list[count]) < end);
	for (const char *at = text; at < end; at++)
		count -= !*at;
	require(!count);
	value = environment_value(list, "PATH");
	require(!value || !strncmp(value - strlen("PATH="), "PATH=", strlen("PATH=")));
	free(list);
	free(text);
}

/* Reads its auxiliary vector. Its memory has the same bytes. */
static void read_image(void)
{
	struct image image;
	uint64_t value;
	int result = image_open(&image, FAKE_PID);

	if (!result) {
		require(auxiliary_has(AT_SECURE, &value) && !value);
		require(auxiliary_has(AT_RANDOM, &value) && value < fake.size);
		require(image_is_there(&image));
		read_environment(&image);
		image_close(&image);
	} else {
		require(result == -EACCES || result == -ESRCH);
		require(image.memory == -1 && image.process == -1);
	}
}

/* The bytes are the line of its system call, its auxiliary vector and its memory at once. */
static void read_execve(void)
{
	char *text, **list = execve_environment(FAKE_PID, &text);

	require(list);
	for (size_t i = 0; list[i]; i++)
		require(text && memchr(list[i], '\0', strlen(list[i]) + 1));
	execve_is_main(FAKE_PID);
	free(list);
	free(text);
}

/* ---- files ---- */

/* A process whose mounts all answer has no device that waits for a server. */
static void read_mounts(void)
{
	bool all;

	mounts_are_local(FAKE_PID + 1, MOUNTS_ANY); /* so that the mounts are read again */
	all = mounts_are_local(FAKE_PID, MOUNTS_ANY);
	for (uint64_t minor = 0; minor < 4; minor++) {
		uint64_t device = 8 << 20 | minor;

		require(all || !mounts_are_local(FAKE_PID, device));
		require(!all || !mounts_device_waits(FAKE_PID, device));
	}
}

/* The first bytes are the request; the rest is the table. */
static void read_descriptors(const uint8_t *data, size_t size)
{
	static const uint16_t modes[] = {S_IFSOCK, S_IFREG, S_IFIFO, S_IFCHR};
	struct descriptor found;
	struct epoll_networks networks = {0};
	struct epoll_connecting connecting;
	struct file_key key;
	char small[32], text[256];
	int status;

	if (size < 8)
		return;
	key = (struct file_key){.ino = data[0] | (uint64_t)data[1] << 8,
				.dev = data[2] | (uint32_t)data[3] << 20};
	fake.info = (struct statx){.stx_mode = modes[data[4] % 4],
				   .stx_ino = key.ino,
				   .stx_dev_major = data[3],
				   .stx_dev_minor = data[2]};
	fake_set(data + 8, size - 8);
	memset(&found, 0xa5, sizeof(found));
	if (!descriptor_find(&found, FAKE_PID, 3, &key))
		require(is_text(found.name, sizeof(found.name)) &&
			is_text(found.detail, sizeof(found.detail)) && !strchr(found.detail, '\n'));
	memset(&found, 0xa5, sizeof(found));
	if (descriptor_of_inode(&found, &key))
		require(is_text(found.name, sizeof(found.name)) &&
			is_text(found.detail, sizeof(found.detail)));
	epoll_watched(text, sizeof(text), FAKE_PID, 3);
	require(is_text(text, sizeof(text)));
	if (epoll_connecting(&connecting, &networks, FAKE_PID, 3))
		require(networks.any_connects);
	epoll_networks_free(&networks);
	(void)process_is_zombie(FAKE_PID, &status);
	require(process_tracer(FAKE_PID) >= 0);
	if (block_device_name(small, sizeof(small), key.dev))
		require(is_text(small, sizeof(small)) && !strncmp(small, "/dev/", 5));
	if (cgroup_path(small, sizeof(small), FAKE_PID, key.ino, "cpu"))
		require(is_text(small, sizeof(small)));
	if (cgroup_path(found.name, sizeof(found.name), FAKE_PID, key.ino, "pids"))
		require(is_text(found.name, sizeof(found.name)));
}

/* ---- records of mappings ---- */

struct seen {
	uint64_t bytes;
};

static void see_mapping(const struct mmap_event *event, void *arg)
{
	struct seen *seen = arg;

	seen->bytes += sizeof(struct perf_event_header) + sizeof(event->ts);
	switch (event->kind) {
	case MMAP_MAPPED:
		require(event->mapping.start < event->mapping.end);
		require(strlen(event->mapping.path) < PATH_MAX);
		break;
	case MMAP_LOST:
		require(!event->pid);
		break;
	default:
		require(event->kind == MMAP_EXEC);
	}
}

/* A ring that may be full, and whose records start at any position. */
static void read_ring(const uint8_t *data, size_t size)
{
	static struct perf_event_mmap_page page;
	struct mmap_ring ring = {.page = &page, .data = malloc(8192), .bytes = 8192};
	uint64_t tail = size ? (uint64_t)data[0] * 64 : 0;
	struct seen seen = {0};

	require(ring.data);
	memset(ring.data, 0, ring.bytes);
	size = size > ring.bytes ? ring.bytes : size;
	for (size_t i = 0; i < size; i++)
		ring.data[(tail + i) % ring.bytes] = data[i];
	page.data_tail = tail;
	page.data_head = tail + size;
	mmap_ring_read(&ring, see_mapping, &seen);
	require(page.data_tail == page.data_head && seen.bytes <= size);
	free(ring.data);
}

/* ---- Python ---- */

static void check_frame(const struct python *python, const struct waffle_rec_code *code)
{
	struct python_frame frame;

	for (uint64_t at = 0; at < 128; at += 14) {
		uint64_t instruction = code->code + python->kernel.code_instructions + at;

		if (!python_frame_of(python, code, instruction, &frame))
			continue;
		require(is_text(frame.function, sizeof(frame.function)) && frame.function[0]);
		require(is_text(frame.file, sizeof(frame.file)) && frame.file[0]);
		require(utf8_valid(frame.function, strlen(frame.function)) ==
			strlen(frame.function));
		require(utf8_valid(frame.file, strlen(frame.file)) == strlen(frame.file));
		require(frame.line <= INT32_MAX);
	}
}

/* An object whose type is at any address, so that it counts as a code object. */
static void check_code(const struct python *python, const struct image *image, uint64_t address)
{
	struct python typed = *python;
	struct python_code code;

	if (!image_read(image, address + 8, &typed.code_type, sizeof(typed.code_type)) ||
	    !python_code_at(&code, &typed, image, address))
		return;
	require(code.address == address && code.first_line <= INT32_MAX);
	require(is_text(code.function.function, sizeof(code.function.function)));
	require(is_text(code.function.file, sizeof(code.function.file)));
}

/* Memory of an interpreter: its state at the start, followed by a word with the version if its size
 * does not tell that. */
static void read_python_at(const struct python_place *place, const uint8_t *data, size_t size)
{
	struct waffle_rec_code *code = calloc(1, sizeof(*code));
	struct image image = {.process = -1, .memory = memfd_create("fuzz", MFD_CLOEXEC)};
	struct python python;

	require(code && image.memory >= 0);
	require(write(image.memory, data, size) == (ssize_t)size);
	require(python_at(&python, &image, place) == (size >= 8));
	require(python.found);
	require(!python.kernel.runtime);
	require(python.kernel.frame_code <= 1u << 24 && python.kernel.code_table <= 1u << 24);
	for (uint64_t address = 512; python.kernel.ascii_bytes && address < size; address += 64) {
		check_code(&python, &image, address);
		if (!python_code_read(&python, &image, address, code))
			continue;
		require(code->code == address);
		require(code->name_text.bytes && code->name_text.bytes <= sizeof(code->name));
		require(code->file_text.bytes <= sizeof(code->file));
		require(code->table_bytes <= sizeof(code->table));
		check_frame(&python, code);
	}
	close(image.memory);
	free(code);
}

static void read_python(const uint8_t *data, size_t size)
{
	static const struct python_place places[] = {
		{.version_at = 512},
		{.runtime_bytes = 1464}, /* 3.8 */
		{.runtime_bytes = 672},  /* 3.10 */
	};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		read_python_at(&places[i], data, size);
}

/* Memory of a JVM, with its tables at the start, or with fields that lie close together: a small
 * input has heaps, blocks and names then. */
static void read_jvm(const uint8_t *data, size_t size)
{
	struct jvm jvm = {.structs = 0x10, .types = 0x18};
	struct image image = {.process = -1, .memory = memfd_create("fuzz", MFD_CLOEXEC)};
	char name[JVM_NAME_MAX];
	uint64_t from, to;

	require(image.memory >= 0);
	require(write(image.memory, data, size) == (ssize_t)size);
	if (!jvm_read(&jvm, &image)) {
		jvm.known = true;
		for (unsigned i = 0; i < JVM_FIELDS; i++)
			jvm.fields[i] = 8 * (i + 1);
	}
	require(!jvm_code_range(&jvm, &image, &from, &to) || from < to);
	for (uint64_t address = 0; address < size; address += 32) {
		struct jvm_frame frame = {.pc = address, .sp = address, .fp = address + 64};

		for (unsigned i = 0; i < 4 && jvm_step(&jvm, &image, &frame, name); i++)
			require(frame.sp > address && is_text(name, sizeof(name)));
		if (jvm_code_name(&jvm, &image, address, name))
			require(is_text(name, sizeof(name)) && name[0]);
	}
	close(image.memory);
}

/* An environment of any bytes, copied so that a read beyond its end is noticed. */
static void read_rank(const uint8_t *data, size_t size)
{
	char *copy = malloc(size + !size);
	struct process_rank rank;
	bool found;

	require(copy);
	memcpy(copy, data, size);
	found = process_rank_parse(&rank, copy, size);
	require(is_text(rank.job, sizeof(rank.job)));
	require(found ? rank.rank < rank.world_size : rank.rank == PROCESS_RANK_NONE && !*rank.job);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	fake_set(data + 1, size - 1);
	switch (data[0]) {
	case 'm':
		read_maps();
		break;
	case 'n':
		read_names();
		break;
	case 'i':
		read_image();
		break;
	case 'x':
		read_execve();
		break;
	case 'f':
		read_mounts();
		break;
	case 'd':
		read_descriptors(data + 1, size - 1);
		break;
	case 'r':
		read_ring(data + 1, size - 1);
		break;
	case 'e':
		read_rank(data + 1, size - 1);
		break;
	case 'p':
		fake_set(NULL, 0);
		read_python(data + 1, size - 1);
		break;
	case 'j':
		fake_set(NULL, 0);
		read_jvm(data + 1, size - 1);
		break;
	default:
		break;
	}
	fake_set(NULL, 0);
	return 0;
}
