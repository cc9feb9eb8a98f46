/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A filter expression as a tree, and the table of its fields. The parser makes it, the evaluator
 * defines what it means, split.h reduces it for a site, codegen.h makes instructions of the rest.
 * docs/filter.md has the grammar.
 */
#ifndef WAFFLE_FILTER_EXPR_H
#define WAFFLE_FILTER_EXPR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/glob.h"
#include "util/vec.h"

#define FILTER_PREDICATES_MAX 64
#define FILTER_OPERANDS_MAX 128      /* predicates, sample(), rate(), true and false */
#define FILTER_DEPTH_MAX 64          /* of nested parentheses and negations */
#define FILTER_LITERALS_MAX 64       /* of one list, and 256 of all lists together */
#define FILTER_TEXT_MAX 256          /* bytes of a text literal: WAFFLE_STR_MAX */
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
	FILTER_TYPE_KIND,   /* one of a few words */
	FILTER_TYPE_TEXT,   /* == != ~ !~ in */
	FILTER_TYPE_NUMBER, /* == != < <= > >= in; a plain number */
	FILTER_TYPE_TIME,   /* the same; a time, or plain nanoseconds */
	FILTER_TYPE_ANY     /* as the site declares: known at the site only */
};

/* A row of the table of fields: the parser, its error texts and docs/filter.md are made from it. */
struct filter_field_info {
	const char *name; /* "parent.name"; "kv" for FILTER_KV */
	enum filter_type type;
	bool at_site; /* known of the site: decided when it is armed */
	const char *help;
};
extern const struct filter_field_info filter_fields[FILTER_FIELD_COUNT];

/* What a record can be: the words for `kind`. A log message is one whatever its level. */
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
	FILTER_LITERAL_INTEGER, /* magnitude and sign; units are applied: 1KiB is 1024, 1ms 1000000
				 */
	FILTER_LITERAL_FLOAT,   /* a number with a fraction that its unit did not make whole */
	FILTER_LITERAL_TEXT,
	FILTER_LITERAL_BOOL,
	FILTER_LITERAL_KIND
};

struct filter_literal {
	enum filter_literal_type type;
	bool negative; /* INTEGER: the value is -magnitude; magnitude is not 0 then */
	union {
		uint64_t magnitude; /* INTEGER; BOOL: 0 or 1; KIND: enum filter_kind */
		double f64;         /* FLOAT: finite */
	};
	char *text; /* TEXT: may hold any byte but NUL; owned by the expression */
	uint32_t text_len;
	struct glob *glob; /* of ~ and !~: the text compiled; NULL else */
};

static inline bool filter_literal_is_number(const struct filter_literal *literal)
{
	return literal->type == FILTER_LITERAL_INTEGER || literal->type == FILTER_LITERAL_FLOAT ||
	       literal->type == FILTER_LITERAL_BOOL;
}

struct filter_predicate {
	enum filter_field field;
	enum filter_op op;
	char *key;               /* FILTER_KV: its name; NULL else */
	uint32_t literal, count; /* in filter_expr.literals; count is 1 but for FILTER_IN */
	uint32_t from, to;       /* bytes of the source text: [from, to) */
};

enum filter_node_type {
	FILTER_TRUE,
	FILTER_FALSE,
	FILTER_AND,
	FILTER_OR,
	FILTER_NOT,    /* of left */
	FILTER_TEST,   /* predicate */
	FILTER_SAMPLE, /* whole traces: one in `of` / `keep` */
};

struct filter_node {
	enum filter_node_type type;
	union {
		struct {
			uint32_t left, right; /* indexes of nodes, always less than the own one */
		};
		uint32_t predicate; /* index */
		struct {
			uint32_t keep, of; /* sample(keep/of), 0 < keep <= of */
		};
	};
};

/* rate(count/unit): stands only as an operand of the outermost &&, at most once, and is asked last.
 * Of what passes the rest, the first `count` of each window [k·unit, (k+1)·unit) of CLOCK_MONOTONIC
 * are kept. */
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
	uint32_t root; /* index of a node; rate() is not in the tree (FILTER_TRUE in its place) */
	struct filter_rate rate;
};

#endif
