/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files that look for calls in an ELF file. */
#ifndef WAFFLE_CALL_FIND_H
#define WAFFLE_CALL_FIND_H

#include <libelf.h>

#include "call/fields.h"
#include "call/returns.h"
#include "call/set.h"
#include "target/cfi_index.h"
#include "target/dwarf_file.h"
#include "target/elffile.h"
#include "target/symtab.h"

struct find {
	struct call_set *set;
	struct object *object;
	struct elf_file file, debug; /* debug: its detached debug file, if it has one */
	struct elf_segments segments;
	const struct abi *abi;
	bool stripped; /* it has no symbols but those that it exports */
	bool go;       /* it has Go's run time in it, and maybe C, too */
	bool is_exe;
	VEC(uint32_t) wanted; /* descriptions of this file */
	struct recipe_lookup lookup;
	const char *debug_dir;
	struct dwarf_file dwarf; /* opened when it is asked for */
	bool dwarf_tried;
	struct symtab code; /* read when it is asked for */
	bool code_tried;
	struct cfi_index *frames;    /* NULL: the file tells nothing of its functions' frames */
	struct structs_code code_of; /* that a recipe is made for */
	struct error *err;
};

/* One place that a description names. */
struct find_hit {
	uint32_t entry;
	uint8_t side;
	uint8_t rank;       /* of names of one address, the better one has the highest */
	uint64_t address;   /* link-time */
	uint64_t offset;    /* of that in the file */
	uint64_t size;      /* of the function */
	const char *name;   /* as the object's strings have it */
	bool go;            /* of Go, which calls in ways of its own */
	struct place place; /* where its probe stands */
};
struct find_hits {
	VEC(struct find_hit) list;
};

/* find_symbols.c: the functions that descriptions name. 0 or -ENOMEM with a message. */
int find_symbols(struct find *find, struct find_hits *hits);

/* find_end.c: how the end of a function's calls is to be seen. */
enum find_end {
	FIND_END_TRAMPOLINE, /* by a return probe */
	FIND_END_RETURNS,    /* at return instructions */
	FIND_END_UNSEEN,     /* not without a risk for the program */
};
enum find_end find_end_of(struct find *find, const struct find_hit *hit,
			  const struct call_spec *spec, struct returns *returns);
/* The same description of an event, to be freed; NULL: no memory. */
struct call_spec *find_as_event(const struct call_spec *spec);

/* find_usdt.c: adds the USDT probes that descriptions name. */
int find_usdt(struct find *find);

/* Keeps the nearest names to `word`. */
void find_near(struct find *find, struct set_near *near, const char *word, const char *name);
/* What a probe at this very instruction costs: enum object_probe_cost. */
uint8_t find_cost(struct find *find, uint64_t address, uint64_t offset);

/* find_static.c: remembers if this is a stripped program that has CUDA's runtime or NCCL in it. */
void find_static(struct find *find);

/* The type of the probe at which an event, or what begins a pair, is recorded. */
uint8_t find_instant(const struct recipe_made *made);
/* Adds the site of a call, or finds the one that is the same; MAP_NONE: there is no room for more.
 * 0 or -ENOMEM with a message. */
int find_site(struct find *find, struct set_entry *entry, const char *func,
	      const struct recipe_made *made, unsigned kind, uint32_t *number);

/* The byte of the file that executable code of that address is in. */
bool find_offset(const struct find *find, uint64_t address, uint64_t *offset);

/* find_say.c: says once why a description is of no use. */
void find_trouble(struct find *find, struct set_entry *entry, const struct error *err);
/* A function or USDT probe that no probe is right at; a function whose end is not seen. */
void find_refused(struct set_entry *entry, const char *name);
void find_endless(struct find *find, const struct find_hit *hit, const struct call_spec *spec);
/* Argument `number` of a USDT probe, and why it can't be read. */
void find_unread(struct find *find, struct set_entry *entry, unsigned number, const char *name,
		 const char *why);
/* One that the session has no room for. */
void find_no_room(struct set_entry *entry, const char *name);
/* When a file's calls are found: says how many of each there are. */
void find_say(struct find *find);

#endif
