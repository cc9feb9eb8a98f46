// SPDX-License-Identifier: Apache-2.0
#include "target/process/python.h"

#include <gelf.h>
#include <stdio.h>
#include <string.h>

#include "target/dwarf/unwind.h"
#include "target/process/mapping_file.h"
#include "target/process/program_facts.h"

#define COOKIE "xdebugpy" /* _Py_Debug_Cookie */
#define TYPE_NAME 24      /* PyTypeObject: tp_name */

/* ---- offsets, by version ---- */

/* In 3.8 to 3.10 only these differ: the index of a frame's last instruction (f_lasti), its local
 * variables (f_localsplus), and a type's ht_cached_keys. */
#define OFFSETS_BEFORE_3_11(last, unit, locals, cached_keys)                                       \
	{                                                                                          \
		.interpreters_main = 40, .threads_head = 8, .thread_next = 8, .thread_key = 176,   \
		.thread_frame = 24, .frame_code = 32, .frame_previous = 24, .frame_instr = (last), \
		.index_bytes = (unit), .code_file = 104, .code_name = 112, .code_first_line = 40,  \
		.code_table = 120, .ascii_bytes = 48, .compact_bytes = 72, .code_short_name = 112, \
		.frame_locals = (locals), .type_cached_keys = (cached_keys),                       \
	}

/* From Include/internal/pycore_{runtime,interp,frame}.h, Include/cpython/{pystate,code,object}.h;
 * before 3.11 also Include/cpython/frameobject.h, and in 3.8 Include/{frameobject,code}.h and
 * Include/internal/pycore_pystate.h. */
static const struct {
	uint32_t version; /* without the micro version: 0x030b */
	/* sizeof(_PyRuntimeState) on x86-64, of versions that have no word with their version. */
	uint32_t runtime_bytes;
	struct waffle_python kernel;
	uint32_t native_thread_id; /* 0: threads have none */
} known[] = {
	{.version = 0x0308, .runtime_bytes = 1464, .kernel = OFFSETS_BEFORE_3_11(104, 1, 360, 872)},
	{.version = 0x0309, .runtime_bytes = 656, .kernel = OFFSETS_BEFORE_3_11(104, 1, 360, 864)},
	{.version = 0x030a, .runtime_bytes = 672, .kernel = OFFSETS_BEFORE_3_11(96, 2, 352, 872)},
	{
		.version = 0x030b,
		.kernel = {.interpreters_main = 48,
			   .threads_head = 16,
			   .thread_next = 8,
			   .thread_key = 152,
			   .thread_frame = 56,
			   .has_cframe = 1,
			   .cframe_frame = 8,
			   .frame_code = 32,
			   .frame_previous = 48,
			   .frame_instr = 56,
			   .frame_owner = 69,
			   .frame_entry = 68,
			   .owner_none = 3,
			   .code_file = 112,
			   .code_name = 128,
			   .code_first_line = 72,
			   .code_table = 136,
			   .code_instructions = 184,
			   .ascii_bytes = 48,
			   .compact_bytes = 72,
			   .code_short_name = 120,
			   .frame_locals = 72, /* localsplus */
			   .type_cached_keys = 872},
		.native_thread_id = 160,
	},
	{
		.version = 0x030c,
		.kernel = {.interpreters_main = 48,
			   .threads_head = 72,
			   .thread_next = 8,
			   .thread_key = 136,
			   .thread_frame = 56,
			   .has_cframe = 1,
			   .cframe_frame = 0,
			   .frame_code = 0,
			   .frame_previous = 8,
			   .frame_instr = 56,
			   .frame_owner = 70,
			   .owner_none = 3, /* FRAME_OWNED_BY_CSTACK */
			   .code_file = 112,
			   .code_name = 128,
			   .code_first_line = 68,
			   .code_table = 136,
			   .code_instructions = 192,
			   .ascii_bytes = 40,
			   .compact_bytes = 56,
			   .code_short_name = 120,
			   .frame_locals = 72,
			   .type_cached_keys = 880},
		.native_thread_id = 144,
	},
};

/* Indexes of words in _Py_DebugOffsets. The words before those of the first row are the same in all
 * versions. */
static const struct {
	uint32_t version;
	/* start of these sections */
	uint8_t thread_state, interpreter_frame, code_object, type_object;
} told[] = {
	{0x030d, 19, 28, 34, 46},
	{0x030e, 22, 31, 39, 52},
};
enum { /* Include/internal/pycore_debug_offsets.h */
       OFFSET_VERSION = 1,
       OFFSET_FREE_THREADED = 2,
       OFFSET_INTERPRETERS_HEAD = 5,
       OFFSET_THREADS_HEAD = 9,
       /* in the section thread_state */
       OFFSET_THREAD_NEXT = 2,
       OFFSET_THREAD_FRAME = 4,
       OFFSET_THREAD_ID = 5,
       OFFSET_NATIVE_THREAD_ID = 6,
       /* in the section interpreter_frame */
       OFFSET_FRAME_PREVIOUS = 1,
       OFFSET_FRAME_EXECUTABLE = 2,
       OFFSET_FRAME_INSTR = 3,
       OFFSET_FRAME_LOCALS = 4,
       OFFSET_FRAME_OWNER = 5,
       /* in the section code_object */
       OFFSET_CODE_FILENAME = 1,
       OFFSET_CODE_NAME = 2,
       OFFSET_CODE_QUALNAME = 3,
       OFFSET_CODE_LINE_TABLE = 4,
       OFFSET_CODE_FIRST_LINE = 5,
       OFFSET_CODE_INSTRUCTIONS = 9,
       /* in the section type_object */
       OFFSET_TYPE_SIZE = 0,
       OFFSET_TYPE_NAME = 1,
       OFFSET_TYPE_FLAGS = 3,

       OFFSET_WORDS = 64
};

/* Of PyHeapTypeObject, the bytes between its PyTypeObject and ht_cached_keys:
 * Include/cpython/object.h. */
#define CACHED_KEYS_AFTER_TYPE 464

/* ---- the process ---- */

static uint64_t read_word(const struct image *image, uint64_t address)
{
	uint64_t word = 0;

	return image_read(image, address, &word, sizeof(word)) ? word : 0;
}

/* The key identifies a thread by pthread_self() on x86-64, elsewhere by gettid(). */
static uint32_t thread_key(uint32_t thread_id, uint32_t native_thread_id)
{
#if defined(__x86_64__)
	(void)native_thread_id;
	return thread_id;
#else
	(void)thread_id;
	return native_thread_id;
#endif
}

/* Real offsets are small, so larger words mean that this is no interpreter. */
static bool offsets_make_sense(const uint64_t *words)
{
	for (unsigned i = 3; i < OFFSET_WORDS; i++)
		if (words[i] > 1u << 24)
			return i > 48; /* of the later ones, cached_keys_told() is wary */
	return true;
}

/* The offset of ht_cached_keys. 0: the section of types is not where we expect it. */
static uint32_t cached_keys_told(const uint64_t *type)
{
	return type[OFFSET_TYPE_NAME] == TYPE_NAME &&
			       type[OFFSET_TYPE_FLAGS] == WAFFLE_PYTHON_TYPE_FLAGS &&
			       type[OFFSET_TYPE_SIZE] < 1u << 12
		       ? (uint32_t)type[OFFSET_TYPE_SIZE] + CACHED_KEYS_AFTER_TYPE
		       : 0;
}

static void offsets_ask(struct python *python, const struct image *image, uint64_t runtime)
{
	uint64_t words[OFFSET_WORDS];

	if (!image_read(image, runtime, words, sizeof(words)) || !offsets_make_sense(words))
		return;
	python->kernel.version = (uint32_t)words[OFFSET_VERSION];
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		const uint64_t *thread = words + told[i].thread_state;
		const uint64_t *frame = words + told[i].interpreter_frame;
		const uint64_t *code = words + told[i].code_object;

		/* Free-threaded builds lay out objects differently. */
		if (python->kernel.version >> 16 != told[i].version || words[OFFSET_FREE_THREADED])
			continue;
		python->kernel = (struct waffle_python){
			.runtime = runtime,
			.interpreters_main = (uint32_t)words[OFFSET_INTERPRETERS_HEAD],
			.threads_head = (uint32_t)words[OFFSET_THREADS_HEAD],
			.thread_next = (uint32_t)thread[OFFSET_THREAD_NEXT],
			.thread_key = thread_key((uint32_t)thread[OFFSET_THREAD_ID],
						 (uint32_t)thread[OFFSET_NATIVE_THREAD_ID]),
			.thread_frame = (uint32_t)thread[OFFSET_THREAD_FRAME],
			.frame_code = (uint32_t)frame[OFFSET_FRAME_EXECUTABLE],
			.frame_previous = (uint32_t)frame[OFFSET_FRAME_PREVIOUS],
			.frame_instr = (uint32_t)frame[OFFSET_FRAME_INSTR],
			.frame_owner = (uint32_t)frame[OFFSET_FRAME_OWNER],
			.owner_none = 3,
			.code_file = (uint32_t)code[OFFSET_CODE_FILENAME],
			.code_name = (uint32_t)code[OFFSET_CODE_QUALNAME],
			.code_first_line = (uint32_t)code[OFFSET_CODE_FIRST_LINE],
			.code_table = (uint32_t)code[OFFSET_CODE_LINE_TABLE],
			.code_instructions = (uint32_t)code[OFFSET_CODE_INSTRUCTIONS],
			.ascii_bytes = 40,
			.compact_bytes = 56,
			.version = python->kernel.version,
			.code_short_name = (uint32_t)code[OFFSET_CODE_NAME],
			.frame_locals = (uint32_t)frame[OFFSET_FRAME_LOCALS],
			.type_cached_keys = cached_keys_told(words + told[i].type_object),
		};
	}
}

/* 3.11 and 3.12 are recognised by the variable Py_Version, older versions by the size of their
 * state, which differs in each. On other machines than x86-64 the sizes are others, so older
 * versions are unknown there. */
static void offsets_know(struct python *python, const struct image *image,
			 const struct python_place *place)
{
	uint32_t version = place->version_at ? (uint32_t)read_word(image, place->version_at) : 0;

	python->kernel.version = version;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (place->version_at ? version >> 16 != known[i].version
				      : place->runtime_bytes != known[i].runtime_bytes)
			continue;
		python->kernel = known[i].kernel;
		python->kernel.version = place->version_at ? version : known[i].version << 16;
		python->kernel.thread_key =
			thread_key(known[i].kernel.thread_key, known[i].native_thread_id);
		python->kernel.runtime = python->kernel.thread_key ? place->runtime : 0;
	}
}

bool python_at(struct python *python, const struct image *image, const struct python_place *place)
{
	char cookie[8];

	*python = (struct python){.found = true};
	if (!image_read(image, place->runtime, cookie, sizeof(cookie)))
		return false;
	if (!memcmp(cookie, COOKIE, sizeof(cookie)))
		offsets_ask(python, image, place->runtime);
	else if (place->version_at || place->runtime_bytes)
		offsets_know(python, image, place);
	return true;
}

/* ---- files ---- */

/* The interpreter's loop is in the mapping that was found, or in another one of the file. */
static void code_range(struct python *python, const struct program_facts *facts, uint64_t base,
		       const struct mapping *mapping)
{
	uint64_t eval = facts->python_eval + base;

	if (!facts->python_eval || eval < mapping->start || eval >= mapping->end)
		return;
	python->code = (struct python_code_range){.start = mapping->start,
						  .end = mapping->end,
						  .eval_start = eval,
						  .eval_end = eval + facts->python_eval_bytes};
}

/* Whether a file contains CPython: 1 or 0. -EAGAIN: it is still being parsed. */
static int file_has_python(struct python *python, const struct image *image, pid_t pid,
			   const struct mapping *mapping)
{
	static const struct cfi_table at_zero = {0};
	struct waffle_unwind_mapping placed;
	struct python_place place = {0};
	char path[4096];
	struct program_facts facts;
	int fd = mapping_open(mapping, pid, path, sizeof(path)), result;

	result = fd < 0 ? fd : program_facts_read(&facts, fd, path);
	if (result)
		return result == -EAGAIN ? result : 0;
	if (!facts.python_runtime || !unwind_place(&placed, mapping, &facts.segments, &at_zero))
		return 0;
	place.runtime = facts.python_runtime + placed.base;
	place.runtime_bytes = facts.python_runtime_bytes;
	if (facts.python_version)
		place.version_at = facts.python_version + placed.base;
	if (!python_at(python, image, &place))
		return 0;
	if (facts.python_code_type)
		python->code_type = facts.python_code_type + placed.base;
	code_range(python, &facts, placed.base, mapping);
	return 1;
}

static const char *name_of(const struct mapping *mapping)
{
	const char *slash = strrchr(mapping->path, '/');

	return strstr(slash ? slash : mapping->path, "python");
}

/* An interpreter before 3.7 has no _PyRuntime, so only the name of its file shows it. 0: it is
 * none. */
static uint32_t old_version(const struct mapping *mapping)
{
	const char *name = mapping->executable ? name_of(mapping) : NULL;
	unsigned major, minor;
	int len;

	if (!name || sscanf(name, "python%1u.%1u%n", &major, &minor, &len) != 2 ||
	    (name[len] >= '0' && name[len] <= '9') || major > 3 || (major == 3 && minor > 6))
		return 0;
	return major << 24 | minor << 16;
}

int python_find(struct python *python, const struct image *image, pid_t pid,
		const struct mappings *mappings, bool named)
{
	uint32_t old = 0;
	int result = 0;

	*python = (struct python){0};
	for (size_t i = 0; i < mappings->list.len; i++) {
		const struct mapping *mapping = &mappings->list.data[i];
		int found = named && !name_of(mapping)
				    ? 0
				    : file_has_python(python, image, pid, mapping);

		if (found > 0)
			return 0;
		if (found < 0)
			result = found;
		old = old_version(mapping) ?: old;
	}
	/* Another file may still turn out to be an interpreter. */
	if (old && !result)
		*python = (struct python){.found = true, .kernel.version = old};
	return result;
}

/* ---- frames ---- */

/* Writes U+FFFD for a NUL, which would end the text, and for surrogates. CPython uses those for
 * bytes of a path that are not UTF-8. False: it does not fit. */
static bool put_utf8(char *text, size_t size, size_t *len, uint32_t character)
{
	static const uint8_t marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
	unsigned bytes;

	if (!character || (character >= 0xd800 && character < 0xe000) || character > 0x10ffff)
		character = 0xfffd;
	bytes = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
	if (*len + bytes >= size)
		return false;
	for (unsigned i = bytes - 1; i > 0; i--) {
		text[*len + i] = (char)(0x80 | (character & 0x3f));
		character >>= 6;
	}
	text[*len] = (char)(marks[bytes] | character);
	*len += bytes;
	return true;
}

bool python_text_decode(const struct waffle_code_text *from, const unsigned char *bytes,
			size_t bytes_max, char *text, size_t size)
{
	uint32_t kind = WAFFLE_PYTHON_KIND(from->state);
	size_t len = 0;

	text[0] = '\0';
	if (!WAFFLE_PYTHON_COMPACT(from->state) || (kind != 1 && kind != 2 && kind != 4) ||
	    from->bytes > bytes_max)
		return false;
	for (uint32_t i = 0; i + kind <= from->bytes; i += kind) {
		uint32_t character = 0;

		memcpy(&character, bytes + i, kind);
		if (!put_utf8(text, size, &len, character))
			break;
	}
	text[len] = '\0';
	return len > 0;
}

static void text_read(const struct python *python, const struct image *image, uint64_t object,
		      struct waffle_code_text *text, void *to, size_t room)
{
	uint64_t length = read_word(image, object + WAFFLE_PYTHON_LENGTH), bytes;

	*text = (struct waffle_code_text){0};
	if (!image_read(image, object + WAFFLE_PYTHON_STATE, &text->state, sizeof(text->state)))
		return;
	object += WAFFLE_PYTHON_ASCII(text->state) ? python->kernel.ascii_bytes
						   : python->kernel.compact_bytes;
	bytes = length > room ? room : length * WAFFLE_PYTHON_KIND(text->state);
	if (bytes > room)
		bytes = room;
	text->bytes = image_read(image, object, to, bytes) ? (uint32_t)bytes : 0;
}

bool python_code_read(const struct python *python, const struct image *image, uint64_t address,
		      struct waffle_rec_code *code)
{
	const struct waffle_python *offsets = &python->kernel;
	uint64_t table = read_word(image, address + offsets->code_table);
	uint64_t size = table ? read_word(image, table + WAFFLE_PYTHON_LENGTH) : 0;

	*code = (struct waffle_rec_code){.code = address};
	text_read(python, image, read_word(image, address + offsets->code_name), &code->name_text,
		  code->name, sizeof(code->name));
	text_read(python, image, read_word(image, address + offsets->code_file), &code->file_text,
		  code->file, sizeof(code->file));
	if (size <= sizeof(code->table) &&
	    image_read(image, table + WAFFLE_PYTHON_BYTES, code->table, size))
		code->table_bytes = (uint32_t)size;
	return image_read(image, address + offsets->code_first_line, &code->first_line,
			  sizeof(code->first_line)) &&
	       code->name_text.bytes;
}

static enum python_lines lines_of(const struct python *python)
{
	if (!python->kernel.index_bytes)
		return PYTHON_LINES_LOCATIONS;
	return python->kernel.index_bytes == 2 ? PYTHON_LINES_3_10 : PYTHON_LINES_LNOTAB;
}

bool python_frame_of(const struct python *python, const struct waffle_rec_code *code,
		     uint64_t instruction, struct python_frame *frame)
{
	uint64_t first = code->code + python->kernel.code_instructions;

	*frame = (struct python_frame){0};
	if (!python_text_decode(&code->name_text, code->name, sizeof(code->name), frame->function,
				sizeof(frame->function)) ||
	    !python_text_decode(&code->file_text, code->file, sizeof(code->file), frame->file,
				sizeof(frame->file)))
		return false;
	if (code->table_bytes <= sizeof(code->table))
		/* A frame that has not executed anything yet points before its first
		 * instruction. */
		frame->line = python_line(lines_of(python), code->table, code->table_bytes,
					  code->first_line,
					  instruction < first ? 0 : instruction - first);
	return true;
}

/* ---- lines ---- */

struct bytes {
	const unsigned char *at, *end;
};

/* Each byte holds six bits of the value, lowest first. Its seventh bit means that more bytes
 * follow. */
static uint64_t take_varint(struct bytes *bytes)
{
	uint64_t value = 0;
	unsigned shift = 0;
	unsigned char byte = 0x40;

	while (byte & 0x40 && bytes->at < bytes->end) {
		byte = *bytes->at++;
		if (shift < 58)
			value |= (uint64_t)(byte & 0x3f) << shift;
		shift += 6;
	}
	return value;
}

static int64_t take_svarint(struct bytes *bytes)
{
	uint64_t value = take_varint(bytes);

	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

static void skip(struct bytes *bytes, size_t count)
{
	size_t left = (size_t)(bytes->end - bytes->at);

	bytes->at += count < left ? count : left;
}

static uint32_t locations_line(const unsigned char *table, size_t size, uint32_t first_line,
			       uint64_t offset)
{
	struct bytes bytes = {.at = table, .end = table + size};
	int64_t line = first_line;
	uint64_t from = 0;

	while (bytes.at < bytes.end) {
		unsigned char head = *bytes.at++;
		unsigned code = head >> 3 & 15, length = 2 * ((head & 7) + 1u);
		bool has_line = true;

		switch (code) {
		case 15: /* no position */
			has_line = false;
			break;
		case 14: /* long form: lines and both columns */
			line += take_svarint(&bytes);
			for (int i = 0; i < 3; i++)
				take_varint(&bytes);
			break;
		case 13: /* no columns */
			line += take_svarint(&bytes);
			break;
		case 10:
		case 11:
		case 12: /* same line or one of the next two */
			line += code - 10;
			skip(&bytes, 2);
			break;
		default: /* same line */
			skip(&bytes, 1);
		}
		if (line < 0 || line > INT32_MAX) /* CPython does not write such a table */
			return 0;
		if (offset < from + length)
			return has_line ? (uint32_t)line : 0;
		from += length;
	}
	return 0;
}

/* Pairs of bytes: how many bytes of code follow, and how far their line is from the last one. -128:
 * they have no line. */
static uint32_t ranges_line(const unsigned char *table, size_t size, uint32_t first_line,
			    uint64_t offset)
{
	int64_t line = first_line;
	uint64_t end = 0;

	for (size_t at = 0; at + 2 <= size; at += 2) {
		int8_t step = (int8_t)table[at + 1];

		end += table[at];
		if (step != INT8_MIN)
			line += step;
		if (line < 0 || line > INT32_MAX)
			return 0;
		if (offset < end)
			return step == INT8_MIN ? 0 : (uint32_t)line;
	}
	return 0;
}

/* Pairs of bytes: how far the next line's code and that line are from the last ones. */
static uint32_t lnotab_line(const unsigned char *table, size_t size, uint32_t first_line,
			    uint64_t offset)
{
	int64_t line = first_line;
	uint64_t begin = 0;

	for (size_t at = 0; at + 2 <= size; at += 2) {
		begin += table[at];
		if (offset < begin)
			break;
		line += (int8_t)table[at + 1];
	}
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

uint32_t python_line(enum python_lines form, const unsigned char *table, size_t size,
		     uint32_t first_line, uint64_t offset)
{
	switch (form) {
	case PYTHON_LINES_3_10:
		return ranges_line(table, size, first_line, offset);
	case PYTHON_LINES_LNOTAB:
		return lnotab_line(table, size, first_line, offset);
	case PYTHON_LINES_LOCATIONS:
		break;
	}
	return locations_line(table, size, first_line, offset);
}
