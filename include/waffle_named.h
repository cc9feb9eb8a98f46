/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that are made at run time: spans, events and counters for interpreters, plug-ins and other
 * code whose names are not literals of an ELF file. The program is linked with libwaffle.
 *
 *	static const waffle_key_t keys[] = {{WAFFLE_KEY_I64, "line"}, {WAFFLE_KEY_STR, "file"}};
 *	waffle_name_t *call = waffle_name(&(struct waffle_name_spec){
 *		.size = sizeof(struct waffle_name_spec), .kind = WAFFLE_SITE_SPAN,
 *		.name = function_name, .keys = keys, .key_count = 2});
 *	…
 *	waffle_span_t span = waffle_span_begin_named(
 *		call, WAFFLE_VALUES(waffle_i64(12), waffle_str(path)));
 *	…
 *	waffle_span_end(span);
 *
 * A name is made once and used from any thread. While nobody records it, a use tests one word; but
 * its arguments are evaluated, so where that matters ask waffle_name_armed() first. All functions
 * but waffle_name() may be called in signal handlers. docs/names-and-tracks.md is the guide.
 */
#ifndef WAFFLE_NAMED_H
#define WAFFLE_NAMED_H

#include <stdbool.h>
#include <stddef.h>

#include "waffle/abi.h"
#include "waffle/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A key of a name: its type (WAFFLE_KEY_I64, U64, F64, BOOL, PTR, NUMBER, STR, CAUSE_SPAN or
 * CAUSE_EVENT) and its text. The text of a cause is not used. A NUMBER has the type of each value,
 * which may be an i64, u64 or f64. With a value of another type, such as waffle_str(NULL), the key
 * has none in the trace. */
typedef struct {
	char type;
	const char *name;
} waffle_key_t;

/* What a name is. Members that are 0 or NULL have their default. */
struct waffle_name_spec {
	size_t size;          /* required: sizeof(struct waffle_name_spec) */
	int kind;             /* WAFFLE_SITE_SPAN, EVENT, COUNTER or LOG_* */
	const char *name;     /* required; up to WAFFLE_NAME_MAX bytes, what is longer is cut */
	const char *category; /* as WAFFLE_CATEGORY */
	const char *file;     /* the source, and … */
	const char *function;
	unsigned line;
	const waffle_key_t *keys; /* not of a counter, which has one value */
	unsigned key_count;       /* up to WAFFLE_KEYS_MAX */
};
#define WAFFLE_NAME_MAX 256  /* bytes of a name, a category, a function or a key */
#define WAFFLE_FILE_MAX 4096 /* bytes of a file */
#define WAFFLE_NAMES_MAX 65536

/* A name. Everything behind the word is libwaffle's. */
typedef struct waffle_name_ {
	unsigned armed_; /* 0: nobody records it */
} waffle_name_t;

/*
 * Makes a name, or finds the one that was made with the same text, kind, place and keys. It is
 * never freed. It takes a lock if the name is new, and may allocate memory. It never returns NULL:
 * if the size, the kind, a key or the number of names is not valid, or memory is short, one line on
 * standard error says so, and the name that is returned is never armed.
 */
waffle_name_t *waffle_name(const struct waffle_name_spec *spec);

/* Whether anybody records the name. */
static __inline__ bool waffle_name_armed(const waffle_name_t *name)
{
	return __builtin_expect(__atomic_load_n(&name->armed_, __ATOMIC_RELAXED) != 0, 0);
}

/*
 * For bindings: the word at this address, which never changes, is 0 while nobody records names.
 * Then there is no need to look for the name of a use.
 */
const unsigned long long *waffle_named_gate(void);

/* ---- values ---- */

/*
 * A value of a key. The n-th value of a use belongs to the n-th key of the name. Values of another
 * type than their key are converted if both are numbers, and are unknown otherwise. Keys without a
 * value have none in the trace; values without a key are ignored.
 */
typedef struct {
	char type;       /* WAFFLE_KEY_* */
	unsigned length; /* bytes of a string; WAFFLE_LENGTH_NUL: up to its NUL */
	union {
		long long i64;
		unsigned long long u64; /* also bool, addresses and ids */
		double f64;
		const char *text; /* read before the call returns, at most WAFFLE_STR_MAX bytes */
	};
} waffle_value_t;
#define WAFFLE_LENGTH_NUL (~0u)

/* Two arguments of the functions below: the values, and their number. */
#ifdef __cplusplus
}
#include <initializer_list>
/* The list lives to the end of the full expression, which is the call. */
static inline const waffle_value_t *waffle_values_(std::initializer_list<waffle_value_t> list_)
{
	return list_.begin();
}
template <class... waffle_more_>
char (&waffle_values_size_(const waffle_more_ &...))[sizeof...(waffle_more_)];
extern "C" {
#define WAFFLE_VALUES(...)                                                                         \
	waffle_values_({__VA_ARGS__}), (unsigned)sizeof(waffle_values_size_(__VA_ARGS__))
#else
#define WAFFLE_VALUES(...)                                                                         \
	((const waffle_value_t[]){__VA_ARGS__}),                                                   \
		(unsigned)(sizeof((const waffle_value_t[]){__VA_ARGS__}) / sizeof(waffle_value_t))
#endif

static __inline__ waffle_value_t waffle_value_word_(char type_, unsigned long long word_)
{
	waffle_value_t value_;

	value_.type = type_;
	value_.length = 0;
	value_.u64 = word_;
	return value_;
}

static __inline__ waffle_value_t waffle_i64(long long number)
{
	return waffle_value_word_(WAFFLE_KEY_I64, (unsigned long long)number);
}

static __inline__ waffle_value_t waffle_u64(unsigned long long number)
{
	return waffle_value_word_(WAFFLE_KEY_U64, number);
}

static __inline__ waffle_value_t waffle_f64(double number)
{
	waffle_value_t value_ = waffle_value_word_(WAFFLE_KEY_F64, 0);

	value_.f64 = number;
	return value_;
}

static __inline__ waffle_value_t waffle_bool(bool truth)
{
	return waffle_value_word_(WAFFLE_KEY_BOOL, truth);
}

/* An address, which is shown and never read. */
static __inline__ waffle_value_t waffle_ptr(const volatile void *address)
{
	return waffle_value_word_(WAFFLE_KEY_PTR, (unsigned long long)(__UINTPTR_TYPE__)address);
}

/* The first `length` bytes at `text`, which need no NUL. */
static __inline__ waffle_value_t waffle_str_of(const char *text, size_t length)
{
	waffle_value_t value_ = waffle_value_word_(WAFFLE_KEY_STR, 0);

	value_.text = text;
	value_.length = length < WAFFLE_LENGTH_NUL ? (unsigned)length : WAFFLE_LENGTH_NUL - 1;
	return value_;
}

/* A string up to its NUL. NULL is shown as null. */
static __inline__ waffle_value_t waffle_str(const char *text)
{
	waffle_value_t value_ = waffle_str_of(text, 0);

	value_.length = WAFFLE_LENGTH_NUL;
	return value_;
}

/* Causes other than the parent. The null id makes no link. */
static __inline__ waffle_value_t waffle_cause_span(waffle_span_id_t span)
{
	return waffle_value_word_(WAFFLE_KEY_CAUSE_SPAN, span.value);
}

static __inline__ waffle_value_t waffle_cause_event(waffle_event_id_t event)
{
	return waffle_value_word_(WAFFLE_KEY_CAUSE_EVENT, event.value);
}

/* ---- spans, events and counters ---- */

/* A scope that waffle_scope_end() ends: its span, and the context that was current before. The
 * caller keeps it at one address until the scope has ended. */
typedef struct {
	unsigned long long words_[10];
} waffle_scope_t;

/* The functions behind those below, without the test of the word: for languages that can't use a
 * header of C. A name that is not armed is ignored. */
waffle_span_t waffle_named_span_begin(waffle_name_t *name, const waffle_value_t *values,
				      unsigned count);
void waffle_named_span_end(waffle_span_t span);
void waffle_named_scope_begin(waffle_scope_t *scope, waffle_name_t *name,
			      const waffle_value_t *values, unsigned count);
void waffle_named_scope_end(waffle_scope_t *scope);
waffle_event_id_t waffle_named_event(waffle_name_t *name, const waffle_value_t *values,
				     unsigned count);
void waffle_named_counter(waffle_name_t *name, waffle_value_t value);

/*
 * Begins a span, which may end on another thread. Its parent is the current span of this thread; it
 * does not become current itself. Its id is 0 if the name is not armed. `values` may be NULL if
 * `count` is 0.
 */
static __inline__ waffle_span_t
waffle_span_begin_named(waffle_name_t *name, const waffle_value_t *values, unsigned count)
{
	waffle_span_t none_ = {0, 0, 0, NULL};

	return waffle_name_armed(name) ? waffle_named_span_begin(name, values, count) : none_;
}

/* Ends it. The null span is ignored. */
static __inline__ void waffle_span_end(waffle_span_t span)
{
	if (__builtin_expect(span.id != 0, 0))
		waffle_named_span_end(span);
}

/* The id of a span as a cause of others. */
static __inline__ waffle_span_id_t waffle_span_id(waffle_span_t span)
{
	waffle_span_id_t id_ = {span.id};

	return id_;
}

/*
 * Begins a span and makes it the current one of this thread, as WAFFLE_SPAN does.
 * waffle_scope_end() ends it and restores what was current before. Scopes have to end in the
 * reverse order of their begin. If an outer scope ends first, the ends of the inner ones restore
 * nothing.
 */
static __inline__ void waffle_scope_begin_named(waffle_scope_t *scope, waffle_name_t *name,
						const waffle_value_t *values, unsigned count)
{
	scope->words_[0] = 0;
	if (waffle_name_armed(name))
		waffle_named_scope_begin(scope, name, values, count);
}

/* Makes a context current, as WAFFLE_INJECT does. It may be that of a span (waffle_span_context()),
 * or come from another thread or process. A null context changes nothing. */
void waffle_scope_inject(waffle_scope_t *scope, waffle_context_t context);

/*
 * For languages whose code does not stay on a stack, such as coroutines: the context of this
 * thread, and a change of it that nothing restores. Whoever suspends code sets the context of the
 * code that goes on. Scopes that are open on the thread restore theirs when they end.
 */
waffle_context_t waffle_named_context(void);
void waffle_named_set_context(waffle_context_t context);

/* Ends the scope, on the thread that began it. */
static __inline__ void waffle_scope_end(waffle_scope_t *scope)
{
	if (__builtin_expect(scope->words_[0] != 0, 0))
		waffle_named_scope_end(scope);
}

/* An event or a log message. The null id if the name is not armed. */
static __inline__ waffle_event_id_t waffle_event_named(waffle_name_t *name,
						       const waffle_value_t *values, unsigned count)
{
	waffle_event_id_t none_ = {0};

	return waffle_name_armed(name) ? waffle_named_event(name, values, count) : none_;
}

/* The current value of a counter: an i64, u64 or f64. */
static __inline__ void waffle_counter_named(waffle_name_t *name, waffle_value_t value)
{
	if (waffle_name_armed(name))
		waffle_named_counter(name, value);
}

#ifdef __cplusplus
}
#endif

#endif
