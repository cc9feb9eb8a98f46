/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of an ELF file that waffle needs: its sites and calls, and the probes of both. */
#ifndef WAFFLE_TARGET_ELF_OBJECT_H
#define WAFFLE_TARGET_ELF_OBJECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/call.h"
#include "target/elf/site.h"
#include "util/error.h"
#include "util/strtab.h"
#include "util/vec.h"

/* The purpose of a probe, which decides which BPF program is attached. */
enum object_probe_type {
	OBJECT_PROBE_SITE,    /* a site of a macro */
	OBJECT_PROBE_INSTANT, /* a call that is an event, or begins a pair */
	OBJECT_PROBE_INNER,   /* the same, but not recorded if nested in another recorded call */
	OBJECT_PROBE_ENTER,   /* the entry of a call that is a span */
	OBJECT_PROBE_LEAVE,   /* its return, as a return probe */
	OBJECT_PROBE_RETURN,  /* its return, as a probe at a return instruction */
	OBJECT_PROBE_END,     /* the end of a pair */
	OBJECT_PROBE_CONTROL, /* one of libwaffle, which tells of new rings (usdt/ring/tracer.h) */
};

/* How the kernel executes the probed instruction, which decides what a probe costs. */
enum object_probe_cost {
	OBJECT_COST_UNKNOWN,
	OBJECT_COST_OPTIMISED, /* a nop of ten bytes, replaced by a call */
	OBJECT_COST_EMULATED,
	OBJECT_COST_STEPPED, /* executed out of line with single-stepping: twenty times the cost */
	OBJECT_COST_REFUSED, /* this instruction must not be probed */
};

/* One copy of a site in the code. Inlining may make several. */
struct object_probe {
	uint64_t offset;           /* file offset of the probed instruction */
	uint64_t semaphore_offset; /* file offset of the semaphore; 0: none */
	uint32_t site;             /* index into sites; OBJECT_SPAN_END: ends any span */
	uint8_t type;              /* enum object_probe_type */
	uint8_t cost;              /* enum object_probe_cost */
	uint16_t shift; /* calls only: bytes from the start of the function to `offset` */
};
#define OBJECT_SPAN_END UINT32_MAX

/* How to fetch the values of a call's site. */
struct object_call {
	uint32_t site; /* index into sites */
	struct waffle_fetch_program fetch_program;
};

/*
 * A page of the file that two writable segments map: lld makes one where RELRO ends. The kernel
 * raises a semaphore in the first writable mapping of the page. Sites do not read that mapping, and
 * so stay dormant, until the loader has made it read-only.
 */
struct object_page {
	uint64_t offset;
	uint32_t mappings; /* number of segments with this page; 0: there is no such page */
};

/* How a tracer asks libwaffle for rings, if the file contains it: usdt/ring/tracer.h. Offsets in
 * the file. */
struct object_transport {
	uint32_t version; /* WAFFLE_TRANSPORT_VERSION, or one that is not known; 0: no libwaffle */
	uint64_t ring, ring_semaphore;
	uint64_t usdt, usdt_semaphore;
};

struct object {
	char *path; /* as the process sees it, for messages */
	dev_t dev;
	ino_t ino;
	struct strtab *strings;
	VEC(struct site_info) sites; /* one entry per macro use */
	VEC(struct object_probe) probes;
	VEC(struct object_call) calls; /* sorted by site; made by probe/find/ */
	uint32_t bad_notes;
	bool big_endian;
	bool other_version; /* some sites have another WAFFLE_SITE_VERSION */
	bool simulation;    /* a stand-in for a real library: docs/simulation.md */
	uint16_t machine;   /* e_machine */
	struct object_page doubled;
	struct object_transport transport;
};

/* Makes an empty object. */
int object_new(struct object **object, const char *path, struct error *err);
void object_free(struct object *object);

#endif
