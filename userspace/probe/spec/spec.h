/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A parsed description of a call (docs/probes.md defines the language): the functions or probes,
 * the files, and what to read from the arguments. It is independent of machine and file;
 * fetch_program.h makes fetch programs from it. Strings belong to the set's table.
 */
#ifndef WAFFLE_PROBE_SPEC_SPEC_H
#define WAFFLE_PROBE_SPEC_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/call.h"
#include "target/elf/site.h"
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
#define SPEC_RAW_ARGS 6  /* arguments of "(...)" */
#define LONG_DOUBLE_BYTES 16
#define BLOB_IN_REGISTERS_MAX 16 /* bytes of a struct that may be passed in registers */

enum type_kind {
	TYPE_VOID,
	TYPE_WORD, /* an integer of `bytes` */
	TYPE_BOOL,
	TYPE_POINTER, /* `name` is the struct that it points to, "" if unspecified */
	TYPE_STR,     /* char * */
	TYPE_BYTES,   /* char[size], by its address */
	TYPE_FLOAT,   /* of `bytes`; 16 for long double */
	TYPE_DIM3,    /* a struct of three unsigned */
	TYPE_XYZ,     /* three parameters that are shown as a dim3 */
	TYPE_CODE,
	TYPE_ENUM, /* an integer with the names of table `table` */
	TYPE_BLOB, /* a struct of `size` bytes, passed by value; it has no value itself */
	TYPE_SRET, /* where the function is to put the struct that it returns; no parameter in C */
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
	struct call_type type; /* if `out`, the type that it points to */
	const char *name;      /* NULL: skipped */
	bool out;
	bool used; /* an expression uses it, so it is not a key itself */
	uint32_t from, to;
};

enum value_base {
	VALUE_PARAM,    /* parameter `index` */
	VALUE_RAW,      /* argument `index`, regardless of its type */
	VALUE_RETURNED, /* the return value */
	VALUE_DURATION,
	VALUE_THREAD, /* for pairs: the key is the thread */
};

/* One step from a value to the next. */
struct value_step {
	enum { STEP_ADD, STEP_LOAD, STEP_FIELD } kind;
	bool arrow;       /* FIELD: written "->" rather than "." */
	int32_t offset;   /* ADD */
	const char *name; /* FIELD: the member. ADD: name of an offset to look up, or NULL */
	uint32_t from, to;
};

struct call_value {
	const char *name;
	enum value_base base;
	uint8_t index;
	uint8_t step_count;
	bool at_return;
	/* The value is the number of earlier calls with this value, over all of
	 * `sequence_group`. */
	bool sequence;
	bool in_memory; /* the steps yield the address of a value of `type`, not the value */
	bool by_fields; /* the last field determines the type */
	uint32_t sequence_group;
	struct value_step steps[SPEC_STEPS_MAX];
	bool tagged; /* for a sequence: the field at `tag` after the value also distinguishes */
	struct value_step tag;
	/* The value is 0 unless parameter `count_index` is greater than `at_least`: so nothing is
	 * read behind the end of an array. */
	bool conditional;
	uint8_t count_index;
	int32_t at_least;
	/* The value replaces others that need this offset: it is left out where the offset is
	 * known. NULL: it is read in any case. */
	const char *unless_offset;
	struct call_type type;
	uint32_t from, to; /* in the description */
};

struct spec_pattern {
	const char *text;
	struct glob *glob; /* NULL: `text` is literal */
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
	/* Keys known at the entry, followed by keys known at the return. */
	uint8_t value_count;
	struct call_value values[SPEC_VALUES_MAX];
	struct call_value key; /* for pairs */
};

enum spec_type { SPEC_UPROBE, SPEC_USDT, SPEC_TRACEPOINT };

struct call_spec {
	enum spec_type type;
	struct source source; /* text and origin belong to the set */
	struct spec_names libs;
	struct spec_names provider; /* USDT: the provider; tracepoint: the category */
	struct spec_side sides[2];  /* the second one is the end of a pair */
	bool pair;
	bool event; /* record the entry only */
	struct call_type returned;
	const char *returned_name; /* NULL: none */
	const char *name;          /* NULL: the function's */
	uint32_t name_from;        /* position of `name` in the source */
	const char *category;      /* NULL: the default, see docs/probes.md */
	uint16_t role;
	uint32_t flags; /* WAFFLE_CALL_* */
	uint32_t group; /* all descriptions of a group together probe an address once */
	bool quiet;     /* a row of a table: do not report that nothing was found */
};

/* Names that descriptions refer to by number. */
struct spec_tables {
	struct strtab *strings;
	VEC(struct waffle_enum) enums;
	VEC(const char *) enum_names;
	VEC(const char *) sequences;
};

/*
 * Parses a description. -EINVAL with a caret under the error. The caller has set `spec` to zero (it
 * is large, and there are hundreds: memory from calloc() is left untouched where nothing is
 * written), and frees it with spec_free() in any case.
 */
int spec_parse(struct call_spec *spec, struct spec_tables *tables, const char *text,
	       const char *where, struct error *err);
void spec_free(struct call_spec *spec);
/* Parses "enum NAME A B C …": a table of names. */
int spec_parse_enum(struct spec_tables *tables, const char *text, const char *where,
		    struct error *err);
/* Whether a text is such a table. */
bool spec_is_enum(const char *text);

/* The name for spans of a function, with {func} replaced. Stored in `strings`. */
const char *spec_name(const struct call_spec *spec, const char *func, struct strtab *strings);
bool spec_pattern_matches(const struct spec_pattern *pattern, const char *text);
bool spec_names_match(const struct spec_names *names, const char *text);
/* Whether the calls that begin a span also end the one before: f..f. */
bool spec_laps(const struct call_spec *spec);

/* Key type letter (include/waffle/abi.h) for a value of this type. 0: such a value cannot be a
 * key. */
char type_letter(const struct call_type *type);

#endif
