// SPDX-License-Identifier: Apache-2.0
#include "native.h"

PyTypeObject *span_type, *event_type;
PyObject *span_null, *event_null;
static PyObject *caused_by; /* the interned string */
static struct site exception_site = {.kind = WAFFLE_SITE_LOG_ERROR};
static PyObject *exception_keys[2];

/* ---- spans ---- */

PyObject *span_begin(waffle_name_t *name, const struct use *use)
{
	struct span *span;

	if (!waffle_name_armed(name))
		return Py_NewRef(span_null);
	span = PyObject_New(struct span, span_type);
	if (!span)
		return NULL;
	span->outer = (struct context_outer){0};
	span->is_current = span->is_ended = false;
	context_sync();
	span->span = waffle_named_span_begin(name, use->values, use->count);
	return (PyObject *)span;
}

static void leave_and_end(struct span *span)
{
	if (span->is_current) {
		span->is_current = false;
		context_leave(&span->outer, (PyObject *)span);
	}
	if (!span->is_ended) {
		span->is_ended = true;
		waffle_named_span_end(span->span);
	}
}

static void span_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	struct span *span = (struct span *)self;

	if (!span->is_ended)
		waffle_named_span_end(span->span);
	Py_XDECREF(span->outer.holder);
	type->tp_free(self);
	Py_DECREF(type);
}

PyObject *span_enter(struct span *span)
{
	Py_BEGIN_CRITICAL_SECTION(span);
	if (!span->is_current && span->span.id && !span->is_ended) {
		context_enter(&span->outer, (PyObject *)span);
		span->is_current = true;
	}
	Py_END_CRITICAL_SECTION();
	return Py_NewRef((PyObject *)span);
}

/* An error of the span: the type of an exception, and what it says. */
static void record_exception(PyObject *type, PyObject *value)
{
	struct use use;
	waffle_name_t *name;
	PyObject *text = value ? PyObject_Str(value) : NULL;
	PyObject *of = PyObject_GetAttrString(type, "__name__");

	/* The exception that leaves the block counts more than one of its text. But Ctrl-C is not
	 * lost: it comes again. */
	if (!error_forget()) {
		PyErr_Clear();
		PyErr_SetInterrupt();
	}
	use_begin(&use);
	use_add(&use, exception_keys[0], of ? of : Py_None);
	use_add(&use, exception_keys[1], text ? text : Py_None);
	name = site_name(&exception_site, &use, NULL, 0);
	(void)waffle_event_named(name, use.values, use.count);
	use_end(&use);
	Py_XDECREF(of);
	Py_XDECREF(text);
}

void span_leave(struct span *span, PyObject *type, PyObject *value)
{
	if (type && type != Py_None && span->is_current && PyType_Check(type) &&
	    PyType_IsSubtype((PyTypeObject *)type, (PyTypeObject *)PyExc_Exception)) {
		context_sync();
		record_exception(type, value);
	}
	Py_BEGIN_CRITICAL_SECTION(span);
	leave_and_end(span);
	Py_END_CRITICAL_SECTION();
}

static PyObject *span_begin_block(PyObject *self, PyObject *unused)
{
	(void)unused;
	return span_enter((struct span *)self);
}

static PyObject *span_end_block(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
	span_leave((struct span *)self, nargs > 0 ? args[0] : NULL, nargs > 1 ? args[1] : NULL);
	Py_RETURN_NONE;
}

static PyObject *span_end(PyObject *self, PyObject *unused)
{
	(void)unused;
	span_leave((struct span *)self, NULL, NULL);
	Py_RETURN_NONE;
}

/* suspend(): leaves it without an end, as a coroutine does that waits. Entering makes it current
 * again. */
static PyObject *span_suspend(PyObject *self, PyObject *unused)
{
	struct span *span = (struct span *)self;

	(void)unused;
	Py_BEGIN_CRITICAL_SECTION(self);
	if (span->is_current) {
		span->is_current = false;
		context_leave(&span->outer, self);
	}
	Py_END_CRITICAL_SECTION();
	Py_RETURN_NONE;
}

static PyObject *span_get_id(PyObject *self, void *unused)
{
	(void)unused;
	return PyLong_FromUnsignedLongLong(((struct span *)self)->span.id);
}

static PyObject *span_get_context(PyObject *self, void *unused)
{
	(void)unused;
	return context_new(waffle_span_context(((struct span *)self)->span));
}

static int span_bool(PyObject *self)
{
	return ((struct span *)self)->span.id != 0;
}

static PyMethodDef span_methods[] = {
	{"__enter__", span_begin_block, METH_NOARGS, NULL},
	{"__exit__", (PyCFunction)(void (*)(void))span_end_block, METH_FASTCALL, NULL},
	{"end", span_end, METH_NOARGS, "Ends the span, unless it has ended."},
	{"suspend", span_suspend, METH_NOARGS,
	 "Leaves the block without ending the span; entering it again goes on."},
	{0}};

static PyGetSetDef span_getset[] = {
	{"id", span_get_id, NULL, "Its id; 0 if nobody recorded it.", NULL},
	{"context", span_get_context, NULL, "The context inside it.", NULL},
	{0}};

static PyType_Slot span_slots[] = {
	{Py_tp_doc, "A span that has begun. `with span:` makes it current and ends it."},
	{Py_tp_dealloc, span_dealloc},
	{Py_tp_methods, span_methods},
	{Py_tp_getset, span_getset},
	{Py_nb_bool, span_bool},
	{0}};

static PyType_Spec span_spec = {.name = "waffle.Span",
				.basicsize = sizeof(struct span),
				.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
				.slots = span_slots};

/* ---- the null span ---- */

/*
 * Functions that are not methods: `with` finds them in the type, and as they bind to nothing, it
 * makes no object for the call. That is a third of what a dormant span costs.
 */
static PyObject *null_begin(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	return Py_NewRef(span_null);
}

static PyObject *null_end(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
	(void)module;
	(void)args;
	(void)nargs;
	Py_RETURN_NONE;
}

static PyMethodDef null_functions[] = {
	{"__enter__", null_begin, METH_NOARGS, NULL},
	{"__exit__", (PyCFunction)(void (*)(void))null_end, METH_FASTCALL, NULL},
	{0}};

static PyType_Slot null_slots[] = {
	{Py_tp_doc, "The span of a use that nobody recorded: entering it does nothing."}, {0}};

static PyType_Spec null_spec = {.name = "waffle._native.NullSpan",
				.basicsize = sizeof(struct span),
				.flags = Py_TPFLAGS_DEFAULT,
				.slots = null_slots};

static int null_init(void)
{
	PyObject *bases = PyTuple_Pack(1, span_type);
	PyTypeObject *type =
		bases ? (PyTypeObject *)PyType_FromSpecWithBases(&null_spec, bases) : NULL;

	Py_XDECREF(bases);
	if (!type)
		return -1;
	for (unsigned i = 0; i < 2; i++) {
		PyObject *function = PyCFunction_New(&null_functions[i], NULL);

		if (!function ||
		    PyObject_SetAttrString((PyObject *)type, null_functions[i].ml_name, function))
			return -1;
		Py_DECREF(function);
	}
	span_null = (PyObject *)PyObject_New(struct span, type);
	if (!span_null)
		return -1;
	((struct span *)span_null)->span = (waffle_span_t){0};
	((struct span *)span_null)->outer = (struct context_outer){0};
	((struct span *)span_null)->is_current = false;
	((struct span *)span_null)->is_ended = true;
	return 0;
}

/* ---- events ---- */

struct event {
	PyObject_HEAD unsigned long long id;
};

unsigned long long event_id(PyObject *event)
{
	return Py_TYPE(event) == event_type ? ((struct event *)event)->id : 0;
}

static PyObject *event_new(waffle_event_id_t id)
{
	struct event *event;

	if (!id.value && event_null)
		return Py_NewRef(event_null);
	event = PyObject_New(struct event, event_type);
	if (event)
		event->id = id.value;
	return (PyObject *)event;
}

static void event_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	type->tp_free(self);
	Py_DECREF(type);
}

static PyObject *event_get_id(PyObject *self, void *unused)
{
	(void)unused;
	return PyLong_FromUnsignedLongLong(((struct event *)self)->id);
}

static int event_bool(PyObject *self)
{
	return ((struct event *)self)->id != 0;
}

static PyGetSetDef event_getset[] = {
	{"id", event_get_id, NULL, "Its id; 0 if nobody recorded it.", NULL}, {0}};

static PyType_Slot event_slots[] = {
	{Py_tp_doc, "An event that was recorded, as a cause of others. False if nobody did."},
	{Py_tp_dealloc, event_dealloc},
	{Py_tp_getset, event_getset},
	{Py_nb_bool, event_bool},
	{0}};

static PyType_Spec event_spec = {.name = "waffle.Event",
				 .basicsize = sizeof(struct event),
				 .flags = Py_TPFLAGS_DEFAULT,
				 .slots = event_slots};

/* ---- functions of the module ---- */

static PyObject *wrong_count(const char *function, const char *takes)
{
	PyErr_Format(PyExc_TypeError, "waffle.%s() takes %s", function, takes);
	return NULL;
}

/* A text that is not a string is recorded as what str() makes of it. A new reference. */
static PyObject *text_of(PyObject *object)
{
	PyObject *text;

	if (PyUnicode_CheckExact(object))
		return Py_NewRef(object);
	text = PyObject_Str(object);
	if (!text && error_forget())
		text = PyUnicode_FromString(Py_TYPE(object)->tp_name);
	return text;
}

static void use_add_keywords(struct use *use, PyObject *const *values, PyObject *kwnames)
{
	Py_ssize_t count = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;

	for (Py_ssize_t i = 0; i < count; i++) {
		PyObject *key = PyTuple_GET_ITEM(kwnames, i);

		if (key == caused_by ||
		    (PyUnicode_GET_LENGTH(key) == 9 && PyUnicode_Compare(key, caused_by) == 0))
			use_add_causes(use, values[i]);
		else
			use_add(use, key, values[i]);
	}
	use_add_mark(use);
}

PyObject *native_span(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
	struct site own, *site;
	struct use use;
	PyObject *text, *span;

	(void)module;
	if (nargs != 1)
		return wrong_count("span", "a name, and keys with values");
	if (!native_is_recorded())
		return Py_NewRef(span_null);
	text = text_of(args[0]);
	if (!text)
		return NULL;
	site = site_find(text, WAFFLE_SITE_SPAN, &own);
	use_begin(&use);
	use_add_keywords(&use, args + 1, kwnames);
	span = use.failed ? NULL : span_begin(site_name(site, &use, kwnames, 0), &use);
	use_end(&use);
	Py_DECREF(text);
	return span;
}

static PyObject *record_event(PyObject *name, int kind, PyObject *const *values, PyObject *kwnames)
{
	struct site own, *site;
	struct use use;
	waffle_event_id_t id = {0};
	PyObject *text = text_of(name);

	if (!text)
		return NULL;
	site = site_find(text, kind, &own);
	use_begin(&use);
	use_add_keywords(&use, values, kwnames);
	context_sync();
	if (!use.failed)
		id = waffle_event_named(site_name(site, &use, kwnames, 0), use.values, use.count);
	use_end(&use);
	Py_DECREF(text);
	return use.failed ? NULL : event_new(id);
}

PyObject *native_event(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
	(void)module;
	if (nargs != 1)
		return wrong_count("event", "a name, and keys with values");
	if (!native_is_recorded())
		return Py_NewRef(event_null);
	return record_event(args[0], WAFFLE_SITE_EVENT, args + 1, kwnames);
}

/* log(severity, message, keys…): severity is 0 for info, 1 for a warning, 2 for an error. */
PyObject *native_log(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
	static const int kinds[] = {WAFFLE_SITE_LOG_INFO, WAFFLE_SITE_LOG_WARN,
				    WAFFLE_SITE_LOG_ERROR};
	long severity;

	(void)module;
	if (nargs != 2)
		return wrong_count("log", "a severity, a message, and keys with values");
	if (!native_is_recorded())
		return Py_NewRef(event_null);
	severity = PyLong_AsLong(args[0]);
	if (PyErr_Occurred()) {
		PyErr_Clear();
		severity = 0;
	}
	return record_event(args[1],
			    kinds[severity < 0   ? 0
				  : severity > 2 ? 2
						 : severity],
			    args + 2, kwnames);
}

PyObject *native_counter(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
	struct site own, *site;
	struct use use;
	waffle_value_t value;
	PyObject *text;

	(void)module;
	if (nargs != 2)
		return wrong_count("counter", "a name and a value");
	if (!native_is_recorded())
		Py_RETURN_NONE;
	if (!value_of_number(args[1], &value))
		return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
	text = text_of(args[0]);
	if (!text)
		return NULL;
	site = site_find(text, WAFFLE_SITE_COUNTER, &own);
	use_begin(&use);
	context_sync();
	waffle_counter_named(site_name(site, &use, NULL, 0), value);
	Py_DECREF(text);
	Py_RETURN_NONE;
}

int span_init(PyObject *module)
{
	caused_by = PyUnicode_InternFromString("caused_by");
	exception_site.text = PyUnicode_InternFromString("exception");
	exception_keys[0] = PyUnicode_InternFromString("type");
	exception_keys[1] = PyUnicode_InternFromString("message");
	span_type = (PyTypeObject *)PyType_FromSpec(&span_spec);
	event_type = (PyTypeObject *)PyType_FromSpec(&event_spec);
	if (!caused_by || !exception_site.text || !exception_keys[0] || !exception_keys[1] ||
	    !span_type || !event_type || null_init())
		return -1;
	event_null = event_new((waffle_event_id_t){0});
	if (!event_null || PyModule_AddObjectRef(module, "Span", (PyObject *)span_type) ||
	    PyModule_AddObjectRef(module, "Event", (PyObject *)event_type) ||
	    PyModule_AddObjectRef(module, "NULL_SPAN", span_null))
		return -1;
	return 0;
}
