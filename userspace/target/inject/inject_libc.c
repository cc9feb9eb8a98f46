// SPDX-License-Identifier: Apache-2.0
/* What an injection needs of the process's libc, which must be glibc. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "target/inject/inject_internal.h"

#define LIBRARY_NOW 2 /* RTLD_NOW */
/* Says that __libc_dlopen_mode() is called in place of dlopen() (__RTLD_DLOPEN). */
#define LIBRARY_INTERNAL 0x80000000u
#define SEARCH_BYTES (64u << 10)

/* The file that the kernel shows for a mapping. */
static bool mapping_is(const struct mapping *mapping, const char *pattern)
{
	const char *slash = strrchr(mapping->path, '/');

	return !fnmatch(pattern, slash ? slash + 1 : mapping->path, 0);
}

bool inject_is_loaded(const struct mappings *mappings, size_t first)
{
	const struct mapping *all = mappings->list.data;

	if (all[first].offset)
		return false;
	for (size_t i = first; i < mappings->list.len && !strcmp(all[i].path, all[first].path) &&
			       (i == first || all[i].offset);
	     i++)
		if (all[i].executable)
			return true;
	return false;
}

bool inject_is_code(const struct mappings *mappings, uint64_t address)
{
	for (size_t i = 0; i < mappings->list.len; i++)
		if (mappings->list.data[i].start <= address && address < mappings->list.data[i].end)
			return mappings->list.data[i].executable;
	return false;
}

/* Where the first byte of a library is mapped; 0: nowhere. */
static uint64_t library_base(const struct mappings *mappings, const char *pattern)
{
	for (size_t i = 0; i < mappings->list.len; i++)
		if (mapping_is(&mappings->list.data[i], pattern) && inject_is_loaded(mappings, i))
			return mappings->list.data[i].start;
	return 0;
}

/* Searches the code of a file for bytes. 0: they are not there. */
static uint64_t code_find(const struct image *image, const struct mappings *mappings,
			  const char *pattern, const void *bytes, size_t count)
{
	unsigned char *code = malloc(SEARCH_BYTES);
	uint64_t found = 0;

	for (size_t i = 0; code && i < mappings->list.len && !found; i++) {
		const struct mapping *one = &mappings->list.data[i];

		if (!one->executable || !mapping_is(one, pattern))
			continue;
		for (uint64_t at = one->start; at < one->end && !found;
		     at += SEARCH_BYTES - count) {
			uint64_t left = one->end - at;
			size_t want = left < SEARCH_BYTES ? left : SEARCH_BYTES;
			size_t got = image_read_some(image, at, code, want);
			unsigned char *hit = memmem(code, got, bytes, count);

			if (hit)
				found = at + (uint64_t)(hit - code);
			if (got <= count)
				break;
		}
	}
	free(code);
	return found;
}

/*
 * The offset of errno from the thread pointer. __errno_location() adds both: the offset is where
 * its first instruction reads it.
 */
static bool errno_find(uint64_t *offset, const struct image *image, uint64_t function)
{
	static const unsigned char landing[] = {0xf3, 0x0f, 0x1e, 0xfa}; /* endbr64 */
	static const unsigned char load[] = {0x48, 0x8b, 0x05};          /* mov N(%rip),%rax */
	static const unsigned char add[] = {0x64, 0x48, 0x03, 0x04, 0x25, 0, 0, 0, 0}; /* %fs:0 */
	unsigned char code[24];
	size_t at;
	int32_t distance;

	if (!image_read(image, function, code, sizeof(code)))
		return false;
	at = memcmp(code, landing, sizeof(landing)) ? 0 : sizeof(landing);
	if (memcmp(code + at, load, sizeof(load)) || memcmp(code + at + 7, add, sizeof(add)))
		return false;
	memcpy(&distance, code + at + sizeof(load), sizeof(distance));
	return image_read(image, function + at + 7 + (uint64_t)(int64_t)distance, offset,
			  sizeof(*offset));
}

static bool open_find(struct inject_libc *libc, const struct image *image,
		      const struct mappings *mappings, uint64_t base)
{
	uint64_t older = library_base(mappings, "libdl*.so*");

	libc->flags = LIBRARY_NOW;
	libc->open = inject_symbol(image, base, "dlopen");
	if (!libc->open && older)
		libc->open = inject_symbol(image, older, "dlopen");
	if (libc->open)
		return true;
	libc->open = inject_symbol(image, base, "__libc_dlopen_mode");
	libc->flags = (int)(LIBRARY_NOW | LIBRARY_INTERNAL);
	return libc->open != 0;
}

int inject_libc_find(struct inject_libc *libc, const struct image *image,
		     const struct mappings *mappings, struct error *err)
{
	static const unsigned char restorer[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	const char *pattern = "libc.so.6";
	uint64_t base = library_base(mappings, pattern), location;

	if (!base)
		base = library_base(mappings, pattern = "libc-2.*.so");
	if (!base && (library_base(mappings, "ld-musl-*") || library_base(mappings, "libc.so")))
		return error_set(err, EOPNOTSUPP, "its libc is musl, not glibc");
	if (!base)
		return error_set(err, EOPNOTSUPP,
				 "it is a static program, or its libc is not glibc");
	location = inject_symbol(image, base, "__errno_location");
	libc->copy = inject_symbol(image, base, "memccpy");
	libc->restorer = code_find(image, mappings, pattern, restorer, sizeof(restorer));
	if (!open_find(libc, image, mappings, base) || !inject_is_code(mappings, libc->open) ||
	    !inject_is_code(mappings, libc->copy) || !libc->restorer || !location ||
	    !errno_find(&libc->errno_at, image, location))
		return error_set(err, EOPNOTSUPP,
				 "its glibc is not as known: dlopen(), memccpy(), errno or the "
				 "return from signals was not found");
	return 0;
}
