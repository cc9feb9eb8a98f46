/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that search an ELF file for calls. */
#ifndef WAFFLE_PROBE_FIND_FIND_INTERNAL_H
#define WAFFLE_PROBE_FIND_FIND_INTERNAL_H

#include <libelf.h>

#include "probe/args/fields.h"
#include "probe/find/return_sites_internal.h"
#include "probe/spec/call_set.h"
#include "target/dwarf/cfi_index.h"
#include "target/dwarf/dwarf_file.h"
#include "target/elf/elffile.h"
#include "target/elf/symtab.h"

struct find {
	struct call_set *set;
	struct object *object;
	struct elf_file file, debug; /* debug: its detached debug file, if any */
	struct elf_segments segments;
	const struct abi *abi;
	bool stripped; /* its only symbols are exported ones */
	bool go;       /* contains Go's run time, and maybe C, too */
	bool is_exe;
	VEC(uint32_t) wanted; /* the descriptions that apply to this file */
	struct fetch_program_lookup lookup;
	const char *debug_dir;
	struct dwarf_file dwarf; /* opened at its first use */
	bool dwarf_tried;
	struct symtab code; /* read at its first use */
	bool code_tried;
	struct cfi_index *frames; /* NULL: nothing is found yet, or the file has none */
	bool frames_tried;
	struct structs_code code_of; /* the code for which a fetch program is being made */
	struct error *err;
};

/* One place that a description matches. */
struct find_hit {
	uint32_t entry;
	uint8_t side;
	uint8_t rank;     /* among names of one address, the name with the highest rank is used */
	uint64_t address; /* link-time */
	uint64_t offset;  /* file offset of `address` */
	uint64_t size;    /* of the function */
	const char *name; /* in the object's strings */
	bool go;          /* a Go function, which has its own calling convention */
	struct probe_site place; /* the position of its probe */
};
struct find_hits {
	VEC(struct find_hit) list;
};

/* find_symbols.c: finds the functions that descriptions name. 0 or -ENOMEM with a message. */
int find_symbols(struct find *find, struct find_hits *hits);

/* find_end.c: how to observe the end of a function's calls. */
enum find_end {
	FIND_END_TRAMPOLINE, /* by a return probe */
	FIND_END_RETURNS,    /* at return instructions */
	FIND_END_UNSEEN,     /* not without risk for the program */
};
enum find_end find_end_of(struct find *find, const struct find_hit *hit,
			  const struct call_spec *spec, struct return_sites *returns);
/* A copy of the description as an event. The caller frees it. NULL: out of memory. */
struct call_spec *find_as_event(const struct call_spec *spec);

/* find_usdt.c: adds the USDT probes that descriptions name. */
int find_usdt(struct find *find);

/* Adds a name if it is among the nearest to `word`. */
void find_suggest(struct find *find, struct set_suggestions *similar, const char *word,
		  const char *name);
/* find_static.c: records whether this is a stripped program that contains CUDA's runtime or
 * NCCL. */
void find_static(struct find *find);

/* find_probe.c: cost of a probe at exactly this instruction: enum object_probe_cost. */
uint8_t find_cost(struct find *find, uint64_t address, uint64_t offset);
/* The position of the probe at a function. */
struct probe_site find_probe_site(struct find *find, const struct find_hit *hit);
/* Type of the probe that records an event, or the begin of a pair. */
uint8_t find_instant(const struct fetch_program_made *made);
/* Adds the site of a call, or finds an equal one. MAP_NONE: there is no room for more. 0 or -ENOMEM
 * with a message. */
int find_site(struct find *find, struct set_entry *entry, const char *func,
	      const struct fetch_program_made *made, unsigned kind, uint32_t *number);

/* File offset of executable code at a link-time address. False: there is none. */
bool find_offset(const struct find *find, uint64_t address, uint64_t *offset);

/* find_report.c: reports once why a description cannot be used. */
void find_trouble(struct find *find, struct set_entry *entry, const struct error *err);
/* Record a function or USDT probe where no probe may be set, and a function whose end cannot be
 * observed. */
void find_refused(struct set_entry *entry, const char *name);
void find_endless(struct find *find, const struct find_hit *hit, const struct call_spec *spec);
/* Records that argument `number` of a USDT probe cannot be read, and why. */
void find_unread(struct find *find, struct set_entry *entry, unsigned number, const char *name,
		 const char *why);
/* Records a call for which the session has no room. */
void find_no_room(struct set_entry *entry, const char *name);
/* Reports the numbers of such calls after a file has been searched. */
void find_report(struct find *find);

#endif
