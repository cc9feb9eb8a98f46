/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that parse a description. */
#ifndef WAFFLE_PROBE_SPEC_PARSE_H
#define WAFFLE_PROBE_SPEC_PARSE_H

#include "probe/spec/spec.h"

struct parse {
	struct source source;
	uint32_t at;
	struct spec_tables *tables;
	struct call_spec *spec;
	struct error *err;
};

/* parse_lex.c. These look at parse->at, after skipping spaces. Words consist of letters, digits and
 * '_'. */
void parse_blanks(struct parse *parse);
bool parse_ended(struct parse *parse);
bool parse_sees(struct parse *parse, const char *sign);
bool parse_accept(struct parse *parse, const char *sign);
/* The word at this position, which is not consumed. Its length is 0 if there is none. */
uint32_t parse_word(struct parse *parse);
bool parse_word_is(struct parse *parse, const char *word);
bool parse_accept_word(struct parse *parse, const char *word);
/* The flag (WAFFLE_CALL_…) of the word at this position. 0: it is not the name of one. */
uint32_t parse_flag(struct parse *parse);
/* Whether an option stands here, which therefore is not a name. */
bool parse_is_option(struct parse *parse);
/* Parses quoted text. Its content is [*from, *to). */
int parse_quoted(struct parse *parse, uint32_t *from, uint32_t *to);
int parse_expect(struct parse *parse, const char *sign, const char *behind);
/* Parses an integer, also 0x…, with a sign if `low` permits one. */
int parse_number(struct parse *parse, int64_t *number, int64_t low, int64_t high);
/* Copies the bytes [from, to) of the source to the table of strings. NULL: out of memory. */
const char *parse_keep(struct parse *parse, uint32_t from, uint32_t to);
/* Reports an error at the current word or character. Returns -EINVAL. */
int parse_wrong(struct parse *parse, const char *format, ...) __attribute__((format(printf, 2, 3)));
int parse_memory(struct parse *parse);
/* The text at this position, for messages: "'xyz'", or "the end". */
struct source_shown parse_show(struct parse *parse);

/* parse_names.c: a part of the head that ends with a ':', and a function with what follows it. */
int parse_part(struct parse *parse, struct spec_names *names, const char *what);
int parse_side(struct parse *parse, struct spec_side *side);
/* Checks that each "{key}" in the name is a value of the call. Values must be in order. */
int parse_template(struct parse *parse);

/* parse_type.c */
int parse_type(struct parse *parse, struct call_type *type);
/* Parses the "[16]" after char, if there is one. */
int parse_bytes(struct parse *parse, struct call_type *type);

/* parse_params.c */
int parse_params(struct parse *parse, struct spec_side *side);
/* Parses "-> type name". */
int parse_returned(struct parse *parse);

/* parse_value.c: "{r->path as path, …}". `returned`: the braces with values at the return. */
int parse_values(struct parse *parse, struct spec_side *side, bool returned);
/* Parses the key of a pair. */
int parse_key(struct parse *parse, struct spec_side *side);
/* Puts the named parameters that no expression uses before the values, in order. */
int parse_order(struct parse *parse, struct spec_side *side);
/* Checks that a span has room for the values of both ends of a pair. */
int parse_pair_values(struct parse *parse);

/* Suggestions for a mistyped word: "; did you mean a, b", or "". */
struct suggestions {
	char text[160];
	size_t len;
};
void suggestions_add(struct suggestions *list, const char *word, const char *name);

/* Checks that each "{key}" in the name for a call's spans is a key of the call: -EINVAL with a
 * caret. */
typedef bool (*template_has)(const void *arg, const char *key, size_t len,
			     struct suggestions *similar);
int template_check(const struct call_spec *spec, template_has has, const void *arg,
		   struct error *err);
/* Whether the key is `name`. If not, `name` may become a suggestion. */
bool template_key_is(const char *name, const char *key, size_t len, struct suggestions *similar);

#endif
