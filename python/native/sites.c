// SPDX-License-Identifier: Apache-2.0
/*
 * Finding the name of a use without a look at its text: by the address of its string, which is a
 * constant of the program's code, and by that of the tuple of its keys. Sites and variants are
 * never freed, as the names that they stand for, so that their strings keep their addresses and
 * threads find them without a lock. Both have limits. What finds no room is looked up by its text
 * each time.
 */
#include "native.h"

#include <frameobject.h>
#include <pthread.h>

#define SITES_MAX 8192u
#define SLOTS (2 * SITES_MAX)
#define VARIANTS_MAX 32u

static struct {
	pthread_mutex_t lock; /* protects additions; no Python code runs while it is held */
	struct site *slots[SLOTS];
	unsigned count;
} sites = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- names ---- */

static const char *text_of(PyObject *text)
{
	const char *bytes = text ? PyUnicode_AsUTF8(text) : "";

	if (!bytes)
		PyErr_Clear();
	return bytes ? bytes : "(not valid Unicode)";
}

static waffle_name_t *name_make(const struct site *site, const struct use *use)
{
	waffle_key_t keys[WAFFLE_KEYS_MAX];
	struct waffle_name_spec spec = {
		.size = sizeof(spec),
		.kind = site->kind,
		.name = text_of(site->text),
		.category = "python",
		.file = text_of(site->file),
		.function = text_of(site->function),
		.line = site->line,
		.keys = keys,
		.key_count = site->kind == WAFFLE_SITE_COUNTER ? 0 : use->count,
	};

	for (unsigned i = 0; i < spec.key_count; i++) {
		keys[i].type = use->types[i];
		keys[i].name = use->keys[i] ? text_of(use->keys[i]) : "cause";
		if (!*keys[i].name)
			keys[i].name = "(empty)";
	}
	if (!*spec.name)
		spec.name = "(empty)";
	return waffle_name(&spec);
}

/* Calls with ** make a new tuple each time, of the same strings. */
static bool keys_are_same(PyObject *a, PyObject *b)
{
	if (a == b)
		return true;
	if (!a || !b || PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b))
		return false;
	for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); i++)
		if (PyTuple_GET_ITEM(a, i) != PyTuple_GET_ITEM(b, i))
			return false;
	return true;
}

static bool variant_fits(const struct variant *variant, const unsigned long long *types,
			 PyObject *kwnames, Py_ssize_t positional)
{
	return variant->types[0] == types[0] && variant->types[1] == types[1] &&
	       variant->positional == positional && keys_are_same(variant->kwnames, kwnames);
}

waffle_name_t *site_name(struct site *site, const struct use *use, PyObject *kwnames,
			 Py_ssize_t positional)
{
	struct variant *variant = __atomic_load_n(&site->variants, __ATOMIC_ACQUIRE);
	unsigned long long types[2];
	waffle_name_t *name;

	memcpy(types, use->types, sizeof(types));
	for (; variant; variant = variant->next)
		if (variant_fits(variant, types, kwnames, positional))
			return variant->name;
	name = name_make(site, use);
	if (site->variant_count >= VARIANTS_MAX)
		return name;
	variant = PyMem_RawCalloc(1, sizeof(*variant));
	if (!variant)
		return name;
	variant->kwnames = Py_XNewRef(kwnames);
	variant->positional = positional;
	memcpy(variant->types, types, sizeof(types));
	variant->name = name;
	pthread_mutex_lock(&sites.lock);
	variant->next = site->variants;
	__atomic_store_n(&site->variants, variant, __ATOMIC_RELEASE);
	site->variant_count++;
	pthread_mutex_unlock(&sites.lock);
	return name;
}

/* ---- sites ---- */

/* Fills in the file, the line and the function of the calling Python code. */
static void site_place(struct site *site)
{
	PyFrameObject *frame = PyEval_GetFrame();
	PyCodeObject *code;

	if (!frame)
		return;
	code = PyFrame_GetCode(frame);
	site->file = Py_NewRef(code->co_filename);
#if PY_VERSION_HEX >= 0x030b0000
	site->function = Py_NewRef(code->co_qualname);
#else
	site->function = Py_NewRef(code->co_name);
#endif
	site->line = (unsigned)PyFrame_GetLineNumber(frame);
	Py_DECREF(code);
}

static size_t slot_of(PyObject *text, int kind)
{
	return (size_t)(((uintptr_t)text >> 4) * 0x9e3779b97f4a7c15ull >> 40) + (size_t)kind;
}

/* The slot of the site, or the first that is free. */
static struct site **site_slot(PyObject *text, int kind)
{
	for (size_t at = slot_of(text, kind);; at++) {
		struct site **slot = &sites.slots[at % SLOTS];
		struct site *site = __atomic_load_n(slot, __ATOMIC_ACQUIRE);

		if (!site || (site->text == text && site->kind == kind))
			return slot;
	}
}

static struct site *site_add(PyObject *text, int kind)
{
	struct site *made = PyMem_RawCalloc(1, sizeof(*made)), **slot;

	if (!made)
		return NULL;
	made->text = Py_NewRef(text);
	made->kind = kind;
	site_place(made);
	pthread_mutex_lock(&sites.lock);
	slot = site_slot(text, kind);
	if (!*slot) { /* else another thread was faster; the copy is small */
		sites.count++;
		__atomic_store_n(slot, made, __ATOMIC_RELEASE);
	}
	made = *slot;
	pthread_mutex_unlock(&sites.lock);
	return made;
}

/*
 * Whether the string is a constant of the calling code, or interned. Others are made at run time:
 * the next one has another address, also with the same text, and would only fill the table.
 */
static bool will_come_again(PyObject *text)
{
	PyFrameObject *frame;
	PyCodeObject *code;
	bool found = false;

	if (PyUnicode_CHECK_INTERNED(text))
		return true;
	frame = Py_REFCNT(text) > 2 ? PyEval_GetFrame() : NULL;
	if (!frame)
		return false;
	code = PyFrame_GetCode(frame);
	for (Py_ssize_t i = 0; !found && i < PyTuple_GET_SIZE(code->co_consts); i++)
		found = PyTuple_GET_ITEM(code->co_consts, i) == text;
	Py_DECREF(code);
	return found;
}

static void lock_take(void)
{
	pthread_mutex_lock(&sites.lock);
}

static void lock_give(void)
{
	pthread_mutex_unlock(&sites.lock);
}

/* A child of fork() must not find the lock taken by a thread that it does not have. */
static __attribute__((constructor)) void sites_watch_fork(void)
{
	pthread_atfork(lock_take, lock_give, lock_give);
}

struct site *site_find(PyObject *text, int kind, struct site *own)
{
	struct site *site = __atomic_load_n(site_slot(text, kind), __ATOMIC_ACQUIRE);

	if (!site && will_come_again(text) &&
	    __atomic_load_n(&sites.count, __ATOMIC_RELAXED) < SITES_MAX)
		site = site_add(text, kind);
	if (site)
		return site;
	*own = (struct site){.text = text, .kind = kind, .variant_count = VARIANTS_MAX};
	return own;
}
