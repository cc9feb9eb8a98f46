// SPDX-License-Identifier: Apache-2.0
#include "usdt/gpu/nvtx_find.h"

#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* Writable segments of objects that are searched at a time. */
#define SEGMENTS_MAX 1024
#define READ_BYTES (64u << 10)

struct segment {
	uint64_t from, to;
};

static uint64_t word_at(const char *bytes, size_t at)
{
	uint64_t word;

	memcpy(&word, bytes + at, sizeof(word));
	return word;
}

/* Whether a table of `count` pointers begins with NULL and has nothing else but addresses of
 * function pointers of the structure. */
static bool table_is(const char *bytes, size_t at, unsigned count, uint64_t address)
{
	if (word_at(bytes, at))
		return false;
	for (unsigned i = 1; i < count; i++) {
		uint64_t offset = word_at(bytes, at + i * 8ul) - address;

		if (offset < NVTX_AT_FUNCTIONS || offset >= NVTX_AT_CORE || offset % 8)
			return false;
	}
	return true;
}

bool nvtx_globals_match(const void *bytes, uint64_t address)
{
	return word_at(bytes, NVTX_AT_CORE + 8) == address + NVTX_AT_FUNCTIONS &&
	       word_at(bytes, NVTX_AT_CORE2 + 8) == address + NVTX_AT_DOMAIN_FUNCTIONS &&
	       table_is(bytes, NVTX_AT_CORE, NVTX_CORE_COUNT, address) &&
	       table_is(bytes, NVTX_AT_CORE2, NVTX_CORE2_COUNT, address);
}

/* ---- objects ---- */

struct segments {
	struct segment all[SEGMENTS_MAX];
	unsigned count;
	unsigned long long adds, subs;
};

static bool segment_of(const struct dl_phdr_info *object, unsigned i, struct segment *segment)
{
	const ElfW(Phdr) *part = &object->dlpi_phdr[i];

	if (part->p_type != PT_LOAD || !(part->p_flags & PF_W) ||
	    part->p_filesz < NVTX_GLOBALS_BYTES)
		return false;
	/* What the file does not have is 0 at first, so it is no structure. */
	segment->from = (object->dlpi_addr + part->p_vaddr + 7) & ~7ull;
	segment->to = object->dlpi_addr + part->p_vaddr + part->p_filesz;
	return true;
}

static int segments_add(struct dl_phdr_info *object, size_t size, void *arg)
{
	struct segments *segments = arg;
	struct segment segment;

	(void)size;
	segments->adds = object->dlpi_adds;
	segments->subs = object->dlpi_subs;
	for (unsigned i = 0; i < object->dlpi_phnum && segments->count < SEGMENTS_MAX; i++)
		if (segment_of(object, i, &segment))
			segments->all[segments->count++] = segment;
	return 0;
}

static int counts_read(struct dl_phdr_info *object, size_t size, void *arg)
{
	unsigned long long *counts = arg;

	(void)size;
	counts[0] = object->dlpi_adds;
	counts[1] = object->dlpi_subs;
	return 1;
}

bool nvtx_find_is_old(const struct nvtx_found *found)
{
	unsigned long long counts[2] = {0};

	dl_iterate_phdr(counts_read, counts);
	return counts[0] != found->adds || counts[1] != found->subs;
}

/* ---- search ---- */

/* Takes all structures of `bytes`, which are those at `address`. */
static void bytes_search(struct nvtx_found *found, const char *bytes, size_t count,
			 uint64_t address)
{
	for (size_t at = 0; at + NVTX_GLOBALS_BYTES <= count; at += 8) {
		/* Most places are none by their first word. */
		if (word_at(bytes, at + NVTX_AT_CORE + 8) != address + at + NVTX_AT_FUNCTIONS ||
		    !nvtx_globals_match(bytes + at, address + at))
			continue;
		if (found->count < NVTX_FOUND_MAX)
			found->at[found->count++] = address + at;
	}
}

static int segment_search(struct nvtx_found *found, const struct segment *segment)
{
	static char bytes[READ_BYTES]; /* of the one thread that searches */
	/* A structure that a read cuts is in the next one. */
	size_t step = READ_BYTES - NVTX_GLOBALS_BYTES + 8;

	for (uint64_t at = segment->from; at + NVTX_GLOBALS_BYTES <= segment->to; at += step) {
		size_t want = segment->to - at < READ_BYTES ? segment->to - at : READ_BYTES;
		struct iovec to = {bytes, want}, from = {(void *)(uintptr_t)at, want};
		ssize_t got = process_vm_readv(getpid(), &to, 1, &from, 1, 0);

		if (got < 0 && errno != EFAULT)
			return -errno;
		if (got > 0)
			bytes_search(found, bytes, (size_t)got, at);
	}
	return 0;
}

int nvtx_find(struct nvtx_found *found)
{
	static struct segments segments; /* of the one thread that searches */
	int result = 0;

	segments.count = 0;
	dl_iterate_phdr(segments_add, &segments);
	*found = (struct nvtx_found){.adds = segments.adds, .subs = segments.subs};
	for (unsigned i = 0; i < segments.count && !result; i++)
		result = segment_search(found, &segments.all[i]);
	return result;
}

/* ---- use ---- */

struct each {
	const struct nvtx_found *found;
	void (*call)(char *globals, void *arg);
	void *arg;
};

/* The memory at an address may be that of another object by now. */
static int object_each(struct dl_phdr_info *object, size_t size, void *arg)
{
	const struct each *each = arg;
	struct segment segment;

	(void)size;
	for (unsigned i = 0; i < object->dlpi_phnum; i++) {
		if (!segment_of(object, i, &segment))
			continue;
		for (unsigned at = 0; at < each->found->count; at++) {
			uint64_t address = each->found->at[at];

			if (address >= segment.from && address + NVTX_GLOBALS_BYTES <= segment.to &&
			    nvtx_globals_match((const void *)(uintptr_t)address, address))
				each->call((char *)(uintptr_t)address, each->arg);
		}
	}
	return 0;
}

void nvtx_found_each(const struct nvtx_found *found, void (*call)(char *globals, void *arg),
		     void *arg)
{
	struct each each = {found, call, arg};

	dl_iterate_phdr(object_each, &each);
}
