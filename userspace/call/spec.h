/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A description of a call as it was parsed (docs/probes.md is the language): which functions or
 * probes of which files, and what is read from their arguments. It knows nothing of a machine or a
 * file yet: recipe.h makes recipes of it. Strings belong to the set's table.
 */
#ifndef WAFFLE_CALL_SPEC_H
#define WAFFLE_CALL_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/call.h"
#include "target/site.h"
#include "util/error.h"
#include "util/glob.h"
#include "util/source.h"
#include "util/strtab.h"
#include "util/vec.h"

#define SPEC_BYTES_MAX 4096 /* of a description */
#define SPEC_PARAMS_MAX 24
#define SPEC_VALUES_MAX 24
#define SPEC_STEPS_MAX 12
#define SPEC_NAMES_MAX 8 /* alternatives: "a|b" */
#define SPEC_RAW_ARGS 6  /* of "(...)" */
#define LONG_DOUBLE_BYTES 16

enum type_kind {
	TYPE_VOID,
	TYPE_WORD, /* an integer of `bytes` */
	TYPE_BOOL,
	TYPE_POINTER, /* `name` is the struct it points to, "" if nobody cares */
	TYPE_STR,     /* char * */
	TYPE_BYTES,   /* char[size], by its address */
	TYPE_FLOAT,   /* of `bytes`: 16 of a long double */
	TYPE_DIM3,    /* struct of three unsigned */
	TYPE_XYZ,     /* three parameters that are shown as a dim3 */
	TYPE_CODE,
	TYPE_ENUM, /* table `table` */
	TYPE_BLOB, /* a struct of `size` bytes, by value; has no value of its own */
};

struct call_type {
	enum type_kind kind;
	uint8_t bytes;
	bool is_signed;
	uint32_t size;
	uint32_t table;
	const char *name;
};

struct call_param {
	struct call_type type; /* of what it points to, if `out` */
	const char *name;      /* NULL: skipped */
	bool out;
	bool used; /* by an expression, so that it is no key by itself */
	uint32_t from, to;
};

enum value_base {
	VALUE_PARAM,    /* parameter `index` */
	VALUE_RAW,      /* argument `index`, whatever its type */
	VALUE_RETURNED, /* what the function returns */
	VALUE_DURATION,
	VALUE_THREAD, /* of pairs: the key is the thread */
};

/* One step from a value to the next. */
struct value_step {
	enum { STEP_ADD, STEP_LOAD, STEP_FIELD } kind;
	bool arrow;       /* FIELD: "->", not "." */
	int32_t offset;   /* ADD */
	const char *name; /* FIELD: of the member. ADD: of an offset that is looked up, or NULL */
	uint32_t from, to;
};

struct call_value {
	const char *name;
	enum value_base base;
	uint8_t index;
	uint8_t step_count;
	bool at_return;
	bool sequence;  /* how many calls had this value before, in all of group `sequence_group` */
	bool in_memory; /* the steps give the address of a value of `type`, not the value */
	bool by_fields; /* the last field says the type */
	uint32_t sequence_group;
	struct value_step steps[SPEC_STEPS_MAX];
	bool tagged; /* of a sequence: what is at `tag` behind the value counts, too */
	struct value_step tag;
	struct call_type type;
	uint32_t from, to; /* in the description */
};

struct spec_pattern {
	const char *text;
	struct glob *glob; /* NULL: that text itself */
};

/* Alternatives: "cudaMalloc|cudaMallocAsync". */
struct spec_names {
	uint32_t count;
	struct spec_pattern list[SPEC_NAMES_MAX];
	uint32_t from, to;
};

/* A function or a probe. */
struct spec_side {
	struct spec_names names;
	bool listed; /* it has a list of parameters */
	bool raw;    /* "(...)" */
	uint8_t param_count;
	struct call_param params[SPEC_PARAMS_MAX];
	/* Keys: those known at the entry, then those known at the return. */
	uint8_t value_count;
	struct call_value values[SPEC_VALUES_MAX];
	struct call_value key; /* of a pair */
};

enum spec_type { SPEC_UPROBE, SPEC_USDT, SPEC_TRACEPOINT };

struct call_spec {
	enum spec_type type;
	struct source source; /* text and origin are the set's */
	struct spec_names libs;
	struct spec_names provider; /* of a USDT probe; category of a tracepoint */
	struct spec_side sides[2];  /* the second: the end of a pair */
	bool pair;
	bool event; /* entry only */
	struct call_type returned;
	const char *returned_name; /* NULL: none */
	const char *name;          /* NULL: the function's */
	uint32_t name_from;        /* where that is in the source */
	const char *category;      /* NULL: see docs/probes.md */
	uint16_t role;
	uint32_t flags; /* WAFFLE_CALL_* */
	uint32_t group; /* one address is probed once for all descriptions of a group */
	bool quiet;     /* one row of many: not said if nothing was found */
};

/* Names that descriptions refer to by number. */
struct spec_tables {
	struct strtab *strings;
	VEC(struct waffle_enum) enums;
	VEC(const char *) enum_names;
	VEC(const char *) sequences;
};

/*
 * Parses a description. -EINVAL with a caret under the fault. What belongs to `spec` is freed with
 * spec_free() in any case.
 */
int spec_parse(struct call_spec *spec, struct spec_tables *tables, const char *text,
	       const char *where, struct error *err);
void spec_free(struct call_spec *spec);
/* "enum NAME A B C …": a table of names. */
int spec_parse_enum(struct spec_tables *tables, const char *text, const char *where,
		    struct error *err);
/* Whether a text is such a table. */
bool spec_is_enum(const char *text);

/* The name for spans of a function, kept; {func} in it is filled in. */
const char *spec_name(const struct call_spec *spec, const char *func, struct strtab *strings);
bool spec_pattern_matches(const struct spec_pattern *pattern, const char *text);
bool spec_names_match(const struct spec_names *names, const char *text);

/* Letter of include/waffle/abi.h for a value of that type; 0: such a value can't be a key. */
char type_letter(const struct call_type *type);

#endif
