// SPDX-License-Identifier: Apache-2.0
/*
 * Names for a capture's stacks and an ELF file, found here and by a worker, which have to be equal;
 * and a worker that lies. The first byte of the input selects:
 *	c	two bytes with the size of an ELF file, the file, and entries of a capture's tables
 *		whose mappings are of that file
 *	e	an ELF file
 *	l	a byte with the request, and the worker's replies (fake_worker.h)
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "render/text/frame.h"

#include "../unit/store_fixture.h"
#include "symbolize/stack_names.h"
#include "fake_worker.h"
#include "target/dwarf/cfi.h"
#include "target/elf/object_read.h"
#include "target/elf/symbols.h"
#include "util/terminal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FILE_FD 100 /* of the file, so that a capture can name it */
#define FILE_PATH "/proc/self/fd/100"

/* ---- a capture ---- */

struct input {
	const uint8_t *at, *end;
};

static uint64_t take(struct input *in, unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes && in->at < in->end; i++)
		value |= (uint64_t)*in->at++ << 8 * i;
	return value;
}

/* Mostly small numbers, so that they coincide. */
static uint64_t take_number(struct input *in)
{
	unsigned kind = (unsigned)take(in, 1);

	switch (kind % 4) {
	case 0:
		return kind >> 2;
	case 1:
		return take(in, 2);
	case 2:
		return 0x400000 + take(in, 2);
	default:
		return take(in, 8);
	}
}

static const char *take_text(struct input *in, char text[64])
{
	unsigned size = (unsigned)take(in, 1) % 64;

	for (unsigned i = 0; i < size; i++)
		text[i] = (char)take(in, 1);
	text[size] = '\0';
	return text;
}

static void add_mapping(struct store_writer *writer, struct input *in, struct error *err)
{
	static const char *const paths[] = {FILE_PATH, "", "/nowhere", "[vdso]"};
	struct store_segment segments[STORE_SEGMENTS_MAX];
	struct store_mapping mapping = {.segments = segments};
	unsigned kind = (unsigned)take(in, 1);

	mapping.path = paths[kind >> 6 ? 0 : kind & 3];
	mapping.segment_count = (kind >> 2) % 4;
	mapping.build_id_bytes = kind & 16 ? 20 : 0;
	mapping.pid = 1 + (kind >> 5 & 1);
	mapping.start = take_number(in);
	mapping.end = mapping.start + take_number(in);
	mapping.offset = take_number(in);
	mapping.ts = take(in, 1);
	mapping.ino = take(in, 1);
	for (unsigned i = 0; i < mapping.segment_count; i++)
		segments[i] = (struct store_segment){
			.offset = take_number(in), .address = take_number(in), .size = take(in, 2)};
	if (mapping.end >= mapping.start)
		store_writer_add_mapping(writer, &mapping, err);
}

static void add_stack(struct store_writer *writer, struct input *in, struct error *err)
{
	uint64_t addresses[16];
	struct store_stack stack = {.addresses = addresses};

	stack.pid = (uint32_t)take(in, 1) % 3;
	stack.count = 1 + (uint32_t)take(in, 1) % 16;
	stack.cut = stack.count & 1;
	for (uint32_t i = 0; i < stack.count; i++)
		addresses[i] = take_number(in);
	store_writer_add_stack(writer, &stack, err);
}

static struct store_reader *read_capture(struct input *in)
{
	struct store_counts counts[WAFFLE_SOURCE_COUNT] = {0};
	struct error err = ERROR_INIT;
	struct store_writer *writer;
	struct store_reader *reader;
	char path[64], text[64];

	snprintf(path, sizeof(path), "/dev/shm/waffle-fuzz-%d", (int)getpid());
	require(!store_writer_open(&writer, path, &fixture_meta, &err));
	while (in->at < in->end) {
		struct store_symbol symbol = {.name = text};
		struct store_name name = {.name = text};

		switch (take(in, 1) % 4) {
		case 0:
			add_mapping(writer, in, &err);
			break;
		case 1:
			add_stack(writer, in, &err);
			break;
		case 2:
			symbol.address = take_number(in);
			symbol.offset = (uint32_t)take(in, 2);
			take_text(in, text);
			store_writer_add_symbol(writer, &symbol, &err);
			break;
		default:
			name.pid = 1 + (uint32_t)take(in, 1) % 2;
			name.value = STORE_NAMED | take_number(in);
			take_text(in, text);
			store_writer_add_name(writer, &name, &err);
		}
	}
	require(!store_writer_close(writer, fixture_meta.start_ts + 1000000, counts, &err));
	require(!store_reader_open(&reader, path, &err));
	unlink(path);
	return reader;
}

/* The frames of a stack as text, with their checks. */
struct frames {
	FILE *out;
	uint32_t count;
	bool inlined, cut;
};

static void see_frame(const struct stack_frame *frame, void *arg)
{
	struct frames *frames = arg;

	require(!frames->cut); /* it is the last one */
	require(!frame->cut || (!frames->inlined && !strcmp(frame->function, "[cut]")));
	frames->cut = frame->cut;
	frames->count += !frame->cut;
	frames->inlined = frame->inlined;
	frame_put(frames->out, frame);
	fputc('\n', frames->out);
}

static uint32_t put_stack(FILE *out, struct stack_names *names, uint32_t stack, uint64_t ts,
			  bool all)
{
	struct frames frames = {.out = out};
	uint32_t count =
		(all ? stack_names_all : stack_names_each)(names, stack, ts, see_frame, &frames);

	require(count == frames.count && !frames.inlined);
	return count;
}

static void put_names(FILE *out, const struct store_reader *reader)
{
	struct stack_names *names;
	struct stack_frame inner;
	const char *functions[4];

	names = stack_names_open(reader, false);
	for (uint32_t i = 1; store_reader_stack(reader, i); i++) {
		const struct store_stack *stack = store_reader_stack(reader, i);

		for (uint64_t ts = 0; ts < 256; ts += 100) {
			uint32_t all = put_stack(out, names, i, ts, true);

			require(put_stack(out, names, i, ts, false) <= all);
			require(stack_names_functions(names, i, ts, functions, 4) <= 4);
			if (stack_names_inner(names, i, ts, &inner))
				require(inner.function && !inner.cut);
		}
		if (stack->pid)
			fprintf(out, "%s\n",
				stack_names_variable(names, stack->pid, 50, stack->addresses[0])
					?: "-");
	}
	for (uint32_t i = 0; i < store_reader_mapping_count(reader) && i < 4; i++)
		stack_names_has_variable(names, store_reader_mapping(reader, i), "main");
	stack_names_close(names);
}

static char *names_text(const struct store_reader *reader, enum fake_worker is)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	require(out);
	worker_is(is);
	put_names(out, reader);
	require(!fclose(out));
	for (size_t i = 0; i < size && is == WORKER_ABSENT; i++)
		require(text[i] == '\n' || !terminal_control(text + i, size - i));
	return text;
}

static void file_set(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	require(dup3(fd, FILE_FD, O_CLOEXEC) == FILE_FD);
	close(fd);
}

static void name_capture(const uint8_t *data, size_t size)
{
	size_t file = size < 2 ? 0 : data[0] | (size_t)data[1] << 8;
	struct store_reader *reader;
	struct input in;
	char *here, *there;

	if (size < 2 || file > size - 2)
		return;
	in = (struct input){data + 2 + file, data + size};
	file_set(data + 2, file);
	reader = read_capture(&in);
	here = names_text(reader, WORKER_ABSENT);
	there = names_text(reader, WORKER_HONEST);
	require(!strcmp(here, there));
	free(here);
	free(there);
	store_reader_close(reader);
}

/* ---- a file, here and by a worker ---- */

static void check_frames(const struct symbol_frames *frames)
{
	require(!frames->count || (frames->located && frames->source != SYMBOL_NONE));
	for (uint32_t i = 0; i < frames->count; i++)
		require(frames->list[i].offset <= frames->address);
}

static void put_symbols(FILE *out, struct symbolizer *symbolizer, uint32_t module)
{
	struct symbol_module_state state;
	struct symbol_frames frames;
	uint64_t offset = 0;

	for (uint64_t at = 0; at < 0x2100; at += 53) {
		require(!symbolizer_offset(symbolizer, module, at, &frames));
		check_frames(&frames);
		fprintf(out, "%d %d %lx:", frames.source, frames.located, frames.address);
		for (uint32_t i = 0; i < frames.count; i++)
			fprintf(out, " %s %s %u %d %lx", frames.list[i].function ?: "-",
				frames.list[i].file ?: "-", frames.list[i].line,
				frames.list[i].inlined, frames.list[i].offset);
		fprintf(out, " %d", symbolizer_before(symbolizer, module, at));
		fprintf(out, " %s\n", symbolizer_variable(symbolizer, module, at, &offset) ?: "-");
	}
	fprintf(out, "%d\n", symbolizer_has_variable(symbolizer, module, "count"));
	require(!symbolizer_module(symbolizer, module, &state));
	fprintf(out, "%d %d %d\n", state.file, state.source, state.build_id.size);
}

static void symbols_here(FILE *out)
{
	const struct symbolizer_options options = {.debug_dir = "/nowhere"};
	struct symbolizer *symbolizer;
	uint32_t module;

	require(!symbolizer_open(&symbolizer, &options));
	require(!symbolizer_add(symbolizer, &(struct symbol_module){.path = FILE_PATH}, &module));
	put_symbols(out, symbolizer, module);
	symbolizer_close(symbolizer);
}

static void check_object(const struct object *object)
{
	for (size_t i = 0; i < object->sites.len; i++) {
		const struct site_info *site = &object->sites.data[i];

		require(site->name && site->file && site->category && site->func);
		require(site->key_count <= WAFFLE_KEYS_MAX);
		for (unsigned k = 0; k < site->key_count; k++)
			require(site->keys[k].name && strchr("iudbpsnSE", site->keys[k].type));
	}
	for (size_t i = 0; i < object->probes.len; i++)
		require(object->probes.data[i].type == OBJECT_PROBE_SITE &&
			(object->probes.data[i].site == OBJECT_SPAN_END ||
			 object->probes.data[i].site < object->sites.len));
}

/* Whatever sites a file has, a capture with them can be read. */
static void write_sites(const struct object *object)
{
	struct store_counts counts[WAFFLE_SOURCE_COUNT] = {0};
	struct error err = ERROR_INIT;
	struct store_writer *writer;
	struct store_reader *reader;
	char path[64];

	snprintf(path, sizeof(path), "/dev/shm/waffle-fuzz-%d", (int)getpid());
	require(!store_writer_open(&writer, path, &fixture_meta, &err));
	for (size_t i = 0; i < object->sites.len; i++)
		require(!store_writer_add_site(writer, &object->sites.data[i], &err));
	require(!store_writer_close(writer, fixture_meta.start_ts + 1, counts, &err));
	require(!store_reader_open(&reader, path, &err));
	unlink(path);
	require(store_reader_site_count(reader) == object->sites.len);
	for (size_t i = 0; i < object->sites.len; i++)
		require(!strcmp(store_reader_site(reader, (uint32_t)i)->name,
				object->sites.data[i].name));
	store_reader_close(reader);
}

static void object_here(FILE *out)
{
	struct error err = ERROR_INIT;
	struct object *object;
	int result = object_read(&object, FILE_FD, FILE_PATH, &err);

	fprintf(out, "object %d\n", result);
	require(!result == !err.message[0]);
	if (result)
		return;
	check_object(object);
	if (worker.is != WORKER_HONEST)
		write_sites(object);
	for (size_t i = 0; i < object->sites.len; i++)
		fprintf(out, "%s %s %d\n", object->sites.data[i].name, object->sites.data[i].func,
			object->sites.data[i].key_count);
	for (size_t i = 0; i < object->probes.len; i++)
		fprintf(out, "%lx %lx %u\n", object->probes.data[i].offset,
			object->probes.data[i].semaphore_offset, object->probes.data[i].site);
	object_free(object);
}

static void unwinding_here(FILE *out)
{
	struct elf_segments segments;
	struct cfi_table table;
	int result = cfi_file_read(&table, &segments, dup(FILE_FD), FILE_PATH, NULL);

	fprintf(out, "unwind %d\n", result);
	if (result)
		return;
	require(segments.count <= ELF_SEGMENTS_MAX);
	fprintf(out, "%u %lx %zu %d\n", segments.count, table.base, table.count, table.cut);
	for (size_t i = 0; i < table.count; i++)
		fprintf(out, "%x ", table.rows[i].pc);
	for (size_t i = 1; i < table.count; i++)
		require(table.rows[i].pc > table.rows[i - 1].pc);
	cfi_table_free(&table);
}

static void facts_here(FILE *out)
{
	struct program_facts facts;
	int result = program_facts_read(&facts, dup(FILE_FD), FILE_PATH);

	fprintf(out, "facts %d\n", result);
	if (result)
		return;
	require(facts.segments.count <= ELF_SEGMENTS_MAX && facts.build_id.size <= BUILD_ID_MAX);
	fprintf(out, "%u %u %lx %lx %lx\n", facts.build_id.size, facts.segments.count,
		facts.python_runtime, facts.python_runtime_bytes, facts.python_version);
}

static char *file_text(enum fake_worker is)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	require(out);
	worker_is(is);
	symbols_here(out);
	object_here(out);
	unwinding_here(out);
	facts_here(out);
	require(!fclose(out));
	return text;
}

static void name_file(const uint8_t *data, size_t size)
{
	char *here, *there;

	file_set(data, size);
	here = file_text(WORKER_ABSENT);
	there = file_text(WORKER_HONEST);
	require(!strcmp(here, there));
	free(here);
	free(there);
}

/* ---- a worker that lies ---- */

static void see_handle(uint64_t handle, const char *name, void *arg)
{
	(void)arg;
	require(handle && strlen(name));
}

/* Requests handles in memory that has any bytes, those of the file. */
static void ask_for_handles(void)
{
	struct image image = {.process = -1, .memory = FILE_FD};

	handles_find(FILE_FD, &image, 0, 0, see_handle, NULL);
}

static void ask_for_name(void)
{
	char text[DEMANGLE_MAX];
	const char *name = demangle("_ZN3foo3barEi", text);

	require(!name || memchr(name, '\0', DEMANGLE_MAX));
}

static void hear_lies(const uint8_t *data, size_t size)
{
	static uint8_t nops[4096];
	void (*const questions[])(FILE *) = {symbols_here, object_here, unwinding_here, facts_here};
	FILE *out = fopen("/dev/null", "we");
	unsigned question = size ? data[0] % 6 : 0;

	if (!size) {
		fclose(out);
		return;
	}
	require(out);
	memset(nops, 0x90, sizeof(nops));
	file_set(nops, sizeof(nops));
	worker_is(WORKER_LYING);
	worker.lies = data + 1;
	worker.lies_end = data + size;
	if (question < 4)
		questions[question](out);
	else if (question == 4)
		ask_for_handles();
	else
		ask_for_name();
	fclose(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	if (data[0] == 'c')
		name_capture(data + 1, size - 1);
	else if (data[0] == 'e')
		name_file(data + 1, size - 1);
	else if (data[0] == 'l')
		hear_lies(data + 1, size - 1);
	worker_is(WORKER_ABSENT);
	return 0;
}
