/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the parts of the code generator. Registers: r6 is the context. r7 is the frame: at a
 * hit its address in the traced process, at the end a pointer into the deferred span's value. r8 is
 * the number of valid bytes in the frame. A predicate may use r9 and all registers that calls
 * overwrite.
 *
 * The keys of a frame are grouped in runs, since the length of a string decides where the next key
 * begins. The first run ends with the first string; each later run begins after a string. One call
 * reads a run onto the stack, from the first word needed to the last. The last word is the first
 * word of the string that ends the run, if later runs are needed.
 */
#ifndef WAFFLE_FILTER_CODEGEN_CODEGEN_PARTS_INTERNAL_H
#define WAFFLE_FILTER_CODEGEN_CODEGEN_PARTS_INTERNAL_H

#include <stddef.h>

#include "bpf/call.h"
#include "bpf/filter.h"
#include "filter/codegen/asm_internal.h"
#include "filter/split.h"

enum { REG_CTX = BPF_REG_6, REG_FRAME = BPF_REG_7, REG_SIZE = BPF_REG_8, REG_TEXT = BPF_REG_9 };

/* Offset of a member of a deferred span, relative to the frame after it. */
#define DEFERRED(member)                                                                           \
	((int)offsetof(struct waffle_deferred, member) - (int)sizeof(struct waffle_deferred))

/* Data that has been read on every path to the current position; also a bit for each run. */
enum code_have {
	HAVE_COMM = 1 << 24,
	HAVE_PARENT = 1 << 25,
	HAVE_TEXT = 1 << 26, /* the text buffer is initialised */
};

struct frame_run {
	uint16_t from, to;  /* bytes of the run that are read */
	uint16_t keys, end; /* keys of the site: [keys, end) */
	int slot;           /* stack slot of these bytes */
};

struct frame_layout {
	struct frame_run runs[WAFFLE_KEYS_MAX + 1];
	unsigned run_count; /* number of runs that are read */
	uint8_t run[WAFFLE_KEYS_MAX];
	uint16_t at[WAFFLE_KEYS_MAX]; /* offset of a key in its run */
	/* Number of bytes of a string's text that are read with its run, after its first word. A
	 * separate read would cost as much as the rest of the predicate. */
	uint8_t ahead[WAFFLE_KEYS_MAX];
};
#define AHEAD_MAX 64 /* bytes of all strings together */

/*
 * The first word of a string once its run was read. It has the length and flags as in the frame (34
 * bits). Above them are the offsets in the frame of its text and of the next run. If the string is
 * missing, the next run begins at STRING_NOWHERE, beyond any frame.
 */
#define STRING_BITS 34
#define STRING_NEXT_SHIFT 48
#define STRING_NOWHERE 0xffff

/* The buffer is read in words, and the last read of a search may begin at the end of the text. */
#define TEXT_BUFFER_BYTES (WAFFLE_STR_MAX + 8)

struct codegen {
	struct assembler as;
	const struct filter_expr *filter;
	const struct site_info *site;
	const struct codegen_options *options;
	struct frame_layout frame;
	int stack;     /* lowest byte in use */
	int id;        /* slots: the span's id; … */
	int comm;      /* 16 bytes */
	int comm_len;  /* length of a comm that is searched */
	int depth;     /* -1: unknown */
	int name_bits; /* of the parent's site */
	int states;    /* of a search */
	int text;      /* buffer of TEXT_BUFFER_BYTES */
	uint32_t have;
	/* Estimated number of instructions that the kernel verifies for all searches. */
	uint32_t search_work;
};

/*
 * The kernel verifies every step of a search's longest run. All searches of a program together must
 * stay within the kernel's limit, and load quickly. 64 searches of up to 64 tokens are possible.
 */
#define SEARCH_WORK_MAX 180000u

/* Labels for the two results. */
struct code_exits {
	uint32_t yes, no;
};

/* ---- codegen_number.c ---- */

/* Compares the number in r1 with the literals of a predicate. */
void codegen_number(struct codegen *gen, const struct filter_predicate *predicate,
		    enum number_class class, struct code_exits exits);

/* ---- codegen_predicate.c ---- */

void codegen_predicate(struct codegen *gen, const struct filter_predicate *predicate,
		       struct code_exits exits);
void codegen_sample(struct codegen *gen, const struct filter_node *node, struct code_exits exits);
/* Rough cost in instructions: the cheapest predicate is evaluated first. */
unsigned codegen_field_cost(enum filter_field field);

/* ---- codegen_frame.c ---- */

#define STACK_BYTES 512 /* the kernel's MAX_BPF_STACK */
/* Allocates bytes of the stack; if there are none left, sets the assembler's error. */
int codegen_stack(struct codegen *gen, unsigned bytes);
/*
 * Makes the verifier forget what it knows about the number in a register, without changing the
 * number. The verifier follows each path until it reaches an instruction in a state that it has
 * seen. If it knew the frame's size or that a string is missing, each path would have its own
 * state. The number of paths would grow with each predicate.
 */
void codegen_forget(struct codegen *gen, unsigned reg);

/* Assigns keys to runs and decides what is read of each run. `keys` has a bit for each key that is
 * used. frame.ahead has to be set before. */
void frame_layout_make(struct codegen *gen, uint32_t keys, bool header);
/* Reads all runs up to `run` that are needed and have not been read. */
void frame_need(struct codegen *gen, unsigned run);
/* Stack slot of a word of the frame's header, by its offset. */
int frame_header_slot(const struct codegen *gen, size_t offset);
int frame_key_slot(const struct codegen *gen, unsigned key);
/* Evaluates a predicate on a key that is not a string. */
void frame_number(struct codegen *gen, const struct filter_predicate *predicate, unsigned key,
		  struct code_exits exits);
/*
 * Loads the word of a string into r1 and the address of its text into r9. Jumps to `no` if the key
 * is missing or a null pointer.
 */
void frame_string(struct codegen *gen, unsigned key, uint32_t no);
/* Reads `bytes` from the address in r3 into the text buffer; 0: the number is in r2. Jumps to `no`
 * on an error. */
void frame_read_text(struct codegen *gen, unsigned bytes, bool kernel, uint32_t no);

/* ---- codegen_text.c ---- */

void text_key(struct codegen *gen, const struct filter_predicate *predicate, unsigned key,
	      struct code_exits exits);
void text_comm(struct codegen *gen, const struct filter_predicate *predicate,
	       struct code_exits exits);
bool text_searches(const struct glob *glob);
/* Number of bytes at the start of a text that a predicate compares. */
unsigned text_ahead(const struct filter_expr *filter, const struct filter_predicate *predicate);
/* Rough cost compared with a comparison of numbers. */
unsigned text_cost(const struct filter_expr *filter, const struct filter_predicate *predicate);

/* ---- codegen_search.c ---- */

/* Finds tokens[0 … count), which follow and precede a star, in the r2 bytes of the text buffer. */
void search_emit(struct codegen *gen, const struct glob_token *tokens, size_t count,
		 struct code_exits exits);
/* Offset in the table of the bits of a set, in bytes. */
uint32_t search_set(struct codegen *gen, const uint64_t set[4]);
/* Stack bytes for a search of this many tokens, not counting stars. */
unsigned search_stack(size_t count);

#endif
