/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ELF file as far as waffle needs it: its sites, and how its addresses lie in the file. The file
 * is not trusted: everything is checked against its size, and a site that makes no sense is left
 * out and counted.
 */
#ifndef WAFFLE_TARGET_OBJECT_H
#define WAFFLE_TARGET_OBJECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "target/site.h"
#include "util/error.h"
#include "util/strtab.h"
#include "util/vec.h"

/* One copy of a site in the code: the compiler may have made several by inlining. */
struct object_probe {
	uint64_t offset;           /* of the probed instruction in the file */
	uint64_t semaphore_offset; /* of the semaphore in the file; 0: none */
	uint32_t site;             /* index into sites; OBJECT_SPAN_END: ends any span */
};
#define OBJECT_SPAN_END UINT32_MAX

struct object {
	char *path; /* as seen by the process, for people */
	dev_t dev;
	ino_t ino;
	struct strtab *strings;
	VEC(struct site_info) sites; /* each macro use once */
	VEC(struct object_probe) probes;
	uint32_t bad_notes;
	bool big_endian;
	uint16_t machine; /* e_machine */
};

/*
 * Reads the sites of the ELF file open at `fd` (which stays open and belongs to the caller). A file
 * without sites is not an error. -ENOEXEC: not an ELF file (of 64 bits).
 */
int object_read(struct object **object, int fd, const char *path, struct error *err);
void object_free(struct object *object);

#endif
