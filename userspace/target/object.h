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

#include "bpf/call.h"
#include "target/site.h"
#include "util/error.h"
#include "util/strtab.h"
#include "util/vec.h"

/* What a probe is for: which program is attached to it. */
enum object_probe_type {
	OBJECT_PROBE_SITE,    /* a site of a macro */
	OBJECT_PROBE_INSTANT, /* a call that is an event, or begins a pair */
	OBJECT_PROBE_INNER,   /* such a one that is not recorded if nested in another that counts */
	OBJECT_PROBE_ENTER,   /* the entry of a call that is a span */
	OBJECT_PROBE_LEAVE,   /* its return: attached as a return probe */
	OBJECT_PROBE_RETURN,  /* its return: one of its return instructions */
	OBJECT_PROBE_END,     /* the end of a pair */
};

/* How the kernel gets the probed instruction done, which decides what a probe costs. */
enum object_probe_cost {
	OBJECT_COST_UNKNOWN,
	OBJECT_COST_OPTIMISED, /* nop of ten bytes: replaced by a call */
	OBJECT_COST_EMULATED,
	OBJECT_COST_STEPPED, /* executed out of line in single-step: twenty times dearer */
	OBJECT_COST_REFUSED, /* no probe is to be set there */
};

/* One copy of a site in the code: the compiler may have made several by inlining. */
struct object_probe {
	uint64_t offset;           /* of the probed instruction in the file */
	uint64_t semaphore_offset; /* of the semaphore in the file; 0: none */
	uint32_t site;             /* index into sites; OBJECT_SPAN_END: ends any span */
	uint8_t type;              /* enum object_probe_type */
	uint8_t cost;              /* enum object_probe_cost */
	uint16_t shift;            /* of a call: bytes from the function's begin to `offset` */
};
#define OBJECT_SPAN_END UINT32_MAX

/* How the values of a call's site are found. */
struct object_call {
	uint32_t site; /* index into sites */
	struct waffle_recipe recipe;
};

/*
 * A page of the file that two writable segments map: lld does so where RELRO ends. The kernel
 * raises a semaphore in the first writable mapping of its page, which no site looks at, until the
 * loader has made that one read-only.
 */
struct object_page {
	uint64_t offset;
	uint32_t mappings; /* segments that have it; 0: there is no such page */
};

struct object {
	char *path; /* as seen by the process, for people */
	dev_t dev;
	ino_t ino;
	struct strtab *strings;
	VEC(struct site_info) sites; /* each macro use once */
	VEC(struct object_probe) probes;
	VEC(struct object_call) calls; /* by site, ascending; those of call/ */
	uint32_t bad_notes;
	bool big_endian;
	bool simulation;  /* it only plays the part of a real library: docs/simulation.md */
	uint16_t machine; /* e_machine */
	struct object_page doubled;
};

/*
 * Reads the sites of the ELF file open at `fd` (which stays open and belongs to the caller). A file
 * without sites is not an error. -ENOEXEC: not an ELF file (of 64 bits). -EAGAIN: as worker_ask().
 */
int object_read(struct object **object, int fd, const char *path, struct error *err);
void object_free(struct object *object);

#endif
