// SPDX-License-Identifier: Apache-2.0
#include "target/process/python_threads.h"

#include <string.h>

#include "target/process/image_pages_internal.h"

#define PAGES 256
/* Limits of a search. The structures may be made up, and have no end. */
#define BYTES_MAX (64ull << 20)
#define FRAMES_MAX 1024
#define KEYS_MAX 256

/* PyTypeObject: Include/cpython/object.h, the same in all versions */
#define TYPE_BASIC_SIZE 32
#define TYPE_DICT_OFFSET 288
#define FLAG_INLINE_VALUES (1u << 2)
#define FLAG_MANAGED_DICT (1u << 4)
/* PyDictObject: Include/cpython/dictobject.h */
#define DICT_KEYS 32
#define DICT_VALUES 40
/* PyDictKeysObject: before 3.11 Objects/dict-common.h, then Include/internal/pycore_dict.h */
#define KEYS_OLD_SIZE 8
#define KEYS_OLD_COUNT 32
#define KEYS_OLD_INDICES 40
#define KEYS_LOG2_INDEX_BYTES 9
#define KEYS_KIND 10
#define KEYS_COUNT 24
#define KEYS_INDICES 32
#define LOG2_INDEX_BYTES_MAX 24
#define KIND_GENERAL 0 /* the entries have the hash, too */
/* Words before an object: Include/internal/pycore_object.h */
#define BEFORE_DICT 24
#define BEFORE_VALUES 32 /* only in 3.11 */
/* Since 3.13 PyDictValues has a head, whose byte 3 says whether the values are in use. */
#define VALUES_HEAD 8
#define VALUES_VALID 3
/* PyLongObject: Include/cpython/longintrepr.h; the sign and the flags are the low bits */
#define LONG_SIZE 16
#define LONG_DIGIT 24
#define LONG_TAG_SHIFT 3
#define LONG_TAG_SIGN 3

#define VERSION(minor) (0x03000000u | (minor) << 16)

static bool bytes_read(const struct python_threads *threads, uint64_t address, void *to,
		       size_t size)
{
	return image_pages_bytes(threads->pages) < BYTES_MAX &&
	       image_pages_read(threads->pages, &threads->image, address, to, size);
}

static uint64_t word_read(const struct python_threads *threads, uint64_t address)
{
	uint64_t word;

	return bytes_read(threads, address, &word, sizeof(word)) ? word : 0;
}

/* ---- texts and numbers ---- */

static bool text_read(const struct python_threads *threads, uint64_t object, char *text,
		      size_t size)
{
	const struct waffle_python *offsets = &threads->python.kernel;
	struct waffle_code_text from = {0};
	unsigned char bytes[4 * PYTHON_FILE_MAX];
	uint64_t length = word_read(threads, object + WAFFLE_PYTHON_LENGTH);

	if (!bytes_read(threads, object + WAFFLE_PYTHON_STATE, &from.state, sizeof(from.state)) ||
	    !length)
		return false;
	object += WAFFLE_PYTHON_ASCII(from.state) ? offsets->ascii_bytes : offsets->compact_bytes;
	length = length < size ? length : size;
	from.bytes = (uint32_t)length * WAFFLE_PYTHON_KIND(from.state);
	return from.bytes <= sizeof(bytes) && bytes_read(threads, object, bytes, from.bytes) &&
	       python_text_decode(&from, bytes, sizeof(bytes), text, size);
}

static bool text_is(const struct python_threads *threads, uint64_t object, const char *wanted)
{
	char text[16];

	return text_read(threads, object, text, sizeof(text)) && !strcmp(text, wanted);
}

/* Reads an int of one digit, as all tids are. */
static uint32_t number_read(const struct python_threads *threads, uint64_t object)
{
	bool tagged = threads->python.version >= VERSION(12);
	uint64_t size = word_read(threads, object + LONG_SIZE);
	uint32_t digit;

	if (tagged ? size >> LONG_TAG_SHIFT != 1 || size & LONG_TAG_SIGN : size != 1)
		return 0;
	return bytes_read(threads, object + LONG_DIGIT, &digit, sizeof(digit)) ? digit : 0;
}

/* ---- attributes of an object ---- */

/* Keys, and where their values are. */
struct table {
	uint64_t entries; /* address */
	uint64_t count;
	uint64_t values; /* 0: in the entries */
	uint32_t entry_bytes, key;
};

static bool old_keys_read(const struct python_threads *threads, uint64_t keys, struct table *table)
{
	uint64_t size = word_read(threads, keys + KEYS_OLD_SIZE);

	table->count = word_read(threads, keys + KEYS_OLD_COUNT);
	table->entry_bytes = 24;
	table->key = 8;
	table->entries = keys + KEYS_OLD_INDICES + (size <= 0xff ? size : 2 * size);
	return size <= 0xffff;
}

static bool keys_read(const struct python_threads *threads, uint64_t keys, struct table *table)
{
	uint8_t bytes, kind;

	if (threads->python.version < VERSION(11))
		return old_keys_read(threads, keys, table);
	if (!bytes_read(threads, keys + KEYS_LOG2_INDEX_BYTES, &bytes, 1) ||
	    !bytes_read(threads, keys + KEYS_KIND, &kind, 1) || bytes > LOG2_INDEX_BYTES_MAX)
		return false;
	table->count = word_read(threads, keys + KEYS_COUNT);
	table->entry_bytes = kind == KIND_GENERAL ? 24 : 16;
	table->key = kind == KIND_GENERAL ? 8 : 0;
	table->entries = keys + KEYS_INDICES + (1ull << bytes);
	return true;
}

static bool dict_read(const struct python_threads *threads, uint64_t dict, struct table *table)
{
	uint64_t keys = word_read(threads, dict + DICT_KEYS);

	table->values = word_read(threads, dict + DICT_VALUES);
	if (table->values && threads->python.version >= VERSION(13))
		table->values += VALUES_HEAD;
	return keys && keys_read(threads, keys, table);
}

/* The values of an object without a dict have the keys of its type. */
static bool values_read(const struct python_threads *threads, uint64_t type, uint64_t values,
			struct table *table)
{
	uint64_t keys = word_read(threads, type + threads->python.type_cached_keys);

	table->values = values;
	return values && keys && keys_read(threads, keys, table);
}

/* 3.13 and later: the values may be behind the object. */
static bool inline_read(const struct python_threads *threads, uint64_t object, uint64_t type,
			struct table *table)
{
	uint64_t values = object + word_read(threads, type + TYPE_BASIC_SIZE);
	uint8_t valid;

	return bytes_read(threads, values + VALUES_VALID, &valid, 1) && valid &&
	       values_read(threads, type, values + VALUES_HEAD, table);
}

/* Finds the attributes: Objects/dictobject.c and Objects/object.c, _PyObject_GetDictPtr() and
 * _PyObject_ComputedDictPointer(). */
static bool attributes_find(const struct python_threads *threads, uint64_t object,
			    struct table *table)
{
	uint64_t type = word_read(threads, object + PYTHON_OBJECT_TYPE), offset, dict;
	uint32_t flags, version = threads->python.version;

	if (!type || !bytes_read(threads, type + PYTHON_TYPE_FLAGS, &flags, sizeof(flags)))
		return false;
	if (version < VERSION(11) || !(flags & FLAG_MANAGED_DICT)) {
		offset = word_read(threads, type + TYPE_DICT_OFFSET);
		dict = offset && offset < 4096 ? word_read(threads, object + offset) : 0;
		return dict && dict_read(threads, dict, table);
	}
	dict = word_read(threads, object - BEFORE_DICT);
	if (version < VERSION(12) && !dict)
		return values_read(threads, type, word_read(threads, object - BEFORE_VALUES),
				   table);
	if (version >= VERSION(12) && version < VERSION(13) && dict & 1) /* a mark of values */
		return values_read(threads, type, dict + 1, table);
	if (version >= VERSION(13) && !dict)
		return flags & FLAG_INLINE_VALUES && inline_read(threads, object, type, table);
	return dict && dict_read(threads, dict, table);
}

/* Reads the id and the name of a Thread. */
static bool thread_read(const struct python_threads *threads, uint64_t object,
			struct python_thread *thread)
{
	struct table table = {0};

	*thread = (struct python_thread){0};
	if (!attributes_find(threads, object, &table) || table.count > KEYS_MAX)
		return false;
	for (uint64_t i = 0; i < table.count; i++) {
		uint64_t entry = table.entries + i * table.entry_bytes;
		uint64_t key = word_read(threads, entry + table.key);
		uint64_t value = word_read(threads, table.values ? table.values + 8 * i
								 : entry + table.key + 8);

		if (!key || !value)
			continue;
		if (text_is(threads, key, "_native_id"))
			thread->seen_tid = number_read(threads, value);
		else if (text_is(threads, key, "_name"))
			text_read(threads, value, thread->name, sizeof(thread->name));
	}
	return thread->seen_tid && thread->name[0];
}

/* ---- frames ---- */

/* The outermost frame of Python of a thread. 0: none, or there are too many. */
static uint64_t outermost_frame(const struct python_threads *threads, uint64_t thread)
{
	const struct waffle_python *offsets = &threads->python.kernel;
	uint64_t frame = word_read(threads, thread + offsets->thread_frame), found = 0;

	if (offsets->has_cframe && frame)
		frame = word_read(threads, frame + offsets->cframe_frame);
	for (unsigned i = 0; i < FRAMES_MAX && frame; i++) {
		uint8_t owner = 0;

		if (offsets->owner_none &&
		    !bytes_read(threads, frame + offsets->frame_owner, &owner, 1))
			return 0;
		if (!offsets->owner_none || owner < offsets->owner_none)
			found = frame;
		frame = word_read(threads, frame + offsets->frame_previous);
	}
	return frame ? 0 : found;
}

/* Whether a code object is that of threading.Thread._bootstrap(). */
static bool is_bootstrap(const struct python_threads *threads, uint64_t code)
{
	static const char module[] = "threading.py";
	char file[PYTHON_FILE_MAX];
	size_t length;

	if (!text_is(threads, word_read(threads, code + threads->python.code_short_name),
		     "_bootstrap") ||
	    !text_read(threads, word_read(threads, code + threads->python.kernel.code_file), file,
		       sizeof(file)))
		return false;
	length = strlen(file);
	if (length < sizeof(module) - 1 || strcmp(file + length + 1 - sizeof(module), module))
		return false;
	return length == sizeof(module) - 1 || file[length - sizeof(module)] == '/';
}

/* The Thread of a thread state. 0: threading did not make the thread. */
static uint64_t thread_object(const struct python_threads *threads, uint64_t state)
{
	uint64_t frame = outermost_frame(threads, state), code;

	if (!frame)
		return 0;
	code = word_read(threads, frame + threads->python.kernel.frame_code);
	if (!is_bootstrap(threads, code & ~WAFFLE_PYTHON_MARKS))
		return 0;
	return word_read(threads, frame + threads->python.frame_locals) & ~WAFFLE_PYTHON_MARKS;
}

/* ---- all threads ---- */

bool python_threads_begin(struct python_threads *threads, const struct python *python,
			  const struct image *image)
{
	const struct waffle_python *offsets = &python->kernel;
	uint64_t interpreter;

	*threads = (struct python_threads){.python = *python, .image = *image};
	if (offsets->runtime && python->frame_locals && python->type_cached_keys)
		threads->pages = image_pages_new(PAGES);
	if (!threads->pages) {
		python_threads_end(threads);
		return false;
	}
	interpreter = word_read(threads, offsets->runtime + offsets->interpreters_main);
	threads->state = interpreter ? word_read(threads, interpreter + offsets->threads_head) : 0;
	return true;
}

void python_threads_end(struct python_threads *threads)
{
	image_pages_free(threads->pages);
	image_close(&threads->image);
	*threads = (struct python_threads){.image = {-1, -1}};
}

/* What was found of a thread, or `object` 0. */
struct found_thread {
	uint64_t state, object;
	struct python_thread thread;
};

static struct found_thread found_thread(const struct python_threads *threads, uint64_t state)
{
	struct found_thread found = {.state = state, .object = thread_object(threads, state)};

	if (found.object && !thread_read(threads, found.object, &found.thread))
		found.object = 0;
	return found;
}

static bool is_same(const struct found_thread *a, const struct found_thread *b)
{
	return a->object == b->object && a->thread.seen_tid == b->thread.seen_tid &&
	       !strcmp(a->thread.name, b->thread.name);
}

bool python_threads_step(struct python_threads *threads, python_thread_fn *each, void *arg)
{
	struct found_thread first[PYTHON_THREADS_STEP];
	size_t count = 0;

	image_pages_forget(threads->pages);
	for (; count < PYTHON_THREADS_STEP && threads->state; count++) {
		first[count] = found_thread(threads, threads->state);
		threads->state =
			++threads->count < WAFFLE_PYTHON_THREADS_MAX
				? word_read(threads,
					    threads->state + threads->python.kernel.thread_next)
				: 0;
	}
	image_pages_forget(threads->pages);
	for (size_t i = 0; i < count; i++) {
		struct found_thread second = {0};

		if (first[i].object)
			second = found_thread(threads, first[i].state);
		if (second.object && is_same(&first[i], &second))
			each(&second.thread, arg);
	}
	return threads->state;
}
