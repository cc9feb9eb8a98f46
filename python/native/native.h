/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The extension module waffle._native: spans, events, counters and contexts of Python over
 * libwaffle's names of run time (waffle_named.h). docs/python.md is the guide.
 *
 * Nothing here raises an exception because of what is recorded: a program must behave the same
 * whether somebody traces it or not. Only a wrong number of arguments is an error, always. But to
 * describe an object runs code of Python, in which a signal may arrive: a KeyboardInterrupt goes
 * on.
 *
 * The module is compiled for each version of Python, not for the limited API: that has no context
 * variables, and costs a call where a macro reads a member.
 */
#ifndef WAFFLE_PYTHON_NATIVE_H
#define WAFFLE_PYTHON_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

/* The module has no sites of its own. So it needs no state of threads beside that of libwaffle. */
#ifndef WAFFLE_DISABLE
#define WAFFLE_DISABLE
#endif
#include "waffle_named.h"

/* Objects that two threads use at once stay whole in a Python without GIL. */
#if PY_VERSION_HEX < 0x030d0000
#define Py_BEGIN_CRITICAL_SECTION(object) {
#define Py_END_CRITICAL_SECTION() }
#endif

#if PY_VERSION_HEX < 0x030a0000
static inline PyObject *Py_NewRef(PyObject *object)
{
	Py_INCREF(object);
	return object;
}
static inline PyObject *Py_XNewRef(PyObject *object)
{
	Py_XINCREF(object);
	return object;
}
#endif

#if PY_VERSION_HEX < 0x030c0000 && !defined(Py_TPFLAGS_HAVE_VECTORCALL)
#define Py_TPFLAGS_HAVE_VECTORCALL _Py_TPFLAGS_HAVE_VECTORCALL
#endif

#if PY_VERSION_HEX < 0x030a0000
static inline int PyModule_AddObjectRef(PyObject *module, const char *name, PyObject *object)
{
	Py_INCREF(object);
	return PyModule_AddObject(module, name, object);
}
#endif

extern const unsigned long long *native_gate;

/* Tells whether a recording or a tracer wants records. */
static inline bool native_is_recorded(void)
{
	return __builtin_expect(__atomic_load_n(native_gate, __ATOMIC_RELAXED) != 0, 0);
}

/* ---- values.c: the keys and values of one use ---- */

struct use {
	unsigned count, held_count;
	bool failed;                     /* an exception is set, and the use has to end with it */
	char types[WAFFLE_KEYS_MAX + 8]; /* those behind `count` are 0 */
	waffle_value_t values[WAFFLE_KEYS_MAX];
	PyObject *keys[WAFFLE_KEYS_MAX]; /* borrowed; NULL: a cause */
	PyObject *held[WAFFLE_KEYS_MAX]; /* objects that only `values` refers to */
};

static inline void use_begin(struct use *use)
{
	use->count = use->held_count = 0;
	use->failed = false;
	memset(use->types, 0, sizeof(use->types));
}
void use_end(struct use *use);
/* Adds a key with a value of any type. Beyond 16 keys it does nothing. */
void use_add(struct use *use, PyObject *key, PyObject *value);
/* Adds a link to a span, an event, a context, or to each of a list or tuple of them. */
void use_add_causes(struct use *use, PyObject *causes);
/* Adds the key that mark() has set for all records of this thread, if any. */
void use_add_mark(struct use *use);
/* Clears an exception that means that something can't be described. False: it is something else,
 * such as a KeyboardInterrupt, and stays. */
bool error_forget(void);
/* A number for a counter. False: it is none, or an exception is set. */
bool value_of_number(PyObject *object, waffle_value_t *value);

int values_init(PyObject *module);

/* ---- sites.c: the names of uses ---- */

/* The name of a site with keys of given types. */
struct variant {
	struct variant *next;
	PyObject *kwnames; /* identifies the keys, with `positional` */
	Py_ssize_t positional;
	unsigned long long types[2];
	waffle_name_t *name;
};

/* Something that is recorded under one text: a literal of waffle.span(), or a function. Its strings
 * are owned by it, and it is never freed once it is in the table. */
struct site {
	PyObject *text, *file, *function; /* file and function may be NULL */
	unsigned line;
	int kind;
	struct variant *variants;
	unsigned variant_count;
};

/* The site of a text, which is made if it is new. `own` is where a site is made that finds no room
 * in the table. */
struct site *site_find(PyObject *text, int kind, struct site *own);
/* The name for this use of the site. `kwnames` and `positional` say what its keys are. */
waffle_name_t *site_name(struct site *site, const struct use *use, PyObject *kwnames,
			 Py_ssize_t positional);

/* ---- context.c: what is current ---- */

extern PyTypeObject *context_type;
/* The context variable has a Span, a Context or None. New reference or NULL: nothing. */
PyObject *context_current(void);
/* Makes it the value of the variable. NULL: nothing. */
void context_set(PyObject *holder);
/* Makes the thread's context in libwaffle that of this code: an event loop or a thread pool may
 * have run other code on the thread meanwhile. */
void context_sync(void);
/* A new waffle.Context, or NULL with an exception. */
PyObject *context_new(waffle_context_t context);
/* The context of a Span or Context; null for anything else. */
waffle_context_t context_of(PyObject *holder);

/* The context to restore when an inner one ends. */
struct context_outer {
	PyObject *holder; /* the previous value of the context variable, or NULL */
	waffle_context_t native;
	unsigned long long last;
};
void context_enter(struct context_outer *outer, PyObject *holder);
/* Restores, unless other code has become current meanwhile. Releases outer->holder. */
void context_leave(struct context_outer *outer, PyObject *holder);

int context_init(PyObject *module);

/* ---- span.c ---- */

struct span {
	PyObject_HEAD waffle_span_t span; /* id 0: null */
	struct context_outer outer;
	bool is_current, is_ended;
};

extern PyTypeObject *span_type, *event_type;
/* Anything that has ended and was not recorded: what a dormant use gets. Borrowed. */
extern PyObject *span_null, *event_null;
/* Begins a span; a new reference, perhaps to the null span. */
PyObject *span_begin(waffle_name_t *name, const struct use *use);
PyObject *span_enter(struct span *span);
/* Ends the span. `type` and `value` are those of an exception that left it, or NULL. */
void span_leave(struct span *span, PyObject *type, PyObject *value);
/* The id of an event; 0 if it is none. */
unsigned long long event_id(PyObject *event);

PyObject *native_span(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
PyObject *native_event(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
		       PyObject *kwnames);
PyObject *native_counter(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
PyObject *native_log(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
int span_init(PyObject *module);

/* ---- instrument.c ---- */

int instrument_init(PyObject *module);

/* ---- propagate.c, arrow.c ---- */

int propagate_init(PyObject *module);
int arrow_init(PyObject *module);

/* ---- trace.c ---- */

extern PyMethodDef trace_methods[];

#endif
