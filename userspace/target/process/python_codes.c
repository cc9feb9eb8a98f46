// SPDX-License-Identifier: Apache-2.0
#include "target/process/python_codes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target/process/image_pages_internal.h"

#define CHUNK_PAGES 32 /* as much as opener_read() reads at once */
#define CACHE_PAGES 4096
#define SEARCH_BYTES_MAX (16ull << 30) /* of one search */
#define PAGE_PRESENT (1ull << 63)      /* /proc/PID/pagemap */
#define ABSENT_BYTES 64                /* an absent page counts as so many */
/* A page with a name counts as much as another page, and a code object that is read as so many
 * bytes. A program may make up any number of both, so a chunk is searched only up to a limit. */
#define CODE_BYTES (16 * IMAGE_PAGE_BYTES)
#define CHUNK_BYTES_MAX (16ull << 20)
#define CODE_ALIGNMENT 16
#define REFERENCES_MAX (1u << 30)
#define IMMORTAL_MIN (3u << 30) /* since 3.12: Include/refcount.h */

/* Members of PyCodeObject that _Py_DebugOffsets lacks: Include/cpython/code.h, in 3.8
 * Include/code.h. */
#define FLAGS_SINCE_3_11 48
#define FLAGS_BEFORE_3_11 36
#define CODE_BEFORE_3_11 48 /* co_code, a bytes object */
/* CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR */
#define FLAGS_SUSPEND (0x20u | 0x80u | 0x200u)

static bool word_read(const struct image *image, uint64_t address, uint64_t *word)
{
	return image_read(image, address, word, sizeof(*word));
}

/* A freed object has an address in place of its number of references. In 3.14 the number is
 * followed by 16 unused bits and 16 bits of flags. */
static bool is_living(const struct python *python, uint64_t references)
{
	uint32_t low = (uint32_t)references, high = (uint32_t)(references >> 32);

	if (python->kernel.version >= 0x030e0000)
		high &= 0xffff;
	return low && !high && (low < REFERENCES_MAX || low >= IMMORTAL_MIN);
}

bool python_code_at(struct python_code *code, const struct python *python,
		    const struct image *image, uint64_t address)
{
	bool old = python->kernel.index_bytes;
	uint64_t references, type, first = address + python->kernel.code_instructions;
	uint32_t flags;
	struct waffle_rec_code *rec;
	bool is_code;

	*code = (struct python_code){.address = address};
	if (!word_read(image, address, &references) ||
	    !word_read(image, address + WAFFLE_PYTHON_TYPE, &type) || type != python->code_type ||
	    !is_living(python, references) ||
	    !word_read(image, address + python->kernel.code_name, &code->name) ||
	    !image_read(image, address + (old ? FLAGS_BEFORE_3_11 : FLAGS_SINCE_3_11), &flags,
			sizeof(flags)))
		return false;
	if (old && (!word_read(image, address + CODE_BEFORE_3_11, &first) || !first))
		return false;
	code->first = old ? first + WAFFLE_PYTHON_BYTES : first;
	code->suspends = flags & FLAGS_SUSPEND;
	rec = malloc(sizeof(*rec));
	is_code = rec && python_code_read(python, image, address, rec) &&
		  python_frame_of(python, rec, 0, &code->function);
	if (is_code)
		code->first_line = code->function.line = rec->first_line;
	free(rec);
	return is_code && code->first_line <= INT32_MAX;
}

/* ---- names ---- */

/* Whether a str may be one of the names. Only texts in ASCII are compared. */
static bool name_is_wanted(const struct python_codes *codes, const struct python *python,
			   const struct image *image, uint64_t name)
{
	unsigned char head[WAFFLE_PYTHON_STATE + 4];
	char text[PYTHON_NAME_MAX];
	uint64_t length;
	uint32_t state;

	if (!image_pages_read(codes->pages, image, name, head, sizeof(head)))
		return false;
	memcpy(&length, head + WAFFLE_PYTHON_LENGTH, sizeof(length));
	memcpy(&state, head + WAFFLE_PYTHON_STATE, sizeof(state));
	if (!WAFFLE_PYTHON_ASCII(state))
		return true;
	for (size_t i = 0; i < codes->name_count; i++)
		if (length < sizeof(text) && length == strlen(codes->names[i]) &&
		    image_pages_read(codes->pages, image, name + python->kernel.ascii_bytes, text,
				     length) &&
		    !memcmp(text, codes->names[i], length))
			return true;
	return false;
}

/* ---- the search ---- */

int python_codes_begin(struct python_codes *codes, pid_t pid, const char *const *names,
		       size_t name_count)
{
	struct error gone = ERROR_INIT;
	int result;

	python_codes_free(codes);
	result = process_mappings_all(&codes->mappings, pid, &gone);
	if (result)
		return result;
	codes->names = names;
	codes->name_count = name_count;
	codes->pages = image_pages_new(CACHE_PAGES);
	return codes->pages ? 0 : -ENOMEM;
}

void python_codes_free(struct python_codes *codes)
{
	mappings_free(&codes->mappings);
	image_pages_free(codes->pages);
	*codes = (struct python_codes){0};
}

/* Memory of the heap and of the interpreter's own allocator. */
static bool is_heap(const struct mapping *mapping)
{
	return mapping->writable && !mapping->ino && !mapping->executable;
}

/* What a search of some memory needs. */
struct codes_search {
	struct python_codes *codes;
	const struct python *python;
	const struct image *image;
	python_code_fn *each;
	void *arg;
	uint64_t code_bytes;   /* of code objects that were read in this chunk: CODE_BYTES each */
	uint64_t bytes_before; /* of pages, when the chunk began */
};

/* How much work the chunk was so far, apart from its own bytes. */
static uint64_t chunk_bytes(const struct codes_search *search)
{
	return search->code_bytes + image_pages_bytes(search->codes->pages) - search->bytes_before;
}

/* An object whose type is PyCode_Type. Most of its words are among those that were read. */
static void code_check(struct codes_search *search, uint64_t address, const uint64_t *words,
		       size_t count)
{
	size_t at = search->python->kernel.code_short_name / 8;
	struct python_code code;
	uint64_t name;

	if (at < count)
		name = words[at];
	else if (!image_pages_read(search->codes->pages, search->image, address + 8 * at, &name,
				   sizeof(name)))
		return;
	if (!name_is_wanted(search->codes, search->python, search->image, name))
		return;
	search->code_bytes += CODE_BYTES;
	if (python_code_at(&code, search->python, search->image, address))
		search->each(&code, search->arg);
}

static void words_search(struct codes_search *search, uint64_t address, const uint64_t *words,
			 size_t count)
{
	for (size_t i = WAFFLE_PYTHON_TYPE / 8; i < count; i += CODE_ALIGNMENT / 8)
		if (words[i] == search->python->code_type && chunk_bytes(search) < CHUNK_BYTES_MAX)
			code_check(search, address + 8 * i - WAFFLE_PYTHON_TYPE, words + i - 1,
				   count - i + 1);
}

/* Searches those of up to CHUNK_PAGES pages that are in memory. Pages that are not must not be
 * read, since that would bring them there. Returns how much work it was, in bytes. An object is
 * aligned to 16 bytes, so its type is in the same page as its begin. */
static uint64_t chunk_search(struct codes_search *search, int pagemap, uint64_t address,
			     size_t pages)
{
	uint64_t map[CHUNK_PAGES], words[CHUNK_PAGES * IMAGE_PAGE_BYTES / 8];
	uint64_t bytes = pages * ABSENT_BYTES;
	ssize_t got = pread(pagemap, map, pages * sizeof(*map),
			    (off_t)(address / IMAGE_PAGE_BYTES * sizeof(*map)));
	size_t known = got > 0 ? (size_t)got / sizeof(*map) : 0, end;

	search->code_bytes = 0;
	search->bytes_before = image_pages_bytes(search->codes->pages);
	for (size_t i = 0; i < known; i = end + 1) {
		uint64_t from = address + i * IMAGE_PAGE_BYTES;

		for (end = i; end < known && map[end] & PAGE_PRESENT;)
			end++;
		if (end == i)
			continue;
		words_search(
			search, from, words,
			image_read_some(search->image, from, words, (end - i) * IMAGE_PAGE_BYTES) /
				8);
		bytes += (end - i) * IMAGE_PAGE_BYTES;
	}
	return bytes + chunk_bytes(search);
}

bool python_codes_step(struct python_codes *codes, const struct python *python,
		       const struct image *image, uint64_t bytes, python_code_fn *each, void *arg)
{
	int pagemap = openat(image->process, "pagemap", O_RDONLY | O_CLOEXEC);
	struct codes_search search = {codes, python, image, each, arg, 0, 0};
	uint64_t until = codes->bytes + bytes;

	until = until < SEARCH_BYTES_MAX ? until : SEARCH_BYTES_MAX;
	while (pagemap >= 0 && codes->next < codes->mappings.list.len && codes->bytes < until) {
		const struct mapping *mapping = &codes->mappings.list.data[codes->next];
		uint64_t at = codes->address > mapping->start ? codes->address : mapping->start;
		uint64_t pages = (mapping->end - at) / IMAGE_PAGE_BYTES;

		if (!is_heap(mapping) || at >= mapping->end) {
			codes->next++;
			continue;
		}
		pages = pages < CHUNK_PAGES ? pages : CHUNK_PAGES;
		if (pages)
			codes->bytes += chunk_search(&search, pagemap, at, pages);
		codes->address = pages ? at + pages * IMAGE_PAGE_BYTES : mapping->end;
	}
	if (pagemap >= 0)
		close(pagemap);
	return pagemap >= 0 && codes->next < codes->mappings.list.len &&
	       codes->bytes < SEARCH_BYTES_MAX;
}
