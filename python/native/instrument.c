// SPDX-License-Identifier: Apache-2.0
/* Functions that waffle.instrument() has decorated. waffle/_instrument.py makes them. */
#include "native.h"

#include <structmember.h>

struct instrumented {
	PyObject_HEAD vectorcallfunc call;
	PyObject *function, *dict, *weakrefs;
	PyObject *parameters; /* the keys of positional arguments; None: not recorded */
	PyObject *skip;       /* a frozenset: keywords that are not recorded */
	PyObject *more;       /* the key of the number of further ones */
	bool has_arguments;   /* they are recorded */
	struct site site;
};

static void add_arguments(struct use *use, const struct instrumented *self, PyObject *const *args,
			  Py_ssize_t nargs, PyObject *kwnames)
{
	Py_ssize_t named = PyTuple_GET_SIZE(self->parameters);
	Py_ssize_t keywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;

	for (Py_ssize_t i = 0; i < nargs && i < named; i++) {
		PyObject *key = PyTuple_GET_ITEM(self->parameters, i);

		if (key != Py_None)
			use_add(use, key, args[i]);
	}
	if (nargs > named) {
		PyObject *count = PyLong_FromSsize_t(nargs - named);

		if (count)
			use_add(use, self->more, count);
		else
			PyErr_Clear();
		Py_XDECREF(count);
	}
	for (Py_ssize_t i = 0; i < keywords; i++) {
		PyObject *key = PyTuple_GET_ITEM(kwnames, i);

		if (!PySet_GET_SIZE(self->skip) || PySet_Contains(self->skip, key) == 0)
			use_add(use, key, args[nargs + i]);
	}
}

/* Begins the span of a call. NULL: an exception is set. */
static struct span *begin_call(struct instrumented *self, PyObject *const *args, Py_ssize_t nargs,
			       PyObject *kwnames)
{
	struct use use;
	PyObject *span;

	use_begin(&use);
	if (self->has_arguments)
		add_arguments(&use, self, args, nargs, kwnames);
	else
		kwnames = NULL;
	use_add_mark(&use);
	span = use.failed ? NULL
			  : span_begin(site_name(&self->site, &use, kwnames,
						 self->has_arguments ? nargs : 0),
				       &use);
	use_end(&use);
	return (struct span *)span;
}

/* Ends the span of a call that has raised, which stays raised. */
static void leave_raised(struct span *span)
{
#if PY_VERSION_HEX >= 0x030c0000
	PyObject *raised = PyErr_GetRaisedException();

	span_leave(span, (PyObject *)Py_TYPE(raised), raised);
	PyErr_SetRaisedException(raised);
#else
	PyObject *type, *value, *traceback;

	PyErr_Fetch(&type, &value, &traceback);
	PyErr_NormalizeException(&type, &value, &traceback);
	span_leave(span, type, value);
	PyErr_Restore(type, value, traceback);
#endif
}

static __attribute__((noinline)) PyObject *
call_recorded(struct instrumented *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
	struct span *span = begin_call(self, args, PyVectorcall_NARGS(nargsf), kwnames);
	PyObject *result;

	if (!span)
		return NULL;
	if (!span->span.id) {
		Py_DECREF((PyObject *)span);
		return PyObject_Vectorcall(self->function, args, nargsf, kwnames);
	}
	Py_DECREF(span_enter(span));
	result = PyObject_Vectorcall(self->function, args, nargsf, kwnames);
	if (result)
		span_leave(span, NULL, NULL);
	else
		leave_raised(span);
	Py_DECREF((PyObject *)span);
	return result;
}

static PyObject *instrumented_call(PyObject *callable, PyObject *const *args, size_t nargsf,
				   PyObject *kwnames)
{
	struct instrumented *self = (struct instrumented *)callable;

	if (native_is_recorded())
		return call_recorded(self, args, nargsf, kwnames);
	return PyObject_Vectorcall(self->function, args, nargsf, kwnames);
}

/* begin(*args, **kwargs): the span of a call, which the caller of begin() enters and leaves. */
static PyObject *instrumented_begin(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
				    PyObject *kwnames)
{
	if (native_is_recorded())
		return (PyObject *)begin_call((struct instrumented *)self, args, nargs, kwnames);
	return Py_NewRef(span_null);
}

static PyObject *instrumented_get(PyObject *self, PyObject *object, PyObject *type)
{
	(void)type;
	if (!object || object == Py_None)
		return Py_NewRef(self);
	return PyMethod_New(self, object);
}

/* By its name, as functions are. */
static PyObject *instrumented_reduce(PyObject *self, PyObject *unused)
{
	(void)unused;
	return PyObject_GetAttrString(self, "__qualname__");
}

static PyObject *instrumented_repr(PyObject *self)
{
	return PyUnicode_FromFormat("<instrumented %R>", ((struct instrumented *)self)->function);
}

/* Instrumented(function, name, file, qualified_name, line, parameters, skip, has_arguments) */
static PyObject *instrumented_make(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	PyObject *function, *name, *file, *qualified, *parameters, *skip;
	int line, has_arguments;
	struct instrumented *self;

	(void)kwargs;
	if (!PyArg_ParseTuple(args, "OUUUiO!O!p", &function, &name, &file, &qualified, &line,
			      &PyTuple_Type, &parameters, &PyFrozenSet_Type, &skip, &has_arguments))
		return NULL;
	self = (struct instrumented *)type->tp_alloc(type, 0);
	if (!self)
		return NULL;
	self->call = instrumented_call;
	self->function = Py_NewRef(function);
	self->parameters = Py_NewRef(parameters);
	self->skip = Py_NewRef(skip);
	self->more = PyUnicode_InternFromString("*args");
	self->has_arguments = has_arguments;
	self->site = (struct site){.text = Py_NewRef(name),
				   .file = Py_NewRef(file),
				   .function = Py_NewRef(qualified),
				   .line = (unsigned)line,
				   .kind = WAFFLE_SITE_SPAN};
	return (PyObject *)self;
}

static int instrumented_traverse(PyObject *object, visitproc visit, void *arg)
{
	struct instrumented *self = (struct instrumented *)object;

	Py_VISIT(Py_TYPE(object));
	Py_VISIT(self->function);
	Py_VISIT(self->dict);
	return 0;
}

static int instrumented_clear(PyObject *object)
{
	struct instrumented *self = (struct instrumented *)object;

	Py_CLEAR(self->function);
	Py_CLEAR(self->dict);
	return 0;
}

static void instrumented_dealloc(PyObject *object)
{
	struct instrumented *self = (struct instrumented *)object;
	PyTypeObject *type = Py_TYPE(object);

	PyObject_GC_UnTrack(object);
	if (self->weakrefs)
		PyObject_ClearWeakRefs(object);
	instrumented_clear(object);
	while (self->site.variants) {
		struct variant *variant = self->site.variants;

		self->site.variants = variant->next;
		Py_XDECREF(variant->kwnames);
		PyMem_RawFree(variant);
	}
	Py_XDECREF(self->site.text);
	Py_XDECREF(self->site.file);
	Py_XDECREF(self->site.function);
	Py_XDECREF(self->parameters);
	Py_XDECREF(self->skip);
	Py_XDECREF(self->more);
	type->tp_free(object);
	Py_DECREF(type);
}

static PyMethodDef instrumented_methods[] = {
	{"begin", (PyCFunction)(void (*)(void))instrumented_begin, METH_FASTCALL | METH_KEYWORDS,
	 "The span of a call with these arguments."},
	{"__reduce__", instrumented_reduce, METH_NOARGS, NULL},
	{0}};

static PyMemberDef instrumented_members[] = {
	{"__vectorcalloffset__", T_PYSSIZET, offsetof(struct instrumented, call), READONLY, NULL},
	{"__dictoffset__", T_PYSSIZET, offsetof(struct instrumented, dict), READONLY, NULL},
	{"__weaklistoffset__", T_PYSSIZET, offsetof(struct instrumented, weakrefs), READONLY, NULL},
	{0}};

static PyGetSetDef instrumented_getset[] = {
	{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL}, {0}};

static PyType_Slot instrumented_slots[] = {{Py_tp_new, instrumented_make},
					   {Py_tp_call, PyVectorcall_Call},
					   {Py_tp_descr_get, instrumented_get},
					   {Py_tp_traverse, instrumented_traverse},
					   {Py_tp_clear, instrumented_clear},
					   {Py_tp_dealloc, instrumented_dealloc},
					   {Py_tp_repr, instrumented_repr},
					   {Py_tp_methods, instrumented_methods},
					   {Py_tp_members, instrumented_members},
					   {Py_tp_getset, instrumented_getset},
					   {0}};

static PyType_Spec instrumented_spec = {.name = "waffle._native.Instrumented",
					.basicsize = sizeof(struct instrumented),
					.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |
						 Py_TPFLAGS_METHOD_DESCRIPTOR |
						 Py_TPFLAGS_HAVE_VECTORCALL,
					.slots = instrumented_slots};

int instrument_init(PyObject *module)
{
	PyObject *type = PyType_FromSpec(&instrumented_spec);

	if (!type)
		return -1;
	return PyModule_AddObjectRef(module, "Instrumented", type);
}
