/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the code generator share. Registers: r6 is the context, r7 the frame (its
 * address in the traced process at a hit; a pointer into the held span's value at the end), r8 the
 * bytes of it that are there, r9 and those that a call loses are free within a predicate.
 *
 * Keys lie in runs: what is in front of the first string has offsets that are known, what is behind
 * a string depends on its length. A run is read into the stack with one call, from its first word
 * that is needed to its last, which is the first word of the string that ends it if more is needed
 * than lies in front of that.
 */
#ifndef WAFFLE_FILTER_CODEGEN_PARTS_H
#define WAFFLE_FILTER_CODEGEN_PARTS_H

#include <stddef.h>

#include "filter/codegen_number.h"

enum { REG_CTX = BPF_REG_6, REG_FRAME = BPF_REG_7, REG_SIZE = BPF_REG_8, REG_TEXT = BPF_REG_9 };

/* Offset of a member of the held span from the frame behind it. */
#define HELD(member) ((int)offsetof(struct waffle_held, member) - (int)sizeof(struct waffle_held))

/* What has been read on every path to a place in the program; also a bit for each run. */
enum code_have {
	HAVE_COMM = 1 << 24,
	HAVE_PARENT = 1 << 25,
	HAVE_TEXT = 1 << 26, /* the text buffer holds no garbage of the stack */
};

struct frame_run {
	uint16_t from, to;  /* bytes read, from the run's begin on */
	uint16_t keys, end; /* of the site: [keys, end) */
	int slot;           /* where they are in the stack */
};

struct frame_layout {
	struct frame_run runs[WAFFLE_KEYS_MAX + 1];
	unsigned run_count; /* runs that are read */
	uint8_t run[WAFFLE_KEYS_MAX];
	uint16_t at[WAFFLE_KEYS_MAX]; /* offset of a key in its run */
	/* First bytes of a string's text that are read with its run, behind its first word: a read
	 * of its own would cost as much as all else that a predicate does. */
	uint8_t ahead[WAFFLE_KEYS_MAX];
};
#define AHEAD_MAX 64 /* bytes of all strings together */

/*
 * The first word of a string, once its run is read: the length and marks as in the frame (34 bits),
 * where its text begins and where the next run does, from the frame's begin on. If it is not there
 * the next run begins at STRING_NOWHERE, behind any frame.
 */
#define STRING_BITS 34
#define STRING_NEXT_SHIFT 48
#define STRING_NOWHERE 0xffff

/* Words read at a time; the last read of a search may begin behind the text. */
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
	int depth;     /* -1: not known */
	int name_bits; /* of the parent */
	int states;    /* of a search */
	int text;      /* buffer of TEXT_BUFFER_BYTES */
	uint32_t have;
	uint32_t search_work; /* instructions that the kernel looks at to verify the searches */
};

/*
 * Verifying a search takes as many steps as it would take at most; all searches of a program
 * together must leave room in what the kernel allows, and be quick. 64 of up to 64 tokens do.
 */
#define SEARCH_WORK_MAX 180000u

/* Where a predicate leads. */
struct code_exits {
	uint32_t yes, no;
};

/* ---- split.c ---- */

/* The key that a predicate asks: the first of its name, unless the walk through a frame ends before
 * it. NULL: there is none. */
const struct site_key *site_key_find(const struct site_info *site, const char *name,
				     unsigned *index);
enum number_class number_class_of(char type);
/* Of a value in a frame; of a string the word before its text. */
unsigned key_bytes(char type);
/* Whether a value of a key of this type can make the predicate true. */
bool key_can_be(const struct filter_expr *filter, const struct filter_predicate *predicate,
		char type);

/* ---- codegen.c ---- */

/* Room in the stack; an error of the assembler if there is no more. */
int codegen_stack(struct codegen *gen, unsigned bytes);
/*
 * Makes the kernel forget what it has found out about a number in a register, which stays the same.
 * The kernel follows each path of a program until it comes to a place in a state that it has seen;
 * what it knows of a frame's size or of a string that is not there would make each path another
 * one, and their number grow with each predicate.
 */
void codegen_forget(struct codegen *gen, unsigned reg);

/* ---- codegen_predicate.c ---- */

void codegen_predicate(struct codegen *gen, const struct filter_predicate *predicate,
		       struct code_exits exits);
void codegen_sample(struct codegen *gen, const struct filter_node *node, struct code_exits exits);
/* Roughly, in instructions: what costs least is asked first. */
unsigned codegen_field_cost(enum filter_field field);
/* Compares the number in r1 with the literals of a predicate. */
void codegen_number(struct codegen *gen, const struct filter_predicate *predicate,
		    enum number_class class, struct code_exits exits);

/* ---- codegen_frame.c ---- */

/* Which keys are in which run, and what is read of each. `keys`: a bit for each that is asked.
 * frame.ahead has been set. */
void frame_layout_make(struct codegen *gen, uint32_t keys, bool header);
/* Reads what is needed up to a run, if it has not been read. */
void frame_need(struct codegen *gen, unsigned run);
/* Stack slot of a word of the frame's header, by its offset. */
int frame_header_slot(const struct codegen *gen, size_t offset);
int frame_key_slot(const struct codegen *gen, unsigned key);
/* The predicate on a key that is no string. */
void frame_number(struct codegen *gen, const struct filter_predicate *predicate, unsigned key,
		  struct code_exits exits);
/*
 * Loads the word of a string into r1 and the address of its text into r9; goes to `no` if the key
 * is not there or a null pointer.
 */
void frame_string(struct codegen *gen, unsigned key, uint32_t no);
/* Reads `bytes` (0: as many as r2 says) from r3 into the text buffer; fails to `no`. */
void frame_read_text(struct codegen *gen, unsigned bytes, bool kernel, uint32_t no);

/* ---- codegen_text.c ---- */

void text_key(struct codegen *gen, const struct filter_predicate *predicate, unsigned key,
	      struct code_exits exits);
void text_comm(struct codegen *gen, const struct filter_predicate *predicate,
	       struct code_exits exits);
bool text_searches(const struct glob *glob);
/* How many of a text's first bytes a predicate compares. */
unsigned text_ahead(const struct filter_expr *filter, const struct filter_predicate *predicate);
/* Roughly how much more it takes than comparing a number. */
unsigned text_cost(const struct filter_expr *filter, const struct filter_predicate *predicate);

/* ---- codegen_search.c ---- */

/* Finds tokens[0 … count), which begin and end behind and before a star, in the r2 bytes of the
 * text buffer. */
void search_emit(struct codegen *gen, const struct glob_token *tokens, size_t count,
		 struct code_exits exits);
/* Bytes into the table of where the bits of a set are. */
uint32_t search_set(struct codegen *gen, const uint64_t set[4]);
/* Stack that a search of so many tokens takes, stars not counted. */
unsigned search_stack(size_t count);

#endif
