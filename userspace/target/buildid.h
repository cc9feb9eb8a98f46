/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Build-ids: the linker's name for the contents of an ELF file, kept in an NT_GNU_BUILD_ID note
 * (ld's --build-id). A copy, a stripped copy and the detached debug file of a program share it.
 */
#ifndef WAFFLE_TARGET_BUILDID_H
#define WAFFLE_TARGET_BUILDID_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BUILD_ID_MAX 64                      /* bytes; SHA-1, the usual, has 20 */
#define BUILD_ID_TEXT (2 * BUILD_ID_MAX + 1) /* room for its text */

struct build_id {
	uint8_t size; /* 0: none */
	uint8_t bytes[BUILD_ID_MAX];
};

static inline bool build_id_equal(const struct build_id *a, const struct build_id *b)
{
	return a->size == b->size && !memcmp(a->bytes, b->bytes, a->size);
}

/* Sets bytes; an id that is empty or longer than BUILD_ID_MAX becomes "none" and gives false. */
bool build_id_set(struct build_id *id, const void *bytes, size_t size);

/* Finds that of an ELF file; false: it has none. Not dwelf_elf_gnu_build_id(): a static link would
 * get all of libdwfl with it. */
bool build_id_of_elf(struct build_id *id, Elf *elf);
/* Reads that of the ELF file open at `fd`. -ENOEXEC: not an ELF file. -ENOENT: it has none. */
int build_id_read(int fd, struct build_id *id);

/*
 * Finds it in notes as they lie in memory (a PT_NOTE segment of this machine, /sys/kernel/notes).
 * False: none there, or the notes are damaged before it.
 */
bool build_id_from_notes(struct build_id *id, const void *notes, size_t size);

/* Lower-case hexadecimal digits, two a byte; the empty text for none. */
char *build_id_text(char text[BUILD_ID_TEXT], const struct build_id *id);
/* The other way; false for anything but an even number of hexadecimal digits, 2 or more. */
bool build_id_parse(struct build_id *id, const char *text);

#endif
