/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A filter expression as a tree, and the table of its fields. The parser creates the tree, eval.h
 * defines its meaning, split.h reduces it for a site, and codegen.h turns the rest into
 * instructions. docs/filter.md has the grammar.
 */
#ifndef WAFFLE_FILTER_EXPR_INTERNAL_H
#define WAFFLE_FILTER_EXPR_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/glob.h"
#include "util/vec.h"

#define FILTER_PREDICATES_MAX 64
#define FILTER_OPERANDS_MAX 128      /* predicates, sample(), rate(), true and false */
#define FILTER_DEPTH_MAX 64          /* nested parentheses and negations */
#define FILTER_LITERALS_MAX 64       /* of one list; all lists together have at most 256 */
#define FILTER_TEXT_MAX 256          /* bytes of a text literal, equal to WAFFLE_STR_MAX */
#define FILTER_SOURCE_MAX (16 << 10) /* bytes of an expression */

enum filter_field {
	FILTER_KIND,
	FILTER_NAME,
	FILTER_CATEGORY,
	FILTER_FILE,
	FILTER_LINE,
	FILTER_FUNC,
	FILTER_LIB,
	FILTER_PID,
	FILTER_TID,
	FILTER_COMM,
	FILTER_CPU,
	FILTER_DUR,
	FILTER_DEPTH,
	FILTER_PARENT_NAME,
	FILTER_KV,
	FILTER_FIELD_COUNT
};

enum filter_type {
	FILTER_TYPE_KIND,   /* one of a fixed set of words */
	FILTER_TYPE_TEXT,   /* == != ~ !~ in */
	FILTER_TYPE_NUMBER, /* == != < <= > >= in; a plain number */
	FILTER_TYPE_TIME,   /* the same operators; a time, or plain nanoseconds */
	FILTER_TYPE_ANY     /* the site's declaration decides */
};

/* A row of the table of fields. The parser, its error messages and docs/filter.md use this
 * table. */
struct filter_field_info {
	const char *name; /* "parent.name"; "kv" for FILTER_KV */
	enum filter_type type;
	bool at_site; /* the site determines it: decided when the site is armed */
	const char *help;
};
extern const struct filter_field_info filter_fields[FILTER_FIELD_COUNT];

/* Kinds of records: the words for `kind`. A log message has kind log, whatever its level. */
enum filter_kind {
	FILTER_KIND_SPAN,
	FILTER_KIND_EVENT,
	FILTER_KIND_COUNTER,
	FILTER_KIND_LOG,
	FILTER_KIND_SCHED, /* thread switches: all or none, see filter_wants_sched() */
	FILTER_KIND_CUDA,
	FILTER_KIND_NCCL,
	FILTER_KIND_COUNT
};
extern const char *const filter_kinds[FILTER_KIND_COUNT];

enum filter_op {
	FILTER_EQ,
	FILTER_NE,
	FILTER_LT,
	FILTER_LE,
	FILTER_GT,
	FILTER_GE,
	FILTER_MATCH,     /* ~  */
	FILTER_NOT_MATCH, /* !~ */
	FILTER_IN,        /* in {…}: any of the literals is equal */
	FILTER_OP_COUNT
};
extern const char *const filter_ops[FILTER_OP_COUNT]; /* "==", … */

enum filter_literal_type {
	/* Magnitude and sign, with the unit applied: 1KiB is 1024, 1ms is 1000000. */
	FILTER_LITERAL_INTEGER,
	FILTER_LITERAL_FLOAT, /* a number that has a fraction even after its unit was applied */
	FILTER_LITERAL_TEXT,
	FILTER_LITERAL_BOOL,
	FILTER_LITERAL_KIND
};

struct filter_literal {
	enum filter_literal_type type;
	bool negative; /* INTEGER: the value is -magnitude, and magnitude is not 0 */
	union {
		uint64_t magnitude; /* INTEGER; BOOL: 0 or 1; KIND: enum filter_kind */
		double f64;         /* FLOAT: finite */
	};
	char *text; /* TEXT: any bytes but NUL; owned by the expression */
	uint32_t text_len;
	struct glob *glob; /* of ~ and !~: the compiled text; else NULL */
};

static inline bool filter_literal_is_number(const struct filter_literal *literal)
{
	return literal->type == FILTER_LITERAL_INTEGER || literal->type == FILTER_LITERAL_FLOAT ||
	       literal->type == FILTER_LITERAL_BOOL;
}

struct filter_predicate {
	enum filter_field field;
	enum filter_op op;
	char *key;               /* FILTER_KV: the key's name; else NULL */
	uint32_t literal, count; /* in filter_expr.literals; count is 1 except for FILTER_IN */
	uint32_t from, to;       /* position in the source: [from, to) */
};

enum filter_node_type {
	FILTER_TRUE,
	FILTER_FALSE,
	FILTER_AND,
	FILTER_OR,
	FILTER_NOT,    /* of `left` */
	FILTER_TEST,   /* `predicate` */
	FILTER_SAMPLE, /* keeps whole traces: `keep` of `of` */
};

struct filter_node {
	enum filter_node_type type;
	union {
		struct {
			uint32_t left, right; /* indexes of nodes, always lower than this node's */
		};
		uint32_t predicate; /* index */
		struct {
			uint32_t keep, of; /* sample(keep/of), 0 < keep <= of */
		};
	};
};

/* rate(count/unit). It may occur once, only as an operand of the outermost &&, and is evaluated
 * last. Of all records that pass the rest, it keeps the first `count` in each window [k·unit,
 * (k+1)·unit) of CLOCK_MONOTONIC. */
struct filter_rate {
	uint32_t count;
	uint64_t unit_ns; /* 0: there is no rate() */
};
#define FILTER_RATE_COUNT_MAX ((1u << 24) - 1)

struct filter_expr {
	char *source;
	VEC(struct filter_node) nodes;
	VEC(struct filter_predicate) predicates;
	VEC(struct filter_literal) literals;
	uint32_t root; /* index of a node; FILTER_TRUE replaces rate() in the tree */
	struct filter_rate rate;
};

void filter_free(struct filter_expr *filter);

#endif
