/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Build-ids: identifiers that the linker derives from the contents of an ELF file and stores in an
 * NT_GNU_BUILD_ID note (ld's --build-id). A program, its copies, its stripped copies and its
 * detached debug file share one build-id.
 */
#ifndef WAFFLE_TARGET_ELF_BUILDID_H
#define WAFFLE_TARGET_ELF_BUILDID_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BUILD_ID_MAX 64                      /* bytes; the common SHA-1 has 20 */
#define BUILD_ID_TEXT (2 * BUILD_ID_MAX + 1) /* size of the text form, with NUL */

struct build_id {
	uint8_t size; /* 0: no build-id */
	uint8_t bytes[BUILD_ID_MAX];
};

static inline bool build_id_equal(const struct build_id *a, const struct build_id *b)
{
	return a->size == b->size && !memcmp(a->bytes, b->bytes, a->size);
}

/* Stores an id. If it is empty or longer than BUILD_ID_MAX, stores "no build-id" and returns
 * false. */
bool build_id_set(struct build_id *id, const void *bytes, size_t size);

/* Finds the build-id of an ELF file; false: it has none. This replaces dwelf_elf_gnu_build_id(),
 * which would pull all of libdwfl into a static link. */
bool build_id_of_elf(struct build_id *id, Elf *elf);
/* Reads the build-id of the ELF file open at `fd`. -ENOEXEC: not an ELF file. -ENOENT: it has
 * none. */
int build_id_read(int fd, struct build_id *id);

/*
 * Finds the build-id in notes as they lie in memory (a PT_NOTE segment of this machine,
 * /sys/kernel/notes). False: there is none, or an earlier note is damaged.
 */
bool build_id_from_notes(struct build_id *id, const void *notes, size_t size);

/* Writes lower-case hexadecimal digits, two per byte. Without a build-id the text is empty. */
char *build_id_text(char text[BUILD_ID_TEXT], const struct build_id *id);
/* Parses the text form. False unless it is an even number of hexadecimal digits, at least 2. */
bool build_id_parse(struct build_id *id, const char *text);

#endif
