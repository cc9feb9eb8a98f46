/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a record consists of: a row for each kind, and one for each of its fields. The rows give the
 * lengths of records, their words in the file, the `records` export and docs/records.md. To add a
 * field to a kind, append whole words to its struct in bpf/record.h, fill them in in the BPF
 * program, and append their rows in record_schema.c; model/ reads them.
 */
#ifndef WAFFLE_STORE_RECORD_SCHEMA_H
#define WAFFLE_STORE_RECORD_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/record.h"

enum record_form {
	RECORD_NUMBER,
	RECORD_TIME,     /* CLOCK_MONOTONIC ns */
	RECORD_DURATION, /* ns */
	RECORD_BYTES,
	RECORD_FLAGS,
	RECORD_SIGNED,  /* 32 bits */
	RECORD_ADDRESS, /* "0x7f01" in JSON: JavaScript's numbers can't represent all of them */
	RECORD_ID,      /* sixteen hexadecimal digits in JSON, like ids everywhere */
	RECORD_TEXT,
	/* Numbers that mean something only in one file or on one host: store/renumber_internal.h */
	RECORD_PID,    /* of a process or thread; 0: none */
	RECORD_SITE,   /* number of a site */
	RECORD_STACK,  /* number of a stack; 0: none */
	RECORD_OBJECT, /* number of an object; 0: none */
	RECORD_INODE,  /* 0: none */
	RECORD_FORM_COUNT
};

struct record_field {
	const char *name; /* of the struct's member, and in JSON */
	uint16_t offset;
	uint8_t bytes;
	uint8_t form;     /* enum record_form */
	bool exported;    /* the `records` export has it */
	const char *help; /* for docs/records.md, of which it is a cell */
};

/*
 * The fixed part of a record consists of a packed form, which never changes, and of 64-bit words
 * that later versions append to it. The packed form of most rare kinds is the header alone.
 */
struct record_kind {
	const char *name;   /* NULL: no such kind */
	uint16_t bytes;     /* of the fixed part */
	uint16_t packed;    /* of its packed form; a multiple of 8 as well */
	uint16_t words;     /* behind it */
	uint16_t source;    /* enum waffle_source; WAFFLE_SOURCE_COUNT: made by waffle-bpf itself */
	uint16_t length_at; /* offset of the 32-bit length of the variable part; 0: there is none */
	uint16_t field_count;
	const struct record_field *fields; /* in order, without the header; NULL: never in a file */
	const char *help;                  /* for docs/records.md */
};
extern const struct record_kind record_kinds[WAFFLE_REC_RING_COUNT];

#endif
