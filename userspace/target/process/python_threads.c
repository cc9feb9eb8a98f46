// SPDX-License-Identifier: Apache-2.0
#include "target/process/python_threads.h"

#include <string.h>

#include "target/process/image_pages_internal.h"

#define PAGES 256
/* Limits of a search. The structures may be made up, and have no end. */
#define BYTES_MAX (64ull << 20)
#define FRAMES_MAX 1024
#define KEYS_MAX 256

static bool bytes_read(const struct python_threads *threads, uint64_t address, void *to,
		       size_t size)
{
	return image_pages_bytes(threads->pages) < BYTES_MAX &&
	       image_pages_read(threads->pages, &threads->image, address, to, size);
}

#define WAFFLE_PYTHON_READ(context, to, bytes, address) !bytes_read(context, address, to, bytes)
#include "bpf/python_object.h"

static uint64_t word_read(const struct python_threads *threads, uint64_t address)
{
	return waffle_python_word(threads, address);
}

/* ---- texts ---- */

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

/* ---- attributes ---- */

/* The key is a str. */
static bool is_same_type(const struct python_threads *threads, uint64_t key, uint64_t value)
{
	return word_read(threads, key + WAFFLE_PYTHON_TYPE) ==
	       word_read(threads, value + WAFFLE_PYTHON_TYPE);
}

/* Reads the id and the name of a Thread. */
static bool thread_read(const struct python_threads *threads, uint64_t object,
			struct python_thread *thread)
{
	const struct waffle_python *offsets = &threads->python.kernel;
	struct waffle_python_table table = {0};
	enum waffle_python_text text;

	*thread = (struct python_thread){0};
	if (!waffle_python_attributes(threads, offsets, object, &table) || table.count > KEYS_MAX)
		return false;
	for (uint64_t i = 0; i < table.count; i++) {
		uint64_t key = word_read(threads, waffle_python_key_at(&table, i));
		uint64_t value = word_read(threads, waffle_python_value_at(&table, i));

		if (!key || !value)
			continue;
		text = waffle_python_text(threads, offsets, key);
		if (text == WAFFLE_TEXT_NATIVE_ID)
			thread->seen_tid = waffle_python_number(threads, offsets, value);
		else if (text == WAFFLE_TEXT_NAME && is_same_type(threads, key, value))
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
	const struct waffle_python *offsets = &threads->python.kernel;
	uint64_t name = word_read(threads, code + offsets->code_short_name);
	char file[PYTHON_FILE_MAX];
	size_t length;

	if (waffle_python_text(threads, offsets, name) != WAFFLE_TEXT_BOOTSTRAP ||
	    !text_read(threads, word_read(threads, code + offsets->code_file), file, sizeof(file)))
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
	return word_read(threads, frame + threads->python.kernel.frame_locals) &
	       ~WAFFLE_PYTHON_MARKS;
}

/* ---- all threads ---- */

bool python_threads_begin(struct python_threads *threads, const struct python *python,
			  const struct image *image)
{
	const struct waffle_python *offsets = &python->kernel;
	uint64_t interpreter;

	*threads = (struct python_threads){.python = *python, .image = *image};
	if (offsets->runtime && offsets->frame_locals && offsets->type_cached_keys)
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
