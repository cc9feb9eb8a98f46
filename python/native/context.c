// SPDX-License-Identifier: Apache-2.0
/*
 * Two things say what is current. A context variable of Python follows the code: event loops switch
 * it with their tasks. libwaffle's context belongs to the thread: sites of C and C++ see it.
 * Whoever records something from Python first gives the thread the context of the variable, unless
 * a scope of C has been opened inside of it.
 */
#include "native.h"

PyTypeObject *context_type;
static PyObject *context_variable;

/* The span that Python made current on this thread. Another one that is current there is of C. */
static __thread unsigned long long context_last;

struct context {
	PyObject_HEAD waffle_context_t context;
	struct context_outer outer;
	bool is_current;
	bool is_none; /* it is null, and entering it leaves all others */
};

static bool is_null(waffle_context_t context)
{
	return !context.span_id;
}

waffle_context_t context_of(PyObject *holder)
{
	waffle_context_t none = {0};

	if (!holder)
		return none;
	if (Py_TYPE(holder) == span_type)
		return waffle_span_context(((struct span *)holder)->span);
	return Py_TYPE(holder) == context_type ? ((struct context *)holder)->context : none;
}

PyObject *context_current(void)
{
	PyObject *holder = NULL;

	if (PyContextVar_Get(context_variable, NULL, &holder) < 0)
		PyErr_Clear();
	return holder;
}

void context_set(PyObject *holder)
{
	PyObject *token = PyContextVar_Set(context_variable, holder ? holder : Py_None);

	if (!token)
		PyErr_Clear();
	Py_XDECREF(token);
}

static void native_set(waffle_context_t context)
{
	waffle_named_set_context(context);
	context_last = context.span_id;
}

static void sync_with(PyObject *holder)
{
	waffle_context_t own = context_of(holder), native = waffle_named_context();

	if (native.span_id != own.span_id && native.span_id == context_last)
		native_set(own);
}

void context_sync(void)
{
	PyObject *holder = context_current();

	sync_with(holder);
	Py_XDECREF(holder);
}

void context_enter(struct context_outer *outer, PyObject *holder)
{
	outer->holder = context_current();
	sync_with(outer->holder);
	outer->native = waffle_named_context();
	outer->last = context_last;
	native_set(context_of(holder));
	context_set(holder);
}

void context_leave(struct context_outer *outer, PyObject *holder)
{
	PyObject *now = context_current();
	unsigned long long native = waffle_named_context().span_id;

	if (now == holder)
		context_set(outer->holder);
	/* Code that has left the block on another thread, or after others, has no native context to
	 * go back to but that of the variable. */
	if (native == context_of(holder).span_id) {
		waffle_named_set_context(outer->native);
		context_last = outer->last;
	} else if (native == context_last && now == holder) {
		native_set(context_of(outer->holder));
	}
	Py_XDECREF(now);
	Py_CLEAR(outer->holder);
}

/* ---- waffle.Context ---- */

PyObject *context_new(waffle_context_t context)
{
	struct context *made = PyObject_New(struct context, context_type);

	if (!made)
		return NULL;
	made->context = context;
	made->outer = (struct context_outer){0};
	made->is_current = made->is_none = false;
	return (PyObject *)made;
}

static void context_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	Py_XDECREF(((struct context *)self)->outer.holder);
	type->tp_free(self);
	Py_DECREF(type);
}

/* Context(traceparent=None): that of the header, or the null context if there is none or it is not
 * valid. */
static PyObject *context_make(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"traceparent", NULL};
	const char *text = NULL;
	waffle_context_t context = {0};

	(void)type;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|z", names, &text))
		return NULL;
	if (text)
		waffle_context_from_traceparent(text, &context);
	return context_new(context);
}

static PyObject *context_begin(PyObject *self, PyObject *unused)
{
	struct context *context = (struct context *)self;

	(void)unused;
	Py_BEGIN_CRITICAL_SECTION(self);
	if (!context->is_current && (context->is_none || !is_null(context->context))) {
		context_enter(&context->outer, self);
		context->is_current = true;
	}
	Py_END_CRITICAL_SECTION();
	return Py_NewRef(self);
}

static PyObject *context_end(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
	struct context *context = (struct context *)self;

	(void)args;
	(void)nargs;
	Py_BEGIN_CRITICAL_SECTION(self);
	if (context->is_current) {
		context->is_current = false;
		context_leave(&context->outer, self);
	}
	Py_END_CRITICAL_SECTION();
	Py_RETURN_NONE;
}

/* A copy, since a context can be current in many threads at once, and each has to restore. */
static PyObject *context_copy(PyObject *self, PyObject *unused)
{
	(void)unused;
	return context_new(((struct context *)self)->context);
}

static PyObject *traceparent_of(waffle_context_t context)
{
	char text[WAFFLE_TRACEPARENT_SIZE];

	waffle_context_to_traceparent(context, text);
	return PyUnicode_FromString(text);
}

static PyObject *context_get(PyObject *self, void *which)
{
	waffle_context_t context = ((struct context *)self)->context;

	if (which)
		return PyLong_FromUnsignedLongLong(context.span_id);
	return traceparent_of(context);
}

static PyObject *context_get_trace(PyObject *self, void *unused)
{
	waffle_context_t context = ((struct context *)self)->context;
	char text[33];

	(void)unused;
	snprintf(text, sizeof(text), "%016llx%016llx", context.trace_hi, context.trace_lo);
	return PyLong_FromString(text, NULL, 16);
}

static int context_bool(PyObject *self)
{
	return !is_null(((struct context *)self)->context);
}

/* Contexts travel with what a pool of processes gets. */
static PyObject *context_reduce(PyObject *self, PyObject *unused)
{
	PyObject *text = traceparent_of(((struct context *)self)->context);
	PyObject *reduced = text ? Py_BuildValue("O(O)", context_type, text) : NULL;

	(void)unused;
	Py_XDECREF(text);
	return reduced;
}

static PyObject *context_repr(PyObject *self)
{
	PyObject *text = traceparent_of(((struct context *)self)->context);
	PyObject *repr = text ? PyUnicode_FromFormat("waffle.Context('%U')", text) : NULL;

	Py_XDECREF(text);
	return repr;
}

static PyMethodDef context_methods[] = {
	{"__enter__", context_begin, METH_NOARGS, NULL},
	{"__exit__", (PyCFunction)(void (*)(void))context_end, METH_FASTCALL, NULL},
	{"copy", context_copy, METH_NOARGS, "The same context, to be entered independently."},
	{"__reduce__", context_reduce, METH_NOARGS, NULL},
	{0}};

static PyGetSetDef context_getset[] = {
	{"traceparent", context_get, NULL, "As a header of W3C Trace Context; '' if it is null.",
	 NULL},
	{"span_id", context_get, NULL, "The id of its span; 0 if it is null.", context_methods},
	{"trace_id", context_get_trace, NULL, "The 128 bits of the trace's id.", NULL},
	{0}};

static PyType_Slot context_slots[] = {
	{Py_tp_doc, "Where spans and events belong: a trace and its current span. `with context:` "
		    "makes it current."},
	{Py_tp_new, context_make},
	{Py_tp_dealloc, context_dealloc},
	{Py_tp_methods, context_methods},
	{Py_tp_getset, context_getset},
	{Py_tp_repr, context_repr},
	{Py_nb_bool, context_bool},
	{0}};

static PyType_Spec context_spec = {.name = "waffle.Context",
				   .basicsize = sizeof(struct context),
				   .flags = Py_TPFLAGS_DEFAULT,
				   .slots = context_slots};

static PyObject *native_current(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	context_sync();
	return context_new(waffle_named_context());
}

static PyObject *native_context_of(PyObject *module, PyObject *holder)
{
	(void)module;
	return context_new(context_of(holder));
}

static PyObject *native_no_context(PyObject *module, PyObject *unused)
{
	PyObject *none = context_new((waffle_context_t){0});

	(void)module;
	(void)unused;
	if (none)
		((struct context *)none)->is_none = true;
	return none;
}

static PyMethodDef functions[] = {
	{"current", native_current, METH_NOARGS, "The context that is current here."},
	{"context_of", native_context_of, METH_O, NULL},
	{"no_context", native_no_context, METH_NOARGS, "A context outside of any span."},
	{0}};

int context_init(PyObject *module)
{
	context_variable = PyContextVar_New("waffle", NULL);
	context_type = (PyTypeObject *)PyType_FromSpec(&context_spec);
	if (!context_variable || !context_type ||
	    PyModule_AddObjectRef(module, "Context", (PyObject *)context_type))
		return -1;
	return PyModule_AddFunctions(module, functions);
}
