// SPDX-License-Identifier: Apache-2.0
/*
 * Any text as a description, or if it has lines as a file of descriptions, searched for in a small
 * program. Bytes after the first NUL serve as operands of a USDT probe and as a tracepoint's
 * format. Alternatively any ELF file, in which fixed descriptions are searched for. All resulting
 * fetch programs stay in bounds.
 */
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "probe/spec/call.h"
#include "probe/find/tracepoint.h"
#include "probe/find/usdt_internal.h"
#include "target/elf/object_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The compiled subject.cpp. */
extern const uint8_t subject[], subject_end[];
__asm__(".pushsection .rodata\n"
	"subject: .incbin \"" SUBJECT "\"\n"
	"subject_end:\n"
	".popsection\n");

static int file_of(const void *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	return fd;
}

static void check_fetch(const struct waffle_fetch *fetch)
{
	if (fetch->loads > WAFFLE_FETCH_LOADS || fetch->reg > ARM64_PC || fetch->index > ARM64_PC ||
	    fetch->from > WAFFLE_FETCH_DATA_LOC || fetch->format > WAFFLE_FORMAT_SEQUENCE)
		abort();
	if (fetch->format == WAFFLE_FORMAT_WORD && fetch->bytes != 1 && fetch->bytes != 2 &&
	    fetch->bytes != 4 && fetch->bytes != 8)
		abort();
}

static void check_fetch_program(const struct waffle_fetch_program *fetch_program)
{
	unsigned count = fetch_program->begins + fetch_program->saves + fetch_program->returns +
			 fetch_program->keys;

	if (count > WAFFLE_FETCHES_MAX || fetch_program->saves > WAFFLE_SAVED_MAX ||
	    fetch_program->keys > 1)
		abort();
	for (unsigned i = 0; i < count; i++)
		check_fetch(&fetch_program->fetches[i]);
	if (fetch_program->word_count && (fetch_program->word_count != fetch_program->begins ||
					  fetch_program->word_bytes > WAFFLE_CALL_FRAME_MAX))
		abort();
	for (unsigned i = 0; i < fetch_program->word_count; i++)
		if (fetch_program->words[i].from >= WAFFLE_CALL_WORDS ||
		    fetch_program->words[i].spare > 56 ||
		    fetch_program->words[i].to * sizeof(__u32) + sizeof(__u64) >
			    fetch_program->word_bytes + 4u)
			abort();
}

static void check_object(const struct object *object)
{
	for (size_t i = 0; i < object->calls.len; i++) {
		if (object->calls.data[i].site >= object->sites.len)
			abort();
		check_fetch_program(&object->calls.data[i].fetch_program);
	}
	for (size_t i = 0; i < object->sites.len; i++)
		if (object->sites.data[i].key_count > WAFFLE_KEYS_MAX)
			abort();
	for (size_t i = 0; i < object->probes.len; i++)
		if (object->probes.data[i].site != OBJECT_SPAN_END &&
		    object->probes.data[i].site >= object->sites.len)
			abort();
}

static void say(const char *line, bool missing, void *arg)
{
	(void)missing;
	(void)arg;
	if (!*line)
		abort();
}

/* Text with several lines is a file of descriptions. */
static int add(struct call_set *set, const char *text, struct error *err)
{
	char path[64];
	int fd, result;

	if (!strchr(text, '\n'))
		return call_set_add(set, text, "fuzz", err);
	fd = file_of(text, strlen(text));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	result = call_set_add_file(set, path, err);
	close(fd);
	return result;
}

/* Searches the file at `path` for the set. Closes the set and the descriptor. */
static void find(struct call_set *set, int fd, const char *path)
{
	struct error err = ERROR_INIT;
	struct object *object;

	if (!object_read(&object, fd, path, &err)) {
		call_set_find(set, object, fd, &err);
		check_object(object);
		call_set_unfound(set, CALL_SCOPE_TRACED, say, NULL);
		object_free(object);
	}
	call_set_free(set);
	close(fd);
}

static void describe(const char *text)
{
	struct error err = ERROR_INIT;
	struct call_set *set;

	if (call_set_open(&set, &err))
		abort();
	if (!add(set, text, &err)) {
		find(set, file_of(subject, (size_t)(subject_end - subject)), "/bin/fuzz");
		return;
	}
	if (!err.message[0])
		abort();
	call_set_free(set);
}

static bool symbol(const char *name, size_t len, uint64_t *address, void *arg)
{
	(void)name;
	(void)arg;
	*address = len * 4096;
	return len != 3;
}

static void operands(const char *text)
{
	static const uint16_t machines[] = {EM_X86_64, EM_AARCH64};

	for (unsigned i = 0; i < 2; i++) {
		struct usdt_note note = {.arguments = text, .address = 4096};
		struct call_at at = {.abi = abi_find(machines[i])};

		usdt_arguments(&at, &note, symbol, NULL);
		if (at.count > PLACE_ARGS_MAX)
			abort();
		for (unsigned k = 0; k < at.count; k++)
			if (at.args[k].at.count)
				check_fetch(&at.args[k].at.pieces[0]);
	}
}

static void format(char *text)
{
	struct spec_tables tables = {.strings = strtab_new()};
	struct tracepoint_format *made = malloc(sizeof(*made));
	struct error err = ERROR_INIT;
	struct fetch_program_made fetch_program;
	struct call_spec spec = {0};

	if (!made || !tables.strings || spec_parse(&spec, &tables, "tracepoint:a:b", "fuzz", &err))
		abort();
	if (tracepoint_parse(made, text) &&
	    !tracepoint_fetch_program(&fetch_program, &spec, made, "a:b", &err))
		check_fetch_program(&fetch_program.fetch_program);
	spec_free(&spec);
	strtab_free(tables.strings);
	free(made);
}

static void look_through(const uint8_t *data, size_t size)
{
	static const char *const texts[] = {
		"uprobe:*:*(...)",
		"uprobe:fuzz:*(struct job *j, int) {j->id, j->next->name as next} -> int r",
		"uprobe:fuzz|exe:ns::run",
		"uprobe:fuzz:begin(long id)..end(long id) key=id",
		"usdt:fuzz:*:*",
		"usdt:fuzz:app:start(int a, str b)..stop(int c) key=tid",
	};
	struct error err = ERROR_INIT;
	struct call_set *set;

	if (call_set_open(&set, &err))
		abort();
	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		call_set_add(set, texts[i], "fuzz", &err);
	find(set, file_of(data, size), "/lib/fuzz");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	size_t len;

	if (!text)
		abort();
	if (size > SELFMAG && !memcmp(data, ELFMAG, SELFMAG)) {
		look_through(data, size);
		free(text);
		return 0;
	}
	memcpy(text, data, size);
	text[size] = '\0';
	len = strlen(text);
	describe(text);
	if (len < size) {
		operands(text + len + 1);
		format(text + len + 1);
	}
	free(text);
	return 0;
}
