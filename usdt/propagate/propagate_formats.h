/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The formats of context propagation, each in a file of its own. Everything that is read is
 * untrusted: a value has any length and any bytes.
 */
#ifndef WAFFLE_USDT_PROPAGATE_PROPAGATE_FORMATS_H
#define WAFFLE_USDT_PROPAGATE_PROPAGATE_FORMATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "waffle_propagate.h"

/* Visible outside libwaffle. */
#define PROPAGATE_API __attribute__((visibility("default")))

/* More lines of one header than this are not read: a carrier that never ends must not stop us. */
#define PROPAGATE_LINES_MAX 64

/* A part of a value, without NUL. */
struct span_text {
	const char *text; /* NULL: there is none */
	size_t len;
};

/* ---- propagate_text.c ---- */

struct span_text text_of(const char *text);
bool text_equal(struct span_text a, struct span_text b);
/* Without spaces and tabs at both ends: the optional white space of HTTP (RFC 9110, 5.6.3). */
struct span_text text_trim(struct span_text text);
/* Takes what precedes `separator`, trimmed, off *rest, and the separator. False: nothing is left.
 */
bool text_next(struct span_text *rest, char separator, struct span_text *part);
/* Splits a text at the first `separator`. False: it has none. */
bool text_split(struct span_text text, char separator, struct span_text *before,
		struct span_text *behind);
/* Copies as far as it fits, with NUL. Returns the whole length. */
long text_copy(struct span_text text, char *out, size_t size);

/* A list of members, separated by commas, in a buffer with a fixed size. */
struct text_list {
	char *text; /* ends with NUL */
	size_t len, size;
	size_t count; /* of members */
};

struct text_list list_of(char *text, size_t size);
/* Appends a member. False, and nothing has changed: there is no room. */
bool list_add(struct text_list *list, struct span_text member);

/* The value of a header, as its carrier has it. False: there is none with this index. */
bool carrier_line(const struct waffle_carrier *carrier, const char *name, size_t index,
		  struct span_text *line);
/* The trimmed value of a header that has to occur once. False: it is missing or repeated. */
bool carrier_single(const struct waffle_carrier *carrier, const char *name,
		    struct span_text *value);

/* ---- formats ---- */

/* What is sent. */
struct outgoing {
	waffle_context_t context; /* null: there is none */
	enum waffle_sampling sampling;
	unsigned flags;         /* as of struct waffle_wire_context */
	const char *tracestate; /* "" if there is none */
	const char *baggage;
};

/* Each of the extract functions returns whether it found a valid context or, for B3, a sampling
 * decision, and leaves *wire as it was otherwise. */
bool tracecontext_extract(const struct waffle_carrier *carrier, struct waffle_wire_context *wire);
int tracecontext_inject(const struct waffle_carrier *carrier, const struct outgoing *out);
bool b3_extract(const struct waffle_carrier *carrier, struct waffle_wire_context *wire);
int b3_inject(const struct waffle_carrier *carrier, const struct outgoing *out);
bool b3multi_extract(const struct waffle_carrier *carrier, struct waffle_wire_context *wire);
int b3multi_inject(const struct waffle_carrier *carrier, const struct outgoing *out);
void baggage_extract(const struct waffle_carrier *carrier, struct waffle_wire_context *wire);
int baggage_inject(const struct waffle_carrier *carrier, const struct outgoing *out);

/* All names of headers, and NULL at the end. */
extern const char *const propagate_names[];

#endif
